"""Reads what the nodes of a small graph saved for their formulas, without running the user's code."""

from typing import Any

import torch
from torch.autograd.graph import Node

from hookviz.analysis.formulas.derivatives import required_names
from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.packed_tensors import unpacking_runs_user_code
from hookviz.autograd.tensor_types import has_few_numbers, is_opaque
from hookviz.autograd.torch_internals import FUNCTION_OF_NODE, RAW_SAVED, SAVED, SAVED_TENSORS_SHOW_THEIR_HOOKS
from hookviz.recorder.passes.pass_observer import SMALL_GRAPH
from hookviz.support.source_code import describe_function
from hookviz.trace import SavedRow
from hookviz.trace.rows import BACKWARD_LOCATION
from hookviz.trace.value_rows import DeferredRow
from hookviz.trace.values import holds_nonfinite

MAX_SAVED_NUMBERS = 1_024
"""How many numbers a recording keeps for formulas, in addition to those that it keeps anyway."""
MAX_SEARCHED = 16_384
"""How many more numbers a recording keeps of passes that begin at NaN or Inf, to find where that began."""
MAX_SEARCHED_NODES = 4_096
"""In how many nodes of such a pass."""
_SEARCHED_NAMES = {"AcosBackward0": ("self",), "AsinBackward0": ("self",)}
"""What such a pass reads of ops without a formula."""
_STATISTICS = 8
"""For how many numbers the statistics of a large tensor count."""

_PLAIN = (bool, int, float, complex, str, type(None))
_UNSIGNED = 2**63
"""torch shows a negative dimension as the unsigned number with the same bits."""


class SavedTensors:
    """Writes what nodes saved into the trace, until the recording's limit is reached."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Begin with the whole limit: passes were dropped."""
        self.numbers_left, self._searched_left = MAX_SAVED_NUMBERS, MAX_SEARCHED
        self._searches = False

    def capture(self, snapshot: GraphSnapshot) -> None:
        """Write what the formulas of this graph's nodes need; nothing for more than ``SMALL_GRAPH`` nodes.

        Of a pass that begins at NaN or Inf more nodes are read, and of large tensors the statistics: they show where it
        came from. A healthy pass pays nothing for that.
        """
        self._searches = _begins_at_nonfinite(snapshot)
        most, kept = (MAX_SEARCHED_NODES, self.numbers_left) if self._searches else (SMALL_GRAPH, 0)
        if self._searches:
            self.numbers_left = self._searched_left
        try:
            for node in snapshot.nodes if len(snapshot.nodes) <= most else ():
                self._capture_node(snapshot, node, snapshot.numbers[id(node)])
        finally:
            if self._searches:
                self.numbers_left, self._searched_left = kept, self.numbers_left
            snapshot.tensors.forget_values()

    def _capture_node(self, snapshot: GraphSnapshot, node: Node, number: int) -> None:
        op = graph.op_of(node)
        names = required_names(op) or (_SEARCHED_NAMES.get(op, ()) if self._searches else ())
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
            if any(map(unpacking_runs_user_code, parts)):
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
            return self._measure(snapshot, saved), "large"
        if saved.numel() > self.numbers_left:
            return None, "many"
        count = len(snapshot.trace.values)
        value = snapshot.tensors.shared_value(saved)
        # Most tensors have names and are kept already.
        self.numbers_left -= saved.numel() if len(snapshot.trace.values) > count else 0
        return value, None

    def _measure(self, snapshot: GraphSnapshot, saved: torch.Tensor) -> int | None:
        """Return the number of the statistics of a large tensor, if they help to find NaN or Inf."""
        is_readable = not saved.is_nested and not is_opaque(saved) and saved.is_floating_point()
        if not self._searches or not is_readable or self.numbers_left < _STATISTICS:
            return None
        self.numbers_left -= _STATISTICS
        return snapshot.tensors.shared_value(saved)


def _begins_at_nonfinite(snapshot: GraphSnapshot) -> bool:
    """Return whether a tensor at which a pass begins is known to contain NaN or Inf."""
    trace, roots = snapshot.trace, snapshot.trace.roots[snapshot.pass_id]
    rows = trace.tensors[snapshot.tensors.first_row :]
    indexes = [row.data for row in rows if (row.node, row.output) in roots and row.data is not None]
    values = [value for value in map(trace.values.__getitem__, indexes) if not isinstance(value, DeferredRow)]
    return any(map(holds_nonfinite, values))


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
