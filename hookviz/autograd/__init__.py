"""Read torch's autograd graph and the tensors on it, without changing either."""
