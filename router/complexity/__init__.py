"""How much a conversation asks of a model, by what can be counted in it."""
