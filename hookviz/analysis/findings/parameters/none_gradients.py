"""Nodes that received a gradient and returned None, and what lies behind them: no gradient gets there."""

from functools import cached_property

from hookviz.analysis.findings.parameters.places import Place
from hookviz.support.messages import _, join_sentences
from hookviz.support.source_code import CodePlace, read_place
from hookviz.trace import StepRow, TraceData
from hookviz.trace.rows import BACKWARD_LOCATION
from hookviz.trace.values import as_tuple

NONE_RETURNED = "none_returned"
"""The place of parameters behind a node that returned None."""
_LEAF_OP = "AccumulateGrad"
_REACHING_KINDS = ("arrive", "accumulate", "returned")


class NoneGradients:
    """Finds the steps in which a node returned None, and the nodes that got no gradient because of them."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._culprits: dict[int, dict[int, int]] = {}

    def culprit(self, pass_id: int, node: int | None) -> int | None:
        """Return the step in which a node returned None, so that no gradient got to ``node``; None if there is none."""
        return None if node is None else self._culprits_of(pass_id).get(node)

    @cached_property
    def unreached(self) -> dict[str, int | None]:
        """Parameter in the graph of a pass that no gradient reached in any → the step to blame; None if unknown."""
        names = self.trace.lookup.leaf_names
        reached = {names.get(row.node) for row in self.trace.rows if row.node in names and _is_reaching(row)}
        # The path of a parameter, such as ``net.weight``, not that of an item, ``w['a.b']``.
        rows = (row for row in self.trace.tensors if row.leaf and "." in row.name and "[" not in row.name)
        leaves = {(row.pass_id, row.node): row.name for row in rows}
        unreached: dict[str, int | None] = {}
        for (pass_id, node), name in leaves.items():
            if name not in reached and self.trace.ops[node] == _LEAF_OP:
                step = self.culprit(pass_id, node)
                unreached[name] = unreached.get(name) if step is None else step
        return unreached

    def place(self, step: int) -> Place:
        """Return the place at which a node returned None: the line of its backward, if that is the user's."""
        row = self.trace.rows[step]
        target = next((end for end in self._dropped(row) if end in self._culprits_of(row.pass_id)), None)
        names = {"on": self.trace.name(row.node), "target": describe_node(self.trace, target), "step": f"{step + 1:,}"}
        begin = find_backward(self.trace, row.pass_id, row.own_node)
        text = _("{on} got a gradient and returned None for {target} (step {step}): no gradient goes on from there.")
        more = [] if begin is None else [_("Its backward begins at {where}.").format(where=begin.where)]
        return Place(NONE_RETURNED, join_sentences([text.format(**names), *more]), step, begin)

    def _culprits_of(self, pass_id: int) -> dict[int, int]:
        """Node that got no gradient → the step in which a node before it returned None."""
        if pass_id not in self._culprits:
            self._culprits[pass_id] = self._find_culprits(pass_id)
        return self._culprits[pass_id]

    def _find_culprits(self, pass_id: int) -> dict[int, int]:
        """Follow each None that a node returned to the nodes that ran without a gradient, and to the leaves.

        A pass for chosen tensors does not run the nodes that it does not need: these have no step, and a leaf that it
        was not asked for has lost nothing.
        """
        rows = [(step, self.trace.rows[step]) for step in self.trace.lookup.steps(pass_id)]
        without = {row.own_node for _ignored, row in rows if row.kind == "compute" and is_without_gradient(row.before)}
        reached = {row.node for _ignored, row in rows if _is_reaching(row)}
        is_whole = not any(row.kind in ("returned", "exception") for _ignored, row in rows)
        asked = {row.node for _ignored, row in rows if row.kind == "returned"}
        ends = {end for node in without for _ignored, end in self.trace.lookup.next_nodes.get(node, ())}
        ends |= {end for _ignored, row in rows if row.kind == "compute" for end in self._dropped(row)}
        lost = {end for end in ends if self.trace.ops[end] == _LEAF_OP and (is_whole or end in asked)} - reached
        culprits: dict[int, int] = {}
        for step, row in rows:
            if row.kind == "compute" and not is_without_gradient(row.before):
                self._spread(self._dropped(row), step, without | lost, culprits)
        return culprits

    def _spread(self, queue: list[int], step: int, without: set[int], culprits: dict[int, int]) -> None:
        for node in queue:  # the loop body appends to the queue
            if node in culprits or node not in without:
                continue
            culprits[node] = step
            queue += [end for _ignored, end in self.trace.lookup.next_nodes.get(node, ())]

    def _dropped(self, row: StepRow) -> list[int]:
        """List the next nodes for which a node returned None."""
        sent = as_tuple(row.after)
        edges = self.trace.lookup.next_nodes.get(row.own_node, ())
        return [end for slot, end in edges if slot >= len(sent) or sent[slot] is None]


def find_backward(trace: TraceData, pass_id: int, node: int) -> CodePlace | None:
    """Return where the backward of a custom autograd.Function begins; None for another node."""
    saved = trace.lookup.saved(pass_id, node)
    return read_place(next((str(one.plain) for one in saved if one.name == BACKWARD_LOCATION and one.plain), None))


def is_without_gradient(values: object) -> bool:
    """Return whether all gradients of a step are None."""
    return values is None or (isinstance(values, tuple) and all(value is None for value in values))


def _is_reaching(row: StepRow) -> bool:
    return row.kind in _REACHING_KINDS and row.after is not None


def describe_node(trace: TraceData, node: int | None, output: int | None = None) -> str:
    """Name a node, or one of its outputs, and the module that made it."""
    call, name = None if node is None else trace.owners.get(node), trace.name(node, output)
    return name if call is None else _("{on} of {module}").format(on=name, module=trace.call(call))
