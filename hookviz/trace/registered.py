"""The hooks that were registered in one pass: where each stands among those of its dict, and on which node."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hookviz.trace.rows import HookRow


class Registered(NamedTuple):
    """The hooks of one pass, or of all passes."""

    places: Mapping[int, tuple[int, int]]
    """Hook → its place among those of its dict, and how many they are."""
    on_nodes: Mapping[int, Sequence[int]]
    """Node → the hooks on it and on its outputs; -1 for those of modules and optimizers."""

    @classmethod
    def of(cls, hooks: Iterable[int], rows: Sequence[HookRow]) -> "Registered":
        """The hooks of these numbers; ``rows`` are those of all.

        >>> row = HookRow("tensor_hook", 3, 0, 0, "print", None, None, None, None)
        >>> Registered.of([0, 1], [row, row]).places
        {0: (0, 2), 1: (1, 2)}
        """
        dicts: dict[object, list[int]] = {}
        on_nodes: dict[int, list[int]] = {}
        for index in hooks:
            dicts.setdefault(rows[index].dict, []).append(index)
            on_nodes.setdefault(rows[index].node, []).append(index)
        places = {index: (place, len(peers)) for peers in dicts.values() for place, index in enumerate(peers)}
        return cls(places, on_nodes)
