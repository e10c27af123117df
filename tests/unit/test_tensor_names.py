"""Tensors are named after the variables of the caller, and each node keeps its number."""

import gc
import threading

import torch
from scenes import leaf, steps_of

import hookviz as hv

everywhere = leaf(1.0)
hidden_by_a_local = leaf(1.0)


def test_tensors_are_named_after_the_variables_around_the_recording() -> None:
    w, pair, table = [leaf(2.0), "no tensor", leaf(3.0)], (leaf(4.0),), {"bias": leaf(5.0), 1: leaf(6.0)}
    hidden_by_a_local = _private = In = Out = leaf(7.0)  # noqa: N806
    other = leaf(8.0)
    with hv.record() as trace:
        torch.stack([everywhere, *w[::2], *pair, *table.values(), hidden_by_a_local, other * 1]).sum().backward()  # type: ignore[list-item]
    assert _private is In is Out
    assert {step.on for step in steps_of(trace, "accumulate")} == {
        *("everywhere", "w[0]", "w[2]", "pair[0]", "table['bias']", "table[1]", "hidden_by_a_local", "other"),
    }


def test_private_and_ipython_names_are_not_used() -> None:
    _private = In = _ = leaf(2.0)  # noqa: N806
    with hv.record() as trace:
        (In * 3).backward()
    assert _private is _ and [step.on for step in steps_of(trace, "accumulate")] == ["leaf #0"]


def test_explicit_names_take_precedence_over_the_callers_variables() -> None:
    x = leaf(2.0)
    loss = x * 3
    with hv.record(names={"weight": x}) as trace:
        loss.backward()
    assert {step.on for step in trace.steps} == {"loss", "MulBackward0 (loss)", "weight"}


def test_an_explicit_name_hides_a_variable_of_that_name() -> None:
    x = leaf(2.0)
    loss = x * 3
    with hv.record(names={"x": loss}) as trace:
        torch.autograd.grad(loss, x)
    assert trace.steps[0].on == "x"
    assert trace.steps[-1].on != "x"


# -- numbers of nodes


def test_a_leaf_keeps_its_number_when_torch_recreates_its_node() -> None:
    a = leaf(2.0)
    with hv.record() as trace:
        (a * 2).backward()
        gc.collect()
        (a * 3).backward()
    first, second = steps_of(trace, "accumulate")
    assert first.node == second.node and len(trace._data.ops) == 3


def test_a_leaf_that_reuses_a_memory_address_gets_a_new_number() -> None:
    addresses: set[int] = set()
    with hv.record() as trace:
        for _ in range(100):
            a = leaf(2.0)
            (a * 2).backward()
            addresses.add(id(a))
            del a
    assert len({step.node for step in steps_of(trace, "accumulate")}) == 100 > len(addresses)


def test_graphs_built_in_different_threads_share_no_numbers() -> None:
    roots: list[torch.Tensor] = []
    for factor in (3, 5):  # each thread counts its nodes from 0
        thread = threading.Thread(target=lambda factor=factor: roots.append((leaf(2.0) * factor).sin()))
        thread.start()
        thread.join()
    with hv.record() as trace:
        for root in roots:
            root.backward()
    one, other = ({step.node for step in trace.steps if step.pass_id == pass_id} for pass_id in (0, 1))
    assert len(one) == len(other) == 3 and not one & other
