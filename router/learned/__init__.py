"""A router that has learned from outcomes: what it looks at, how it is trained, stored, explained and corrected. NumPy, imported lazily."""
