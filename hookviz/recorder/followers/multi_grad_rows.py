"""Makes one row of the parts of each multi-grad hook, which torch registers on each of its tensors."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from hookviz.trace import UnfiredRow


class MultiGradGroup(NamedTuple):
    """What the parts of one multi-grad hook have in common."""

    state: object
    """The dict that the parts share; it is held so that no other hook gets the same ``id``."""
    size: int | None
    """The number of parts; None for a hook that fires at the first gradient, whose parts torch does not count."""


GroupedRow: TypeAlias = tuple[UnfiredRow, MultiGradGroup | None]
"""A row, and for a part of a multi-grad hook its group."""


def merge_multi_grad_rows(rows: Iterable[GroupedRow], fired_states: set[int]) -> list[UnfiredRow]:
    """Merge the rows of the parts of each multi-grad hook; leave out the hooks that fired, by ``id`` of their state."""
    merged: list[UnfiredRow] = []
    parts: dict[int, tuple[MultiGradGroup, list[UnfiredRow]]] = {}
    for row, group in rows:
        if group is None:
            merged.append(row)
        else:
            parts.setdefault(id(group.state), (group, []))[1].append(row)
    for state, (group, same) in parts.items():
        if state not in fired_states and not _may_have_fired_unseen(group, same):
            merged.append(_merge(same))
    return merged


def _may_have_fired_unseen(group: MultiGradGroup, parts: Sequence[UnfiredRow]) -> bool:
    """Return whether the hook may have a part that the recording does not know: one that is older than it."""
    return parts[0].since is None and (group.size is None or len(parts) < group.size)


def _merge(parts: Sequence[UnfiredRow]) -> UnfiredRow:
    """Return the row of a hook, with the facts that hold for all of its tensors, or for those in the graph."""
    relevant = [part for part in parts if part.in_graph] or list(parts)
    return parts[0]._replace(
        on=", ".join(part.on for part in parts if part.on),
        passes=min(part.passes for part in relevant),
        partial=min(part.partial for part in relevant),
        in_graph=max(part.in_graph for part in relevant),
        leaf=all(part.leaf for part in relevant),
        frozen=all(part.frozen for part in relevant),
        stray=all(part.stray for part in relevant),
    )
