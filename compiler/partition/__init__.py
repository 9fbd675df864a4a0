"""Which chip runs which operations, chosen by what they cost and by what must be moved between chips."""
