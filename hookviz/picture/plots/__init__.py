"""Plots of a trace: the gradients of its layers in one pass, or over a training, and its loss."""
