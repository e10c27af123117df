"""The category of hookviz's warnings."""


class HookvizWarning(UserWarning):
    """Something could not be observed, or a recording grows without end; what is observed runs as it would have."""
