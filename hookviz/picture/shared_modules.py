"""Modules that are called several times within one frame: each is drawn once, as a frame around its calls.

The parameters that the calls share stand in it beside them, since they are of none of the calls alone.
"""

from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hookviz.picture import element_ids as ids
from hookviz.picture.primitives import relative_name
from hookviz.picture.repeated_calls import leads_back
from hookviz.picture.scene import Scene


@dataclass(frozen=True)
class SharedModule:
    """A module with its calls in one frame."""

    id: str
    name: str
    """Its name, which may be relative to the frame, and cut."""
    full_name: str
    kind: str
    """Its class."""
    calls: list[str]
    """The ids of the frames or closed boxes of its calls, in their order; none of them is a recomputation."""
    leaves: list[str]
    """The ids of the boxes of the parameters that several of the calls use, and nothing else does."""


class SharedModules:
    """Finds the modules of a scene that are called several times within one frame.

    A module is drawn as often as it is called if a gradient leaves one call and reaches another one through other
    boxes: around both, an arrow would lead back.
    """

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    @cached_property
    def by_frame(self) -> dict[int | None, list[SharedModule]]:
        """The call of a frame, or None for the whole picture → the modules that are called several times in it."""
        found: dict[int | None, list[SharedModule]] = {}
        for frame, calls in self._group_calls():
            elements = [ids.box_id("call", call) for call in calls]
            followers = self._map_followers(frame)
            if not leads_back({*elements}, followers.__getitem__):
                found.setdefault(frame, []).append(self._make(frame, calls, elements))
        return found

    @cached_property
    def leaves(self) -> set[str]:
        """The ids of all boxes of parameters that stand beside the calls that use them, not in one of these."""
        return {leaf for modules in self.by_frame.values() for module in modules for leaf in module.leaves}

    def _make(self, frame: int | None, calls: list[int], elements: list[str]) -> SharedModule:
        trace = self._scene.trace
        path = trace.call_path(calls[0])
        around = trace.call_path(frame) if frame is not None and self._scene.has_relative_names else ""
        kind = trace.modules[trace.calls[calls[0]].module].kind
        leaves = [*self._list_leaves({*elements})]
        return SharedModule(ids.box_id("shared", calls[0]), relative_name(path, around), path, kind, elements, leaves)

    def _group_calls(self) -> Iterator[tuple[int | None, list[int]]]:
        """Yield the call of a frame, and several calls of one module that are drawn directly in it."""
        trace = self._scene.trace
        groups: dict[Any, list[int]] = {}
        for call in sorted(self._calls):
            row = trace.calls[call]
            if not row.recomputed:
                groups.setdefault((self._frames.get(ids.box_id("call", call)), row.module, row.path), []).append(call)
        for (frame, *_module), calls in groups.items():
            if len(calls) > 1 and any(map(self._has_contents, calls)):
                yield frame, calls

    def _has_contents(self, call: int) -> bool:
        """Whether a call has more in it than one op: hooks, parameters, or other boxes."""
        box = self._scene.calls.get(call)
        if box is None:
            return True
        parts = (*box.pins, *box.children, *box.group_ids, *box.nodes[1:])
        return bool(parts) or any(self._scene.boxes[node].parameters for node in box.nodes)

    @cached_property
    def _calls(self) -> list[int]:
        """The calls that have a frame or a closed box."""
        closed = (group.call for group in self._scene.group_boxes)
        return [*self._scene.calls, *(call for call in closed if call is not None)]

    @cached_property
    def _frames(self) -> dict[str, int | None]:
        """Id of a box or of a frame → the call of the frame directly around it; those in no frame are left out."""
        frames: dict[str, int | None] = {}
        for box in self._scene.calls.values():
            frames |= dict.fromkeys(box.box_ids, box.call)
            frames |= {child.id: box.call for child in box.children}
        return frames

    def _climb(self, element: str) -> Iterator[str]:
        """Yield an element, and the frames around it."""
        yield element
        while (frame := self._frames.get(element)) is not None:
            element = ids.box_id("call", frame)
            yield element

    def _find_member(self, element: str, frame: int | None) -> str:
        """Return the one that is directly in ``frame`` and is or holds an element; the outermost if it is not in it."""
        chain = [*self._climb(element)]
        return next((one for one in chain if self._frames.get(one) == frame), chain[-1])

    def _map_followers(self, frame: int | None) -> defaultdict[str, set[str]]:
        """Map each member of a frame to those to which arrows lead from it."""
        followers = defaultdict[str, set[str]](set)
        for arrow in self._scene.all_arrows:
            ends = (arrow.end, arrow.start) if arrow.is_forward else (arrow.start, arrow.end)
            start, end = (self._find_member(one, frame) for one in ends)
            followers[start].add(end)
        return followers

    def _list_leaves(self, calls: Set[str]) -> Iterator[str]:
        """Yield the boxes of the leaves to which arrows lead from several of ``calls``, and from nowhere else."""
        users: dict[str, set[str]] = {}
        leaves = {box.id for box in self._scene.boxes.values() if box.leaf and self._users_of(box.id, calls)}
        for arrow in self._scene.all_arrows:
            if arrow.end in leaves:
                users.setdefault(arrow.end, set()).add(next(iter(self._users_of(arrow.start, calls)), ""))
        yield from (leaf for leaf, names in users.items() if len(names) > 1 and "" not in names)

    def _users_of(self, element: str, calls: Set[str]) -> list[str]:
        """Return the one of ``calls`` that is or holds an element, or nothing."""
        return [one for one in self._climb(element) if one in calls]
