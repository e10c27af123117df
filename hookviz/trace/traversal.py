"""Find out how module calls contain each other, and what the graphs of the passes have to do with them."""

import re
from collections.abc import Iterator

from hookviz.trace.trace import TraceData


def iter_enclosing_calls(trace: TraceData, call: int | None) -> Iterator[int]:
    """Yield a call and the calls around it, the innermost first; nothing for None."""
    current = call
    while current is not None:
        yield current
        current = trace.calls[current].parent


def find_calls_in_graphs(trace: TraceData) -> set[int]:
    """Return the calls that made nodes of the graph of a pass, with all calls around them; a leaf counts for none."""
    makers = {call for node, call in trace.owners.items() if trace.ops[node] != "AccumulateGrad"}
    return {outer for call in makers for outer in iter_enclosing_calls(trace, call)}


def name_last_root(trace: TraceData) -> str:
    """Return the name of the tensor at which the last pass began; empty if there is no pass."""
    root = next((row for row in reversed(trace.rows) if row.kind == "seed"), None)
    return "" if root is None else trace.name(root.node, root.output)


def write_access(path: str) -> str:
    """Write the path of a module or parameter as Python reads it.

    >>> write_access("net.blocks.0.up.weight")
    'net.blocks[0].up.weight'
    """
    return re.sub(r"\.(\d+)(?=\.|$)", r"[\1]", path)


def list_outer_paths(path: str) -> list[str]:
    """List the paths around the path of a module or parameter, the outermost first.

    >>> list_outer_paths("net.body.0")
    ['net', 'net.body']
    """
    return [path[:end] for end, letter in enumerate(path) if letter == "."]
