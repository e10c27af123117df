"""Several traces of one program: what differs between them, and how to show them together."""
