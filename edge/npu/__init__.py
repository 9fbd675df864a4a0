"""A compiled model as a runtime of the device."""
