"""What is said of a hook that did not fire, or fired surprisingly."""

from typing import Literal, NamedTuple, get_args

Kind = Literal[
    "late",
    "removed",
    "not_called",
    "no_forward",
    "bypassed",
    "substituted",
    "no_graph",
    "returned",
    "frozen",
    "not_in_graph",
    "no_pass",
    "no_step",
    "partial",
    "raised",
    "unobserved",
    "unknown",
    "early",
    "again",
    "kept",
    "ignored",
    "undefined",
]
"""The kinds of causes, as ``Finding.kind`` names them."""
KINDS: tuple[Kind, ...] = get_args(Kind)


class Explanation(NamedTuple):
    """A cause in words."""

    kind: Kind
    sentence: str
    """Why the hook did not fire."""
    advice: str
    is_intended: bool = False
    """Whether who writes it usually means it."""
    is_unrelated: bool = False
    """Whether it says that what ran has nothing to do with the hook. If the hook is older than the recording, this is
    as it should be: a notebook keeps the models and tensors of its earlier cells."""
