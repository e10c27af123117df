"""The graph of a pass as a picture shows it: arrows pass over the nodes that nobody wrote.

torch makes such nodes on its own: a Linear transposes its weight, and a full backward hook of a module needs a node at
its output. They are drawn only on demand. The leaves of a module's parameters are rows in the box of the op that uses
them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from hookviz.trace import TraceData
from hookviz.trace.columns import ValueIndexes
from hookviz.trace.traversal import assign_nodes_to_calls, iter_enclosing_calls
from hookviz.trace.values import get_norm_nan_inf

HOOK_NODE = "BackwardHookFunctionBackward"
"""The node through which torch calls the full backward hooks of a module. Its input i belongs to its output i."""

PASSED_OVER: Mapping[str, str] = {
    HOOK_NODE: "torch puts it at the inputs and outputs of a module with a full backward hook",
    "TBackward0": "a Linear and a recurrent cell transpose their weights",
    "ViewBackward0": "a Linear flattens an input of three dimensions, and attention splits and joins its heads",
    "UnsafeViewBackward0": "matmul gives its result the shape that the caller expects",
    "ReshapeAliasBackward0": "a reshape that needs no copy",
    "ExpandBackward0": "matmul and arithmetic repeat a tensor to the shape of the other one",
    "UnsqueezeBackward0": "an added dimension of size 1",
    "SqueezeBackward0": "removed dimensions of size 1",
    "SqueezeBackward1": "a removed dimension of size 1",
    "TransposeBackward0": "two dimensions swapped, as batch_first=True does",
    "PermuteBackward0": "dimensions in another order",
    "AliasBackward0": "another tensor with the same numbers",
}
"""Op → why nobody wrote it. All but the first only change the layout of a tensor."""

PASSED_OVER_IN_LIBRARY: Mapping[str, str] = {
    "CloneBackward0": "attention copies a permuted tensor",
    "SelectBackward0": "attention takes queries, keys and values out of one projection",
    "SliceBackward0": "a recurrent module takes the steps out of its input",
}
"""Op → why nobody wrote it in a call of ``LIBRARY_MODULES``. Elsewhere somebody wrote ``clone()`` or ``x[:, 0]``."""

LIBRARY_MODULES = frozenset({"MultiheadAttention", "RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"})
"""Classes of torch.nn whose calls make many ops, none of which the user wrote."""

MAX_PARAMETERS = 16
"""The most parameters in one box; if an op uses more, as ``torch.cat`` of all of them, each has a box of its own."""

_PLAIN = ("arrive", "compute")
"""The kinds of steps in which a node only passes on its gradient."""

Edge = tuple[int, int]
"""(node, input): where an edge starts."""


@dataclass
class VisibleGraph:
    """The nodes that a picture shows, the arrows between them, and what stands for each hidden node."""

    nodes: list[int]
    """The nodes with a box, those nearest to the roots first."""
    calls: dict[int, int]
    """Node, with a box or not → the module call in whose frame it belongs; missing if it is in none."""
    targets: dict[Edge, tuple[int, int]] = field(default_factory=dict)
    """Start of an arrow → (the node to which it points, the output of that node)."""
    passages: dict[Edge, list[Edge]] = field(default_factory=dict)
    """Start of an edge at a hidden node → the starts of the arrows that pass along it."""
    ends: dict[int, int] = field(default_factory=dict)
    """Hidden node that arrows pass over → the next node with a box or a row."""
    parameters: dict[int, list[int]] = field(default_factory=dict)
    """Node → the leaves that are rows in its box."""
    boxes: dict[int, int] = field(default_factory=dict)
    """Node without a box of its own → the node whose box stands for it."""

    @property
    def edges(self) -> list[tuple[int, int, int]]:
        """(node, input, next node) for each arrow."""
        return [(start, slot, end) for (start, slot), (end, _output) in self.targets.items()]

    @cached_property
    def represented(self) -> dict[int, list[int]]:
        """Node with a box → the nodes without one for which it stands."""
        nodes: dict[int, list[int]] = {}
        for node, box in self.boxes.items():
            nodes.setdefault(box, []).append(node)
        return nodes


def make_visible_graph(trace: TraceData, pass_id: int, nodes: Sequence[int], *, internal: bool = False) -> VisibleGraph:
    """Make the graph that a picture of a pass shows.

    Args:
        trace: the trace.
        pass_id: the pass.
        nodes: its nodes, those nearest to the roots first.
        internal: whether nodes that nobody wrote have boxes as well.
    """
    calls = assign_nodes_to_calls(trace, nodes)
    parameters = {node for node in nodes if "." in trace.lookup.leaf_names.get(node, "")}
    if internal or not (calls or parameters):  # whoever uses no module has written each transposition
        return _connect(trace, nodes, calls, set())
    roots = {node for roots_of_pass in trace.roots[pass_id : pass_id + 1] for node, _output in roots_of_pass}
    graph = _connect(trace, nodes, calls, set(_list_unwritten(trace, pass_id, nodes, calls, roots)))
    _move_parameters(graph, trace, parameters - roots)
    _assign_to_boxes(graph)
    return graph


def _list_unwritten(
    trace: TraceData, pass_id: int, nodes: Sequence[int], calls: Mapping[int, int], roots: Collection[int]
) -> Iterator[int]:
    """Yield the nodes that nobody wrote and about which there is nothing to say; a call keeps at least one node."""
    inside, observed = set(nodes), {*roots, *_list_observed_nodes(trace, pass_id)}
    candidates = [
        node
        for node in nodes
        if node not in observed
        and _is_unwritten(trace, trace.ops[node], calls.get(node))
        and _lies_between(trace, node, inside)
        and not any(row.name or row.retains_grad for row in trace.lookup.tensors(pass_id, node))
        and not _turns_bad(trace, pass_id, node)
    ]
    hidden = set(candidates)
    shown = (node for node in nodes if node not in hidden and trace.ops[node] != "AccumulateGrad")
    makers = {calls[node] for node in shown if node in calls}
    filled = set(chain.from_iterable(iter_enclosing_calls(trace, call) for call in makers))
    for node in candidates:
        call = calls.get(node)
        if call is None or call in filled:
            yield node
        else:  # nn.Flatten is written by somebody, and its frame must not be empty
            filled.update(iter_enclosing_calls(trace, call))


def _list_observed_nodes(trace: TraceData, pass_id: int) -> Iterator[int]:
    """Yield the nodes with a hook of their own, fired or not, and those with steps that are no plain passing on."""
    yield from trace.lookup.hooks(pass_id).by_node
    yield from (row.node for row in trace.unfired_rows if row.node is not None)
    rows = (trace.rows[step] for step in trace.lookup.steps(pass_id))
    yield from (row.own_node for row in rows if row.node is not None and row.call is None and row.kind not in _PLAIN)


def _is_unwritten(trace: TraceData, op: str, call: int | None) -> bool:
    if op in PASSED_OVER:
        return True
    module = None if call is None else trace.modules[trace.calls[call].module].kind
    return op in PASSED_OVER_IN_LIBRARY and module in LIBRARY_MODULES


def _lies_between(trace: TraceData, node: int, inside: Collection[int]) -> bool:
    """Whether each gradient that arrives at a node goes on to one other node that is in the picture."""
    edges = trace.lookup.next_nodes.get(node, [])
    if not edges or any(end not in inside for _slot, end in edges):
        return False
    if trace.ops[node] == HOOK_NODE:
        return {slot for slot, _end in edges}.issuperset(trace.outputs(node))
    return len(edges) == 1


def _turns_bad(trace: TraceData, pass_id: int, node: int) -> bool:
    """Whether a gradient is fine when it arrives at a node, and zero, NaN or infinite when the node has computed."""
    step = trace.lookup.compute_steps.get((pass_id, node))
    if step is None:
        return False
    row = trace.rows[step]
    return any(_list_bad(trace, row.after)) and not any(_list_bad(trace, row.before))


def _list_bad(trace: TraceData, values: ValueIndexes) -> Iterator[bool]:
    """Yield for each of ``values`` whether it is zero, NaN or infinite."""
    for index in values if isinstance(values, tuple) else (values,):
        if index is not None:
            norm, nan, inf = get_norm_nan_inf(trace.values[index])
            yield norm == 0 or nan + inf > 0


def _connect(trace: TraceData, nodes: Sequence[int], calls: Mapping[int, int], hidden: Collection[int]) -> VisibleGraph:
    """Connect the nodes that are not ``hidden``: an arrow leads from each to the next one."""
    inside, ops = set(nodes), trace.ops
    graph = VisibleGraph([node for node in nodes if node not in hidden], {**calls})
    for start, slot, first_end in trace.lookup.out_edges(graph.nodes):
        if first_end not in inside:
            continue
        end, output = trace.edges[start, slot]
        while end in hidden:
            hop = (end, output if ops[end] == HOOK_NODE else trace.lookup.next_nodes[end][0][0])
            graph.passages.setdefault(hop, []).append((start, slot))
            end, output = trace.edges[hop]
        graph.targets[start, slot] = (end, output)
    for (node, _slot), arrows in graph.passages.items():
        graph.ends[node] = graph.targets[arrows[0]][0]
    return graph


def _move_parameters(graph: VisibleGraph, trace: TraceData, parameters: Collection[int]) -> None:
    """Make each of ``parameters`` that only one node uses a row in the box of that node."""
    users: dict[int, set[int]] = {}
    for start, _slot, end in graph.edges:
        users.setdefault(end, set()).add(start)
    for leaf in parameters:
        user, *others = users.get(leaf, ()) or (None,)
        if user is not None and not others:
            graph.parameters.setdefault(user, []).append(leaf)
    for node, leaves in [*graph.parameters.items()]:
        leaves.sort(key=lambda leaf: _order_of_parameter(trace.lookup.leaf_names[leaf]))
        if len(leaves) > MAX_PARAMETERS:
            del graph.parameters[node]
    rows = set(chain.from_iterable(graph.parameters.values()))
    graph.nodes = [node for node in graph.nodes if node not in rows]
    graph.targets = {start: target for start, target in graph.targets.items() if target[0] not in rows}


def _order_of_parameter(name: str) -> tuple[bool, str]:
    """Put weights before biases."""
    return "bias" in name.rpartition(".")[2], name


def _assign_to_boxes(graph: VisibleGraph) -> None:
    """Find the box that stands for each node without one: for a hidden one a box in the same module call, if any."""
    graph.boxes = {leaf: node for node, leaves in graph.parameters.items() for leaf in leaves}
    starts = {node: arrows[0][0] for (node, _slot), arrows in graph.passages.items()}
    for node, end in graph.ends.items():
        next_box = graph.boxes.get(end, end)
        in_call = [box for box in (next_box, starts[node]) if graph.calls.get(box) == graph.calls.get(node)]
        graph.boxes[node] = in_call[0] if in_call else next_box
