"""The values of one pass: their norms, whether they contain NaN or Inf, and descriptions of nodes and modules."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from hookviz.analysis.findings.ops import iter_reached
from hookviz.support.messages import _
from hookviz.trace import (
    FORWARD_HOOK_KINDS,
    HOOK_KINDS,
    STEP_HOOK_KINDS,
    NodeOutput,
    SavedRow,
    ScaleRow,
    StepRow,
    TensorRow,
    TraceData,
)
from hookviz.trace.traversal import iter_enclosing_calls
from hookviz.trace.values import Value, as_tuple, get_norm_nan_inf

CHANGING_KINDS = (*(kind for kind in HOOK_KINDS if kind not in (*FORWARD_HOOK_KINDS, *STEP_HOOK_KINDS)), "unknown_hook")
"""The kinds of step in which a hook can change a gradient."""
FORWARD_KINDS = ("call", "forward", *FORWARD_HOOK_KINDS)
"""The kinds of step of a module call."""
_LINEAR_LAYERS = ("Linear", "Conv1d", "Conv2d", "Conv3d")


class PassFinding(NamedTuple):
    """A finding in one pass: the step where it begins, its kind, a sentence and a severity."""

    step: int
    kind: str
    sentence: str
    severity: str = "warning"
    seen: bool = True
    """Whether the cause is known; Inf that a module returns for an unknown cause may be a mask."""
    is_open: bool = False
    """Whether what brought NaN or Inf is not known, although it is known where it first was."""
    is_given: bool = False
    """Whether the forward was given NaN or Inf, in an input that no op of the graph made."""
    zeros: tuple[str, ...] = ()
    """The parameters that hold only zeros and by which the op multiplies that makes the gradient 0."""
    nodes: tuple[int, ...] = ()
    """The node of the op at which it begins, if that is known, and that of the Inf that it began with."""
    advice: str = ""
    is_in_backward: bool = False
    """Whether NaN or Inf begins where the op computes its gradient, and not in its forward."""
    is_by_weights: bool = False
    """Whether a gradient vanishes or explodes because of the size of weights."""
    leaves: frozenset[int] = frozenset()
    """The leaves that get a gradient of 0 because of it: all behind an op, and those of a hook if no other leaf gets
    one that is not 0."""
    is_reached: bool = False
    """Whether a gradient is 0 because an op of the loss is constant there, and the loss is 0: nothing is left to learn.
    """
    effects: tuple[tuple[int, int | None], ...] = ()
    """All steps of the pass that do the same to a gradient, of which ``step`` is the worst, each with a leaf that gets
    a gradient of 0 because of it, if it is about zeros; empty if the finding is about something else than single
    steps."""


class PassStatistics:
    """The steps of one pass in order, with statistics of their values.

    The parameter ``values`` of the methods is what a step row holds: the index of a value, a tuple of them, or None.
    Results are cached in dicts and sets of plain numbers: a trace has many steps, and the garbage collector does not
    have to traverse such caches.
    """

    def __init__(self, trace: TraceData, steps: Sequence[int], tensors: list[TensorRow]) -> None:
        self.trace, self.steps, self.tensors = trace, steps, tensors
        self.pass_id = trace.rows[steps[0]].pass_id
        self._norms: dict[int, float | None] = {}
        self._nan: set[int] = set()
        self._inf: set[int] = set()
        self.has_nonfinite = False
        """Whether one of the values measured so far contains NaN or Inf."""

    @property
    def rows(self) -> Iterator[tuple[int, StepRow]]:
        """The index and the row of each step."""
        return zip(self.steps, map(self.trace.rows.__getitem__, self.steps), strict=True)

    @cached_property
    def compute_steps(self) -> dict[int, int]:
        """Node → the step at which it computes, in the order of the steps."""
        return {row.own_node: step for step, row in self.rows if row.kind == "compute"}

    @cached_property
    def arrival_steps(self) -> dict[int, int]:
        """Node → the step at which its gradient arrives; of several gradients, the one with the largest norm."""
        steps: dict[int, int] = {}
        largest: dict[int, float] = {}
        for step, row in self.rows:
            if row.kind not in ("seed", "arrive") or not isinstance(row.after, int) or row.node is None:
                continue
            norm = self.norm(row.after)
            if norm is not None and not largest.get(row.node, -1.0) >= norm:
                steps[row.node], largest[row.node] = step, norm
        return steps

    @property
    def root_tensors(self) -> list[TensorRow]:
        """The recorded tensors at which the pass began; none in a forward that no pass follows."""
        roots = self.roots
        return [row for row in self.tensors if (row.node, row.output) in roots]

    @property
    def roots(self) -> Sequence[NodeOutput]:
        """Where the pass began."""
        return self.trace.roots[self.pass_id] if self.pass_id < len(self.trace.roots) else ()

    @property
    def scales(self) -> list[ScaleRow]:
        """The scales by which GradScalers multiplied the gradients of this pass."""
        return self.trace.lookup.scales(self.pass_id)

    def find_only(self, kind: str, call: int | None) -> int | None:
        """Return the index of the only value that a module call was given (``call``), or returned (``forward``)."""
        rows = (row for _ignored, row in self.rows if row.kind == kind and row.call == call)
        values: Any = next((row.after for row in rows), None)
        found = [one for one in as_tuple(values) if one is not None]
        return found[0] if len(found) == 1 else None

    def targets(self, node: int) -> list[int]:
        """The nodes to which a node of this pass sends gradients, in the order of its slots."""
        slots = range(len(self.sent(node)))
        return [place[0] for slot in slots if (place := self.trace.edges.get((node, slot))) is not None]

    def sent(self, node: int) -> tuple[int | None, ...]:
        """What a node of this pass sent on each of its edges, as indices of values."""
        return as_tuple(self.trace.rows[self.compute_steps[node]].after)

    def _find_saved(self, node: int, name: str) -> SavedRow | None:
        """What a node had saved under a name when the pass began."""
        return next((row for row in self.trace.lookup.saved(self.pass_id, node) if row.name == name), None)

    def tensors_of(self, node: int) -> list[TensorRow]:
        """The tensors of a node, as they were when the pass began."""
        return self.trace.lookup.tensors(self.pass_id, node)

    def saved_tensor(self, node: int, name: str) -> Value | None:
        """The tensor that a node had saved under ``name``; None if it is unknown."""
        row = self._find_saved(node, name)
        return self.value(row.value) if row is not None and isinstance(row.value, int) else None

    def saved_setting(self, node: int, name: str) -> Any:
        """What a node had saved under ``name`` as plain data, such as sizes; None if it is a tensor or unknown."""
        row = self._find_saved(node, name)
        return None if row is None else row.plain

    def saved_number(self, node: int, name: str) -> float | None:
        """A number that a node had saved, such as an exponent; None if it is a tensor or unknown."""
        number = self.saved_setting(node, name)
        return number if isinstance(number, int | float) else None

    def norm(self, index: int) -> float | None:
        """The 2-norm of a value; None if its numbers are not known, or if it is empty."""
        if index not in self._norms:
            self._norms[index] = self._measure(index)
        return self._norms[index]

    def _measure(self, index: int) -> float | None:
        """The norm of a value; also notes whether the value contains NaN or Inf."""
        value = self.trace.values[index]
        if value[-1] is not None or 0 in value[0]:
            return None
        norm, nan, inf = get_norm_nan_inf(value)
        if nan:
            self._nan.add(index)
        if inf:
            self._inf.add(index)
        self.has_nonfinite = self.has_nonfinite or nan > 0 or inf > 0
        return norm

    def value(self, index: int) -> Value:
        """The value with this index."""
        return Value(*self.trace.values[index])

    def values(self, values: Any) -> list[Value]:
        """The values that are there."""
        return [self.value(index) for index in as_tuple(values) if index is not None]

    def norms(self, values: Any) -> list[float]:
        """The norms that are known."""
        if values is None or isinstance(values, int):
            norm = None if values is None else self.norm(values)
            return [] if norm is None else [norm]
        norms = [self.norm(index) for index in values if index is not None]
        return [norm for norm in norms if norm is not None]

    def find_new_kind(self, before: Any, after: Any) -> str | None:
        """``nan`` or ``inf`` if ``after`` contains it and ``before`` does not, else None.

        An Inf is not new if ``before`` contains NaN, since a NaN can lead to an Inf.
        """
        if not self.is_nonfinite(after) or self._contains(self._nan, before):
            return None
        if self._contains(self._nan, after):
            return "nan"
        return None if self._contains(self._inf, before) else "inf"

    def is_nonfinite(self, values: Any) -> bool:
        """Whether the values contain NaN or Inf."""
        if values is not None and (isinstance(values, tuple) or values not in self._norms):
            self.norms(values)
        return self.has_nonfinite and (self._contains(self._nan, values) or self._contains(self._inf, values))

    def _contains(self, indices: set[int], values: Any) -> bool:
        """Whether one of the values is in ``indices``; the values are measured first, which may add them."""
        self.norms(values)
        return bool(indices) and not indices.isdisjoint(as_tuple(values))

    @cached_property
    def users(self) -> dict[int, list[int]]:
        """Node → the nodes that take what it made, and that compute in this pass."""
        found: dict[int, list[int]] = {}
        for user, _slot, end in self.trace.lookup.out_edges(self.compute_steps):
            found.setdefault(end, []).append(user)
        return found

    def list_behind(self, node: int) -> set[int]:
        """The nodes from which a node was computed, and to which its gradient goes on."""
        next_nodes = self.trace.lookup.next_nodes
        return {*iter_reached(node, lambda one: [end for _slot, end in next_nodes.get(one, ())])} - {node}

    def is_in_loss(self, node: int) -> bool:
        """Whether an op, and all that take what it made, are outside of modules or in modules of losses."""
        reached = iter_reached(node, lambda one: self.users.get(one, ()))
        calls = (call for one in reached for call in self.enclosing_calls(one))
        return all(self.module_class(call).endswith("Loss") for call in calls)

    def enclosing_calls(self, node: int) -> list[int]:
        """The module calls in which ``node`` was made, the innermost first."""
        return list(iter_enclosing_calls(self.trace, self.trace.owners.get(node)))

    def common_call(self, nodes: Iterable[int]) -> int | None:
        """The innermost module call in which all of ``nodes`` were made; None if there is no such call."""
        if not self.trace.owners:
            return None
        common: list[int] | None = None
        owners = {self.trace.owners.get(node): node for node in nodes}
        for node in owners.values():
            calls = self.enclosing_calls(node)
            common = calls if common is None else [call for call in common if call in calls]
        return common[0] if common else None

    def describe_node(self, node: int) -> str:
        """A node and the module that contains it: ``LogBackward0 of net.3 (Log)``."""
        name, call = self.trace.name(node), self.trace.owners.get(node)
        return name if call is None else _("{on} of {module}").format(on=name, module=self.describe_module(call))

    def describe_module(self, call: int) -> str:
        """A module and its class: ``net.3 (Log)``."""
        return _("{on} ({kind})").format(on=self.trace.call(call), kind=self.module_class(call))

    def module_class(self, call: int) -> str:
        """The name of the class of the module that was called."""
        return self.trace.modules[self.trace.calls[call].module].kind

    def is_linear(self, call: int) -> bool:
        """Whether the module that was called adds up products of what it was given and a weight."""
        return self.module_class(call) in _LINEAR_LAYERS

    def describe_location(self, node: int) -> str:
        """The module that contains a node; the node itself if it is outside of modules."""
        call = self.trace.owners.get(node)
        return self.trace.name(node) if call is None else self.describe_module(call)
