"""Number formats of weights, and their lossless repacking for kernels."""
