"""Small programs with one hook named ``lost`` that does not fire, or fires oddly, and the cause of each."""

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd.graph import register_multi_grad_hook
from torch.nn.utils import prune
from torch.optim import SGD
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz import Trace
from hookviz.recorder.modules.arguments import ArgumentProbe


class Program(NamedTuple):
    """A program that records itself, and the cause for which its hook does not fire."""

    code: Callable[..., Trace]
    cause: str
    on: str
    is_proven: bool
    is_placed: bool

    @property
    def name(self) -> str:
        return self.code.__name__


PROGRAMS: list[Program] = []
FIRING: list[Callable[..., Trace]] = []
"""Programs whose hooks all fire."""


def lost(*_: Any) -> None:
    """The hook that does not fire."""


def ones(*shape: int, grad: bool = False) -> torch.Tensor:
    return torch.ones(*(shape or (1, 2)), requires_grad=grad)


class Net(nn.Module):
    """Two layers, one of which is used only if ``deep``."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.extra = (nn.Linear(2, 2) for _ in range(3))
        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.deep = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(self.b(self.a(x)))
        return self.extra(x) if self.deep else x


def because(
    cause: str, on: str, *, is_proven: bool = True, is_placed: bool = False
) -> Callable[[Callable[..., Trace]], Callable[..., Trace]]:
    """Register a program, which may be given a net, with the cause and the owner of its hook.

    ``is_proven`` says whether the recording proves the cause, ``is_placed`` whether it shows where that is.
    """

    def add(code: Callable[..., Trace]) -> Callable[..., Trace]:
        PROGRAMS.append(Program(code, cause, on, is_proven, is_placed))
        return code

    return add


def fires(code: Callable[..., Trace]) -> Callable[..., Trace]:
    """Register a program whose hooks all fire."""
    FIRING.append(code)
    return code


def run(code: Callable[..., Trace]) -> Trace:
    return code(Net()) if code.__code__.co_argcount else code()


def train(net: nn.Module, x: torch.Tensor | None = None) -> Trace:
    """Record a forward and a backward pass, where hookviz sees no variable but ``net``."""
    with hv.record(net) as trace:
        net(ones() if x is None else x).sum().backward()
    return trace


def run_in_thread(function: Callable[[], object]) -> None:
    """Run a function in a thread of its own."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


# -- called otherwise than as a function, or not at all


@because("bypassed.inner", "net", is_placed=True)
def model_forward_is_called_directly(net: Net) -> Trace:
    net.register_forward_hook(lost)
    with hv.record(net) as trace:
        net.forward(ones()).sum().backward()
    return trace


@because("bypassed", "layer", is_placed=True)
def layer_forward_is_called_directly() -> Trace:
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lost)
    with hv.record() as trace:
        layer.forward(ones()).sum().backward()
    return trace


def run_segment(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return function(x)


class Segments(Net):
    """Runs its layers by a function that gets their forward."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.body:
            x = run_segment(layer.forward, x)
        return self.a(x)  # type: ignore[no-any-return]


@because("bypassed", "net.body.0", is_placed=True)
def forward_of_a_layer_in_a_loop_is_passed_on() -> Trace:
    net = Segments()
    net.body[0].register_forward_hook(lost)
    return train(net)


@because("bypassed", "net.a", is_placed=True)
def forward_is_kept_in_a_variable() -> Trace:
    class Kept(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            encode = self.a.forward
            return self.b(encode(x))  # type: ignore[no-any-return]

    net = Kept()
    net.a.register_forward_hook(lost)
    return train(net)


@because("bypassed", "net.b", is_placed=True)
def weights_are_used_by_a_function() -> Trace:
    class Functional(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(self.a(x), self.b.weight, self.b.bias)

    net = Functional()
    net.b.register_forward_pre_hook(lost)
    return train(net)


@because("bypassed.inner", "other", is_placed=True)
def inner_module_is_shared_with_a_model_that_is_called(net: Net) -> Trace:
    other = nn.Sequential(net.a)
    other.register_forward_hook(lost)
    with hv.record() as trace:
        net(ones()).sum().backward()
    return trace


@because("not_called", "net.extra", is_placed=True)
def branch_is_not_taken(net: Net) -> Trace:
    net.extra.register_full_backward_hook(lost)
    return train(net)


@because("no_forward", "net.layers")
def hook_is_on_a_module_list(net: Net) -> Trace:
    net.layers = nn.ModuleList([net.a])
    net.layers.register_forward_hook(lost)
    return train(net)


@because("attention", "attention.out_proj")
def projection_of_an_attention_is_not_called() -> Trace:
    attention = nn.MultiheadAttention(4, 2)
    attention.out_proj.register_forward_hook(lost)
    x = ones(3, 1, 4)
    with hv.record(attention) as trace:
        attention(x, x, x)[0].sum().backward()
    return trace


@because("fast_path", "layer.linear1")
def transformer_takes_the_fast_path() -> Trace:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    layer.linear1.register_full_backward_hook(lost)
    with hv.record(layer) as trace, torch.no_grad():
        layer(ones(1, 3, 4))
    return trace


@because("never_called", "net.a", is_placed=True)
def copy_of_the_model_is_trained(net: Net) -> Trace:
    twin = copy.deepcopy(net)
    net.a.register_forward_hook(lost)
    with hv.record(twin) as trace:
        twin(ones()).sum().backward()
    return trace


@because("not_called.other", "twin.a")
def copy_runs_the_layers_of_the_original(net: Net) -> Trace:
    twin = copy.deepcopy(net)
    twin.forward = net.forward  # type: ignore[method-assign]
    twin.a.register_forward_hook(lost)
    with hv.record(net, twin) as trace:
        twin(ones()).sum().backward()
    return trace


@because("copied", "net.a")
def forward_runs_on_a_copy_made_for_it() -> Trace:
    def run(model: nn.Module) -> torch.Tensor:
        return copy.deepcopy(model)(ones(grad=True)).sum()  # type: ignore[no-any-return]

    net = Net()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        run(net).backward()
    return trace


class Log:
    """Has a hook that keeps what it sees."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def lost(self, _module: nn.Module, _inputs: Any, output: torch.Tensor) -> None:
        self.seen.append(output)


@because("copied.object", "layer", is_placed=True)
def copy_of_the_model_runs_with_a_copy_of_the_log() -> Trace:
    log = Log()

    def make_copy() -> nn.Module:
        layer = nn.Linear(2, 2)
        layer.register_forward_hook(log.lost)
        return copy.deepcopy(layer)

    with hv.record() as trace:
        make_copy()(ones()).sum().backward()
    return trace


def model_that_was_made_runs(make: Callable[[nn.Module], Any], hooked: str) -> Trace:
    """Run what torch made of a model, and register a hook on the original, all inside of a function."""

    def run() -> None:
        net = nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.ReLU())
        made = make(net)
        net.get_submodule(hooked).register_forward_hook(lost)
        made(ones()).sum().backward()

    with hv.record() as trace:
        run()
    return trace


@because("traced", "net.0.0")
def traced_model_runs() -> Trace:
    return model_that_was_made_runs(lambda net: torch.jit.trace(net, ones(), check_trace=False), "0.0")


@because("traced", "net.1")
def scripted_model_runs() -> Trace:
    return model_that_was_made_runs(torch.jit.script, "1")  # a module without parameters


@because("traced", "net.0")
def symbolic_trace_calls_the_layers_of_a_container() -> Trace:
    return model_that_was_made_runs(torch.fx.symbolic_trace, "0")


@because("before", "net", is_proven=False)
def forward_ran_before_the_recording(net: Net) -> Trace:
    loss = net(ones()).sum()
    net.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        loss.backward()
    return trace


@because("after_graph", "layer")
def forward_ran_before_the_recording_and_the_hook() -> Trace:
    layer = nn.Linear(2, 2)
    loss = layer(ones()).sum()
    with hv.record(layer) as trace:
        layer.register_full_backward_hook(lost)
        loss.backward()
    return trace


@because("nothing_called", "all modules")
def global_hook_without_a_call() -> Trace:
    x = ones(grad=True)
    with nn.modules.module.register_module_forward_hook(lost), hv.record() as trace:
        (x * 2).sum().backward()
    return trace


# -- compiled or transformed


@because("compiled", "net.a", is_proven=False)
def hook_comes_after_the_compiled_call(net: Net) -> Trace:
    fast = torch.compile(net, backend="eager")
    fast(ones())
    net.a.register_forward_hook(lost)
    with torch.compiler.set_stance("default"), hv.record() as trace:
        fast(ones()).sum().backward()
    return trace


@because("compiled.before", "net.b")
def hook_comes_after_the_graph_was_compiled() -> Trace:
    torch._dynamo.reset()
    net = Net()
    with torch.compiler.set_stance("default"), hv.record(net) as trace:
        fast = torch.compile(net, backend="eager")
        fast(ones()).sum().backward()
        net.b.register_full_backward_hook(lost)
        fast(ones()).sum().backward()
    return trace


@because("transformed", "net.a")
def model_runs_in_vmap(net: Net) -> Trace:
    net.a.register_full_backward_hook(lost)
    with hv.record() as trace:
        torch.func.vmap(net)(ones(3, 2)).sum().backward()
    return trace


@because("transformed", "net.a.weight")
def gradients_are_computed_by_torch_func(net: Net) -> Trace:
    net.a.weight.register_hook(lost)
    weights = {name: parameter.detach() for name, parameter in net.named_parameters()}
    with hv.record() as trace:
        torch.func.grad(lambda given: torch.func.functional_call(net, given, (ones(),)).sum())(weights)
    return trace


@because("transformed", "z")
def tensor_goes_only_into_a_transform() -> Trace:
    net, z = Net(), ones(grad=True)
    with hv.record(net) as trace:
        z.register_hook(lost)
        torch.func.vjp(lambda q: net(q).sum(), z)[1](torch.ones(()))
    return trace


@because("transformed", "h")
def tensor_belongs_to_the_graph_of_a_transform(net: Net) -> Trace:

    def run(q: torch.Tensor) -> torch.Tensor:
        h = q * 2
        h.register_hook(lost)
        return net(h).sum()  # type: ignore[no-any-return]

    with hv.record(net) as trace:
        torch.func.vjp(run, ones(grad=True))[0].backward()
    return trace


# -- where hookviz did not look


@because("elsewhere", "c", is_proven=False)
def hook_fires_in_a_pass_of_another_thread() -> Trace:
    a = ones(grad=True)
    c = a * 2
    c.register_hook(lost)
    with hv.record() as trace:
        run_in_thread(lambda: c.sum().backward())
        (a * 3).sum().backward()
    return trace


@because("elsewhere", "net.a", is_proven=False)
def hook_fires_in_a_call_of_another_thread() -> Trace:
    net, other = Net(), Net()
    net.a.register_forward_hook(lost)
    with hv.record() as trace:
        run_in_thread(lambda: net(ones()))
        other(ones()).sum().backward()
    return trace


@because("limited", "other", is_proven=False)
def only_some_passes_are_recorded() -> Trace:
    layer, other = nn.Linear(2, 2), nn.Linear(2, 2)
    other.register_forward_hook(lost)
    with hv.record(layer, other, every=2) as trace:
        for _ in range(2):
            layer(ones()).sum().backward()
    return trace


@because("unseen", "hidden", is_proven=False)
def no_variable_leads_to_the_tensor() -> Trace:
    def run_pass() -> None:
        x = ones(grad=True)
        (x * 2).sum().backward()

    hidden = ones(grad=True) * 2
    hidden.register_hook(lost)
    with hv.record() as trace:
        run_pass()
    return trace


@because("unobserved", "layer", is_proven=False)
def call_cannot_be_observed() -> Trace:
    def fail(*_: object) -> None:
        raise RuntimeError("not observed")

    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lost)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ArgumentProbe, "measure", fail)
        with hv.record(layer) as trace:
            layer.forward(ones())
            layer(ones()).sum().backward()
    return trace


@contextmanager
def without(hooks: dict[int, Any]) -> Iterator[None]:
    """Take all hooks out of a dict of torch, and put them back."""
    kept = dict(hooks)
    hooks.clear()
    yield
    hooks.update(kept)


@because("unknown", "layer", is_proven=False)
def hook_is_taken_out_during_the_call() -> Trace:
    layer = nn.Linear(2, 2)
    layer.register_forward_hook(lost)
    with hv.record(layer) as trace, without(layer._forward_hooks):
        layer(ones()).sum().backward()
    return trace


@because("unknown", "layer", is_proven=False)
def backward_hook_is_taken_out_during_the_call() -> Trace:
    layer = nn.Linear(2, 2)
    layer.register_full_backward_hook(lost)
    with hv.record(layer) as trace, without(layer._backward_hooks):
        layer(ones()).sum().backward()
    return trace


@because("unknown.tensor", "x", is_proven=False)
def tensor_hook_is_taken_out_during_the_pass() -> Trace:
    x = ones(grad=True)
    x.register_hook(lost)
    y = x * 2
    kept = dict(x._backward_hooks or {})
    y.register_hook(lambda grad: x._backward_hooks.clear())  # type: ignore[union-attr]
    with hv.record() as trace:
        y.sum().backward()
        x._backward_hooks.update(kept)  # type: ignore[union-attr]
    return trace


@because("unknown", "sgd", is_proven=False)
def step_hook_is_taken_out_during_the_step() -> Trace:
    layer = nn.Linear(2, 2)
    sgd = SGD(layer.parameters(), lr=0.1)
    sgd.register_step_post_hook(lost)
    with hv.record(layer) as trace:
        layer(ones()).sum().backward()
        with without(sgd._optimizer_step_post_hooks):
            sgd.step()
    return trace


# -- called, but without a way back


@because("no_grad", "net.a")
def model_runs_in_no_grad(net: Net) -> Trace:
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace, torch.no_grad():
        net(ones())
    return trace


@because("no_grad", "net.a")
def model_runs_in_inference_mode(net: Net) -> Trace:
    net.a.register_full_backward_pre_hook(lost)
    with hv.record(net) as trace, torch.inference_mode():
        net(ones())
    return trace


@because("checkpoint", "net.a")
def reentrant_checkpoint_has_a_frozen_input(net: Net) -> Trace:
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net.b(checkpoint(net.a, ones(), use_reentrant=True)).sum().backward()
    return trace


@because("returned", "net")
def output_is_a_dict() -> Trace:
    class Dict(Net):
        def forward(self, x: torch.Tensor) -> Any:
            return {"y": self.a(x)}

    net = Dict()
    net.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones())["y"].sum().backward()
    return trace


@because("no_gradient.frozen", "net.a")
def module_and_its_input_are_frozen(net: Net) -> Trace:
    net.a.requires_grad_(False)
    net.a.register_full_backward_hook(lost)
    return train(net)


@because("no_gradient.cut", "net.a")
def forward_of_the_module_detaches() -> Trace:
    class Cut(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).detach()

    net = Net()
    net.a = Cut(2, 2)
    net.a.register_full_backward_hook(lost)
    return train(net)


@because("outside", "net.a", is_placed=True)
def output_is_detached_between_two_modules() -> Trace:
    class Cut(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x).detach())  # type: ignore[no-any-return]

    net = Cut()
    net.a.register_full_backward_hook(lost)
    return train(net)


@because("no_pass", "net.a")
def backward_is_never_called(net: Net) -> Trace:
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum()
    return trace


# -- an exception came first


@because("raised", "net.b")
def exception_comes_first(net: Net) -> Trace:
    net.b.register_forward_hook(lost)
    with suppress(RuntimeError), hv.record(net) as trace:
        net.b(ones(1, 3))
    return trace


@because("raised", "net.b")
def exception_comes_before_the_call(net: Net) -> Trace:
    net.b.register_forward_hook(lost)
    with suppress(RuntimeError), hv.record(net) as trace:
        net(ones(1, 3))
    return trace


@because("raised", "net.a.weight")
def exception_ends_the_backward_pass() -> Trace:
    def fail(grad: torch.Tensor) -> None:
        raise ValueError

    net = Net()
    net.b.bias.register_hook(fail)
    net.b.weight.register_hook(fail)
    net.a.weight.register_hook(lost)
    with suppress(ValueError), hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("raised", "layer")
def exception_ends_the_program_before_the_model_is_called() -> Trace:
    layer = nn.Linear(2, 2)
    with suppress(ValueError), hv.record(layer) as trace:
        (ones(grad=True) * 2).sum().backward()
        layer.register_forward_hook(lost)
        raise ValueError
    return trace


# -- registered too late, removed too early


@because("after_call", "net")
def forward_hook_comes_after_the_call(net: Net) -> Trace:
    with hv.record(net) as trace:
        loss = net(ones()).sum()
        net.register_forward_hook(lost)
        loss.backward()
    return trace


@because("after_call", "all modules")
def global_hook_comes_after_the_calls(net: Net) -> Trace:
    with hv.record(net) as trace:
        loss = net(ones()).sum()
        handle = nn.modules.module.register_module_forward_hook(lost)
        loss.backward()
    handle.remove()
    return trace


@because("after_call.backward", "net.a")
def full_backward_hook_comes_after_the_call(net: Net) -> Trace:
    with hv.record(net) as trace:
        loss = net(ones()).sum()
        net.a.register_full_backward_hook(lost)
        loss.backward()
    return trace


@because("after_pass", "c")
def tensor_hook_comes_after_the_pass() -> Trace:
    a = ones(grad=True)
    with hv.record() as trace:
        c = a * 2
        c.sum().backward()
        c.register_hook(lost)
    return trace


@because("after_pass", "output")
def hook_comes_after_the_pass_that_uses_its_tensor() -> Trace:
    layer = nn.Linear(2, 2)
    with hv.record(layer) as trace:
        for number in range(2):
            output = layer(ones())
            output.sum().backward()
            if not number:
                output.register_hook(lost)
            del output
    return trace


@because("removed", "net.a")
def forward_hook_is_removed_before_the_call(net: Net) -> Trace:
    handle = net.a.register_forward_hook(lost)
    with hv.record(net) as trace:
        handle.remove()
        net(ones()).sum().backward()
    return trace


@because("removed", "c")
def tensor_hook_is_removed_before_the_pass() -> Trace:
    a = ones(grad=True)
    with hv.record() as trace:
        c = a * 2
        with c.register_hook(lost):
            loss = c.sum()
        loss.backward()
    return trace


# -- tensors


@because("frozen", "net.a.weight")
def parameter_was_frozen_after_the_hook(net: Net) -> Trace:
    net.a.weight.register_hook(lost)
    net.a.weight.requires_grad_(False)
    return train(net)


@because("frozen_at_call", "layer.weight")
def parameter_is_unfrozen_after_the_call() -> Trace:
    layer, x = nn.Linear(2, 2), ones(grad=True)
    layer.weight.register_hook(lost)
    layer.weight.requires_grad_(False)
    with hv.record(layer) as trace:
        output = layer(x)
        layer.weight.requires_grad_(True)
        output.sum().backward()
    return trace


@because("detour", "flat")
def hook_is_on_a_view() -> Trace:
    a = ones(grad=True)
    with hv.record() as trace:
        c = a * 2
        flat = c.view(-1)
        flat.register_hook(lost)
        c.sum().backward()
    return trace


@because("detour", "twin")
def hook_is_on_a_clone() -> Trace:
    a = ones(grad=True)
    with hv.record() as trace:
        twin = a.clone()
        twin.register_hook(lost)
        (a * 2).sum().backward()
    return trace


@because("dropped", "the output of MulBackward0")
def hook_is_on_a_tensor_that_is_thrown_away() -> Trace:
    a = ones(grad=True)
    with hv.record() as trace:
        (a * 3).register_hook(lost)
        (a * 2).sum().backward()
    return trace


@because("parametrized", "the output of net.a.parametrizations.weight.0")
def weight_is_computed_by_the_parametrization_of_weight_norm(net: Net) -> Trace:
    nn.utils.parametrizations.weight_norm(net.a)
    with hv.record() as trace:
        net.a.weight.register_hook(lost)
        net(ones()).sum().backward()
    return trace


@because("parametrized", "the output of WeightNormInterfaceBackward0")
def weight_is_computed_by_the_hook_of_weight_norm(net: Net) -> Trace:
    nn.utils.weight_norm(net.a)
    with hv.record(net) as trace:
        net.a.weight.register_hook(lost)
        net(ones()).sum().backward()
    return trace


@because("parametrized", "the output of net.a.parametrizations.weight.0")
def weight_is_computed_by_spectral_norm(net: Net) -> Trace:
    nn.utils.parametrizations.spectral_norm(net.a)
    with hv.record() as trace:
        net.a.weight.register_hook(lost)
        net(ones()).sum().backward()
    return trace


@because("not_in_graph", "hidden", is_placed=True)
def tensor_is_detached_on_the_way() -> Trace:
    a, b = ones(grad=True), ones(grad=True)
    with hv.record() as trace:
        hidden = a * 2
        hidden.register_hook(lost)
        (hidden.detach() * b).sum().backward()
    return trace


@because("not_in_graph", "x")
def tensor_is_wrapped_anew() -> Trace:
    x = ones(grad=True)
    x.register_hook(lost)
    with hv.record() as trace:
        y = torch.tensor(x.tolist(), requires_grad=True)
        (y * 2).sum().backward()
    return trace


@because("not_in_graph.view", "row")
def row_is_edited_in_place_after_the_hook() -> Trace:
    layer = nn.Linear(2, 2)
    with hv.record(layer) as trace:
        maps = layer(ones(3, 2)) * 1
        row = maps[0]
        row.register_hook(lost)
        row.mul_(2)
        maps.square().sum().backward()
    return trace


@because("stray", "weight")
def parameter_was_tied_to_another(net: Net) -> Trace:
    weight = net.a.weight
    weight.register_hook(lost)
    net.a.weight = net.b.weight
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("substituted", "net.a.weight", is_placed=True)
def functional_call_uses_other_parameters(net: Net) -> Trace:
    net.a.weight.register_hook(lost)
    others = {name: value.detach().clone().requires_grad_() for name, value in net.named_parameters()}
    with hv.record(net) as trace:
        torch.func.functional_call(net, others, (ones(),)).sum().backward()
    return trace


@because("substituted", "net.scale")
def parameter_is_frozen_only_after_the_pass(net: Net) -> Trace:
    net.scale = nn.Parameter(ones())
    net.scale.register_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
        net.scale.requires_grad_(False)
    return trace


@because("owner_not_called", "net.extra.weight", is_placed=True)
def parameter_belongs_to_a_branch_not_taken(net: Net) -> Trace:
    net.extra.weight.register_post_accumulate_grad_hook(lost)
    return train(net)


@because("partial", "net.a.weight")
def gradient_of_the_input_alone_is_computed() -> Trace:
    net, x = Net(), ones(grad=True)
    net.a.weight.register_hook(lost)
    with hv.record(net) as trace:
        torch.autograd.grad(net(x).sum(), x)
    return trace


@because("partial", "head")
def inner_loop_asks_for_the_gradients_of_the_head() -> Trace:
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)
    head.register_full_backward_hook(lost)
    with hv.record(body, head) as trace:
        torch.autograd.grad(head(body(ones())).sum(), list(head.parameters()))
    return trace


@because("partial.grad", "x")
def post_accumulate_hook_in_autograd_grad() -> Trace:
    x = ones(grad=True)
    x.register_post_accumulate_grad_hook(lost)
    with hv.record() as trace:
        torch.autograd.grad((x * 2).sum(), x)
    return trace


@because("partial", "net.a.weight")
def post_accumulate_hook_comes_after_autograd_grad(net: Net) -> Trace:
    with hv.record(net) as trace:
        torch.autograd.grad(net(ones()).sum(), [net.a.weight])
        net.a.weight.register_post_accumulate_grad_hook(lost)
        net(ones()).sum().backward(inputs=[net.b.weight])
    return trace


# -- optimizers


@because("scaler", "optimizer")
def scaler_skips_the_step(net: Net) -> Trace:
    optimizer = SGD(net.parameters(), 0.1)
    optimizer.register_step_post_hook(lost)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    with hv.record(net) as trace:
        scaler.scale(net.a(ones()).sum() * float("inf")).backward()
        scaler.step(optimizer)
        scaler.update()
    return trace


@because("no_step", "optimizer")
def optimizer_takes_no_step(net: Net) -> Trace:
    optimizer = SGD(net.parameters(), 0.1)
    optimizer.register_step_pre_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("no_step", "unused")
def step_of_another_optimizer_is_skipped(net: Net) -> Trace:
    used, unused = (SGD(net.parameters(), 0.1) for _ in range(2))
    unused.register_step_post_hook(lost)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    with hv.record(net) as trace:
        scaler.scale(net.a(ones()).sum() * float("inf")).backward()
        scaler.step(used)
    return trace


@because("no_step.other", "first")
def optimizer_is_not_the_one_that_steps() -> Trace:
    layer = nn.Linear(2, 2)
    first, second = (SGD(layer.parameters(), lr=0.1) for _ in range(2))
    first.register_step_pre_hook(lost)
    with hv.record(layer) as trace:
        layer(ones()).sum().backward()
        second.step()
    return trace


@because("no_step.other", "optimizer")
def optimizer_is_made_anew_after_the_hook() -> Trace:
    layer = nn.Linear(2, 2)
    with hv.record(layer) as trace:
        optimizer: torch.optim.Optimizer = SGD(layer.parameters(), lr=0.1)
        optimizer.register_step_pre_hook(lost)
        optimizer = torch.optim.Adam(layer.parameters())
        layer(ones()).sum().backward()
        optimizer.step()
    return trace


@because("after_step", "optimizer")
def step_hook_comes_after_the_step(net: Net) -> Trace:
    optimizer = SGD(net.parameters(), 0.1)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
        optimizer.step()
        optimizer.register_step_post_hook(lost)
    return trace


# -- hooks that fire oddly


@because("early", "net.a")
def full_backward_hook_fires_early(net: Net) -> Trace:
    net.a.register_full_backward_hook(lost)
    return train(net)


@because("early", "net.a")
def full_backward_hook_of_a_module_with_keyword_inputs_fires_early(net: Net) -> Trace:
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net.a(input=ones(grad=True)).sum().backward()
    return trace


@because("again", "net.a")
def checkpoint_runs_the_forward_again(net: Net) -> Trace:
    net.a.register_forward_pre_hook(lost)
    with hv.record(net) as trace:
        checkpoint(net.a, ones(grad=True), use_reentrant=False).sum().backward()
    return trace


@because("kept", "layer", is_proven=False)
def backward_hook_is_removed_between_the_call_and_the_pass() -> Trace:
    layer, x = nn.Linear(2, 2), ones(grad=True)
    with hv.record(layer) as trace:
        with layer.register_full_backward_hook(lost):
            loss = layer(x).sum()
        loss.backward()
    return trace


@because("ignored", "x")
def multi_grad_hook_returns_gradients() -> Trace:
    x = ones(grad=True)

    def lost(grads: Any) -> Any:
        return [grad * 2 for grad in grads]

    with hv.record() as trace:
        register_multi_grad_hook((x,), lost)
        (x * 2).sum().backward()
    return trace


@because("partly", "a")
def multi_grad_hook_gets_none_for_an_unused_tensor() -> Trace:
    a, b = ones(grad=True), ones(grad=True)
    register_multi_grad_hook((a, b), lost)
    with hv.record() as trace:
        (a * 2).sum().backward()
    return trace


@because("undefined", "second")
def one_of_two_outputs_is_not_used() -> Trace:
    first, second = torch.ones(2, requires_grad=True).unbind()
    second.register_hook(lost)
    with hv.record() as trace:
        first.backward()
    return trace


class Silent(torch.autograd.Function):
    """Returns None in place of the gradient of its input."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> None:
        return None


@because("undefined.grad", "net.a.weight", is_placed=True)
def function_returns_none_for_its_input(net: Net) -> Trace:
    net.a.weight.register_post_accumulate_grad_hook(lost)
    with hv.record(net) as trace:
        net.b(Silent.apply(net.a(ones()))).sum().backward()
    return trace


@because("undefined", "net.a", is_placed=True)
def full_backward_hook_gets_none_as_grad_output(net: Net) -> Trace:
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net.b(Silent.apply(net.a(ones(grad=True)))).sum().backward()
    return trace


# -- on models that are not used, or thrown away


@because("never_called", "unused.a")
def hook_is_registered_on_another_model_than_the_given_one() -> Trace:
    used, unused = nn.Linear(2, 2), Net()
    with hv.record(used) as trace:
        unused.a.register_forward_pre_hook(lost)
        used(ones()).sum().backward()
    return trace


@because("discarded", "net", is_placed=True)
def model_with_the_hook_is_thrown_away() -> Trace:
    def prepare() -> nn.Module:
        net = nn.Linear(2, 2)
        net.register_forward_hook(lost)
        return nn.Linear(2, 2)

    with hv.record() as trace:
        prepare()(ones()).sum().backward()
    return trace


@because("discarded", "model.1")
def head_is_replaced_after_the_hook() -> Trace:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with hv.record() as trace:
        model[1].register_full_backward_hook(lost)
        model[1] = nn.Linear(2, 1)
        model(ones()).sum().backward()
    return trace


# -- programs whose hooks all fire


@fires
def all_hooks_of_a_net_fire(net: Net) -> Trace:
    for module in (net, net.a, net.b, net.body, net.body[0]):
        module.register_forward_pre_hook(lost)
        module.register_forward_hook(lost)
        module.register_full_backward_pre_hook(lost)
        module.register_full_backward_hook(lost)
    net.a.weight.register_hook(lost)
    net.a.weight.register_post_accumulate_grad_hook(lost)
    return train(net, ones(grad=True))


@fires
def hooks_on_a_graph_fire() -> Trace:
    a, b = ones(grad=True), ones(grad=True)
    register_multi_grad_hook((a, b), lost)
    with hv.record() as trace:
        c = a * b
        c.grad_fn.register_hook(lost)  # type: ignore[union-attr]
        c.grad_fn.register_prehook(lost)  # type: ignore[union-attr]
        c.register_hook(lost)
        c += 1
        c.sum().backward()
    return trace


@fires
def layers_that_are_passed_on_themselves_run_their_hooks() -> Trace:
    class Whole(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.body:
                x = run_segment(layer, x)
            return self.a(x)  # type: ignore[no-any-return]

    net = Whole()
    net.body[0].register_forward_hook(lost)
    return train(net)


@fires
def hook_on_a_tensor_without_a_variable_fires() -> Trace:
    def made(a: torch.Tensor) -> torch.Tensor:
        c = a * 2
        c.register_hook(lost)
        return c.sum()

    a = ones(grad=True)
    loss = made(a)
    with hv.record() as trace:
        loss.backward()
    return trace


@fires
def hooks_of_several_passes_fire(net: Net) -> Trace:
    net.a.weight.register_hook(lost)
    net.b.register_forward_hook(lost)
    optimizer = SGD(net.parameters(), 0.1)
    optimizer.register_step_post_hook(lost)
    with hv.record(net, keep=2) as trace:
        for _ in range(6):
            optimizer.zero_grad()
            net(ones()).sum().backward()
            optimizer.step()
    return trace


@fires
def hook_that_fired_and_was_removed_is_no_trouble(net: Net) -> Trace:
    with hv.record(net) as trace:
        with net.a.register_forward_hook(lost):
            loss = net(ones()).sum()
        net(ones())
        loss.backward()
    return trace


@fires
def hook_that_fired_in_a_dropped_pass_is_no_trouble(net: Net) -> Trace:
    with hv.record(net, keep=1) as trace:
        with net.a.weight.register_hook(lost):
            net(ones()).sum().backward()
        for _ in range(4):
            net(ones()).sum().backward()
    return trace


@fires
def hook_of_a_tensor_in_another_thread_is_unknown() -> Trace:
    def work() -> None:
        c = ones(grad=True) * 2
        c.register_hook(lost)

    a = ones(grad=True)
    with hv.record() as trace:
        run_in_thread(work)
        (a * 2).sum().backward()
    return trace


@fires
def hook_of_a_shallow_copy_that_is_followed_fires(net: Net) -> Trace:
    net.register_forward_hook(lost)
    with hv.record() as trace:
        copy.copy(net)(ones()).sum().backward()
    return trace


@fires
def outputs_and_inputs_of_a_module_do_not_all_have_a_gradient() -> Trace:
    class Mixed(Net):
        def forward(self, x: torch.Tensor, y: torch.Tensor, scale: float | None) -> Any:
            return self.a(x) + y, self.b(x), "text"

    net = Mixed()
    net.register_full_backward_pre_hook(lost)
    net.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones(grad=True), ones(), None)[0].sum().backward()
    return trace


def call_and_throw_away(*, in_thread: bool = False) -> torch.Tensor:
    """Call a module with hooks, which no variable leads to afterwards."""
    net, made = nn.Linear(2, 2), list[torch.Tensor]()
    net.register_forward_hook(lost)
    (run_in_thread if in_thread else lambda call: call())(lambda: made.append(net(ones())))
    return made[0].sum()


@fires
def hook_of_another_module_fires_in_a_thread() -> Trace:
    used = nn.Linear(2, 2)
    with hv.record(used) as trace:
        call_and_throw_away(in_thread=True)
        used(ones()).sum().backward()
    return trace


@fires
def hooks_fire_in_passes_that_are_not_recorded() -> Trace:
    with hv.record(every=2) as trace:
        for _ in range(4):
            call_and_throw_away().backward()
    return trace


@fires
def hook_fires_in_the_copy_of_a_module_that_is_thrown_away() -> Trace:
    def make() -> nn.Module:
        net = Net()
        net.a.register_forward_hook(lost)
        return copy.deepcopy(net)

    with hv.record() as trace:
        make()(ones()).sum().backward()
    return trace


@fires
def hooks_that_torch_brings_are_not_the_users() -> Trace:
    def prepare() -> None:
        prune.random_unstructured(nn.Linear(2, 2), "weight", amount=0.5)

    x = ones(grad=True)
    with hv.record() as trace:
        prepare()
        (x * 2).sum().backward()
    return trace
