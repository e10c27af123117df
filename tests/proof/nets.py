"""Small networks with hooks as plain data, a Hypothesis strategy for them, and functions that run them."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.modules.module as torch_modules
from hypothesis import strategies as st
from torch import Tensor, nn

from .compare import (
    Watch,
    bits,
    collect_warnings,
    describe_error,
    describe_warnings,
    garbage_collection_off,
    gradient,
    package_frames,
    plain,
    seed_cpu_generator,
)

SHAPES = ("linear", "relu in place", "identity", "sequence", "shared", "keywords", "dict", "tuple", "breaks", "detach")
PLACES = (
    *("forward_pre", "forward_pre kwargs", "forward", "forward kwargs", "forward always", "forward first"),
    *("full_backward_pre", "full_backward", "legacy", "tensor", "multi"),
    *("global forward_pre", "global forward", "global full_backward_pre", "global full_backward"),
)
ACTIONS = ("keep", "edit", "edit data", "replace", "raise", "wrong", "remove itself", "register another", "detach")


@dataclass(frozen=True)
class Layer:
    kind: str
    inner: tuple[Layer, ...] = ()


@dataclass(frozen=True)
class ModuleHook:
    place: str
    target: int
    action: str


@dataclass(frozen=True)
class NetProgram:
    layers: tuple[Layer, ...]
    hooks: tuple[ModuleHook, ...]
    input_needs_grad: bool
    no_grad: bool
    passes: int


def layers(depth: int = 2) -> st.SearchStrategy[Layer]:
    """A strategy for modules with at most ``depth`` levels of nesting."""
    simple_layers = st.sampled_from([kind for kind in SHAPES if kind not in ("sequence", "shared")]).map(Layer)
    if not depth:
        return simple_layers
    nested = st.tuples(st.sampled_from(("sequence", "shared")), st.lists(layers(depth - 1), min_size=1, max_size=2))
    return st.one_of(simple_layers, simple_layers, nested.map(lambda pair: Layer(pair[0], tuple(pair[1]))))


def net_strategy() -> st.SearchStrategy[NetProgram]:
    """A strategy for networks of up to three modules with up to five hooks."""
    hook = st.builds(ModuleHook, st.sampled_from(PLACES), st.integers(0, 7), st.sampled_from(ACTIONS))
    return st.builds(
        NetProgram,
        st.lists(layers(), min_size=1, max_size=3).map(tuple),
        st.lists(hook, max_size=5).map(tuple),
        st.booleans(),
        st.sampled_from((False, False, False, True)),
        st.integers(1, 3),
    )


# -- modules


class Keywords(nn.Module):
    def forward(self, x: Any, scale: float = 2.0, **other_keywords: Any) -> Any:
        return first(x) * scale


class Returns(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.weight = nn.Parameter(torch.full((2,), 1.5))

    def forward(self, x: Any) -> Any:
        result = first(x) * self.weight
        return {"out": result, "note": 3} if self.kind == "dict" else (result, result + 1)


class Breaks(nn.Module):
    """A module that raises on small inputs."""

    def forward(self, x: Any) -> Any:
        if first(x).detach().sum() < 1:
            raise ArithmeticError("too small")
        return first(x)


class Detaches(nn.Module):
    """A module that detaches a part of its output."""

    def forward(self, x: Any) -> Any:
        return first(x).detach() + first(x) / 2


class Chain(nn.Module):
    """Calls its inner modules one after the other, ``times`` times."""

    def __init__(self, inner: list[nn.Module], times: int) -> None:
        super().__init__()
        self.inner = nn.ModuleList(inner)
        self.times = times

    def forward(self, x: Any) -> Any:
        for _ in range(self.times):
            for module in self.inner:
                x = module(first(x), scale=3.0) if isinstance(module, Keywords) else module(first(x))
        return x


def first(x: Any) -> Any:
    """The first tensor in a module's output."""
    while not isinstance(x, Tensor):
        x = next(iter(x.values())) if isinstance(x, dict) else x[0]
    return x


def build(layer: Layer) -> nn.Module:
    if layer.kind in ("sequence", "shared"):
        return Chain([build(inner) for inner in layer.inner], 2 if layer.kind == "shared" else 1)
    factories: dict[str, Callable[[], nn.Module]] = {
        "linear": lambda: nn.Linear(2, 2), "relu in place": lambda: nn.ReLU(inplace=True), "identity": nn.Identity,
        "keywords": Keywords, "dict": lambda: Returns("dict"), "tuple": lambda: Returns("tuple"), "breaks": Breaks,
        "detach": Detaches,
    }  # fmt: skip
    return factories[layer.kind]()


# -- running


@dataclass
class Run:
    net: nn.Module
    log: list[Any] = field(default_factory=list)
    handles: list[Any] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def register(self, hook: ModuleHook, name: str) -> None:
        module = list(self.net.modules())[hook.target % len(list(self.net.modules()))]
        place, _, flag = hook.place.partition(" ")
        function = self.function(hook, name)
        if place in ("tensor", "multi"):
            handle = self.on_parameters(place, function)
        elif place == "global":
            handle = getattr(torch_modules, f"register_module_{flag}_hook")(function)
        elif place == "legacy":
            handle = module.register_backward_hook(function)  # type: ignore[arg-type]
        else:
            flags = {"kwargs": {"with_kwargs": True}, "always": {"always_call": True}, "first": {"prepend": True}}
            handle = getattr(module, f"register_{place}_hook")(function, **flags.get(flag, {}))
        if handle is not None:
            self.handles.append(handle)

    def on_parameters(self, place: str, function: Callable[..., Any]) -> Any:
        parameters = list(self.net.parameters())
        if not parameters:
            return None
        if place == "tensor":
            return parameters[0].register_hook(lambda grad: function(None, (grad,)) and None)
        return torch.autograd.graph.register_multi_grad_hook(parameters, lambda grads: function(None, grads) and None)

    def function(self, hook: ModuleHook, name: str) -> Callable[..., Any]:
        """Create the hook function, which logs its arguments and performs its action."""

        def act(module: Any, *given: Any) -> Any:
            self.log.append((name, [as_plain_data(thing) for thing in given]))
            self.counts[f"{hook.place}: {hook.action}"] += 1
            return self.act(hook, name, module, given)

        return act

    def act(self, hook: ModuleHook, name: str, module: Any, given: tuple[Any, ...]) -> Any:
        value = given[-1] if hook.place.startswith(("forward", "global forward")) else given[0]
        if hook.place in ("forward_pre", "forward_pre kwargs", "global forward_pre"):
            value = given[0]
        if hook.action == "raise":
            raise LookupError(name)
        if hook.action == "remove itself" and self.handles:
            self.handles[-1].remove()
        if hook.action == "register another" and len(self.handles) < 8 and module is not None:
            self.handles.append(
                module.register_forward_hook(self.function(ModuleHook("forward", 0, "keep"), name + "+"))
            )
        if hook.action in ("edit", "edit data"):
            edit(value, hook.action == "edit data")
        if hook.action == "wrong":
            return 7  # not a string, in which torch would search for a tensor forever
        if hook.action in ("replace", "detach"):
            result = replacement(value, hook.action)
            return (result, given[1]) if hook.place == "forward_pre kwargs" else result
        return None


def edit(value: Any, data: bool) -> None:
    """Write into the first tensor of a hook's argument."""
    tensors = [value] if isinstance(value, Tensor) else [x for x in value if isinstance(x, Tensor)]
    for tensor in tensors[:1]:
        if data:
            tensor.data.mul_(2)
        else:
            tensor.mul_(2)


def replacement(value: Any, action: str) -> Any:
    """A changed value of the same structure."""
    if isinstance(value, Tensor):
        return value.detach() if action == "detach" else value * 2
    if isinstance(value, dict):
        return {key: replacement(part, action) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(replacement(part, action) for part in value)
    return value


def as_plain_data(thing: Any) -> Any:
    if isinstance(thing, Tensor):
        return bits(thing), thing._version, thing.requires_grad, thing.grad_fn is None
    if isinstance(thing, dict):
        return {key: as_plain_data(part) for key, part in thing.items()}
    if isinstance(thing, (tuple, list)):
        return [type(thing).__name__, *map(as_plain_data, thing)]
    return repr(thing)


def hooks_of_modules(net: nn.Module) -> list[Any]:
    """The attributes of the modules, and the kinds of keys in all hook dicts, in order."""
    found: list[Any] = [sorted(vars(module)) for module in net.modules()]
    for module in net.modules():
        found += [[type(k).__name__ for k in d] for n, d in vars(module).items() if "hook" in n and isinstance(d, dict)]
    global_dicts = {
        name: hooks for name, hooks in vars(torch_modules).items() if name.startswith("_global") and "hook" in name
    }
    found += [
        (name, [type(key).__name__ for key in hooks]) for name, hooks in global_dicts.items() if isinstance(hooks, dict)
    ]
    return found


def global_modes() -> tuple[Any, ...]:
    """The global settings that a recording must not change."""
    rng = torch.get_rng_state().numpy().tobytes()
    return (torch.is_grad_enabled(), torch.get_default_dtype(), rng, threading.active_count(), len(warnings.filters))


def run_net(program: NetProgram, watch: Watch = plain) -> dict[str, Any]:
    """Run a program and report everything that a user could observe."""
    seed_cpu_generator(3)
    run = Run(Chain([build(layer) for layer in program.layers], 1))
    report: dict[str, Any] = {}
    with collect_warnings() as caught, garbage_collection_off():
        try:
            for number, hook in enumerate(program.hooks):
                try:
                    run.register(hook, f"h{number}")
                except RuntimeError as error:  # torch refuses legacy and full backward hooks on one module
                    run.log.append(str(error))
            with watch(), torch.set_grad_enabled(not program.no_grad):
                report["passes"] = [run_pass(run, program) for _ in range(program.passes)]
            report["left"] = hooks_of_modules(run.net)
            report["modes"] = global_modes()
        finally:
            for handle in run.handles:
                handle.remove()
    report |= {"log": run.log, "warnings": describe_warnings(caught)}
    report["state"] = {name: (bits(p), bits(p.grad), p._version) for name, p in run.net.named_parameters()}
    report["counts"] = run.counts
    return report


def run_pass(run: Run, program: NetProgram) -> dict[str, Any]:
    x = torch.tensor([0.5, -1.0], requires_grad=program.input_needs_grad)
    output, error_report = None, None
    try:
        output = run.net(x.clone() if program.input_needs_grad else x)
        if first(output).requires_grad:
            first(output).sum().backward()
    except Exception as error:
        error_report = describe_error(error)
        assert not package_frames(error_report), error_report
    plain_output = None if output is None else as_plain_data(output)
    return {
        "output": plain_output,
        "x": bits(x),
        "grad": bits(gradient(x)),
        "version": x._version,
        "failed": error_report,
    }
