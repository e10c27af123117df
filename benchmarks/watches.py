"""What stands around a measured pass: nothing, an empty hook on every node, or hookviz in two ways."""

from collections.abc import Callable
from typing import Any

import hookviz as hv
from benchmarks.cases import Case
from hookviz.autograd import graph

Watch = Callable[[Case], Any]
"""Runs a case forward and backward; what it returns is let go of after the clock has stopped."""


def plain(case: Case) -> None:
    """The pass as it is."""
    case.root().backward()


def floor(case: Case) -> None:
    """An empty pre-hook and post-hook on every node: no observer of nodes can cost less."""
    root = case.root()
    nodes = graph.reachable_nodes([root.grad_fn] if root.grad_fn else [])
    handles = [handle for node in nodes for handle in (node.register_prehook(_look), node.register_hook(_look))]
    root.backward()
    for handle in handles:
        handle.remove()
    graph.release(nodes)


def _look(*gradients: Any) -> None:
    """Do nothing."""


def recorded(case: Case) -> hv.Trace:
    """Forward and backward followed by hookviz."""
    with hv.record() as trace:
        case.root().backward()
    return trace


def normed(case: Case) -> hv.Trace:
    """As ``recorded``, but of large tensors the norm alone is read."""
    with hv.record(statistics="norm") as trace:
        case.root().backward()
    return trace


WATCHES: dict[str, Watch] = {watch.__name__: watch for watch in (plain, floor, recorded, normed)}
