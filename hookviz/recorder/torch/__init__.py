"""What touches torch's functions and hook dicts while a recording is open, and what is known of how torch behaves."""
