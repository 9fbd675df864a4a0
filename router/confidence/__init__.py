"""How far an answer of the device can be trusted: signals, their calibration, the gate, and when to stop early."""
