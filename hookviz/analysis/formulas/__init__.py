"""PyTorch's own formula for a gradient, with the values in it."""
