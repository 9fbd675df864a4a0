"""From a model to a chip (its own milestone; nothing is here yet)."""
