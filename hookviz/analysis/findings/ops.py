"""What ops of torch do with numbers, by the names of their nodes without ``Backward0``, and ways through a graph."""

from collections.abc import Callable, Iterable, Iterator

from hookviz.trace import NodeOutput, TraceData

VIEWS = frozenset({
    "Permute", "Reshape", "ReshapeAlias", "Squeeze", "T", "Transpose", "UnsafeView", "Unsqueeze", "View",
})  # fmt: skip
"""Ops whose result has the numbers of their input, each once."""
PARTS = frozenset({"AsStrided", "Diagonal", "Select", "Slice", "Split", "SplitWithSizes", "Unbind", "Unfold"})
"""Ops that take a part of a tensor."""
LOGARITHMS = ("Log", "Log2", "Log10")
SOFTMAXES = ("LogSoftmax", "Softmax")
MASKS = ("MaskedFill", "Where")
"""Ops that put in other numbers where a mask says so, such as Inf on purpose."""
INFINITE_AT_0 = (*LOGARITHMS, "Reciprocal", "Rsqrt")
"""Ops that make Inf or -Inf of 0."""
COPIES = frozenset({"Alias", "Clone", "Contiguous", "Expand", "ToCopy"})
"""Ops that copy or repeat the numbers of a tensor."""
PRODUCTS = {"Addmm": ((1, "mat1"), (2, "mat2")), "Bmm": ((0, "self"), (1, "mat2")), "Mm": ((0, "self"), (1, "mat2"))}
"""Matrix product → slot and name of its factors."""


def get_op(trace: TraceData, node: int) -> str:
    """Return the op of a node: ``Log`` of a ``LogBackward0``."""
    return trace.ops[node].partition("Backward")[0]


def list_ops(trace: TraceData) -> list[str]:
    """List the op of each node; a large graph has few different ones."""
    names = {op: op.partition("Backward")[0] for op in set(trace.ops)}
    return [names[op] for op in trace.ops]


def skip_views(trace: TraceData, place: NodeOutput | None, *more: str) -> NodeOutput | None:
    """Return the tensor of which another one is a view; ``more`` are ops that count as views, too."""
    while place is not None and get_op(trace, place[0]) in (*VIEWS, *more):
        place = trace.edges.get((place[0], 0))
    return place


def iter_reached(node: int, follow: Callable[[int], Iterable[int]]) -> Iterator[int]:
    """Yield a node and all that are reached from it, each once; ``follow`` returns those that come after one."""
    waiting, met = [node], {node}
    while waiting:
        node = waiting.pop()
        yield node
        following = {one for one in follow(node) if one not in met}
        met |= following
        waiting += following
