"""request -> scheduler -> runner -> sampler -> output."""
