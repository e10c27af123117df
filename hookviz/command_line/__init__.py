"""The command line, ``python -m hookviz``: commands for saved traces, and one that records a script."""
