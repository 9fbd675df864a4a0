"""All that device and cloud must agree on bit for bit."""
