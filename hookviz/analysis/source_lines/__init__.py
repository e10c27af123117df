"""Which line of the user's code a step belongs to."""
