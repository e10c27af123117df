"""What torch's autograd graph is made of, and what a tensor in it holds: read, and never changed."""
