"""From a model of the store to a graph of operations, and the arrays that the graph calls constants."""
