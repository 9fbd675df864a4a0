"""From a model to a chip."""
