"""Where every buffer of a compiled model lies, decided before it runs: planners, a bound, and a verifier apart from them."""
