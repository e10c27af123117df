"""Reads what the nodes of a small graph saved for their formulas, without running the user's code."""

from typing import Any

import torch
from torch.autograd.graph import Node

from hookviz.analysis.formulas.derivatives import required_names
from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.tensor_types import has_few_numbers
from hookviz.autograd.torch_internals import FUNCTION_OF_NODE, RAW_SAVED, SAVED, SAVED_TENSORS_SHOW_THEIR_HOOKS
from hookviz.recorder.passes.pass_observer import SMALL_GRAPH
from hookviz.support.source_code import describe_function
from hookviz.trace import SavedRow
from hookviz.trace.rows import BACKWARD_LOCATION

MAX_SAVED_NUMBERS = 1_024
"""How many numbers a recording keeps for formulas, in addition to those that it keeps anyway."""

_PLAIN = (bool, int, float, complex, str, type(None))
_UNSIGNED = 2**63
"""torch shows a negative dimension as the unsigned number with the same bits."""


class SavedTensors:
    """Writes what nodes saved into the trace, until the recording's limit is reached."""

    def __init__(self) -> None:
        self.numbers_left = MAX_SAVED_NUMBERS

    def capture(self, snapshot: GraphSnapshot) -> None:
        """Write what the formulas of this graph's nodes need; nothing for more than ``SMALL_GRAPH`` nodes."""
        try:
            for node in snapshot.nodes if len(snapshot.nodes) <= SMALL_GRAPH else ():
                self._capture_node(snapshot, node, snapshot.numbers[id(node)])
        finally:
            snapshot.tensors.forget_values()

    def _capture_node(self, snapshot: GraphSnapshot, node: Node, number: int) -> None:
        names = required_names(graph.op_of(node))
        sources: list[str] = (
            _backward_source(node) if isinstance(node, torch.autograd.function.BackwardCFunction) else []
        )
        if len(names) + len(sources) > self.numbers_left:
            return
        self.numbers_left -= len(names) + len(sources)  # a row counts as much as a number
        snapshot.trace.saved += [
            SavedRow(snapshot.pass_id, number, name, *self._read_saved(snapshot, node, name)) for name in names
        ]
        snapshot.trace.saved += [
            SavedRow(snapshot.pass_id, number, BACKWARD_LOCATION, None, source) for source in sources
        ]

    def _read_saved(self, snapshot: GraphSnapshot, node: Node, name: str) -> tuple[Any, Any, str | None]:
        """Return (number of the value, plain value, reason why there is neither) of what ``node`` saved as ``name``."""
        try:
            raw = getattr(node, f"{RAW_SAVED}{name}", None)
            parts = raw if isinstance(raw, tuple) else () if raw is None else (raw,)
            if parts and not SAVED_TENSORS_SHOW_THEIR_HOOKS:
                return None, None, "torch"
            if any(part.unpack_hook is not None for part in parts):
                return None, None, "hooks"
            if any(map(graph.unpacking_runs_user_code, parts)):
                return None, None, "hidden"
            saved = getattr(node, f"{SAVED}{name}")
        except AttributeError:  # this torch saves something else
            return None, None, "none"
        except RuntimeError:  # changed in place since, or freed already: backward raises the same error
            return None, None, "changed"
        if isinstance(saved, torch.Tensor):
            value, reason = self._value_number(snapshot, saved)
            return value, None, reason
        if isinstance(raw, tuple):
            values = [self._value_number(snapshot, part) for part in saved]
            reason = next((reason for _, reason in values if reason), None)
            return (None if reason else tuple(value for value, _ in values)), None, reason
        return (None, _as_signed(saved), None) if _is_plain(saved) else (None, None, "none")

    def _value_number(self, snapshot: GraphSnapshot, saved: torch.Tensor | None) -> tuple[int | None, str | None]:
        if saved is None:
            return None, None
        if saved.is_nested or not has_few_numbers(saved):
            return None, "large"
        if saved.numel() > self.numbers_left:
            return None, "many"
        count = len(snapshot.trace.values)
        value = snapshot.tensors.shared_value(saved)
        # Most tensors have names and are kept already.
        self.numbers_left -= saved.numel() if len(snapshot.trace.values) > count else 0
        return value, None


def _is_plain(saved: Any) -> bool:
    return all(map(_is_plain, saved)) if isinstance(saved, tuple) else isinstance(saved, _PLAIN)


def _as_signed(saved: Any) -> Any:
    if isinstance(saved, tuple):
        return tuple(map(_as_signed, saved))
    return saved - 2 * _UNSIGNED if type(saved) is int and saved >= _UNSIGNED else saved


def _backward_source(node: Any) -> list[str]:
    """Return the file and line of a Python Function's backward; an empty list for torch's own Functions."""
    function = getattr(type(node), FUNCTION_OF_NODE, None)
    if function is None or function.__module__.startswith("torch."):
        return []
    inherited = function.backward is torch.autograd.Function.backward
    _, file, line, *_ = describe_function(function.vjp if inherited else function.backward)
    return [] if file is None else [f"{file}:{line}"]
