"""Floats of a captured graph as small integers: products of int8, weights of 8 or 4 bits, and a gate that says what that costs."""
