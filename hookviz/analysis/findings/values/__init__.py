"""Findings about the values of gradients: NaN, Inf, zeros, vanishing and exploding."""
