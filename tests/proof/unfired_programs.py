"""Small programs with one hook named ``lost`` that does not fire, or fires oddly, and the cause of each."""

import copy
import dataclasses
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz import Trace


class Program(NamedTuple):
    """A program that records itself, and the cause for which its hook does not fire."""

    run: Callable[[], Trace]
    cause: str
    on: str
    is_proven: bool
    is_placed: bool

    @property
    def name(self) -> str:
        return self.run.__name__


PROGRAMS: list[Program] = []


def lost(*_: Any) -> None:
    """The hook that does not fire."""


def because(
    cause: str, on: str, *, is_proven: bool = True, is_placed: bool = False
) -> Callable[[Callable[[], Trace]], Callable[[], Trace]]:
    """Register a program with the cause and the owner of its hook.

    ``is_proven`` says whether the recording proves the cause, ``is_placed`` whether it shows where that is.
    """

    def add(run: Callable[[], Trace]) -> Callable[[], Trace]:
        PROGRAMS.append(Program(run, cause, on, is_proven, is_placed))
        return run

    return add


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


# -- called otherwise than as a function, or not at all


@because("bypassed.inner", "net", is_placed=True)
def model_forward_is_called_directly() -> Trace:
    net = Net()
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


@because("bypassed", "net.b", is_placed=True)
def inner_forward_is_called_directly() -> Trace:
    class Direct(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b.forward(self.a(x))

    net = Direct()
    net.b.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("bypassed.inner", "net.body")
def layers_of_a_container_are_called_one_by_one() -> Trace:
    class Loop(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.body:
                x = layer(x)
            return x

    net = Loop()
    net.body.register_forward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("bypassed", "net.b", is_placed=True)
def weights_are_used_by_a_function() -> Trace:
    class Functional(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return F.linear(self.a(x), self.b.weight, self.b.bias)

    net = Functional()
    net.b.register_forward_pre_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("not_called", "net.extra", is_placed=True)
def branch_is_not_taken() -> Trace:
    net = Net()
    net.extra.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("not_called", "net.layers.1")
def layer_is_dropped() -> Trace:
    class LayerDrop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for number, layer in enumerate(self.layers):
                x = x if number == 1 else layer(x)
            return x

    net = LayerDrop()
    net.layers[1].register_forward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("no_forward", "net.layers")
def hook_is_on_a_module_list() -> Trace:
    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 2)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers[0](x)  # type: ignore[no-any-return]

    net = Stack()
    net.layers.register_forward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


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
def copy_of_the_model_is_trained() -> Trace:
    net = Net()
    twin = copy.deepcopy(net)
    net.a.register_forward_hook(lost)
    with hv.record(twin) as trace:
        twin(ones()).sum().backward()
    return trace


@because("before", "net", is_proven=False)
def forward_ran_before_the_recording() -> Trace:
    net = Net()
    loss = net(ones()).sum()
    net.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        loss.backward()
    return trace


@because("compiled", "net.a", is_proven=False)
def hook_comes_after_the_compiled_call() -> Trace:
    net = Net()
    fast = torch.compile(net, backend="eager")
    fast(ones())
    net.a.register_forward_hook(lost)
    with torch.compiler.set_stance("default"), hv.record() as trace:
        fast(ones()).sum().backward()
    return trace


def run_compiled(net: Net, backend: str) -> Trace:
    """Record a call of a compiled model that has run before."""
    fast = torch.compile(net, backend=backend)
    fast(ones())
    if not net.a._forward_hooks:
        net.a.register_forward_hook(lost)
    with torch.compiler.set_stance("default"), hv.record() as trace:
        fast(ones()).sum().backward()
    return trace


@because("compiled", "net.a", is_proven=False)
def hook_comes_after_the_call_that_another_backend_compiled() -> Trace:
    return run_compiled(Net(), "aot_eager")


@because("compiled", "net.a", is_proven=False)
def hook_runs_inside_compiled_code() -> Trace:
    net = Net()
    net.a.register_forward_hook(lost)
    return run_compiled(net, "aot_eager")


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


@because("transformed.passes", "z")
def tensor_goes_only_into_a_transform() -> Trace:
    net, z = Net(), ones(grad=True)
    with hv.record(net) as trace:
        z.register_hook(lost)
        torch.func.vjp(lambda q: net(q).sum(), z)[1](torch.ones(()))
    return trace


@because("transformed.tensor", "h")
def tensor_belongs_to_the_graph_of_a_transform() -> Trace:
    net = Net()

    def run(q: torch.Tensor) -> torch.Tensor:
        h = q * 2
        h.register_hook(lost)
        return net(h).sum()  # type: ignore[no-any-return]

    with hv.record(net) as trace:
        torch.func.vjp(run, ones(grad=True))[0].backward()
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


@because("bypassed.inner", "twin", is_placed=True)
def hook_is_on_a_shallow_copy() -> Trace:
    net = Net()
    twin = copy.copy(net)
    twin._forward_hooks = twin._forward_hooks.copy()
    twin.register_forward_hook(lost)
    with hv.record() as trace:
        net(ones()).sum().backward()
    return trace


# -- in another thread


def run_in_thread(function: Callable[[], object]) -> None:
    """Run a function in a thread of its own."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


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


@because("not_in_graph", "c")
def tensor_comes_from_another_thread() -> Trace:
    made: list[torch.Tensor] = []
    a = ones(grad=True)
    with hv.record() as trace:
        run_in_thread(lambda: made.append(ones(grad=True) * 2))
        c = made.pop()
        c.register_hook(lost)
        (a * 3).sum().backward()
    return trace


@because("nothing_called", "all modules")
def global_hook_without_a_call() -> Trace:
    x = ones(grad=True)
    with nn.modules.module.register_module_forward_hook(lost), hv.record() as trace:
        (x * 2).sum().backward()
    return trace


@because("raised.caller", "net.b")
def exception_comes_before_the_call() -> Trace:
    net = Net()
    net.b.register_forward_hook(lost)
    with suppress(RuntimeError), hv.record(net) as trace:
        net(ones(1, 3))
    return trace


@because("bypassed.inner", "other", is_placed=True)
def inner_module_is_shared_with_a_model_that_is_called() -> Trace:
    net = Net()
    other = nn.Sequential(net.a)
    other.register_forward_hook(lost)
    with hv.record() as trace:
        net(ones()).sum().backward()
    return trace


@because("after_call", "all modules")
def global_hook_comes_after_the_calls() -> Trace:
    net = Net()
    with hv.record(net) as trace:
        loss = net(ones()).sum()
        handle = nn.modules.module.register_module_forward_hook(lost)
        loss.backward()
    handle.remove()
    return trace


# -- called, but without a way back


@because("no_grad", "net.a")
def model_runs_in_no_grad() -> Trace:
    net = Net()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace, torch.no_grad():
        net(ones())
    return trace


@because("inference", "net.a")
def model_runs_in_inference_mode() -> Trace:
    net = Net()
    net.a.register_full_backward_pre_hook(lost)
    with hv.record(net) as trace, torch.inference_mode():
        net(ones())
    return trace


@because("no_grad", "net.a")
def part_of_the_forward_runs_in_no_grad() -> Trace:
    class Half(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                x = self.a(x)
            return self.b(x)  # type: ignore[no-any-return]

    net = Half()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("checkpoint", "net.a")
def reentrant_checkpoint_has_a_frozen_input() -> Trace:
    net = Net()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = checkpoint(net.a, ones(), use_reentrant=True)
        net.b(y).sum().backward()
    return trace


@because("returned", "net")
def output_is_a_dict() -> Trace:
    class Dict(Net):
        def forward(self, x: torch.Tensor) -> Any:
            return {"y": self.a(x)}

    net = Dict()
    net.register_full_backward_hook(lost)
    with hv.record(net) as trace, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net(ones())["y"].sum().backward()
    return trace


@because("returned", "net")
def output_is_a_dataclass() -> Trace:
    @dataclasses.dataclass
    class Output:
        y: torch.Tensor

    class Wrapped(Net):
        def forward(self, x: torch.Tensor) -> Any:
            return Output(self.a(x))

    net = Wrapped()
    net.register_full_backward_hook(lost)
    with hv.record(net) as trace, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net(ones()).y.sum().backward()
    return trace


@because("returned", "net")
def output_is_a_list() -> Trace:
    class Listed(Net):
        def forward(self, x: torch.Tensor) -> Any:
            return [self.a(x), self.b(x)]

    net = Listed()
    net.register_full_backward_hook(lost)
    with hv.record(net) as trace, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net(ones())[0].sum().backward()
    return trace


@because("no_gradient.frozen", "net.a")
def module_and_its_input_are_frozen() -> Trace:
    net = Net()
    net.a.requires_grad_(False)
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("no_gradient.cut", "net.a")
def forward_of_the_module_detaches() -> Trace:
    class Cut(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).detach()

    net = Net()
    net.a = Cut(2, 2)
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("no_gradient.cut", "net.a")
def forward_of_the_module_has_an_op_without_a_gradient() -> Trace:
    class Hard(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x).argmax(-1).float()

    net = Net()
    net.a, net.b = Hard(2, 2), nn.Linear(1, 2)
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones(1, 1, 2)).sum().backward()
    return trace


@because("outside", "net.a", is_placed=True)
def output_is_detached_between_two_modules() -> Trace:
    class Cut(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x).detach())  # type: ignore[no-any-return]

    net = Cut()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("outside", "net.extra", is_placed=True)
def head_is_not_below_this_loss() -> Trace:
    class Heads(Net):
        def forward(self, x: torch.Tensor) -> Any:
            return self.b(self.a(x)), self.extra(self.a(x))

    net = Heads()
    net.extra.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones())[0].sum().backward()
    return trace


@because("no_pass", "net.a")
def backward_is_never_called() -> Trace:
    net = Net()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum()
    return trace


@because("raised", "net.b")
def exception_comes_first() -> Trace:
    net = Net()
    net.b.register_forward_hook(lost)
    with suppress(RuntimeError), hv.record(net) as trace:
        net.b(ones(1, 3))
    return trace


@because("raised.backward", "net.a.weight")
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


# -- registered too late, removed too early


@because("after_call", "net")
def forward_hook_comes_after_the_call() -> Trace:
    net = Net()
    with hv.record(net) as trace:
        loss = net(ones()).sum()
        net.register_forward_hook(lost)
        loss.backward()
    return trace


@because("after_call.backward", "net.a")
def full_backward_hook_comes_after_the_call() -> Trace:
    net = Net()
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


@because("removed", "net.a")
def forward_hook_is_removed_before_the_call() -> Trace:
    net = Net()
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
def parameter_was_frozen_after_the_hook() -> Trace:
    net = Net()
    net.a.weight.register_hook(lost)
    net.a.weight.requires_grad_(False)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
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


@because("detour.leaf", "twin")
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


@because("weight_norm", "the output of net.a.parametrizations.weight.0")
def weight_is_computed_by_the_parametrization_of_weight_norm() -> Trace:
    net = Net()
    nn.utils.parametrizations.weight_norm(net.a)
    with hv.record() as trace:
        net.a.weight.register_hook(lost)
        net(ones()).sum().backward()
    return trace


@because("parametrized", "the output of net.a.parametrizations.weight.0")
def weight_is_computed_by_spectral_norm() -> Trace:
    net = Net()
    nn.utils.parametrizations.spectral_norm(net.a)
    with hv.record() as trace:
        net.a.weight.register_hook(lost)
        net(ones()).sum().backward()
    return trace


@because("weight_norm", "the output of WeightNormInterfaceBackward0")
def weight_is_computed_by_the_hook_of_weight_norm() -> Trace:
    net = Net()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.weight_norm(net.a)
    with hv.record(net) as trace:
        net.a.weight.register_hook(lost)
        net(ones()).sum().backward()
    return trace


@because("not_in_graph", "x")
def tensor_is_wrapped_anew() -> Trace:
    x = ones(grad=True)
    x.register_hook(lost)
    with hv.record() as trace:
        y = torch.tensor(x.tolist(), requires_grad=True)
        (y * 2).sum().backward()
    return trace


@because("not_in_graph", "hidden", is_placed=True)
def tensor_is_detached_on_the_way() -> Trace:
    a = ones(grad=True)
    b = ones(grad=True)
    with hv.record() as trace:
        hidden = a * 2
        hidden.register_hook(lost)
        (hidden.detach() * b).sum().backward()
    return trace


@because("not_in_graph", "hidden")
def tensor_goes_through_numpy() -> Trace:
    a, b = ones(grad=True), ones(grad=True)
    hidden = a * 2
    hidden.register_hook(lost)
    with hv.record() as trace:
        (torch.from_numpy(hidden.detach().numpy()) * b).sum().backward()
    return trace


@because("stray", "weight")
def parameter_was_replaced_by_assign() -> Trace:
    net = Net()
    weight = net.a.weight
    weight.register_hook(lost)
    net.load_state_dict({name: value.clone() for name, value in net.state_dict().items()}, assign=True)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("stray", "weight")
def parameter_was_replaced_by_weight_norm() -> Trace:
    net = Net()
    weight = net.a.weight
    weight.register_hook(lost)
    nn.utils.parametrizations.weight_norm(net.a)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("stray", "weight")
def parameter_was_tied_to_another() -> Trace:
    net = Net()
    weight = net.a.weight
    weight.register_hook(lost)
    net.a.weight = net.b.weight
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("substituted", "net.a.weight", is_placed=True)
def functional_call_uses_other_parameters() -> Trace:
    net = Net()
    net.a.weight.register_hook(lost)
    others = {name: value.detach().clone().requires_grad_() for name, value in net.named_parameters()}
    with hv.record(net) as trace:
        torch.func.functional_call(net, others, (ones(),)).sum().backward()
    return trace


@because("substituted", "net.scale", is_placed=True)
def parameter_is_not_used() -> Trace:
    net = Net()
    net.scale = nn.Parameter(ones())
    net.scale.register_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("owner_not_called", "net.extra.weight", is_placed=True)
def parameter_belongs_to_a_branch_not_taken() -> Trace:
    net = Net()
    net.extra.weight.register_post_accumulate_grad_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("partial", "net.a.weight")
def gradient_of_the_input_alone_is_computed() -> Trace:
    net, x = Net(), ones(grad=True)
    net.a.weight.register_hook(lost)
    with hv.record(net) as trace:
        torch.autograd.grad(net(x).sum(), x)
    return trace


@because("partial", "net.a.weight")
def backward_has_inputs() -> Trace:
    net = Net()
    net.a.weight.register_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward(inputs=[net.b.weight])
    return trace


@because("partial.grad", "x")
def post_accumulate_hook_in_autograd_grad() -> Trace:
    x = ones(grad=True)
    x.register_post_accumulate_grad_hook(lost)
    with hv.record() as trace:
        torch.autograd.grad((x * 2).sum(), x)
    return trace


@because("partial.grad", "net.a.weight")
def post_accumulate_hook_of_a_parameter_whose_gradient_is_returned() -> Trace:
    net = Net()
    net.a.weight.register_post_accumulate_grad_hook(lost)
    with hv.record(net) as trace:
        torch.autograd.grad(net(ones()).sum(), [net.a.weight])
    return trace


@because("partial", "net.a.weight")
def post_accumulate_hook_comes_after_autograd_grad() -> Trace:
    net = Net()
    with hv.record(net) as trace:
        torch.autograd.grad(net(ones()).sum(), [net.a.weight])
        net.a.weight.register_post_accumulate_grad_hook(lost)
        net(ones()).sum().backward(inputs=[net.b.weight])
    return trace


@because("partial", "net.a.weight")
def post_accumulate_hook_in_backward_with_other_inputs() -> Trace:
    net = Net()
    net.a.weight.register_post_accumulate_grad_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward(inputs=[net.b.weight])
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
def function_returns_none_for_its_input() -> Trace:
    net = Net()
    net.a.weight.register_post_accumulate_grad_hook(lost)
    with hv.record(net) as trace:
        net.b(Silent.apply(net.a(ones()))).sum().backward()
    return trace


@because("undefined.grad", "net.a.bias", is_placed=True)
def function_returns_none_for_a_parameter() -> Trace:
    net = Net()
    net.a.bias.register_post_accumulate_grad_hook(lost)
    with hv.record(net) as trace:
        (net.a(ones()).detach() + Silent.apply(net.a.bias)).sum().backward()
    return trace


@because("partly", "a")
def multi_grad_hook_gets_none_for_an_unused_tensor() -> Trace:
    a, b = ones(grad=True), ones(grad=True)
    torch.autograd.graph.register_multi_grad_hook((a, b), lost)
    with hv.record() as trace:
        (a * 2).sum().backward()
    return trace


@because("not_in_graph", "hidden")
def tensor_is_detached_beside_a_tensor_that_is_used() -> Trace:
    a = ones(grad=True)
    hidden = a * 2
    hidden.register_hook(lost)
    with hv.record() as trace:
        (hidden.detach() * a).sum().backward()
    return trace


@because("stray", "weight")
def parameter_belongs_to_no_module() -> Trace:
    net, weight = Net(), nn.Parameter(ones())
    weight.register_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("substituted", "net.scale")
def parameter_is_frozen_only_after_the_pass() -> Trace:
    net = Net()
    net.scale = nn.Parameter(ones())
    net.scale.register_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
        net.scale.requires_grad_(False)
    return trace


# -- optimizers


@because("scaler", "optimizer")
def scaler_skips_the_step() -> Trace:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    optimizer.register_step_post_hook(lost)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    with hv.record(net) as trace:
        scaler.scale(net.a(ones()).sum() * float("inf")).backward()
        scaler.step(optimizer)
        scaler.update()
    return trace


@because("no_step", "optimizer")
def optimizer_takes_no_step() -> Trace:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    optimizer.register_step_pre_hook(lost)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
    return trace


@because("after_step", "optimizer")
def step_hook_comes_after_the_step() -> Trace:
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with hv.record(net) as trace:
        net(ones()).sum().backward()
        optimizer.step()
        optimizer.register_step_post_hook(lost)
    return trace


@because("no_step", "unused")
def another_optimizer_takes_the_steps() -> Trace:
    net = Net()
    used, unused = (torch.optim.SGD(net.parameters(), 0.1) for _ in range(2))
    unused.register_step_post_hook(lost)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    with hv.record(net) as trace:
        scaler.scale(net.a(ones()).sum() * float("inf")).backward()
        scaler.step(used)
        scaler.update()
    return trace


# -- hooks that fire oddly


@because("early", "net.a")
def full_backward_hook_fires_early() -> Trace:
    net = Net()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net(ones()).sum().backward()
    return trace


@because("again", "net.a")
def checkpoint_runs_the_forward_again() -> Trace:
    net = Net()
    net.a.register_forward_pre_hook(lost)
    with hv.record(net) as trace:
        checkpoint(net.a, ones(grad=True), use_reentrant=False).sum().backward()
    return trace


@because("early.keywords", "net.a")
def full_backward_hook_of_a_module_with_keyword_inputs_fires_early() -> Trace:
    net = Net()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.a(input=ones(grad=True)).sum().backward()
    return trace


@because("undefined.module", "net.a", is_placed=True)
def full_backward_hook_gets_none_as_grad_output() -> Trace:
    net = Net()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net.b(Silent.apply(net.a(ones(grad=True)))).sum().backward()
    return trace


@because("undefined.module", "net.a", is_placed=True)
def full_backward_hook_gets_none_where_no_input_needs_a_gradient() -> Trace:
    net = Net()
    net.a.register_full_backward_hook(lost)
    with hv.record(net) as trace, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.b(Silent.apply(net.a(ones()))).sum().backward()
    return trace


@because("undefined.module", "net.a", is_placed=True)
def full_backward_pre_hook_gets_none() -> Trace:
    net = Net()
    net.a.register_full_backward_pre_hook(lost)
    with hv.record(net) as trace, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net.b(Silent.apply(net.a(ones()))).sum().backward()
    return trace


# -- on objects to which no variable leads


class Trainer:
    """Holds the model that it trains: a copy of the one that it is given."""

    def __init__(self, net: nn.Module) -> None:
        self.net, self.given = copy.deepcopy(net), net


@because("never_called", "trainer.given.a", is_placed=True)
def hook_is_registered_on_a_model_that_an_object_holds_unused() -> Trace:
    trainer = Trainer(Net())
    with hv.record() as trace:
        trainer.given.a.register_forward_hook(lost)  # type: ignore[union-attr]
        trainer.net(ones()).sum().backward()
    return trace


@because("never_called", "unused.a")
def hook_is_registered_on_a_model_that_is_not_used() -> Trace:
    used, unused = nn.Linear(2, 2), Net()
    with hv.record() as trace:
        unused.a.register_full_backward_hook(lost)
        used(ones()).sum().backward()
    return trace


@because("never_called", "unused.a")
def hook_is_registered_on_another_model_than_the_given_one() -> Trace:
    used, unused = nn.Linear(2, 2), Net()
    with hv.record(used) as trace:
        unused.a.register_forward_pre_hook(lost)
        used(ones()).sum().backward()
    return trace


@because("owner_not_called", "unused.a.weight")
def hook_is_registered_on_a_parameter_of_a_model_that_is_not_used() -> Trace:
    used, unused = nn.Linear(2, 2), Net()
    with hv.record() as trace:
        unused.a.weight.register_hook(lost)
        used(ones()).sum().backward()
    return trace


@because("removed", "unused.a")
def hook_of_a_model_that_is_not_used_is_removed() -> Trace:
    used, unused = nn.Linear(2, 2), Net()
    with hv.record() as trace:
        with unused.a.register_forward_hook(lost):
            pass
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


@because("discarded.replaced", "model.1")
def head_is_replaced_after_the_hook() -> Trace:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    with hv.record() as trace:
        model[1].register_full_backward_hook(lost)
        model[1] = nn.Linear(2, 1)
        model(ones()).sum().backward()
    return trace


@because("after_call", "net")
def hook_comes_after_the_call_of_a_model_that_is_thrown_away() -> Trace:
    def run() -> torch.Tensor:
        net = nn.Linear(2, 2)
        out = net(ones())
        net.register_forward_hook(lost)
        return out.sum()  # type: ignore[no-any-return]

    with hv.record() as trace:
        run().backward()
    return trace


# -- programs whose hooks all fire


def all_hooks_of_a_net_fire() -> Trace:
    net, x = Net(), ones(grad=True)
    for module in (net, net.a, net.b, net.body, net.body[0]):
        module.register_forward_pre_hook(lost)
        module.register_forward_hook(lost)
        module.register_full_backward_pre_hook(lost)
        module.register_full_backward_hook(lost)
    net.a.weight.register_hook(lost)
    net.a.weight.register_post_accumulate_grad_hook(lost)
    with hv.record(net) as trace:
        net(x).sum().backward()
    return trace


def hook_before_an_in_place_op_fires() -> Trace:
    a = ones(grad=True)
    with hv.record() as trace:
        c = a * 2
        c.register_hook(lost)
        c += 1
        c.sum().backward()
    return trace


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


def hooks_of_several_passes_fire() -> Trace:
    net = Net()
    net.a.weight.register_hook(lost)
    net.b.register_forward_hook(lost)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    optimizer.register_step_post_hook(lost)
    with hv.record(net, keep=2) as trace:
        for _ in range(6):
            optimizer.zero_grad()
            net(ones()).sum().backward()
            optimizer.step()
    return trace


def hook_that_fired_and_was_removed_is_no_trouble() -> Trace:
    net = Net()
    with hv.record(net) as trace:
        with net.a.register_forward_hook(lost):
            loss = net(ones()).sum()
        net(ones())
        loss.backward()
    return trace


def hook_that_fired_in_a_dropped_pass_is_no_trouble() -> Trace:
    net = Net()
    with hv.record(net, keep=1) as trace:
        for number in range(5):
            handle = net.a.weight.register_hook(lost) if number == 0 else None
            net(ones()).sum().backward()
            if handle is not None:
                handle.remove()
    return trace


def multi_grad_hook_fires() -> Trace:
    a, b = ones(grad=True), ones(grad=True)
    torch.autograd.graph.register_multi_grad_hook((a, b), lost)
    with hv.record() as trace:
        (a * b).sum().backward()
    return trace


def node_hooks_fire() -> Trace:
    a = ones(grad=True)
    c = a * 2
    assert c.grad_fn is not None
    c.grad_fn.register_hook(lost)
    c.grad_fn.register_prehook(lost)
    with hv.record() as trace:
        c.sum().backward()
    return trace


def hook_of_a_tensor_in_another_thread_is_unknown() -> Trace:
    def work() -> None:
        c = ones(grad=True) * 2
        c.register_hook(lost)

    a = ones(grad=True)
    with hv.record() as trace:
        run_in_thread(work)
        (a * 2).sum().backward()
    return trace


def hook_of_a_shallow_copy_fires() -> Trace:
    net = Net()
    net.register_forward_hook(lost)
    with hv.record(net) as trace:
        copy.copy(net)(ones()).sum().backward()
    return trace


def hook_of_a_shallow_copy_that_is_followed_fires() -> Trace:
    net = Net()
    net.register_forward_hook(lost)
    with hv.record() as trace:
        copy.copy(net)(ones()).sum().backward()
    return trace


def outputs_of_a_module_are_not_all_used() -> Trace:
    class Two(Net):
        def forward(self, x: torch.Tensor) -> Any:
            return self.a(x), self.b(x), "text"

    net = Two()
    net.register_full_backward_pre_hook(lost)
    net.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones(grad=True))[0].sum().backward()
    return trace


def inputs_of_a_module_do_not_all_need_a_gradient() -> Trace:
    class Mixed(Net):
        def forward(self, x: torch.Tensor, y: torch.Tensor, scale: float | None) -> torch.Tensor:
            return self.a(x) + y  # type: ignore[no-any-return]

    net = Mixed()
    net.register_full_backward_hook(lost)
    with hv.record(net) as trace:
        net(ones(grad=True), ones(), None).sum().backward()
    return trace


def hook_of_a_module_that_is_thrown_away_fires() -> Trace:
    def run() -> torch.Tensor:
        net = Net()
        net.a.register_forward_hook(lost)
        net.a.register_full_backward_hook(lost)
        return net(ones(grad=True)).sum()  # type: ignore[no-any-return]

    with hv.record() as trace:
        run().backward()
    return trace


def call_and_throw_away(*, in_thread: bool = False) -> torch.Tensor:
    """Call a module with a hook, which no variable leads to afterwards."""
    net, made = nn.Linear(2, 2), list[torch.Tensor]()
    net.register_forward_hook(lost)
    (run_in_thread if in_thread else lambda call: call())(lambda: made.append(net(ones())))
    return made[0].sum()


def hook_of_another_module_than_the_given_one_fires() -> Trace:
    used = nn.Linear(2, 2)
    with hv.record(used) as trace:
        used(ones())
        call_and_throw_away().backward()
    return trace


def hook_of_another_module_fires_in_a_thread() -> Trace:
    used = nn.Linear(2, 2)
    with hv.record(used) as trace:
        call_and_throw_away(in_thread=True)
        used(ones()).sum().backward()
    return trace


def hooks_fire_in_passes_that_are_not_recorded() -> Trace:
    with hv.record(every=2) as trace:
        for _ in range(4):
            call_and_throw_away().backward()
    return trace


def hooks_that_torch_brings_are_not_the_users() -> Trace:
    def prepare() -> None:
        prune.random_unstructured(nn.Linear(2, 2), "weight", amount=0.5)

    x = ones(grad=True)
    with hv.record() as trace:
        prepare()
        (x * 2).sum().backward()
    return trace


def hook_fires_in_the_copy_of_a_module_that_is_thrown_away() -> Trace:
    def make() -> nn.Module:
        net = Net()
        net.a.register_forward_hook(lost)
        return copy.deepcopy(net)

    with hv.record() as trace:
        make()(ones()).sum().backward()
    return trace


FIRING: list[Callable[[], Trace]] = [
    all_hooks_of_a_net_fire,
    hook_before_an_in_place_op_fires,
    hook_on_a_tensor_without_a_variable_fires,
    hooks_of_several_passes_fire,
    hook_that_fired_and_was_removed_is_no_trouble,
    hook_that_fired_in_a_dropped_pass_is_no_trouble,
    multi_grad_hook_fires,
    node_hooks_fire,
    hook_of_a_tensor_in_another_thread_is_unknown,
    hook_of_a_shallow_copy_fires,
    hook_of_a_shallow_copy_that_is_followed_fires,
    outputs_of_a_module_are_not_all_used,
    inputs_of_a_module_do_not_all_need_a_gradient,
    hook_of_a_module_that_is_thrown_away_fires,
    hook_fires_in_the_copy_of_a_module_that_is_thrown_away,
    hook_of_another_module_than_the_given_one_fires,
    hook_of_another_module_fires_in_a_thread,
    hooks_fire_in_passes_that_are_not_recorded,
    hooks_that_torch_brings_are_not_the_users,
]
