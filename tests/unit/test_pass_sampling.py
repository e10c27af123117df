"""``record(every=n)`` records every n-th pass with its forward pass and optimizer step; the others run unobserved."""

import pytest
import torch
from scenes import Doubled, Net, leaf, plain, steps_of
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz.storage.integrity import find_fault
from tests.unit.test_retention import TrainingLoop


def kinds(trace: hv.Trace, pass_id: int | None = None) -> list[str]:
    return [step.kind for step in trace.steps if pass_id in (None, step.pass_id)]


def test_every_third_pass_is_recorded_with_its_forward_pass_and_step() -> None:
    loop, single, unobserved = TrainingLoop(), TrainingLoop(), TrainingLoop()
    with hv.record(single.net) as single_trace:
        single.run(1)
    with hv.record(loop.net, every=3) as trace:
        loop.run(8)
    assert len(trace._data.roots) == 3
    for number in range(3):
        assert kinds(trace, number) == kinds(single_trace)
    inputs = [plain(step.after) for step in steps_of(trace, "call", "loop.net")] + [
        plain(step.after) for step in steps_of(trace, "call") if step.on.startswith("loop.net (call")
    ]
    assert inputs == [1, 4, 7]
    assert find_fault(trace._data) == ""
    assert trace.notes == [
        "record(every=...) recorded 3 of 8 backward passes, one of every 3 from the first on; "
        "the others ran unobserved."
    ]
    unobserved.run(8)
    gradients = [[parameter.grad for parameter in one.net.parameters()] for one in (loop, unobserved)]
    assert all(map(torch.equal, *gradients))


def test_nested_passes_are_sampled_with_their_outer_pass() -> None:
    """Reentrant checkpointing starts a nested backward pass for each region."""
    net = Net()

    def run() -> None:
        x = leaf(1.0)
        checkpoint(net.l2, checkpoint(net.l1, x, use_reentrant=True), use_reentrant=True).backward()

    with hv.record(net, every=2) as trace:
        for _ in range(4):
            run()
    assert len(trace._data.roots) == 6 and len(steps_of(trace, "seed")) >= 2
    calls = [step.on for step in steps_of(trace, "call")]
    assert len(calls) == 2 * 4, calls  # forward, and again in backward


def test_skipped_passes_add_no_rows_and_no_hooks() -> None:
    net = Doubled()
    with hv.record(net, every=10) as trace:
        net(leaf(1.0)).backward()
        rows, values = len(trace._data.rows), len(trace._data.values)
        out = net(leaf(1.0))
        handle = out.register_hook(lambda grad: grad * 2)
        assert not net._forward_hooks and len(handle.hooks_dict_ref()) == 1
        out.backward()
    assert (len(trace._data.rows), len(trace._data.values)) == (rows, values)


def test_an_invalid_every_is_refused() -> None:
    with pytest.raises(ValueError, match="every is a number of passes"), hv.record(every=0):
        pass
