"""Explain gradients with PyTorch's own formulas and the recorded values."""
