"""A formula computed with torch, and compared with the gradient that was recorded."""
