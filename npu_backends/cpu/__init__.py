"""The CPU: native kernels, the whole-step executor, and the NumPy reference beside it."""
