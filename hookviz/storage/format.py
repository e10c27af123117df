"""The format of trace files: its name, version and limits."""

FORMAT, VERSION = "hookviz", 1

MAX_NAME_LENGTH, MAX_TEXT_LENGTH = 10_000, 1_000_000
"""In characters. Names have the lower limit because a player repeats them; texts are source texts, errors and notes."""
MAX_FILE_SIZE = 2**29
"""In bytes. Reading a file takes about ten times its size in memory, and the views of the trace take more."""
