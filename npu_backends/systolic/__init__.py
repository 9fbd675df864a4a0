"""The simulated chip: cycles, traffic and energy of a systolic array, and the numbers it computes."""
