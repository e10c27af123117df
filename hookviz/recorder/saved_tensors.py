"""What the nodes of a small graph saved for their formulas, as far as it can be read without running anybody's code."""

from typing import Any

import torch
from torch.autograd.graph import Node

from hookviz.analysis.formulas.derivatives import needs
from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.torch_internals import FUNCTION_OF_NODE, RAW_SAVED, SAVED
from hookviz.recorder.pass_observer import SMALL
from hookviz.support.source_code import describe
from hookviz.trace import SavedRow
from hookviz.trace.rows import BACKWARD
from hookviz.trace.value_rows import FEW

ROOM = 1_024
"""No more numbers than this are kept for formulas in one recording, in addition to those that it keeps anyway."""

_PLAIN = (bool, int, float, complex, str, type(None))
_UNSIGNED = 2**63
"""torch shows a negative dimension as the unsigned number with the same bits."""


class SavedTensors:
    """Writes down what nodes saved, as long as there is room in the recording."""

    def __init__(self) -> None:
        self.room = ROOM

    def capture(self, snapshot: GraphSnapshot) -> None:
        """What the formulas of this graph's nodes name; in a graph of more than ``SMALL`` nodes, nothing."""
        try:
            for node in snapshot.nodes if len(snapshot.nodes) <= SMALL else ():
                self._take(snapshot, node, snapshot.numbers[id(node)])
        finally:
            snapshot.tensors.forget_values()

    def _take(self, snapshot: GraphSnapshot, node: Node, number: int) -> None:
        names = needs(graph.op_of(node))
        written: list[str] = _written(node) if isinstance(node, torch.autograd.function.BackwardCFunction) else []
        if len(names) + len(written) > self.room:
            return
        self.room -= len(names) + len(written)  # a row takes room as a number does
        snapshot.trace.saved += [
            SavedRow(snapshot.pass_id, number, name, *self._seen(snapshot, node, name)) for name in names
        ]
        snapshot.trace.saved += [SavedRow(snapshot.pass_id, number, BACKWARD, None, where) for where in written]

    def _seen(self, snapshot: GraphSnapshot, node: Node, name: str) -> tuple[Any, Any, str | None]:
        """(number of the value, or plain value, or why there is neither) of what ``node`` saved under ``name``."""
        try:
            raw = getattr(node, f"{RAW_SAVED}{name}", None)
            parts = raw if isinstance(raw, tuple) else () if raw is None else (raw,)
            if any(part.unpack_hook is not None for part in parts):
                return None, None, "hooks"
            thing = getattr(node, f"{SAVED}{name}")
        except AttributeError:  # a torch that saves something else
            return None, None, "none"
        except RuntimeError:  # changed in place since, or freed already: backward will say so itself
            return None, None, "changed"
        if isinstance(thing, torch.Tensor):
            value, why = self._value(snapshot, thing)
            return value, None, why
        if isinstance(raw, tuple):
            found = [self._value(snapshot, part) for part in thing]
            why = next((why for _, why in found if why), None)
            return (None if why else tuple(value for value, _ in found)), None, why
        return (None, _signed(thing), None) if _is_plain(thing) else (None, None, "none")

    def _value(self, snapshot: GraphSnapshot, thing: torch.Tensor | None) -> tuple[int | None, str | None]:
        if thing is None:
            return None, None
        if thing.is_nested or thing.numel() > FEW:
            return None, "large"
        if thing.numel() > self.room:
            return None, "many"
        count = len(snapshot.trace.values)
        value = snapshot.tensors.shared_value(thing)
        self.room -= thing.numel() if len(snapshot.trace.values) > count else 0  # most are those of tensors with names
        return value, None


def _is_plain(thing: Any) -> bool:
    return all(map(_is_plain, thing)) if isinstance(thing, tuple) else isinstance(thing, _PLAIN)


def _signed(thing: Any) -> Any:
    if isinstance(thing, tuple):
        return tuple(map(_signed, thing))
    return thing - 2 * _UNSIGNED if type(thing) is int and thing >= _UNSIGNED else thing


def _written(node: Any) -> list[str]:
    """Where the backward of a Function in Python was written; torch's own have formulas, or none to be read."""
    function = getattr(type(node), FUNCTION_OF_NODE, None)
    if function is None or function.__module__.startswith("torch."):
        return []
    inherited = function.backward is torch.autograd.Function.backward
    _, file, line, *_ = describe(function.vjp if inherited else function.backward)
    return [] if file is None else [f"{file}:{line}"]
