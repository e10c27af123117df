"""The graph of a pass as a picture shows it: arrows pass over the nodes that nobody wrote.

torch makes such nodes on its own: a Linear transposes its weight, and a full backward hook of a module needs a node at
its output. They are drawn only on demand. The leaves of a module's parameters are rows in the box of the op that uses
them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from hookviz.trace import TraceData
from hookviz.trace.columns import ValueIndexes
from hookviz.trace.traversal import iter_enclosing_calls
from hookviz.trace.values import get_norm_nan_inf

MAX_UNREACHED_NODES = 100
"""A picture shows at most this many nodes that the pass did not reach: a small pass may begin in a very large graph."""


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

RECURRENT_MODULES = frozenset({"RNN", "LSTM", "GRU"})
"""Classes of torch.nn whose calls make some ops for each step of a sequence."""

MAX_OPS = 12
"""A call of at most this many ops, as of a short sequence or of one kernel for all of it, is drawn as it is."""


@dataclass
class VisibleGraph:
    """The nodes that a picture of a pass shows, the arrows between them, and what stands for each hidden node."""

    trace: TraceData = field(repr=False)
    pass_id: int
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
    joined: dict[int, int] = field(default_factory=dict)
    """Node of a call for which one box stands → the node that has that box."""
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

    @cached_property
    def step_calls(self) -> list[int]:
        """The module calls that steps of the pass are about, and the calls around them, as far as they have frames."""
        calls = dict.fromkeys(self.trace.rows[step].call for step in self.trace.lookup.steps(self.pass_id))
        outer_calls = dict.fromkeys(outer for call in calls for outer in iter_enclosing_calls(self.trace, call))
        return [call for call in outer_calls if call not in self.idle_calls]

    @cached_property
    def frames(self) -> set[int]:
        """All module calls that a picture shows: those with nodes, those of steps, and the calls around them."""
        return self._makers.union(self.step_calls)

    @cached_property
    def _makers(self) -> set[int]:
        """The module calls with nodes, and the calls around them."""
        return {outer for call in self.calls.values() for outer in iter_enclosing_calls(self.trace, call)}

    @cached_property
    def idle_calls(self) -> dict[int, int]:
        """Call without hooks that only returned its input, as that of dropout in evaluation → the call around it.

        No arrow would lead to its frame, since torch made no node there: its steps are seen at the call around it.
        """
        trace, registered = self.trace, self.trace.lookup.hooks(self.pass_id).by_module
        idle: dict[int, int] = {}
        called = {trace.rows[step].call for step in trace.lookup.steps(self.pass_id)}
        for call in {call for call in called if call is not None} - self._makers:
            row, hooks = trace.calls[call], trace.lookup.fired_hooks.get((self.pass_id, call))
            module = trace.modules[row.module]
            is_empty = (module.drops is not None or module.kind == "Identity") and not hooks
            if is_empty and row.module not in registered and row.parent in self._makers:
                idle[call] = row.parent
        return idle

    @property
    def box_count(self) -> int:
        """How many boxes a picture of all of it has."""
        return len(self.nodes) + len(self.frames)


def make_visible_graph(trace: TraceData, pass_id: int, *, internal: bool = False, whole: bool = False) -> VisibleGraph:
    """Make the graph that a picture of a pass shows.

    Args:
        trace: the trace.
        pass_id: the pass.
        internal: whether nodes that nobody wrote have boxes as well.
        whole: whether it shows all nodes, however many the pass did not reach.
    """
    nodes = _list_pass_nodes(trace, pass_id) if whole else list_pictured_nodes(trace, pass_id)
    calls = _assign_nodes_to_calls(trace, nodes)
    parameters = {node for node in nodes if "." in trace.lookup.leaf_names.get(node, "")}
    graph = VisibleGraph(trace, pass_id, nodes, calls)
    if internal or not (calls or parameters):  # whoever uses no module has written each transposition
        _connect(graph, set())
        return graph
    roots = {node for roots_of_pass in trace.roots[pass_id : pass_id + 1] for node, _output in roots_of_pass}
    observed = roots.union(_list_observed_nodes(trace, pass_id), _list_named_nodes(trace, pass_id, nodes))
    graph.joined = join_recurrent_calls(trace, calls, nodes, observed)
    _connect(graph, set(_list_unwritten(graph, observed)))
    _move_parameters(graph, parameters - roots)
    _assign_to_boxes(graph)
    return graph


def _list_pass_nodes(trace: TraceData, pass_id: int) -> list[int]:
    """Return all nodes of the graph of a pass, those nearest to the roots first."""
    return _search_breadth_first(trace, pass_id, set(), len(trace.ops))


def list_pictured_nodes(trace: TraceData, pass_id: int) -> list[int]:
    """Return the nodes of a pass that a picture shows, those nearest to the roots first.

    These are all nodes that the pass reached, and the ``MAX_UNREACHED_NODES`` others that are nearest to the roots.
    """
    reached_nodes = (trace.rows[step].node for step in trace.lookup.steps(pass_id))
    reached = {node for node in reached_nodes if node is not None}
    nodes = _search_breadth_first(trace, pass_id, reached, MAX_UNREACHED_NODES)
    # A pass reaches a node only through other nodes that it reached. Should a trace differ, all nodes are shown.
    return nodes if reached.issubset(nodes) else _list_pass_nodes(trace, pass_id)


def _search_breadth_first(trace: TraceData, pass_id: int, reached: Collection[int], most_others: int) -> list[int]:
    """Return the nodes of a pass, nearest to the roots first: those in ``reached`` and at most ``most_others`` others.

    The search does not go beyond nodes that it leaves out.
    """
    next_nodes = trace.lookup.next_nodes
    roots = [node for node, _ in trace.roots[pass_id]] if pass_id < len(trace.roots) else []
    visited = dict.fromkeys(roots)
    queue = list(visited)
    for node in queue:  # the loop body appends to the queue
        for _, end in next_nodes.get(node, ()):
            if end not in visited and (end in reached or most_others):
                most_others -= end not in reached
                visited[end] = None
                queue.append(end)
    return queue


def leave_nodes_out(trace: TraceData, nodes: Collection[int]) -> bool:
    """Whether edges lead from ``nodes``, which a picture shows, to nodes that it does not show."""
    return not {end for _start, _slot, end in trace.lookup.out_edges(nodes)} <= set(nodes)


def _assign_nodes_to_calls(trace: TraceData, nodes: Iterable[int]) -> dict[int, int]:
    """Return node → the call in whose box it is drawn: the call that made it or, for a parameter's leaf, that used it.

    Every call of a module uses its parameters: their leaves belong to the first call among those that made ``nodes``. A
    module that was not called itself, such as ``out_proj`` of attention, has its leaves in the call around that used
    them.
    """
    made_by = {node: trace.owners[node] for node in nodes if node in trace.owners}
    used_by: dict[int, int] = {}
    for start, _, end in trace.lookup.out_edges(made_by):
        if trace.ops[end] != "AccumulateGrad":
            continue
        call = made_by[start]
        if end in made_by:
            user = call if trace.calls[call].module == trace.calls[made_by[end]].module else None
        else:
            user = _find_enclosing_call(trace, call, trace.lookup.leaf_names.get(end, ""))
        if user is not None:
            used_by[end] = min(user, used_by.get(end, user))
    return made_by | used_by


def _find_enclosing_call(trace: TraceData, call: int, parameter: str) -> int | None:
    """Return the innermost call, from ``call`` outward, of a module that contains the parameter with this name."""
    for outer in iter_enclosing_calls(trace, call):
        if parameter.startswith(f"{trace.plain_call(outer)}."):
            return outer
    return None


def _list_unwritten(graph: VisibleGraph, observed: Collection[int]) -> Iterator[int]:
    """Yield the nodes that nobody wrote and about which there is nothing to say; a call keeps at least one node."""
    trace, pass_id, nodes, calls = graph.trace, graph.pass_id, graph.nodes, graph.calls
    inside = set(nodes)
    candidates = [
        node
        for node in nodes
        if node not in observed
        and node not in graph.joined
        and _is_unwritten(trace, trace.ops[node], calls.get(node))
        and _lies_between(trace, node, inside)
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


def _list_named_nodes(trace: TraceData, pass_id: int, nodes: Iterable[int]) -> Iterator[int]:
    """Yield the nodes of tensors with a name, or with a retained gradient."""
    for node in nodes:
        if any(row.name or row.retains_grad for row in trace.lookup.tensors(pass_id, node)):
            yield node


def _is_unwritten(trace: TraceData, op: str, call: int | None) -> bool:
    if op in PASSED_OVER:
        return True
    module = None if call is None else trace.modules[trace.calls[call].module].kind
    return op in PASSED_OVER_IN_LIBRARY and module in LIBRARY_MODULES


def _lies_between(trace: TraceData, node: int, inside: Collection[int]) -> bool:
    """Whether each gradient that leaves a node goes on to one other node that is in the picture."""
    edges = trace.lookup.next_nodes.get(node, [])
    if not edges or any(end not in inside for _slot, end in edges):
        return False
    # Of the inputs of a hooked module, some may need no gradient, as the memory of a decoder.
    return trace.ops[node] == HOOK_NODE or len(edges) == 1


def _turns_bad(trace: TraceData, pass_id: int, node: int) -> bool:
    """Whether a gradient is fine when it arrives at a node, and zero, NaN or infinite when the node has computed."""
    step = trace.lookup.compute_steps.get((pass_id, node))
    if step is None:
        return False
    row = trace.rows[step]
    sent = [row.after] if not isinstance(row.after, tuple) else _list_sent(trace, node, row.after)
    return any(_list_bad(trace, tuple(sent))) and not any(_list_bad(trace, row.before))


def _list_sent(trace: TraceData, node: int, gradients: Sequence[int | None]) -> list[int | None]:
    """Return those of the gradients of a node that go on: of an input that needs none, torch makes zeros."""
    return [gradients[slot] for slot, _end in trace.lookup.next_nodes.get(node, ()) if slot < len(gradients)]


def _list_bad(trace: TraceData, values: ValueIndexes) -> Iterator[bool]:
    """Yield for each of ``values`` whether it is zero, NaN or infinite."""
    for index in values if isinstance(values, tuple) else (values,):
        if index is not None:
            norm, nan, inf = get_norm_nan_inf(trace.values[index])
            yield norm == 0 or nan + inf > 0


def _connect(graph: VisibleGraph, hidden: Collection[int]) -> None:
    """Hide some nodes of a graph, and connect the others: an arrow leads from each to the next one."""
    inside, joined, joined_starts = set(graph.nodes), graph.joined, _JoinedStarts(graph)
    starts = [node for node in graph.nodes if node not in hidden]
    graph.nodes = [node for node in starts if joined.get(node, node) == node]
    for start, slot, first_end in graph.trace.lookup.out_edges(starts):
        if first_end not in inside:
            continue
        target, hops = _pass_over(graph.trace, (start, slot), hidden)
        if target is not None:
            target = joined.get(target[0], target[0]), target[1]
        arrow = (start, slot)
        if start in joined:
            if target is None or target[0] == joined[start]:
                continue
            arrow = joined_starts.find(joined[start], target)
            graph.passages.setdefault((start, slot), []).append(arrow)
        for hop in hops:
            graph.passages.setdefault(hop, []).append(arrow)
        if target is not None:
            graph.targets[arrow] = target
    for (node, _slot), arrows in graph.passages.items():
        if arrows[0] in graph.targets and node not in joined:
            graph.ends[node] = graph.targets[arrows[0]][0]


def _pass_over(trace: TraceData, edge: Edge, hidden: Collection[int]) -> tuple[tuple[int, int] | None, list[Edge]]:
    """Return where an edge leads over hidden nodes, None if nowhere, and the edges at these nodes."""
    target: tuple[int, int] | None = trace.edges[edge]
    hops: list[Edge] = []
    while target is not None and target[0] in hidden:
        end, output = target
        hops.append((end, output if trace.ops[end] == HOOK_NODE else trace.lookup.next_nodes[end][0][0]))
        target = trace.edges.get(hops[-1])
    return target, hops


class _JoinedStarts:
    """Where the arrows start that leave joined nodes: one arrow for all edges to one output of another node."""

    def __init__(self, graph: VisibleGraph) -> None:
        self._next_nodes = graph.trace.lookup.next_nodes
        self._starts: dict[int, dict[Edge, Edge]] = {}

    def find(self, box: int, target: Edge) -> Edge:
        """Return the start of the arrow from the box of joined nodes to an output of another node.

        The inputs of all these nodes are counted after those of the node that has the box.
        """
        starts = self._starts.setdefault(box, {})
        first = max((slot for slot, _end in self._next_nodes.get(box, ())), default=-1) + 1
        return starts.setdefault(target, (box, first + len(starts)))


def _move_parameters(graph: VisibleGraph, parameters: Collection[int]) -> None:
    """Make each of ``parameters`` that only one node uses a row in the box of that node."""
    users: dict[int, set[int]] = {}
    for start, _slot, end in graph.edges:
        users.setdefault(end, set()).add(start)
    for leaf in parameters:
        user, *others = users.get(leaf, ()) or (None,)
        if user is not None and not others:
            graph.parameters.setdefault(user, []).append(leaf)
    for node, leaves in [*graph.parameters.items()]:
        leaves.sort(key=lambda leaf: _order_of_parameter(graph.trace.lookup.leaf_names[leaf]))
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
    graph.boxes |= {node: box for node, box in graph.joined.items() if node != box}
    graph.boxes |= {
        node: start for node, start in starts.items() if node not in graph.ends and node not in graph.joined
    }
    for node, end in graph.ends.items():
        next_box = graph.boxes.get(end, end)
        in_call = [box for box in (next_box, starts[node]) if graph.calls.get(box) == graph.calls.get(node)]
        graph.boxes[node] = in_call[0] if in_call else next_box


# -- calls of torch's own recurrent modules, whose many ops nobody wrote: one box stands for all of them


def join_recurrent_calls(
    trace: TraceData, calls: Mapping[int, int], nodes: Collection[int], observed: Collection[int]
) -> dict[int, int]:
    """Return node → the node of the same call whose box stands for it, for the calls of recurrent modules.

    Args:
        trace: the trace.
        calls: node → the call that it belongs to.
        nodes: the nodes of the picture, those nearest to the roots first.
        observed: the nodes that keep boxes of their own, such as those of results with names.
    """
    made: dict[int, list[int]] = {call: [] for call in set(calls.values()) if _is_recurrent(trace, call)}
    for node in nodes if made else ():
        if calls.get(node) in made and trace.ops[node] != "AccumulateGrad":
            made[calls[node]].append(node)
    joined: dict[int, int] = {}
    for ops in made.values():
        inside = [node for node in ops if node not in observed]
        inside.sort(key=lambda node: trace.ops[node] == "BackwardHookFunctionBackward")
        if len(ops) > MAX_OPS and not _leads_back(trace, inside, ops):
            joined |= dict.fromkeys(inside, inside[0])
    return joined


def _is_recurrent(trace: TraceData, call: int) -> bool:
    """Whether a call is one of torch's own module: others may have classes of the same name."""
    if trace.modules[trace.calls[call].module].kind not in RECURRENT_MODULES:
        return False
    name = trace.plain_call(call)
    return {f"{name}.weight_ih_l0", f"{name}.weight_hh_l0"}.issubset(trace.lookup.leaf_names.values())


def _leads_back(trace: TraceData, inside: Collection[int], ops: Collection[int]) -> bool:
    """Whether an edge leads from a joined node to another of the call: its box would be on both sides of that."""
    return any(end in set(ops).difference(inside) for _start, _slot, end in trace.lookup.out_edges(inside))
