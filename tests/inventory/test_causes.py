"""For each cause of a silent hook that no program of the proofs has, a small program."""

import copy
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.graph import register_multi_grad_hook

import hookviz as hv
from hookviz.analysis.findings.hooks.explanations import EXPLANATIONS
from hookviz.recorder.modules.arguments import ArgumentProbe
from tests.proof.unfired_programs import PROGRAMS as PROVEN
from tests.reasons import reasons


def lost(*_: Any) -> None:
    """The hook that does not fire."""


class Branch(nn.Module):
    """Calls only one of its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.taken, self.other = nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.taken(x)


@contextmanager
def without(hooks: dict[int, Any]) -> Iterator[None]:
    """Take all hooks out of a dict of torch, and put them back."""
    kept = dict(hooks)
    hooks.clear()
    yield
    hooks.update(kept)


def call_with_the_hook_is_not_used() -> hv.Trace:
    layer = nn.Linear(2, 2)
    with hv.record(layer) as trace:
        used = layer(torch.ones(2))
        layer.register_full_backward_hook(lost)
        layer(torch.ones(2))
        used.sum().backward()
    return trace


def no_variable_leads_to_the_tensor() -> hv.Trace:
    def run_pass() -> None:
        x = torch.ones(2, requires_grad=True)
        (x * 2).sum().backward()

    hidden = torch.ones(2, requires_grad=True) * 2
    hidden.register_hook(lost)
    with hv.record() as trace:
        run_pass()
    return trace


def only_some_passes_are_recorded() -> hv.Trace:
    layer = nn.Linear(2, 2)
    other = nn.Linear(2, 2)
    other.register_forward_hook(lost)
    with hv.record(layer, other, every=2) as trace:
        for _ in range(2):
            layer(torch.ones(2)).sum().backward()
    return trace


def one_of_two_outputs_is_not_used() -> hv.Trace:
    first, second = torch.ones(2, requires_grad=True).unbind()
    second.register_hook(lost)
    with hv.record() as trace:
        first.backward()
    return trace


def compiled_model_runs_and_another_does_not() -> hv.Trace:
    net, unused = torch.compile(nn.Linear(2, 2), backend="eager"), nn.Linear(2, 2)
    unused.register_forward_hook(lost)
    with hv.record(net, unused) as trace:
        net(torch.ones(2)).sum().backward()
    return trace


def branch_is_not_taken_beside_compiled_code() -> hv.Trace:
    net, fast = Branch(), torch.compile(nn.Linear(2, 2), backend="eager")
    net.other.register_forward_hook(lost)
    with hv.record(net, fast) as trace:
        fast(net(torch.ones(2))).sum().backward()
    return trace


def hook_is_taken_out_during_the_call() -> hv.Trace:
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lost)
    with hv.record(layer) as trace, without(layer._forward_hooks):
        layer(torch.ones(2)).sum().backward()
    return trace


def backward_hook_is_taken_out_during_the_call() -> hv.Trace:
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lost)
    with hv.record(layer) as trace, without(layer._backward_hooks):
        layer(torch.ones(2)).sum().backward()
    return trace


def tensor_hook_is_taken_out_during_the_pass() -> hv.Trace:
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lost)
    y = x * 2
    kept = dict(x._backward_hooks)
    y.register_hook(lambda grad: x._backward_hooks.clear())
    with hv.record() as trace:
        y.sum().backward()
        x._backward_hooks.update(kept)
    return trace


def step_hook_is_taken_out_during_the_step() -> hv.Trace:
    layer = nn.Linear(2, 2)
    sgd = torch.optim.SGD(layer.parameters(), lr=0.1)
    sgd.register_step_post_hook(lost)
    with hv.record(layer) as trace:
        layer(torch.ones(2)).sum().backward()
        with without(sgd._optimizer_step_post_hooks):
            sgd.step()
    return trace


def parameter_is_unfrozen_after_the_call() -> hv.Trace:
    layer, x = nn.Linear(2, 2), torch.ones(2, requires_grad=True)
    layer.weight.register_hook(lost)
    layer.weight.requires_grad_(False)
    with hv.record(layer) as trace:
        output = layer(x)
        layer.weight.requires_grad_(True)
        output.sum().backward()
    return trace


def call_cannot_be_observed() -> hv.Trace:
    def fail(*_: object) -> None:
        raise RuntimeError("not observed")

    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lost)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(ArgumentProbe, "measure", fail)
        with hv.record(layer) as trace:
            layer.forward(torch.ones(2))
            layer(torch.ones(2)).sum().backward()
    return trace


def copy_runs_the_layers_of_the_original() -> hv.Trace:
    net = Branch()
    twin = copy.deepcopy(net)
    twin.forward = net.forward  # type: ignore[method-assign]
    twin.taken.register_forward_hook(lost)
    with hv.record(net, twin) as trace:
        twin(torch.ones(2)).sum().backward()
    return trace


def _model_that_was_made_runs(make: Callable[[nn.Module], Any], hooked: str) -> hv.Trace:
    """Run what torch made of a model, and register a hook on the original, all inside of a function."""

    def run() -> None:
        net = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.ReLU())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = make(net)
        net.get_submodule(hooked).register_forward_hook(lost)
        made(torch.ones(1, 2)).sum().backward()

    with hv.record() as trace:
        run()
    return trace


def traced_model_runs() -> hv.Trace:
    return _model_that_was_made_runs(lambda net: torch.jit.trace(net, torch.ones(1, 2), check_trace=False), "0.0")


def scripted_model_runs() -> hv.Trace:
    return _model_that_was_made_runs(torch.jit.script, "1")  # a module without parameters


def symbolic_trace_calls_the_layers_of_a_container() -> hv.Trace:
    return _model_that_was_made_runs(torch.fx.symbolic_trace, "0")


def model_runs_in_vmap() -> hv.Trace:
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    net[0].register_full_backward_hook(lost)
    with hv.record() as trace:
        torch.func.vmap(net)(torch.ones(3, 2)).sum().backward()
    return trace


def gradients_are_computed_by_torch_func() -> hv.Trace:
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    net[0].weight.register_hook(lost)
    weights = {name: parameter.detach() for name, parameter in net.named_parameters()}
    with hv.record() as trace:
        torch.func.grad(lambda given: torch.func.functional_call(net, given, (torch.ones(2),)).sum())(weights)
    return trace


def optimizer_is_made_anew_after_the_hook() -> hv.Trace:
    layer = nn.Linear(2, 2)
    with hv.record(layer) as trace:
        optimizer: torch.optim.Optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        optimizer.register_step_pre_hook(lost)
        optimizer = torch.optim.Adam(layer.parameters())
        layer(torch.ones(2)).sum().backward()
        optimizer.step()
    return trace


def exception_ends_the_program_before_the_model_is_called() -> hv.Trace:
    layer = nn.Linear(2, 2)
    with suppress(ValueError), hv.record(layer) as trace:
        (torch.ones(2, requires_grad=True) * 2).sum().backward()
        layer.register_forward_hook(lost)
        raise ValueError
    return trace


def optimizer_is_not_the_one_that_steps() -> hv.Trace:
    layer = nn.Linear(2, 2)
    first, second = (torch.optim.SGD(layer.parameters(), lr=0.1) for _ in range(2))
    first.register_step_pre_hook(lost)
    with hv.record(layer) as trace:
        layer(torch.ones(2)).sum().backward()
        second.step()
    return trace


class Log:
    """Has a hook that keeps what it sees."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def lost(self, _module: nn.Module, _inputs: Any, output: torch.Tensor) -> None:
        self.seen.append(output)


def copy_of_the_model_runs_with_a_copy_of_the_log() -> hv.Trace:
    log = Log()

    def make_copy() -> nn.Module:
        layer = nn.Linear(2, 2)
        layer.register_forward_hook(log.lost)
        return copy.deepcopy(layer)

    with hv.record() as trace:
        make_copy()(torch.ones(2)).sum().backward()
    assert log.seen == []
    return trace


def forward_ran_before_the_recording_and_the_hook() -> hv.Trace:
    layer = nn.Linear(2, 2)
    loss = layer(torch.ones(2)).sum()
    with hv.record(layer) as trace:
        layer.register_full_backward_hook(lost)
        loss.backward()
    return trace


def backward_hook_is_removed_between_the_call_and_the_pass() -> hv.Trace:
    layer, x = nn.Linear(2, 2), torch.ones(2, requires_grad=True)
    with hv.record(layer) as trace:
        with layer.register_full_backward_hook(lost):
            loss = layer(x).sum()
        loss.backward()
    return trace


def multi_grad_hook_returns_gradients() -> hv.Trace:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)

    def double_is_lost(grads: Any) -> Any:
        return [grad * 2 for grad in grads]

    with hv.record() as trace:
        register_multi_grad_hook((x, y), double_is_lost)
        (x * y).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [1.0, 1.0]
    return trace


def hook_comes_after_the_pass_that_uses_its_tensor() -> hv.Trace:
    layer = nn.Linear(2, 2)
    with hv.record(layer) as trace:
        for number in range(2):
            output = layer(torch.ones(2))
            output.sum().backward()
            if not number:
                output.register_hook(lost)
            del output
    return trace


def inner_loop_asks_for_the_gradients_of_the_head() -> hv.Trace:
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)
    head.register_full_backward_hook(lost)
    with hv.record(body, head) as trace:
        torch.autograd.grad(head(body(torch.ones(2))).sum(), list(head.parameters()))
    return trace


def row_is_edited_in_place_after_the_hook() -> hv.Trace:
    layer = nn.Linear(2, 2)
    with hv.record(layer) as trace:
        maps = layer(torch.ones(3, 2)) * 1
        row = maps[0]
        row.register_hook(lost)
        row.mul_(2)
        maps.square().sum().backward()
    return trace


PROGRAMS: dict[str, Callable[[], hv.Trace]] = {
    "partial.module": inner_loop_asks_for_the_gradients_of_the_head,
    "not_in_graph.view": row_is_edited_in_place_after_the_hook,
    "after_pass.own": hook_comes_after_the_pass_that_uses_its_tensor,
    "ignored": multi_grad_hook_returns_gradients,
    "kept": backward_hook_is_removed_between_the_call_and_the_pass,
    "not_called.other": copy_runs_the_layers_of_the_original,
    "copied.object": copy_of_the_model_runs_with_a_copy_of_the_log,
    "no_step.other": optimizer_is_not_the_one_that_steps,
    "no_step.again": optimizer_is_made_anew_after_the_hook,
    "raised.end": exception_ends_the_program_before_the_model_is_called,
    "after_graph": forward_ran_before_the_recording_and_the_hook,
    "traced": traced_model_runs,
    "scripted": scripted_model_runs,
    "traced.fx": symbolic_trace_calls_the_layers_of_a_container,
    "transformed": model_runs_in_vmap,
    "transformed.owner": gradients_are_computed_by_torch_func,
    "frozen_at_call": parameter_is_unfrozen_after_the_call,
    "unobserved": call_cannot_be_observed,
    "outside, by something unseen": call_with_the_hook_is_not_used,
    "unseen": no_variable_leads_to_the_tensor,
    "limited": only_some_passes_are_recorded,
    "undefined": one_of_two_outputs_is_not_used,
    "compiled": compiled_model_runs_and_another_does_not,
    "compiled branch": branch_is_not_taken_beside_compiled_code,
    "unknown.forward": hook_is_taken_out_during_the_call,
    "unknown.backward": backward_hook_is_taken_out_during_the_call,
    "unknown.tensor": tensor_hook_is_taken_out_during_the_pass,
    "unknown.step": step_hook_is_taken_out_during_the_step,
}


def _name_cause(program: str) -> str:
    return re.split("[ ,]", program)[0]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("cause", PROGRAMS)
def test_hook_has_the_cause_that_is_built_into_its_program(cause: str) -> None:
    trace = PROGRAMS[cause]()
    rows = [row for row in reasons(trace) if row.name.endswith("lost")]
    assert [row.cause for row in rows] == [_name_cause(cause)], reasons(trace)
    assert rows[0].sentence and rows[0].advice


def test_each_cause_has_a_program_and_none_is_here_twice() -> None:
    here, proven = {_name_cause(name) for name in PROGRAMS}, {program.cause for program in PROVEN}
    assert here | proven | {"before_closure"} == set(EXPLANATIONS)  # of this tests/unit/test_optimizers.py has one
    assert here & proven <= {"compiled", "outside"}
