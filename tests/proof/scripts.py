"""Scripts that cover many features of autograd; each runs plainly and recorded."""

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
    increment_version,
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


def basic_graph(context: ScriptContext, d: float = 4.0) -> dict[str, Tensor]:
    """Return the tensors a to d of the graph of lesson 01."""
    a, b, d_leaf = leaf(2.0), leaf(3.0), leaf(d)
    c = a * b
    tensors = {"a": a, "b": b, "c": c, "d": d_leaf}
    context.keep(**tensors)
    return tensors


def basic_graph_with_hooks(context: ScriptContext) -> Any:
    """Build the graph a to e with hooks; return e and the handle of c's hook."""
    tensors = basic_graph(context)
    c, d = tensors["c"], tensors["d"]
    handle = context.on(c, "c_hook", lambda grad: grad + 2)
    context.on(c, "c_print")
    c.retain_grad()
    context.on(d, "d_hook", lambda grad: grad + 100)
    e = c * d
    e.retain_grad()
    context.on(e, "e_hook", lambda grad: grad * 2)
    context.keep(e=e)
    return e, handle


@script
def the_picture_without_hooks(context: ScriptContext) -> None:
    tensors = basic_graph(context)
    e = tensors["c"] * tensors["d"]
    tensors["c"].retain_grad()
    e.retain_grad()
    context.keep(e=e)
    with context.watch():
        e.backward()


@script
def the_picture_with_hooks(context: ScriptContext) -> None:
    e, _ = basic_graph_with_hooks(context)
    with context.watch():
        e.backward()


@script
def the_picture_with_one_hook_removed(context: ScriptContext) -> None:
    e, handle = basic_graph_with_hooks(context)
    handle.remove()
    with context.watch():
        e.backward()


@script
def an_edit_in_place_corrupts_the_sibling(context: ScriptContext) -> None:
    tensors = basic_graph(context)
    tensors["c"].retain_grad()
    context.on(tensors["d"], "d_hook", lambda grad: grad.mul_(100) and None)
    e = tensors["c"] + tensors["d"]
    e.retain_grad()
    context.keep(e=e)
    with context.watch():
        e.backward()


@script
def a_diamond(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    b = a * a
    c = b.sin() * b + b
    context.on(b, "b_hook", lambda grad: grad * 0.5)
    context.keep(a=a, b=b)
    with context.watch():
        c.sum().backward()


@script
def inputs_that_are_not_used(context: ScriptContext) -> None:
    a, b = leaf(2.0), leaf(3.0)
    context.on(b, "b_hook")
    context.keep(a=a, b=b)
    with context.watch():
        context.keep(c=a * 2)
        context.tensors["c"].backward()


@script
def some_outputs_of_unbind_and_split(context: ScriptContext) -> None:
    a = leaf(1.0, 2.0, 3.0, 4.0)
    first, *others = (a * 1).unbind()
    left, right = (a * 2).split(2)
    for name, tensor in (("first", first), ("second", others[0]), ("left", left), ("right", right)):
        context.on(tensor, name, lambda grad: None if grad is None else grad * 3)
    context.keep(a=a, first=first, left=left)
    with context.watch():
        (first * left.sum()).backward()


@script
def a_view_and_an_edit_of_its_base(context: ScriptContext) -> None:
    a = leaf(1.0, 2.0, 3.0)
    b = a * 2
    view = b[1:]
    b.mul_(3)
    view.add_(1)
    context.keep(a=a, b=b, view=view)
    context.on(b, "b_hook")
    with context.watch():
        (b.sum() + view.prod()).backward()


@script
def hooks_before_and_after_an_edit_in_place(context: ScriptContext) -> None:
    a = leaf(2.0)
    with context.watch():
        b = a * 3
        context.on(b, "before", lambda grad: grad + 1)
        b.retain_grad()
        b.mul_(5)
        context.on(b, "after", lambda grad: grad + 10)
        context.keep(a=a, b=b)
        (b * 2).backward()


@script
def a_hook_on_a_deleted_tensor(context: ScriptContext) -> None:
    a = leaf(2.0)
    context.keep(a=a)
    with context.watch():
        b = a * 3
        context.on(b, "gone", lambda grad: grad * 7)
        c = b.exp()
        del b
        c.backward()


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
def a_gradient_penalty(context: ScriptContext) -> None:
    a, w = leaf(2.0, 1.0), leaf(0.5, -0.5)
    context.keep(a=a, w=w)
    with context.watch():
        (grad,) = torch.autograd.grad((a * w).tanh().sum(), a, create_graph=True)
        (grad.norm() - 1).square().backward()


@script
def two_passes_over_one_graph(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a.exp()
    context.on(b, "b_hook")
    b.retain_grad()
    context.keep(a=a, b=b)
    with context.watch():
        b.backward(retain_graph=True)
        b.backward()


@script
def one_pass_recorded_and_the_next_not(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a.exp()
    context.on(b, "b_hook", lambda grad: grad * 2)
    context.keep(a=a, b=b)
    with context.watch():
        b.backward(retain_graph=True)
    b.backward(retain_graph=True)
    with context.watch():
        b.backward()


@script
def the_gradient_of_an_intermediate(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    c = b.exp()
    context.on(b, "b_hook", lambda grad: grad * 2)
    context.handles += [b.grad_fn.register_prehook(context.hook("pre")), b.grad_fn.register_hook(context.hook("post"))]
    b.retain_grad()
    with context.watch():
        (grad,) = torch.autograd.grad(c, b)
    context.keep(a=a, b=b, grad=grad)


@script
def the_gradient_of_leaves(context: ScriptContext) -> None:
    a, b, c = leaf(2.0), leaf(3.0), leaf(4.0)
    context.on(a, "a_hook", lambda grad: grad * 2)
    context.handles.append(b.register_post_accumulate_grad_hook(context.hook("never")))
    with context.watch():
        first, second, third = torch.autograd.grad(a * b, (a, b, c), allow_unused=True)
    assert third is None
    context.keep(a=a, b=b, first=first, second=second)


@script
def batched_gradients(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    b = a.sin()
    with context.watch():
        (grad,) = torch.autograd.grad(b, a, torch.eye(2), is_grads_batched=True)
    context.keep(a=a, grad=grad)


class Cubes(torch.autograd.Function):
    """A custom function with two outputs."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(a)
        return a**3, a + 1

    @staticmethod
    def backward(ctx: Any, one: Tensor, two: Tensor) -> Tensor:  # type: ignore[override]
        return one * 3 * ctx.saved_tensors[0] ** 2 + two


class Refuses(torch.autograd.Function):
    """A custom function whose backward raises."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        return a * 1

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        raise ArithmeticError("not today")


@script
def a_custom_function(context: ScriptContext) -> None:
    a = leaf(2.0)
    cube, more = Cubes.apply(a * 1)
    context.on(cube, "cube_hook", lambda grad: grad * 2)
    context.handles.append(cube.grad_fn.register_hook(context.hook("post")))
    context.keep(a=a, cube=cube, more=more)
    with context.watch():
        cube.backward()


@script
def a_function_that_raises(context: ScriptContext) -> None:
    a = leaf(2.0)
    context.keep(a=a)
    with context.watch():
        Refuses.apply(a * 1).backward()


@script
def no_grad_in_the_middle(context: ScriptContext) -> None:
    a = leaf(2.0)
    context.keep(a=a)
    with context.watch():
        b = a * 3
        with torch.no_grad():
            c = b * 5
            a.add_(0)
        context.keep(b=b, c=c)
        (b * c).backward()


@script
def an_edge_as_root(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    context.on(b, "b_hook", lambda grad: grad + 1)
    context.keep(a=a, b=b)
    with context.watch():
        torch.autograd.backward([get_gradient_edge(b)], [torch.tensor(1.5)])


@script
def an_edge_as_input(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    edge = get_gradient_edge(b)
    context.on(b, "b_hook", lambda grad: grad + 1)
    c = b.exp()
    del b
    with context.watch():
        (grad,) = torch.autograd.grad(c, edge)
    context.keep(a=a, grad=grad)


@script
def backward_to_some_inputs_only(context: ScriptContext) -> None:
    a, b = leaf(2.0), leaf(3.0)
    c = a * b
    context.on(a, "a_hook")
    context.on(b, "b_hook")
    context.keep(a=a, b=b, c=c)
    with context.watch():
        c.sin().backward(inputs=[b, c])


@script
def several_roots(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    b, c = a * 2, a.exp()
    seeds = [torch.tensor([1.0, -0.0]), torch.tensor([0.5, 2.0])]
    context.on(b, "b_hook", lambda grad: grad * 2)
    context.keep(a=a, b=b, c=c, one=seeds[0], two=seeds[1])
    with context.watch():
        torch.autograd.backward([b, c, b], [*seeds, seeds[0]])


@script
def accumulating_into_an_existing_gradient(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    a.grad = torch.tensor([1.0, -1.0])
    context.keep(a=a, old=a.grad)
    with context.watch():
        (a * 2).sum().backward()
        (a * 3).sum().backward()
    context.log.append(a.grad is context.tensors["old"])


@script
def a_seed_that_reaches_a_leaf(context: ScriptContext) -> None:
    a, b = leaf(2.0, 3.0), leaf(1.0, 1.0)
    seed = torch.tensor([1.0, 2.0])
    context.keep(a=a, b=b, seed=seed)
    with context.watch():
        (a + b).backward(gradient=seed)
    with context.watch():
        (a + 0).backward(gradient=seed)


@script
def a_leaf_as_root(context: ScriptContext) -> None:
    a, b = leaf(2.0, 3.0), leaf(1.0)
    seed = torch.tensor([1.0, 2.0])
    context.keep(a=a, b=b, seed=seed)
    with context.watch():
        a.backward(gradient=seed)
        b.backward()


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
def gradients_are_summed_in_place(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    b = a - a
    context.keep(a=a, b=b)
    with context.watch():
        (b + b).backward(torch.tensor([-0.75, 1.0]))


@script
def expanded_gradients(context: ScriptContext) -> None:
    a, b = leaf(2.0, 3.0), leaf(1.0)
    context.on(a, "a_hook")
    context.keep(a=a, b=b)
    with context.watch():
        (a.sum() + b.expand(3, 2).sum()).backward()


@script
def a_sparse_gradient(context: ScriptContext) -> None:
    table = nn.Embedding(5, 2, sparse=True)
    context.on(table.weight, "weight_hook", lambda grad: grad * 2)
    context.keep(weight=table.weight)
    with context.watch():
        table(torch.tensor([1, 1, 3])).sum().backward()
        table(torch.tensor([0, 3])).sum().backward()


@script
def complex_numbers(context: ScriptContext) -> None:
    a = torch.tensor([1 + 2j, -0.5j], requires_grad=True)
    b = a.conj() * a.exp()
    context.on(b, "b_hook", lambda grad: grad.conj())
    context.keep(a=a, b=b)
    with context.watch():
        b.abs().sum().backward()
        (a.imag * 2).sum().backward()


def low_precision(dtype: torch.dtype) -> Script:
    """Return a script in a type of 16 bits whose gradients overflow or nearly do."""

    def run(context: ScriptContext) -> None:
        a = leaf(200.0, 0.1, -3.0, dtype=dtype)
        b = a * a
        context.on(b, "b_hook", lambda grad: grad * 3)
        context.keep(a=a, b=b)
        with context.watch():
            (b * b).sum().backward()

    return run


for kind in (torch.float16, torch.bfloat16):
    SCRIPTS[f"in_{str(kind).removeprefix('torch.')}"] = low_precision(kind)


@script
def empty_tensors(context: ScriptContext) -> None:
    a = torch.ones(0, 3, requires_grad=True)
    b = a * 2
    context.on(b, "b_hook")
    context.keep(a=a, b=b)
    with context.watch():
        b.sum().backward()


@script
def a_large_gradient(context: ScriptContext) -> None:
    a = torch.randn(300, 40, requires_grad=True)
    b = a.t().relu()
    context.on(b, "b_hook", lambda grad: grad.clamp(-1, 1))
    context.keep(a=a)
    with context.watch():
        (b @ b.t()).std().backward()


@script
def a_pass_inside_a_hook(context: ScriptContext) -> None:
    a, x = leaf(2.0), leaf(5.0)

    def nested(grad: Tensor) -> Tensor:
        with torch.enable_grad():
            y = x * x
            context.on(y, "y_hook")
            y.backward()
        return grad + x.grad

    b = a * 3
    context.on(b, "b_hook", nested)
    context.keep(a=a, b=b, x=x)
    with context.watch():
        b.exp().backward()


@script
def a_pass_over_the_same_graph_inside_a_hook(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    c = b.sin()
    calls: list[int] = []

    def nested(grad: Tensor) -> None:
        calls.append(1)
        if len(calls) == 1:
            c.backward(retain_graph=True)

    context.on(b, "b_hook", nested)
    context.keep(a=a, b=b, c=c)
    with context.watch():
        c.backward(retain_graph=True)


@script
def a_pass_inside_a_hook_that_raises(context: ScriptContext) -> None:
    a = leaf(2.0)
    inner = leaf(1.0) * 2
    context.on(inner, "inner", raise_error(ValueError))
    b = a * 3
    context.on(b, "outer", lambda grad: inner.backward())
    context.keep(a=a, b=b)
    with context.watch():
        b.exp().backward()


def raise_error(kind: type[BaseException]) -> Callable[..., Any]:
    """Return a hook that raises."""

    def raises(*values: Any) -> Any:
        raise kind("stop here")

    return raises


def on_node(method: str) -> Callable[[ScriptContext, Tensor, Tensor, Any], Any]:
    """Return a function that registers a hook on the node of the intermediate tensor."""
    return lambda context, a, b, hook: getattr(b.grad_fn, method)(hook)


HOOKS: dict[str, Callable[[ScriptContext, Tensor, Tensor, Any], Any]] = {
    "tensor": lambda context, a, b, hook: b.register_hook(hook),
    "leaf": lambda context, a, b, hook: a.register_hook(hook),
    "post_accumulate": lambda context, a, b, hook: a.register_post_accumulate_grad_hook(hook),
    "node_pre": on_node("register_prehook"),
    "node_post": on_node("register_hook"),
    "accumulate_pre": lambda context, a, b, hook: get_gradient_edge(a).node.register_prehook(hook),
    "accumulate_post": lambda context, a, b, hook: get_gradient_edge(a).node.register_hook(hook),
    "multi_all": lambda context, a, b, hook: register_multi_grad_hook([a, b], hook),
    "multi_any": lambda context, a, b, hook: register_multi_grad_hook([a, b], hook, mode="any"),
}
"""Every kind of hook in a graph."""

RESULTS: dict[str, Callable[..., Any]] = {
    "raises": raise_error(ValueError),
    "is_interrupted": raise_error(KeyboardInterrupt),
    "exits": raise_error(SystemError),
    "returns_a_word": lambda *values: "a word",
    "returns_a_wrong_shape": lambda *values: torch.ones(2, 3),
    "returns_too_many": lambda *values: (None, None, None, None),
}
"""The ways in which a hook can break a pass."""


def script_with_bad_hook(
    register: Callable[[ScriptContext, Tensor, Tensor, Any], Any], result: Callable[..., Any]
) -> Script:
    """Return a script with harmless hooks of every kind, and a bad hook between two harmless ones."""

    def run(context: ScriptContext) -> None:
        a = leaf(2.0)
        b = a * 3
        for name, register_hook in HOOKS.items():
            context.handles.append(register_hook(context, a, b, context.hook(f"{name} before")))
        context.handles.append(register(context, a, b, context.hook("bad", result)))
        for name, register_hook in HOOKS.items():
            context.handles.append(register_hook(context, a, b, context.hook(f"{name} after")))
        context.keep(a=a, b=b)
        with context.watch():
            b.exp().backward()

    return run


for place, register_hook in HOOKS.items():
    for outcome, result in RESULTS.items():
        SCRIPTS[f"a_{place}_hook_{outcome}"] = script_with_bad_hook(register_hook, result)


@script
def an_exception_that_is_caught_and_then_another_pass(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    handle = context.on(b, "bad", raise_error(ValueError))
    context.keep(a=a, b=b)
    with context.watch():
        try:
            b.backward(retain_graph=True)
        except ValueError as error:
            context.log.append(str(error))
        handle.remove()
        b.backward()


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
def a_graph_that_was_freed(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a.exp()
    context.keep(a=a, b=b)
    with context.watch():
        b.backward()
        b.backward()


@script
def a_saved_tensor_that_was_changed(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a.exp()
    c = b * 2
    increment_version(b)
    context.keep(a=a, b=b)
    with context.watch():
        c.backward()


@script
def an_error_under_anomaly_detection(context: ScriptContext) -> None:
    a = leaf(-1.0)
    context.keep(a=a)
    with context.watch(), torch.autograd.detect_anomaly():
        a.sqrt().backward()


@script
def hooks_that_remove_themselves_and_others(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    handles: list[Any] = []
    handles.append(context.on(b, "self", lambda grad: handles[0].remove()))
    handles.append(context.on(b, "next", lambda grad: grad + 1))
    handles.append(context.on(a, "leaf", lambda grad: grad * 5))
    context.on(b, "last", lambda grad: [handle.remove() for handle in handles[1:]] and None)
    context.keep(a=a, b=b)
    with context.watch():
        b.backward(retain_graph=True)
        b.backward()


@script
def hooks_that_register_hooks(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a * 3
    c = b.exp()

    def more(grad: Tensor) -> None:
        context.on(c, "same tensor", lambda grad: grad + 1)
        context.on(b, "further on", lambda grad: grad * 2)
        context.handles.append(b.grad_fn.register_prehook(context.hook("node further on")))
        context.handles.append(a.register_post_accumulate_grad_hook(context.hook("leaf further on")))
        b.retain_grad()

    context.on(c, "more", more)
    context.keep(a=a, b=b, c=c)
    with context.watch():
        c.backward(retain_graph=True)
        c.backward()


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


@script
def two_graphs_that_share_a_leaf(context: ScriptContext) -> None:
    a = leaf(2.0)
    b, c = a * 3, a.exp()
    context.on(a, "a_hook", lambda grad: grad * 2)
    context.on(b, "b_hook", lambda grad: c.backward() or grad)
    context.keep(a=a, b=b, c=c)
    with context.watch():
        b.backward()


@script
def a_module_with_hooks(context: ScriptContext) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True), nn.Linear(3, 1))
    for name, module in model.named_children():
        context.handles += [
            module.register_forward_pre_hook(context.hook(f"forward pre {name}")),
            module.register_forward_hook(context.hook(f"forward {name}")),
        ]
    context.handles.append(model[2].register_full_backward_pre_hook(context.hook("full pre", lambda m, g: (g[0] * 2,))))
    context.handles.append(model[2].register_full_backward_hook(context.hook("full", lambda m, i, o: (i[0] + 1,))))
    x = torch.ones(4, 2, requires_grad=True)
    context.keep(x=x, **{name.replace(".", "_"): parameter for name, parameter in model.named_parameters()})
    with context.watch():
        model(x).square().mean().backward()


@script
def a_module_whose_hook_raises(context: ScriptContext) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    context.handles.append(model[0].register_full_backward_hook(context.hook("full", raise_error(ValueError))))
    context.keep(weight=model[0].weight)
    with context.watch():
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()


@script
def a_module_whose_forward_hook_raises(context: ScriptContext) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    context.handles.append(model[1].register_forward_hook(context.hook("forward", raise_error(ValueError))))
    context.keep(weight=model[0].weight)
    with context.watch():
        model(torch.ones(1, 2)).sum().backward()


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
def a_hook_on_saved_tensors_that_raises(context: ScriptContext) -> None:
    a = leaf(2.0, 3.0)
    context.keep(a=a)
    with saved_tensors_hooks(lambda t: t, raise_error(ValueError)):
        b = a.exp()
    with context.watch():
        b.sum().backward()


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


class Tagged(Tensor):
    """A subclass of Tensor that does nothing special."""


@script
def a_subclass_of_tensor(context: ScriptContext) -> None:
    a = torch.ones(2).as_subclass(Tagged).requires_grad_()
    b = a * 2
    context.on(b, "b_hook", lambda grad: grad * 2)
    context.keep(a=a, b=b)
    with context.watch():
        b.sum().backward()
    context.log.append(type(a.grad).__name__)


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
def a_pass_over_a_graph_made_in_another_thread(context: ScriptContext) -> None:
    a = leaf(2.0)
    made: list[Tensor] = []
    with context.watch():
        thread = threading.Thread(target=lambda: made.append(a.exp().sin()))
        thread.start()
        thread.join()
        context.on(made[0], "hook", lambda grad: grad * 2)
        (made[0] * a).backward()
    context.keep(a=a, b=made[0])


@script
def custom_node_metadata(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a.exp()
    b.grad_fn.metadata["mine"] = 1
    context.keep(a=a, b=b)
    with context.watch():
        context.on(b, "b_hook")
        b.backward()


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


@script
def a_legacy_backward_hook(context: ScriptContext) -> None:
    layer = nn.Linear(2, 1)
    context.handles.append(layer.register_backward_hook(context.hook("old")))
    context.keep(weight=layer.weight)
    with context.watch():
        layer(torch.ones(3, 2)).sum().backward()


@script
def a_full_backward_hook_without_an_input_that_needs_grad(context: ScriptContext) -> None:
    layer = nn.Linear(2, 1)
    context.handles.append(layer.register_full_backward_hook(context.hook("full")))
    context.keep(weight=layer.weight)
    with context.watch():
        layer(torch.ones(3, 2)).sum().backward()


@script
def backward_with_create_graph(context: ScriptContext) -> None:
    a = leaf(2.0)
    b = a**3
    context.on(b, "b_hook", lambda grad: grad * 2)
    context.keep(a=a, b=b)
    with context.watch():
        b.backward(create_graph=True)
        a.grad.backward()


@script
def multi_grad_hooks_on_intermediates(context: ScriptContext) -> None:
    a, b = leaf(2.0), leaf(3.0)
    c, d = a * b, a + b
    context.handles.append(register_multi_grad_hook([a, b, c], context.hook("all")))
    context.handles.append(register_multi_grad_hook([c, d], context.hook("any"), mode="any"))
    context.keep(a=a, b=b, c=c, d=d)
    with context.watch():
        c.backward(retain_graph=True)
        (c * d).backward()


@script
def a_tensor_as_root_and_input(context: ScriptContext) -> None:
    """A tensor with two names, which is both root and input."""
    a = leaf(2.0)
    b = same = a * 3
    context.on(same, "same", lambda grad: grad + 1)
    with context.watch():
        grads = torch.autograd.grad([b, b.exp()], [b, a])
    context.keep(a=a, b=b, one=grads[0], two=grads[1])


@script
def a_chain_of_five_thousand(context: ScriptContext) -> None:
    a = leaf(1.0)
    b = a
    for _ in range(5_000):
        b = b * 1.0001
    with context.watch():
        b.backward()
    del b
    context.keep(a=a)
