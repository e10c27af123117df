"""Compare hookviz with its peers on the same work: their cost, their output, and the hooks that they show."""
