"""Backward passes: observers between the hooks and behind the nodes, and the gradients that they see."""
