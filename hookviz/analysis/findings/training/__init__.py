"""Findings about the training loop: parameters that are not trained, gradients that add up, steps that do nothing."""
