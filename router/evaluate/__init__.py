"""How good a router is: outcomes of both models, scorers under test, and the figures between them. NumPy; imported lazily."""
