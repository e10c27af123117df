"""The rows about parameters that got no gradient."""

from typing import NamedTuple


class MissingRow(NamedTuple):
    """A parameter that requires grad and belonged to the graph of no pass of the recording."""

    name: str
    """Its path in the model, such as ``net.layers.0.weight``."""
    owner: str
    """The name of the module that holds it."""
    module: int | None
    """The index of that module; None if it was not called."""
