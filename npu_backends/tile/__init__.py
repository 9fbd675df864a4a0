"""Kernels written once, knowing no chip: each operation as a flat list of loads, computations and stores of tiles."""
