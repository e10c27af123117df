"""The command line, ``hookviz``: commands for saved traces, and one that records a script."""
