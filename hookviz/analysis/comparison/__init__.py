"""Compare traces of the same program: find what differs, and align them so that they can be shown together."""
