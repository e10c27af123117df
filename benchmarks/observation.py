"""Run a pass in four ways: as it is, with an empty hook on every node, and recorded by hookviz in two ways."""

from collections.abc import Callable
from typing import Any

import hookviz as hv
from benchmarks.cases import Case
from hookviz.autograd import graph

Observation = Callable[[Case], Any]
"""Runs a case forward and backward; its result is freed after the clock has stopped."""


def run_plain(case: Case) -> None:
    """Run the pass as it is."""
    case.root().backward()


def run_with_empty_hooks(case: Case) -> None:
    """Run the pass with an empty pre-hook and post-hook on every node: no observer of nodes can cost less."""
    root = case.root()
    nodes = graph.reachable_nodes([root.grad_fn] if root.grad_fn else [])
    handles = [
        handle for node in nodes for handle in (node.register_prehook(_empty_hook), node.register_hook(_empty_hook))
    ]
    root.backward()
    for handle in handles:
        handle.remove()
    graph.release(nodes)


def _empty_hook(*gradients: Any) -> None:
    """Do nothing."""


def record_pass(case: Case) -> hv.Trace:
    """Record forward and backward with hookviz."""
    with hv.record() as trace:
        case.root().backward()
    return trace


def record_norms(case: Case) -> hv.Trace:
    """As ``record_pass``, but read only the norm of large tensors."""
    with hv.record(statistics="norm") as trace:
        case.root().backward()
    return trace


OBSERVATIONS: dict[str, Observation] = {
    "plain": run_plain,
    "floor": run_with_empty_hooks,
    "recorded": record_pass,
    "normed": record_norms,
}
