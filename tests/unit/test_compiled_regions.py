"""Compiled regions, the fast path of transformers and checkpointing: a trace marks what it cannot observe."""

import subprocess
import sys
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from scenes import Net, describe_steps, leaf, plain, silent, steps_of, stored_gradients
from torch import nn
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from tests.reasons import reasons

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiler")]


# -- compiled regions


def test_a_compiled_module_is_one_call_marked_as_compiled() -> None:
    net, x = Net(), leaf(3.0)
    net.l1.register_forward_hook(silent("inside"))
    fast = torch.compile(net, backend="aot_eager")
    fast.register_forward_hook(lambda module, args, output: output * 10)
    with hv.record() as trace:
        for _ in range(2):  # the first call compiles: the compiler's trial run must not be recorded
            fast(x).backward()
    assert [(kind, on) for kind, on, *_ in describe_steps(trace, "call", "compiled", "forward")] == [
        ("call", "fast"), ("compiled", "fast"), ("forward", "fast"),
        ("call", "fast (call 2)"), ("compiled", "fast (call 2)"), ("forward", "fast (call 2)"),
    ]  # fmt: skip
    unseen = "fast is a compiled region: hookviz does not see what runs inside, hooks included."
    assert [step.sentence for step in steps_of(trace, "compiled")] == [
        f"{unseen} PyTorch compiled it in this call, as one graph, with the hooks that the modules inside had then.",
        f"{unseen} PyTorch ran what it had compiled before, and may leave out hooks that the modules inside got after "
        "that.",
    ]
    assert len(trace._data.roots) == 2 and {row.kind for row in trace._data.modules} == {"OptimizedModule"}
    assert stored_gradients(trace)["x"] == (40, 80)
    assert [(plain(step.before), plain(step.after)) for step in trace.firings] == [(12, 120)] * 2
    assert trace.notes == [] and x.grad.item() == 80


def test_a_model_that_somebody_else_compiled_keeps_its_names_and_its_cause() -> None:
    """A trainer compiles the model that it is given, and no variable of the user's holds the result."""
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    hook_calls: list[str] = []
    net[0].register_forward_hook(lambda *given: hook_calls.append("forward"))
    net[1].weight.register_hook(lambda grad: hook_calls.append("weight"))

    def make_step(model: nn.Module) -> Any:
        fast = torch.compile(model, backend="eager")
        return lambda: fast(torch.ones(1, 2)).sum().backward()

    step = make_step(net)
    with hv.record(net) as trace:
        step()
    assert hook_calls == ["forward", "weight"] and [one.on for one in trace.firings] == ["net.1.weight"]
    assert set(stored_gradients(trace)) == {"net.0.weight", "net.0.bias", "net.1.weight", "net.1.bias"}
    assert steps_of(trace, "compiled")[0].sentence.startswith("net is a compiled region")
    [unfired] = reasons(trace)
    assert (unfired.on, unfired.cause, unfired.is_proven) == ("net.0", "compiled", False)
    assert [finding.severity for finding in trace.findings] == ["remark"]
    assert "on net.0 was not seen to fire." in trace.findings[0].sentence
    assert "hook not seen to fire" in str(trace.findings)


# -- compiled regions that run eagerly


def test_an_eager_recording_leaves_the_compiled_program_as_it_was() -> None:
    compiled: list[int] = []
    net = Chain(nn.Tanh(), nn.Tanh())
    net.compile(backend=counting_backend(compiled))
    expected = net(torch.ones(2))
    with hv.record(net, compiled="eager") as trace:
        net(torch.ones(2))
    assert [step.on for step in steps_of(trace, "call")] == ["net", "net.layers.0", "net.layers.1"]
    assert torch.equal(net(torch.ones(2)), expected) and compiled == [1]


def test_a_region_inside_another_one_is_not_taken_for_one_in_another_thread() -> None:
    """The compiler leaves ``run`` to Python, as it does a ``training_step`` of Lightning that calls compiled code."""
    inner = torch.compile(torch.cos, backend="eager")

    def run(x: torch.Tensor) -> torch.Tensor:
        try:
            torch._dynamo.graph_break()  # type: ignore[no-untyped-call]
            return inner(x)
        finally:
            pass

    outer = torch.compile(run, backend="eager")
    with hv.record() as trace:
        outer(leaf(3.0)).backward()
    assert trace.notes == [] and len(steps_of(trace, "compiled")) == 1


def test_a_note_says_that_what_torch_made_of_the_model_ran_instead() -> None:
    net = Net()
    traced = torch.jit.trace(net, torch.tensor(3.0))
    with hv.record(net) as trace:
        traced(leaf(3.0)).backward()
    assert "or what torch.jit or torch.fx made of it is not observed" in str(trace.notes[0]) and len(trace.notes) == 1


# -- checkpointing


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_calls_recomputed_by_checkpointing_are_marked(use_reentrant: bool) -> None:
    """Reentrant checkpointing runs a nested pass; the other kind restores the saved tensors of the nodes."""
    net, x = Net(), leaf(3.0)
    hook_calls: list[str] = []
    net.l1.register_forward_hook(lambda module, args, output: hook_calls.append("l1"))
    net.l2.weight.register_hook(lambda grad: grad * 100)
    with hv.record(net) as trace:
        checkpoint(net, x, use_reentrant=use_reentrant).backward()
    assert [(trace._data.call(i), call.recomputed) for i, call in enumerate(trace._data.calls)] == [
        ("net", False),
        ("net.l1", False),
        ("net.l2", False),
        ("net (call 2)", True),
        ("net.l1 (call 2)", True),
        ("net.l2 (call 2)", True),
    ]
    forward, again, gradient = trace.firings
    assert forward.kind == again.kind == "forward_hook" and len(hook_calls) == 2
    assert (plain(gradient.before), plain(gradient.after)) == (6, 600) and net.l2.weight.grad.item() == 600
    recomputed_calls = [s.sentence for s in steps_of(trace, "call") if "checkpointing recomputes it" in s.sentence]
    assert len(recomputed_calls) == 3 and len(trace._data.roots) == (2 if use_reentrant else 1)
    assert stored_gradients(trace)["x"] == (None, 4) and x.grad.item() == 4
    assert trace.notes == []


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_the_steps_of_a_checkpointed_training_belong_to_the_passes_of_its_loop(use_reentrant: bool) -> None:
    """What is recomputed for a pass belongs to it, or to the pass inside it; the optimizer steps after both."""
    net = Net()
    hook_calls: list[str] = []
    net.l2.register_full_backward_hook(lambda *given: hook_calls.append("l2"))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with hv.record(net) as trace:
        for _ in range(2):
            checkpoint(net, leaf(3.0), use_reentrant=use_reentrant).backward()
            optimizer.step()
    outer = (0, 2) if use_reentrant else (0, 1)
    recomputed = {step.pass_id for step in steps_of(trace, "call") if trace._data.calls[step.row.call].recomputed}
    assert recomputed == ({1, 3} if use_reentrant else {0, 1})
    assert [step.pass_id for step in steps_of(trace, "optimizer_step")] == list(outer)
    assert max(step.pass_id for step in trace.steps) == len(trace._data.roots) - 1
    [count] = trace.hooks
    assert count.fired == len(hook_calls) == 2 and count.passes == ((0, 1, 0, 1) if use_reentrant else (1, 1))


# -- recording does not affect compiled code


class Chain(nn.Module):
    """Calls its layers one by one; unlike ``Sequential``, its code does not belong to torch."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def counting_backend(compiled: list[int]) -> Any:
    return lambda graph, inputs: (compiled.append(1), graph.forward)[1]


def run_around_recording(*, compiles_inside: bool, recorded: bool) -> tuple[list[Any], int, int]:
    """Run a compiled module before, in and after a recording; return its numbers, calls of a hook and compilations."""
    torch._dynamo.reset()
    results, hook_calls, compiled = list[Any](), list[int](), list[int]()
    net = Chain(nn.Tanh(), nn.Tanh())
    net.layers[0].register_forward_hook(lambda module, args, output: output * 2)
    net.layers[1].register_full_backward_hook(
        lambda module, grad_input, grad_output: (hook_calls.append(1), (grad_input[0] * 2,))[1]
    )
    net.compile(backend=counting_backend(compiled))

    def run_once() -> None:
        x = torch.ones(2, requires_grad=True)
        y = net(x)
        y.sum().backward()
        results.append((y.tolist(), x.grad.tolist()))

    if not compiles_inside:
        run_once()
    with hv.record() if recorded else nullcontext():
        run_once()
        run_once()
    run_once()
    return results, len(hook_calls), len(compiled)


@pytest.mark.parametrize("compiles_inside", [True, False])
def test_compiled_code_with_hooks_runs_as_without_recording_and_is_not_compiled_again(compiles_inside: bool) -> None:
    plain_run = run_around_recording(compiles_inside=compiles_inside, recorded=False)
    assert run_around_recording(compiles_inside=compiles_inside, recorded=True) == plain_run
    assert plain_run[1] == len(plain_run[0])


def test_the_compiler_may_be_imported_first_during_a_recording() -> None:
    program = """
import sys
import torch, hookviz as hv
call = torch.nn.Module.__call__
code = call.__code__
assert "torch._dynamo" not in sys.modules
with hv.record():
    assert call.__code__ is not code
    torch.compile(torch.nn.Tanh(), backend="eager")(torch.ones(2))
assert torch._dynamo.utils.unpatched_nn_module_call is torch.nn.Module.__call__ is call
assert call.__code__ is code
"""
    subprocess.run([sys.executable, "-c", program], check=True)
