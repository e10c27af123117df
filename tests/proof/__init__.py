"""Proof that a recorded pass is, bit for bit, the pass it would have been."""
