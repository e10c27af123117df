"""Scripts that pull on every corner of autograd; each is run plainly and recorded."""

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

from .show import Script, Show

SCRIPTS: dict[str, Script] = {}


def script(function: Script) -> Script:
    """Put a function among the scripts."""
    SCRIPTS[function.__name__] = function
    return function


def leaf(*numbers: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return a leaf: a scalar for one number, else a vector."""
    value = numbers[0] if len(numbers) == 1 else list(numbers)
    return torch.tensor(value, dtype=dtype, requires_grad=True)


def picture(show: Show, d: float = 4.0) -> dict[str, Tensor]:
    """Return a to e of the picture that everyone starts from."""
    a, b, d_leaf = leaf(2.0), leaf(3.0), leaf(d)
    c = a * b
    named = {"a": a, "b": b, "c": c, "d": d_leaf}
    show.keep(**named)
    return named


def picture_hooks(show: Show) -> Any:
    """Build the picture with all its hooks; return e and the handle of c's hook."""
    named = picture(show)
    c, d = named["c"], named["d"]
    handle = show.on(c, "c_hook", lambda grad: grad + 2)
    show.on(c, "c_print")
    c.retain_grad()
    show.on(d, "d_hook", lambda grad: grad + 100)
    e = c * d
    e.retain_grad()
    show.on(e, "e_hook", lambda grad: grad * 2)
    show.keep(e=e)
    return e, handle


@script
def the_picture_without_hooks(show: Show) -> None:
    named = picture(show)
    e = named["c"] * named["d"]
    named["c"].retain_grad()
    e.retain_grad()
    show.keep(e=e)
    with show.watch():
        e.backward()


@script
def the_picture_with_hooks(show: Show) -> None:
    e, _ = picture_hooks(show)
    with show.watch():
        e.backward()


@script
def the_picture_with_one_hook_removed(show: Show) -> None:
    e, handle = picture_hooks(show)
    handle.remove()
    with show.watch():
        e.backward()


@script
def an_edit_in_place_corrupts_the_sibling(show: Show) -> None:
    named = picture(show)
    named["c"].retain_grad()
    show.on(named["d"], "d_hook", lambda grad: grad.mul_(100) and None)
    e = named["c"] + named["d"]
    e.retain_grad()
    show.keep(e=e)
    with show.watch():
        e.backward()


@script
def a_diamond(show: Show) -> None:
    a = leaf(2.0, 3.0)
    b = a * a
    c = b.sin() * b + b
    show.on(b, "b_hook", lambda grad: grad * 0.5)
    show.keep(a=a, b=b)
    with show.watch():
        c.sum().backward()


@script
def inputs_that_are_not_used(show: Show) -> None:
    a, b = leaf(2.0), leaf(3.0)
    show.on(b, "b_hook")
    show.keep(a=a, b=b)
    with show.watch():
        show.keep(c=a * 2)
        show.tensors["c"].backward()


@script
def some_outputs_of_unbind_and_split(show: Show) -> None:
    a = leaf(1.0, 2.0, 3.0, 4.0)
    first, *others = (a * 1).unbind()
    left, right = (a * 2).split(2)
    for name, tensor in (("first", first), ("second", others[0]), ("left", left), ("right", right)):
        show.on(tensor, name, lambda grad: None if grad is None else grad * 3)
    show.keep(a=a, first=first, left=left)
    with show.watch():
        (first * left.sum()).backward()


@script
def a_view_and_an_edit_of_its_base(show: Show) -> None:
    a = leaf(1.0, 2.0, 3.0)
    b = a * 2
    view = b[1:]
    b.mul_(3)
    view.add_(1)
    show.keep(a=a, b=b, view=view)
    show.on(b, "b_hook")
    with show.watch():
        (b.sum() + view.prod()).backward()


@script
def hooks_before_and_after_an_edit_in_place(show: Show) -> None:
    a = leaf(2.0)
    with show.watch():
        b = a * 3
        show.on(b, "before", lambda grad: grad + 1)
        b.retain_grad()
        b.mul_(5)
        show.on(b, "after", lambda grad: grad + 10)
        show.keep(a=a, b=b)
        (b * 2).backward()


@script
def a_hook_on_a_tensor_that_is_gone(show: Show) -> None:
    a = leaf(2.0)
    show.keep(a=a)
    with show.watch():
        b = a * 3
        show.on(b, "gone", lambda grad: grad * 7)
        c = b.exp()
        del b
        c.backward()


@script
def double_backward(show: Show) -> None:
    a = leaf(2.0, -0.0)
    show.on(a, "a_hook", lambda grad: grad * 2)
    show.keep(a=a)
    with show.watch():
        b = a**3
        show.on(b, "b_hook")
        (first,) = torch.autograd.grad(b.sum(), a, create_graph=True)
        show.on(first, "first_hook", lambda grad: grad + 1)
        show.keep(first=first)
        first.sum().backward()


@script
def a_gradient_penalty(show: Show) -> None:
    a, w = leaf(2.0, 1.0), leaf(0.5, -0.5)
    show.keep(a=a, w=w)
    with show.watch():
        (grad,) = torch.autograd.grad((a * w).tanh().sum(), a, create_graph=True)
        (grad.norm() - 1).square().backward()


@script
def two_passes_over_one_graph(show: Show) -> None:
    a = leaf(2.0)
    b = a.exp()
    show.on(b, "b_hook")
    b.retain_grad()
    show.keep(a=a, b=b)
    with show.watch():
        b.backward(retain_graph=True)
        b.backward()


@script
def one_pass_recorded_and_the_next_not(show: Show) -> None:
    a = leaf(2.0)
    b = a.exp()
    show.on(b, "b_hook", lambda grad: grad * 2)
    show.keep(a=a, b=b)
    with show.watch():
        b.backward(retain_graph=True)
    b.backward(retain_graph=True)
    with show.watch():
        b.backward()


@script
def the_gradient_of_an_intermediate(show: Show) -> None:
    a = leaf(2.0)
    b = a * 3
    c = b.exp()
    show.on(b, "b_hook", lambda grad: grad * 2)
    show.handles += [b.grad_fn.register_prehook(show.hook("pre")), b.grad_fn.register_hook(show.hook("post"))]
    b.retain_grad()
    with show.watch():
        (grad,) = torch.autograd.grad(c, b)
    show.keep(a=a, b=b, grad=grad)


@script
def the_gradient_of_leaves(show: Show) -> None:
    a, b, c = leaf(2.0), leaf(3.0), leaf(4.0)
    show.on(a, "a_hook", lambda grad: grad * 2)
    show.handles.append(b.register_post_accumulate_grad_hook(show.hook("never")))
    with show.watch():
        first, second, third = torch.autograd.grad(a * b, (a, b, c), allow_unused=True)
    assert third is None
    show.keep(a=a, b=b, first=first, second=second)


@script
def batched_gradients(show: Show) -> None:
    a = leaf(2.0, 3.0)
    b = a.sin()
    with show.watch():
        (grad,) = torch.autograd.grad(b, a, torch.eye(2), is_grads_batched=True)
    show.keep(a=a, grad=grad)


class Cubes(torch.autograd.Function):
    """A person's function with two outputs."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(a)
        return a**3, a + 1

    @staticmethod
    def backward(ctx: Any, one: Tensor, two: Tensor) -> Tensor:  # type: ignore[override]
        return one * 3 * ctx.saved_tensors[0] ** 2 + two


class Refuses(torch.autograd.Function):
    """A person's function whose backward raises."""

    @staticmethod
    def forward(ctx: Any, a: Tensor) -> Tensor:
        return a * 1

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        raise ArithmeticError("not today")


@script
def a_function_of_ones_own(show: Show) -> None:
    a = leaf(2.0)
    cube, more = Cubes.apply(a * 1)
    show.on(cube, "cube_hook", lambda grad: grad * 2)
    show.handles.append(cube.grad_fn.register_hook(show.hook("post")))
    show.keep(a=a, cube=cube, more=more)
    with show.watch():
        cube.backward()


@script
def a_function_that_raises(show: Show) -> None:
    a = leaf(2.0)
    show.keep(a=a)
    with show.watch():
        Refuses.apply(a * 1).backward()


@script
def no_grad_in_the_middle(show: Show) -> None:
    a = leaf(2.0)
    show.keep(a=a)
    with show.watch():
        b = a * 3
        with torch.no_grad():
            c = b * 5
            a.add_(0)
        show.keep(b=b, c=c)
        (b * c).backward()


@script
def an_edge_as_root(show: Show) -> None:
    a = leaf(2.0)
    b = a * 3
    show.on(b, "b_hook", lambda grad: grad + 1)
    show.keep(a=a, b=b)
    with show.watch():
        torch.autograd.backward([get_gradient_edge(b)], [torch.tensor(1.5)])


@script
def an_edge_as_input(show: Show) -> None:
    a = leaf(2.0)
    b = a * 3
    edge = get_gradient_edge(b)
    show.on(b, "b_hook", lambda grad: grad + 1)
    c = b.exp()
    del b
    with show.watch():
        (grad,) = torch.autograd.grad(c, edge)
    show.keep(a=a, grad=grad)


@script
def backward_to_some_inputs_only(show: Show) -> None:
    a, b = leaf(2.0), leaf(3.0)
    c = a * b
    show.on(a, "a_hook")
    show.on(b, "b_hook")
    show.keep(a=a, b=b, c=c)
    with show.watch():
        c.sin().backward(inputs=[b, c])


@script
def several_roots(show: Show) -> None:
    a = leaf(2.0, 3.0)
    b, c = a * 2, a.exp()
    seeds = [torch.tensor([1.0, -0.0]), torch.tensor([0.5, 2.0])]
    show.on(b, "b_hook", lambda grad: grad * 2)
    show.keep(a=a, b=b, c=c, one=seeds[0], two=seeds[1])
    with show.watch():
        torch.autograd.backward([b, c, b], [*seeds, seeds[0]])


@script
def adding_to_a_gradient_that_is_there(show: Show) -> None:
    a = leaf(2.0, 3.0)
    a.grad = torch.tensor([1.0, -1.0])
    show.keep(a=a, old=a.grad)
    with show.watch():
        (a * 2).sum().backward()
        (a * 3).sum().backward()
    show.log.append(a.grad is show.tensors["old"])


@script
def a_seed_that_reaches_a_leaf(show: Show) -> None:
    a, b = leaf(2.0, 3.0), leaf(1.0, 1.0)
    seed = torch.tensor([1.0, 2.0])
    show.keep(a=a, b=b, seed=seed)
    with show.watch():
        (a + b).backward(gradient=seed)
    with show.watch():
        (a + 0).backward(gradient=seed)


@script
def a_leaf_as_root(show: Show) -> None:
    a, b = leaf(2.0, 3.0), leaf(1.0)
    seed = torch.tensor([1.0, 2.0])
    show.keep(a=a, b=b, seed=seed)
    with show.watch():
        a.backward(gradient=seed)
        b.backward()


@script
def gradients_are_stolen_or_copied_alike(show: Show) -> None:
    """A leaf's `.grad` is the very memory that its hook saw, unless somebody else holds it."""
    a, b, held = leaf(2.0, 3.0), leaf(1.0, 1.0), []
    places: dict[str, int] = {}
    show.on(a, "a_hook", lambda grad: places.update(a=grad.data_ptr()))
    show.on(b, "b_hook", lambda grad: held.append(grad) or places.update(b=grad.data_ptr()))
    show.keep(a=a, b=b)
    with show.watch():
        (a * b).sin().sum().backward()
    show.log.append([a.grad.data_ptr() == places["a"], b.grad.data_ptr() == places["b"]])


@script
def sums_are_made_in_place_alike(show: Show) -> None:
    a = leaf(2.0, 3.0)
    b = a - a
    show.keep(a=a, b=b)
    with show.watch():
        (b + b).backward(torch.tensor([-0.75, 1.0]))


@script
def expanded_gradients(show: Show) -> None:
    a, b = leaf(2.0, 3.0), leaf(1.0)
    show.on(a, "a_hook")
    show.keep(a=a, b=b)
    with show.watch():
        (a.sum() + b.expand(3, 2).sum()).backward()


@script
def a_sparse_gradient(show: Show) -> None:
    table = nn.Embedding(5, 2, sparse=True)
    show.on(table.weight, "weight_hook", lambda grad: grad * 2)
    show.keep(weight=table.weight)
    with show.watch():
        table(torch.tensor([1, 1, 3])).sum().backward()
        table(torch.tensor([0, 3])).sum().backward()


@script
def complex_numbers(show: Show) -> None:
    a = torch.tensor([1 + 2j, -0.5j], requires_grad=True)
    b = a.conj() * a.exp()
    show.on(b, "b_hook", lambda grad: grad.conj())
    show.keep(a=a, b=b)
    with show.watch():
        b.abs().sum().backward()
        (a.imag * 2).sum().backward()


def low_precision(dtype: torch.dtype) -> Script:
    """Return a script in a type of 16 bits whose gradients overflow or nearly do."""

    def run(show: Show) -> None:
        a = leaf(200.0, 0.1, -3.0, dtype=dtype)
        b = a * a
        show.on(b, "b_hook", lambda grad: grad * 3)
        show.keep(a=a, b=b)
        with show.watch():
            (b * b).sum().backward()

    return run


for kind in (torch.float16, torch.bfloat16):
    SCRIPTS[f"in_{str(kind).removeprefix('torch.')}"] = low_precision(kind)


@script
def nothing_is_there(show: Show) -> None:
    a = torch.ones(0, 3, requires_grad=True)
    b = a * 2
    show.on(b, "b_hook")
    show.keep(a=a, b=b)
    with show.watch():
        b.sum().backward()


@script
def a_large_gradient(show: Show) -> None:
    a = torch.randn(300, 40, requires_grad=True)
    b = a.t().relu()
    show.on(b, "b_hook", lambda grad: grad.clamp(-1, 1))
    show.keep(a=a)
    with show.watch():
        (b @ b.t()).std().backward()


@script
def a_pass_inside_a_hook(show: Show) -> None:
    a, x = leaf(2.0), leaf(5.0)

    def nested(grad: Tensor) -> Tensor:
        with torch.enable_grad():
            y = x * x
            show.on(y, "y_hook")
            y.backward()
        return grad + x.grad

    b = a * 3
    show.on(b, "b_hook", nested)
    show.keep(a=a, b=b, x=x)
    with show.watch():
        b.exp().backward()


@script
def a_pass_over_the_same_graph_inside_a_hook(show: Show) -> None:
    a = leaf(2.0)
    b = a * 3
    c = b.sin()
    calls: list[int] = []

    def nested(grad: Tensor) -> None:
        calls.append(1)
        if len(calls) == 1:
            c.backward(retain_graph=True)

    show.on(b, "b_hook", nested)
    show.keep(a=a, b=b, c=c)
    with show.watch():
        c.backward(retain_graph=True)


@script
def a_pass_inside_a_hook_that_raises(show: Show) -> None:
    a = leaf(2.0)
    inner = leaf(1.0) * 2
    show.on(inner, "inner", stop(ValueError))
    b = a * 3
    show.on(b, "outer", lambda grad: inner.backward())
    show.keep(a=a, b=b)
    with show.watch():
        b.exp().backward()


def stop(kind: type[BaseException]) -> Callable[..., Any]:
    """Return a hook that raises."""

    def raises(*values: Any) -> Any:
        raise kind("stop here")

    return raises


def on_node(method: str) -> Callable[[Show, Tensor, Tensor, Any], Any]:
    """Return a function that registers a hook on the node of the intermediate tensor."""
    return lambda show, a, b, hook: getattr(b.grad_fn, method)(hook)


HOOKS: dict[str, Callable[[Show, Tensor, Tensor, Any], Any]] = {
    "tensor": lambda show, a, b, hook: b.register_hook(hook),
    "leaf": lambda show, a, b, hook: a.register_hook(hook),
    "post_accumulate": lambda show, a, b, hook: a.register_post_accumulate_grad_hook(hook),
    "node_pre": on_node("register_prehook"),
    "node_post": on_node("register_hook"),
    "accumulate_pre": lambda show, a, b, hook: get_gradient_edge(a).node.register_prehook(hook),
    "accumulate_post": lambda show, a, b, hook: get_gradient_edge(a).node.register_hook(hook),
    "multi_all": lambda show, a, b, hook: register_multi_grad_hook([a, b], hook),
    "multi_any": lambda show, a, b, hook: register_multi_grad_hook([a, b], hook, mode="any"),
}
"""Every kind of hook in a graph."""

RESULTS: dict[str, Callable[..., Any]] = {
    "raises": stop(ValueError),
    "is_interrupted": stop(KeyboardInterrupt),
    "exits": stop(SystemError),
    "returns_a_word": lambda *values: "a word",
    "returns_a_wrong_shape": lambda *values: torch.ones(2, 3),
    "returns_too_many": lambda *values: (None, None, None, None),
}
"""Every way in which a hook can spoil a pass."""


def spoiled(register: Callable[[Show, Tensor, Tensor, Any], Any], result: Callable[..., Any]) -> Script:
    """Return a script with harmless hooks of every kind and a bad one in the middle of its kind."""

    def run(show: Show) -> None:
        a = leaf(2.0)
        b = a * 3
        for name, put in HOOKS.items():
            show.handles.append(put(show, a, b, show.hook(f"{name} before")))
        show.handles.append(register(show, a, b, show.hook("bad", result)))
        for name, put in HOOKS.items():
            show.handles.append(put(show, a, b, show.hook(f"{name} after")))
        show.keep(a=a, b=b)
        with show.watch():
            b.exp().backward()

    return run


for place, put in HOOKS.items():
    for outcome, result in RESULTS.items():
        SCRIPTS[f"a_{place}_hook_{outcome}"] = spoiled(put, result)


@script
def an_exception_that_is_caught_and_then_another_pass(show: Show) -> None:
    a = leaf(2.0)
    b = a * 3
    handle = show.on(b, "bad", stop(ValueError))
    show.keep(a=a, b=b)
    with show.watch():
        try:
            b.backward(retain_graph=True)
        except ValueError as error:
            show.log.append(str(error))
        handle.remove()
        b.backward()


@script
def errors_of_torch_itself(show: Show) -> None:
    a = leaf(2.0, 3.0)
    b = a.exp()
    with show.watch():
        for seed in (None, torch.ones(3), torch.ones(2, dtype=torch.complex64)):
            try:
                b.backward(seed)
            except RuntimeError as error:
                show.log.append(str(error))
    show.keep(a=a, b=b)


@script
def a_graph_that_was_freed(show: Show) -> None:
    a = leaf(2.0)
    b = a.exp()
    show.keep(a=a, b=b)
    with show.watch():
        b.backward()
        b.backward()


@script
def a_saved_tensor_that_was_changed(show: Show) -> None:
    a = leaf(2.0)
    b = a.exp()
    c = b * 2
    increment_version(b)
    show.keep(a=a, b=b)
    with show.watch():
        c.backward()


@script
def an_error_under_anomaly_detection(show: Show) -> None:
    a = leaf(-1.0)
    show.keep(a=a)
    with show.watch(), torch.autograd.detect_anomaly():
        a.sqrt().backward()


@script
def hooks_that_remove_themselves_and_others(show: Show) -> None:
    a = leaf(2.0)
    b = a * 3
    handles: list[Any] = []
    handles.append(show.on(b, "self", lambda grad: handles[0].remove()))
    handles.append(show.on(b, "next", lambda grad: grad + 1))
    handles.append(show.on(a, "leaf", lambda grad: grad * 5))
    show.on(b, "last", lambda grad: [handle.remove() for handle in handles[1:]] and None)
    show.keep(a=a, b=b)
    with show.watch():
        b.backward(retain_graph=True)
        b.backward()


@script
def hooks_that_register_hooks(show: Show) -> None:
    a = leaf(2.0)
    b = a * 3
    c = b.exp()

    def more(grad: Tensor) -> None:
        show.on(c, "same tensor", lambda grad: grad + 1)
        show.on(b, "further on", lambda grad: grad * 2)
        show.handles.append(b.grad_fn.register_prehook(show.hook("node further on")))
        show.handles.append(a.register_post_accumulate_grad_hook(show.hook("leaf further on")))
        b.retain_grad()

    show.on(c, "more", more)
    show.keep(a=a, b=b, c=c)
    with show.watch():
        c.backward(retain_graph=True)
        c.backward()


@script
def one_function_registered_twice_and_other_callables(show: Show) -> None:
    a = leaf(2.0)
    b = a * 3
    twice = show.hook("twice", lambda grad: grad * 2)
    show.handles += [b.register_hook(twice), b.register_hook(twice), b.register_hook(Doubler())]
    show.keep(a=a, b=b)
    with b.register_hook(show.hook("for a while")), show.watch():
        b.backward(retain_graph=True)
    with show.watch():
        b.backward()


class Doubler:
    """A hook that is an object, and can be pickled."""

    def __call__(self, grad: Tensor) -> Tensor:
        return grad * 2


@script
def hooks_that_copy_what_is_being_watched(show: Show) -> None:
    a = leaf(2.0)
    show.handles.append(a.register_hook(Doubler()))
    b = a * 3

    def copies(grad: Tensor) -> None:
        again = pickle.loads(pickle.dumps(a))
        show.log.append(visible_hooks(again))
        show.log.append(visible_hooks(copy.deepcopy(a)))

    show.on(b, "copies", copies)
    show.keep(a=a, b=b)
    with show.watch():
        b.backward()
    show.log.append(visible_hooks(pickle.loads(pickle.dumps(a))))


def visible_hooks(tensor: Tensor) -> list[str]:
    """Return the types of the hooks that a copy of a tensor has."""
    return [type(hook).__name__ for hook in (tensor._backward_hooks or {}).values()]


@script
def a_step_inside_backward(show: Show) -> None:
    a = leaf(2.0, 3.0)

    def step(parameter: Tensor) -> None:
        with torch.no_grad():
            parameter.sub_(parameter.grad, alpha=0.1)
        parameter.grad = None

    show.handles.append(a.register_post_accumulate_grad_hook(show.hook("step", step)))
    show.keep(a=a)
    with show.watch():
        for _ in range(3):
            (a * a).sum().backward()


@script
def two_graphs_that_share_a_leaf(show: Show) -> None:
    a = leaf(2.0)
    b, c = a * 3, a.exp()
    show.on(a, "a_hook", lambda grad: grad * 2)
    show.on(b, "b_hook", lambda grad: c.backward() or grad)
    show.keep(a=a, b=b, c=c)
    with show.watch():
        b.backward()


@script
def a_module_with_hooks(show: Show) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True), nn.Linear(3, 1))
    for name, module in model.named_children():
        show.handles += [
            module.register_forward_pre_hook(show.hook(f"forward pre {name}")),
            module.register_forward_hook(show.hook(f"forward {name}")),
        ]
    show.handles.append(model[2].register_full_backward_pre_hook(show.hook("full pre", lambda m, g: (g[0] * 2,))))
    show.handles.append(model[2].register_full_backward_hook(show.hook("full", lambda m, i, o: (i[0] + 1,))))
    x = torch.ones(4, 2, requires_grad=True)
    show.keep(x=x, **{name.replace(".", "_"): parameter for name, parameter in model.named_parameters()})
    with show.watch():
        model(x).square().mean().backward()


@script
def a_module_whose_hook_raises(show: Show) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    show.handles.append(model[0].register_full_backward_hook(show.hook("full", stop(ValueError))))
    show.keep(weight=model[0].weight)
    with show.watch():
        model(torch.ones(1, 2, requires_grad=True)).sum().backward()


@script
def a_module_whose_forward_hook_raises(show: Show) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    show.handles.append(model[1].register_forward_hook(show.hook("forward", stop(ValueError))))
    show.keep(weight=model[0].weight)
    with show.watch():
        model(torch.ones(1, 2)).sum().backward()


def checkpointed(reentrant: bool) -> Script:
    """Return a script that computes its forward pass again during backward."""

    def run(show: Show) -> None:
        layer = nn.Linear(2, 2)
        x = torch.ones(1, 2, requires_grad=True)
        show.on(layer.weight, "weight_hook", lambda grad: grad * 2)
        show.handles.append(layer.register_forward_hook(show.hook("forward")))
        show.keep(x=x, weight=layer.weight)
        with show.watch():
            y = checkpoint(lambda t: layer(t).tanh(), x, use_reentrant=reentrant)
            y.sum().backward()

    return run


SCRIPTS["a_checkpoint"] = checkpointed(False)
SCRIPTS["a_reentrant_checkpoint"] = checkpointed(True)


@script
def hooks_on_saved_tensors(show: Show) -> None:
    a = leaf(2.0, 3.0)
    show.keep(a=a)
    pack, unpack = show.hook("pack", lambda t: t * 1), show.hook("unpack", lambda t: t)
    with show.watch(), saved_tensors_hooks(pack, unpack):
        b = a.exp() * a
        b.sum().backward()
    with show.watch(), save_on_cpu():
        (a * a).sum().backward()


@script
def a_hook_on_saved_tensors_that_raises(show: Show) -> None:
    a = leaf(2.0, 3.0)
    show.keep(a=a)
    with saved_tensors_hooks(lambda t: t, stop(ValueError)):
        b = a.exp()
    with show.watch():
        b.sum().backward()


@script
def training_with_an_optimizer(show: Show) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    show.handles.append(optimizer.register_step_pre_hook(show.hook("before step")))
    show.handles.append(optimizer.register_step_post_hook(show.hook("after step")))
    show.keep(weight=model.weight, bias=model.bias)
    with show.watch():
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.ones(3, 2)).square().mean().backward()
            optimizer.step()


@script
def a_pass_in_another_thread(show: Show) -> None:
    a = leaf(2.0)
    b = a.exp()
    show.on(b, "b_hook")
    show.keep(a=a, b=b)
    with show.watch():
        thread = threading.Thread(target=b.backward)
        thread.start()
        thread.join()


@script
def functional_transforms(show: Show) -> None:
    a = leaf(2.0, 3.0)
    with show.watch():
        grad = torch.func.grad(lambda t: (t * t).sum())(a.detach())
        jacobian = torch.autograd.functional.jacobian(lambda t: t.exp(), a)
        hessian = torch.func.hessian(lambda t: (t**3).sum())(a.detach())
        mapped = torch.func.vmap(torch.func.grad(lambda t: t.sin()))(a.detach())
    show.keep(a=a, grad=grad, jacobian=jacobian, hessian=hessian, mapped=mapped)


class Tagged(Tensor):
    """A subclass of Tensor that does nothing special."""


@script
def a_subclass_of_tensor(show: Show) -> None:
    a = torch.ones(2).as_subclass(Tagged).requires_grad_()
    b = a * 2
    show.on(b, "b_hook", lambda grad: grad * 2)
    show.keep(a=a, b=b)
    with show.watch():
        b.sum().backward()
    show.log.append(type(a.grad).__name__)


@script
def tensors_without_numbers(show: Show) -> None:
    a = torch.ones(2, device="meta", requires_grad=True)
    b = a * 2
    handle = b.register_hook(lambda grad: grad * 2)
    with show.watch():
        b.sum().backward()
    handle.remove()
    show.log.append((str(a.grad.device), tuple(a.grad.shape), a.grad._version))


@script
def nested_tensors(show: Show) -> None:
    parts = [leaf(1.0, 2.0), leaf(3.0, 4.0, 5.0)]
    with show.watch():
        together = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
        show.handles.append((together * 2).register_hook(lambda grad: grad * 3))
        (together.sin() * 2).values().sum().backward()
    show.keep(one=parts[0], two=parts[1])


@script
def a_pass_over_a_graph_made_in_another_thread(show: Show) -> None:
    a = leaf(2.0)
    made: list[Tensor] = []
    with show.watch():
        thread = threading.Thread(target=lambda: made.append(a.exp().sin()))
        thread.start()
        thread.join()
        show.on(made[0], "hook", lambda grad: grad * 2)
        (made[0] * a).backward()
    show.keep(a=a, b=made[0])


@script
def metadata_of_ones_own(show: Show) -> None:
    a = leaf(2.0)
    b = a.exp()
    b.grad_fn.metadata["mine"] = 1
    show.keep(a=a, b=b)
    with show.watch():
        show.on(b, "b_hook")
        b.backward()


@script
def hooks_put_into_the_dict_by_hand(show: Show) -> None:
    a = leaf(2.0)
    b = a * 3
    show.on(b, "b_hook", lambda grad: grad * 2)
    hooks = b._backward_hooks
    hooks["by hand"] = show.hook("by hand", lambda grad: grad + 1)
    show.keep(a=a, b=b)
    with show.watch():
        b.backward()
    show.log.append([hooks is b._backward_hooks, len(hooks), list(hooks)[-1], type(hooks).__name__])


@script
def a_backward_hook_of_the_old_kind(show: Show) -> None:
    layer = nn.Linear(2, 1)
    show.handles.append(layer.register_backward_hook(show.hook("old")))
    show.keep(weight=layer.weight)
    with show.watch():
        layer(torch.ones(3, 2)).sum().backward()


@script
def a_full_backward_hook_without_an_input_that_needs_grad(show: Show) -> None:
    layer = nn.Linear(2, 1)
    show.handles.append(layer.register_full_backward_hook(show.hook("full")))
    show.keep(weight=layer.weight)
    with show.watch():
        layer(torch.ones(3, 2)).sum().backward()


@script
def backward_that_makes_a_graph(show: Show) -> None:
    a = leaf(2.0)
    b = a**3
    show.on(b, "b_hook", lambda grad: grad * 2)
    show.keep(a=a, b=b)
    with show.watch():
        b.backward(create_graph=True)
        a.grad.backward()


@script
def hooks_on_what_other_gradients_are_made_of(show: Show) -> None:
    a, b = leaf(2.0), leaf(3.0)
    c, d = a * b, a + b
    show.handles.append(register_multi_grad_hook([a, b, c], show.hook("all")))
    show.handles.append(register_multi_grad_hook([c, d], show.hook("any"), mode="any"))
    show.keep(a=a, b=b, c=c, d=d)
    with show.watch():
        c.backward(retain_graph=True)
        (c * d).backward()


@script
def the_picture_inside_a_larger_one(show: Show) -> None:
    """Names of the same tensors, and a tensor that is root and input at once."""
    a = leaf(2.0)
    b = same = a * 3
    show.on(same, "same", lambda grad: grad + 1)
    with show.watch():
        grads = torch.autograd.grad([b, b.exp()], [b, a])
    show.keep(a=a, b=b, one=grads[0], two=grads[1])


@script
def a_chain_of_five_thousand(show: Show) -> None:
    a = leaf(1.0)
    b = a
    for _ in range(5_000):
        b = b * 1.0001
    with show.watch():
        b.backward()
    del b
    show.keep(a=a)
