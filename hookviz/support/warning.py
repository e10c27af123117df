"""The category of all warnings of hookviz."""


class HookvizWarning(UserWarning):
    """Something could not be observed, or a recording grows without end; your program runs as it would have."""
