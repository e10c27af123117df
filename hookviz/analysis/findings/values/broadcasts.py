"""Find losses of (N, N) numbers that were made of (N, 1) and (N,): each number of one with each of the other."""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from hookviz.analysis.findings.finding import Finding, put_line
from hookviz.analysis.findings.ops import VIEWS, iter_reached, list_ops, skip_views
from hookviz.analysis.findings.training.program_calls import read_line
from hookviz.analysis.findings.values.op_lines import find_op_line
from hookviz.analysis.step_lines import StepLines
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.value_rows import Shape
from hookviz.trace.values import as_tuple

_PAIRING = frozenset({"Add", "Div", "Expand", "Mul", "Rsub", "Sub"})
"""Ops that broadcast; ``Expand`` is what the losses of torch do before they compare."""
_ELEMENTWISE = _PAIRING | {"Abs", "Clamp", "Exp", "Log", "Maximum", "Minimum", "Neg", "Pow", "Relu", "Sqrt", "Where"}
_REDUCING = frozenset({"HuberLoss", "Mean", "MseLoss", "SmoothL1Loss", "Sum"})
_KEEPING_ROWS = _ELEMENTWISE | {"LogSigmoid", "Sigmoid", "Softplus", "Tanh"}
_ALONG = frozenset({"LinalgVectorNorm", "Mean", "Norm", "Select", "Sum"})
"""Ops that make one number of several, along the dimensions that they save."""
_OF_ROWS = frozenset({"Addmm", "Mm", "Mv", *VIEWS})
"""Ops whose first dimension is that of what they take: of a batch, as in a layer or behind it."""
_WANTED = ("None", ".T", ".t(", "expand", "mT", "reshape", "transpose", "unsqueeze", "view")
"""What the line of an op says where a program wants pairs."""


class _Pairing(NamedTuple):
    """An op that combined a tensor with one of the other form; ``node`` and the step in which it computed."""

    node: int
    step: int
    shapes: tuple[Shape, ...]
    """The known shapes of what it takes: one of them, or both."""
    made: Shape


def list_broadcasts(trace: TraceData) -> list[Finding]:
    """List the ops that make (N, N) of (N, 1) and (N,), and whose result is reduced to a number; one for each line.

    It is likely, unless the line shows that the program wants pairs. Without a gradient of one of both, its shape is
    not known.
    """
    groups: dict[tuple[object, ...], list[_Pairing]] = {}
    finder = _PairingFinder(trace)
    for pairing in finder.iter_pairings():
        call = trace.owners.get(pairing.node)
        module = None if call is None else trace.calls[call].module
        key = trace.ops[pairing.node], module, pairing.shapes, pairing.made
        groups.setdefault(key, []).append(pairing)
    found = (_describe_pairing(trace, finder, pairings) for pairings in groups.values())
    return [finding for finding in found if finding is not None]


class _PairingFinder:
    """Finds the ops of a trace that pair, and follows their results to the loss."""

    def __init__(self, trace: TraceData) -> None:
        self._trace = trace
        self._names = list_ops(trace)

    @cached_property
    def _users(self) -> dict[int, list[int]]:
        """Node → the nodes that take its result; only those that an op of a loss may be."""
        found: dict[int, list[int]] = {}
        for (start, _slot), (end, _output) in self._trace.edges.items():
            if self._names[start] in _ELEMENTWISE or self._names[start] in _REDUCING:
                found.setdefault(end, []).append(start)
        return found

    def _list_squares(self) -> list[int]:
        """List the steps of ops that may pair and whose result has two equal dimensions in front."""
        nodes = {node for node, name in enumerate(self._names) if name in _PAIRING}
        rows, values = self._trace.rows, self._trace.values
        steps = [step for step, row in enumerate(rows) if row.kind == "compute" and row.node in nodes] if nodes else []
        known = [(step, values[index][0]) for step in steps if (index := rows[step].before).__class__ is int]
        return [step for step, made in known if made[1:2] and made[0] == made[1]]

    def iter_pairings(self) -> Iterator[_Pairing]:
        """Yield the ops that pair, in the order of the steps."""
        for step in self._list_squares():
            row = self._trace.rows[step]
            made, taken = self._read_shape(row.before), self._list_taken(row.after)
            shapes = tuple(shape for shape in taken if shape is not None)
            if made is None or not _is_pairing(shapes, made) or self._is_wanted(row.own_node, taken, made):
                continue
            if not self._takes_rows(row.own_node, row.pass_id, taken, made):
                continue
            if self.find_reduction(row.own_node, row.pass_id, made) is not None:
                yield _Pairing(row.own_node, step, shapes, made)

    def _read_shape(self, index: object) -> Shape | None:
        return self._trace.values[index][0] if isinstance(index, int) else None

    def _list_taken(self, after: object) -> list[Shape | None]:
        return [self._read_shape(index) for index in as_tuple(after)]

    def _is_wanted(self, node: int, taken: list[Shape | None], made: Shape) -> bool:
        """Whether a program wants pairs: of a leaf, of what got another dimension for this, or of one tensor alone."""
        places = [self._trace.edges.get((node, slot)) for slot, shape in enumerate(taken) if shape is not None]
        names = [self._names[place[0]] for place in places if place is not None]
        dims = [len(shape) for shape in taken if shape is not None]
        has_grown = any(
            name == "AccumulateGrad" or (name in {*VIEWS, "Expand"} - {"Squeeze"} and count == len(made))
            for name, count in zip(names, dims, strict=False)
        )
        tensors = {skip_views(self._trace, place) for place in places}
        return has_grown or (len(places) > 1 and len(tensors) == 1)

    def _takes_rows(self, node: int, pass_id: int, taken: list[Shape | None], made: Shape) -> bool:
        """Whether the (N,) that an op takes, if its form is known, has a number for each row of a batch.

        A number for each feature, as a mean over the batch or a parameter, has the same form by chance. Sums of rows on
        both sides, one of which keeps its dimension, are those of squared distances.
        """
        vector = (made[0], *made[2:])
        places = [self._trace.edges.get((node, slot)) for slot in range(len(taken))]
        vectors = [place for place, shape in zip(places, taken, strict=True) if place is not None and shape == vector]
        are_sums = len(places) > 1 and all(
            place is not None and self._names[place[0]] in _ALONG - {"Select"} for place in places
        )
        return not are_sums and all(self._is_of_rows(place[0], pass_id, vector) for place in vectors)

    def _is_of_rows(self, node: int, pass_id: int, vector: Shape) -> bool:
        makers = iter_reached(node, self._list_ends_of_rows)
        return any(self._keeps_rows(maker, pass_id, vector) for maker in makers)

    def _list_ends_of_rows(self, node: int) -> list[int]:
        ends = self._trace.lookup.next_nodes.get(node, ()) if self._names[node] in _KEEPING_ROWS else ()
        return [end for _slot, end in ends]

    def _keeps_rows(self, node: int, pass_id: int, vector: Shape) -> bool:
        """Whether an op makes a number, or a row of them, for each row of what it takes."""
        step = self._trace.lookup.compute_steps.get((pass_id, node))
        sent = [] if step is None else self._list_taken(self._trace.rows[step].after)
        name, rows = self._names[node], [shape for shape in sent if shape is not None and shape[:1] == vector[:1]]
        if name in _ALONG:
            dims = (row.plain for row in self._trace.lookup.saved(pass_id, node) if row.name == "dim")
            return any(len(shape) > len(vector) for shape in rows) and all(0 not in as_tuple(dim) for dim in dims)
        origin = skip_views(self._trace, (node, 0))
        is_leaf = origin is None or self._names[origin[0]] == "AccumulateGrad"
        return name in _OF_ROWS and not is_leaf and (bool(rows) or name == "Mv")

    def find_reduction(self, node: int, pass_id: int, made: Shape) -> int | None:
        """Return the op that reduces the result of another one to a number, if all in between keep its shape."""
        waiting, seen = [node], {node}
        while waiting:
            for user in self._users.get(waiting.pop(), ()):
                step = self._trace.lookup.compute_steps.get((pass_id, user))
                if user in seen or step is None:
                    continue
                seen.add(user)
                shape = self._read_shape(self._trace.rows[step].before)
                if shape == () and self._names[user] in _REDUCING:
                    return user
                if shape == made and self._names[user] in _ELEMENTWISE:
                    waiting.append(user)
        return None


def _is_pairing(shapes: tuple[Shape, ...], made: Shape) -> bool:
    """Whether an op makes (N, N, ...) of (N, 1, ...) and (N, ...), or of one of these and what is not known."""
    if made[0] < 2 or not shapes or len(set(shapes)) != len(shapes):
        return False
    return {*shapes} <= {(made[0], 1, *made[2:]), (made[0], *made[2:])}


def _describe_pairing(trace: TraceData, finder: _PairingFinder, pairings: list[_Pairing]) -> Finding | None:
    node, step, shapes, made = pairings[0]
    reduction = finder.find_reduction(node, trace.rows[step].pass_id, made)
    nodes = (node,) if reduction is None else (node, reduction)
    place = find_op_line(trace, nodes) or StepLines(trace).place(trace.steps[step])
    has_both = len(shapes) > 1
    is_loss = trace.ops[node].startswith("Expand")
    if not is_loss and (not has_both if place is None else any(word in read_line(trace, place) for word in _WANTED)):
        return None
    other = next(shape for shape in ((made[0], 1, *made[2:]), (made[0], *made[2:])) if shape != shapes[0])
    names = {"on": trace.name(node), "one": shapes[0], "other": other, "all": made}
    text = _(
        "{on} broadcasts a tensor of shape {one} to {all}, and the loss is computed from all its numbers: each number "
        "of one with each of the other."
    )
    cause = (
        _("The other one has the shape {other}.") if has_both else _("The other one probably has the shape {other}.")
    )
    passes = tuple(dict.fromkeys(trace.rows[one.step].pass_id for one in pairings))
    finding = Finding(
        step,
        "broadcast",
        text.format(**names),
        "warning",
        passes,
        cause=cause.format(**names),
        advice=_(
            "If each number belongs to one of the other only, give both the same shape, such as with squeeze(1) on "
            "the one of shape {one}."
        ).format(one=max(shapes[0], other, key=len)),
        certainty="likely",
    )
    return put_line(finding, place)
