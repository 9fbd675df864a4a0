"""From a model to a chip (nothing is here yet)."""
