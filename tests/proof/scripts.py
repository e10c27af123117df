"""Scripts with what the random programs of `programs.py` do not have; each runs plainly and recorded."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import (
    get_gradient_edge,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)
from torch.utils.checkpoint import checkpoint

from .show import Script, ScriptContext

SCRIPTS: dict[str, Script] = {}


def script(function: Script) -> Script:
    """Add a function to the scripts."""
    SCRIPTS[function.__name__] = function
    return function


def leaf(*numbers: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a leaf: a scalar for one number, else a vector."""
    value = numbers[0] if len(numbers) == 1 else list(numbers)
    return torch.tensor(value, dtype=dtype, requires_grad=True)


class Tagged(Tensor):
    """A subclass of Tensor that does nothing special."""


def on_one_tensor(make: Callable[[], Tensor], compute: Callable[[Tensor], Tensor], change: Any = None) -> Script:
    """Return a script with a hook on what is computed from a leaf."""

    def run(context: ScriptContext) -> None:
        a = make()
        b = compute(a)
        context.on(b, "b_hook", change)
        context.keep(a=a, b=b)
        with context.watch():
            b.abs().sum().backward()
        context.log.append(type(a.grad).__name__)

    return run


SCRIPTS |= {
    "a_diamond": on_one_tensor(lambda: leaf(2.0, 3.0), lambda a: (a * a).sin() * a + a, lambda grad: grad * 0.5),
    "half_precision_that_overflows": on_one_tensor(
        lambda: leaf(200.0, 0.1, -3.0, dtype=torch.float16), lambda a: a * a * a, lambda grad: grad * 3
    ),
    "complex_numbers": on_one_tensor(
        lambda: torch.tensor([1 + 2j, -0.5j], requires_grad=True), lambda a: a.conj() * a.exp(), torch.conj
    ),
    "empty_tensors": on_one_tensor(lambda: torch.ones(0, 3, requires_grad=True), lambda a: a * 2),
    "a_large_gradient": on_one_tensor(
        lambda: torch.randn(300, 40, requires_grad=True), lambda a: a.t() @ a, lambda grad: grad.clamp(-1, 1)
    ),
    "a_subclass_of_tensor": on_one_tensor(
        lambda: torch.ones(2).as_subclass(Tagged).requires_grad_(), lambda a: a * 2, lambda grad: grad * 2
    ),
}


@script
def double_backward(context: ScriptContext) -> None:
    a = leaf(2.0, -0.0)
    context.on(a, "a_hook", lambda grad: grad * 2)
    context.keep(a=a)
    with context.watch():
        b = a**3
        context.on(b, "b_hook")
        (first,) = torch.autograd.grad(b.sum(), a, create_graph=True)
        context.on(first, "first_hook", lambda grad: grad + 1)
        context.keep(first=first)
        first.sum().backward()


@script
def batched_gradients(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    b = a.sin()
    with context.watch():
        (grad,) = torch.autograd.grad(b, a, torch.eye(2), is_grads_batched=True)
    context.keep(a=a, grad=grad)


@script
def edges_as_root_and_input(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    c, edge = b.exp(), get_gradient_edge(b)
    context.on(b, "b_hook", lambda grad: grad + 1)
    del b
    with context.watch():
        torch.autograd.backward([get_gradient_edge(c)], [torch.tensor(1.5)], retain_graph=True)
        (grad,) = torch.autograd.grad(c, edge)
    context.keep(a=a, c=c, grad=grad)


@script
def a_seed_that_reaches_a_leaf(context: ScriptContext) -> None:
    a, b, c = leaf(2.0, 3.0), leaf(1.0, 1.0), leaf(1.0)
    seed = torch.tensor([1.0, 2.0])
    context.keep(a=a, b=b, c=c, seed=seed)
    with context.watch():
        (a + b).backward(gradient=seed)
        (a + 0).backward(gradient=seed)
        a.backward(gradient=seed)
        c.backward()


@script
def gradients_are_moved_or_copied_into_grad(context: ScriptContext) -> None:
    """A leaf's `.grad` shares the memory of the gradient in its hook, unless something else refers to it."""
    a, b, held = leaf(2.0, 3.0), leaf(1.0, 1.0), []
    places: dict[str, int] = {}
    context.on(a, "a_hook", lambda grad: places.update(a=grad.data_ptr()))
    context.on(b, "b_hook", lambda grad: held.append(grad) or places.update(b=grad.data_ptr()))
    context.keep(a=a, b=b)
    with context.watch():
        (a * b).sin().sum().backward()
    context.log.append([a.grad.data_ptr() == places["a"], b.grad.data_ptr() == places["b"]])


@script
def a_sparse_gradient(context: ScriptContext) -> None:
    table = nn.Embedding(5, 2, sparse=True)
    context.on(table.weight, "weight_hook", lambda grad: grad * 2)
    context.keep(weight=table.weight)
    with context.watch():
        table(torch.tensor([1, 1, 3])).sum().backward()
        table(torch.tensor([0, 3])).sum().backward()


def raise_error(kind: type[BaseException]) -> Callable[..., Any]:
    """Return a hook that raises."""

    def raises(*values: Any) -> Any:
        raise kind("stop here")

    return raises


HOOKS: dict[str, Callable[[Tensor, Tensor, Any], Any]] = {
    "tensor": lambda a, b, hook: b.register_hook(hook),
    "leaf": lambda a, b, hook: a.register_hook(hook),
    "post_accumulate": lambda a, b, hook: a.register_post_accumulate_grad_hook(hook),
    "node_pre": lambda a, b, hook: b.grad_fn.register_prehook(hook),
    "node_post": lambda a, b, hook: b.grad_fn.register_hook(hook),
    "accumulate_pre": lambda a, b, hook: get_gradient_edge(a).node.register_prehook(hook),
    "accumulate_post": lambda a, b, hook: get_gradient_edge(a).node.register_hook(hook),
    "multi_all": lambda a, b, hook: register_multi_grad_hook([a, b], hook),
    "multi_any": lambda a, b, hook: register_multi_grad_hook([a, b], hook, mode="any"),
}
"""Every kind of hook in a graph."""

BAD_HOOKS: dict[str, tuple[str, Callable[..., Any]]] = {
    "a_tensor_hook_is_interrupted": ("tensor", raise_error(KeyboardInterrupt)),
    "a_node_post_hook_returns_too_much": ("node_post", lambda *values: (None,) * 4),
    "an_accumulate_post_hook_raises": ("accumulate_post", raise_error(ValueError)),
    "a_multi_any_hook_raises": ("multi_any", raise_error(ValueError)),
}
"""Script → the hook that breaks the pass, and what it does: the random programs have the other combinations."""


def script_with_bad_hook(place: str, result: Callable[..., Any]) -> Script:
    """Return a script with harmless hooks of every kind, and a bad hook between two harmless ones."""

    def run(context: ScriptContext) -> None:
        a = leaf(2.0)
        b = a * 3
        for name, register in HOOKS.items():
            context.handles.append(register(a, b, context.hook(f"{name} before")))
        context.handles.append(HOOKS[place](a, b, context.hook("bad", result)))
        for name, register in HOOKS.items():
            context.handles.append(register(a, b, context.hook(f"{name} after")))
        context.keep(a=a, b=b)
        with context.watch():
            b.exp().backward()

    return run


SCRIPTS |= {name: script_with_bad_hook(place, result) for name, (place, result) in BAD_HOOKS.items()}


@script
def errors_of_torch_itself(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    b = a.exp()
    with context.watch():
        for seed in (None, torch.ones(3), torch.ones(2, dtype=torch.complex64)):
            try:
                b.backward(seed)
            except RuntimeError as error:
                context.log.append(str(error))
    context.keep(a=a, b=b)


@script
def an_error_under_anomaly_detection(context: ScriptContext) -> None:
    a = leaf(-1.0)
    context.keep(a=a)
    with context.watch(), torch.autograd.detect_anomaly():
        a.sqrt().backward()


@script
def one_function_registered_twice_and_other_callables(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    twice = context.hook("twice", lambda grad: grad * 2)
    context.handles += [b.register_hook(twice), b.register_hook(twice), b.register_hook(Doubler())]
    context.keep(a=a, b=b)
    with b.register_hook(context.hook("for a while")), context.watch():
        b.backward(retain_graph=True)
    with context.watch():
        b.backward()


class Doubler:
    """A callable object as a hook, which can be pickled."""

    def __call__(self, grad: Tensor) -> Tensor:
        return grad * 2


@script
def hooks_that_copy_tensors(context: ScriptContext) -> None:
    a = leaf(2.0)
    context.handles.append(a.register_hook(Doubler()))
    b = a * 3

    def copies(grad: Tensor) -> None:
        again = pickle.loads(pickle.dumps(a))
        context.log.append(visible_hooks(again))
        context.log.append(visible_hooks(copy.deepcopy(a)))

    context.on(b, "copies", copies)
    context.keep(a=a, b=b)
    with context.watch():
        b.backward()
    context.log.append(visible_hooks(pickle.loads(pickle.dumps(a))))


def visible_hooks(tensor: Tensor) -> list[str]:
    """Return the types of the hooks that a copy of a tensor has."""
    return [type(hook).__name__ for hook in (tensor._backward_hooks or {}).values()]


@script
def a_step_inside_backward(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)

    def step(parameter: Tensor) -> None:
        with torch.no_grad():
            parameter.sub_(parameter.grad, alpha=0.1)
        parameter.grad = None

    context.handles.append(a.register_post_accumulate_grad_hook(context.hook("step", step)))
    context.keep(a=a)
    with context.watch():
        for _ in range(3):
            (a * a).sum().backward()


def checkpointed(reentrant: bool) -> Script:
    """Return a script that recomputes its forward pass during backward."""

    def run(context: ScriptContext) -> None:
        layer = nn.Linear(2, 2)
        x = torch.ones(1, 2, requires_grad=True)
        context.on(layer.weight, "weight_hook", lambda grad: grad * 2)
        context.handles.append(layer.register_forward_hook(context.hook("forward")))
        context.keep(x=x, weight=layer.weight)
        with context.watch():
            y = checkpoint(lambda t: layer(t).tanh(), x, use_reentrant=reentrant)
            y.sum().backward()

    return run


SCRIPTS["a_checkpoint"] = checkpointed(False)
SCRIPTS["a_reentrant_checkpoint"] = checkpointed(True)


@script
def hooks_on_saved_tensors(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    context.keep(a=a)
    pack, unpack = context.hook("pack", lambda t: t * 1), context.hook("unpack", lambda t: t)
    with context.watch(), saved_tensors_hooks(pack, unpack):
        b = a.exp() * a
        b.sum().backward()
    with context.watch(), save_on_cpu():
        (a * a).sum().backward()


@script
def training_with_an_optimizer(context: ScriptContext) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    context.handles.append(optimizer.register_step_pre_hook(context.hook("before step")))
    context.handles.append(optimizer.register_step_post_hook(context.hook("after step")))
    context.keep(weight=model.weight, bias=model.bias)
    with context.watch():
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(3, 2)).square().mean().backward()
            optimizer.step()


@script
def a_pass_in_another_thread(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a.exp()
    context.on(b, "b_hook")
    context.keep(a=a, b=b)
    with context.watch():
        thread = threading.Thread(target=b.backward)
        thread.start()
        thread.join()


@script
def functional_transforms(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    with context.watch():
        grad = torch.func.grad(lambda t: (t * t).sum())(a.detach())
        jacobian = torch.autograd.functional.jacobian(lambda t: t.exp(), a)
        hessian = torch.func.hessian(lambda t: (t**3).sum())(a.detach())
        mapped = torch.func.vmap(torch.func.grad(lambda t: t.sin()))(a.detach())
    context.keep(a=a, grad=grad, jacobian=jacobian, hessian=hessian, mapped=mapped)


@script
def meta_tensors(context: ScriptContext) -> None:
    a = torch.ones(2, device="meta", requires_grad=True)
    b = a * 2
    handle = b.register_hook(lambda grad: grad * 2)
    with context.watch():
        b.sum().backward()
    handle.remove()
    context.log.append((str(a.grad.device), tuple(a.grad.shape), a.grad._version))


@script
def nested_tensors(context: ScriptContext) -> None:
    parts = [leaf(1.0, 2.0), leaf(3.0, 4.0, 5.0)]
    with context.watch():
        together = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
        context.handles.append((together * 2).register_hook(lambda grad: grad * 3))
        (together.sin() * 2).values().sum().backward()
    context.keep(one=parts[0], two=parts[1])


@script
def hooks_put_into_the_dict_by_hand(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    context.on(b, "b_hook", lambda grad: grad * 2)
    hooks = b._backward_hooks
    hooks["by hand"] = context.hook("by hand", lambda grad: grad + 1)
    context.keep(a=a, b=b)
    with context.watch():
        b.backward()
    context.log.append([hooks is b._backward_hooks, len(hooks), list(hooks)[-1], type(hooks).__name__])
