"""Programs built from the parts."""
