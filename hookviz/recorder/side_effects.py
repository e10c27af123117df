"""What a hook does beside what it is given: it draws random numbers, or changes a parameter of its module.

Only around the hooks of users is anything read. The numbers of a large parameter on the CPU are summed up only if the
code of the hook names ``data`` or ``set_``, by which they change without a new version.
"""

import ctypes
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import torch

from hookviz.autograd import module_tree
from hookviz.autograd.tensor_statistics import hidden_from_tools
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS

_SILENT_NAMES = ("data", "set_")
"""Attributes by which code changes the numbers of a tensor without a new version."""


class Surroundings(NamedTuple):
    """What a hook may change beside what it is given."""

    random: bytes
    """The state of the generator of the CPU."""
    parameters: dict[str, tuple[Any, ...]]
    """Name → identity, version and numbers of each parameter that its module holds itself."""


class SideEffects(NamedTuple):
    """What a hook did beside what it was given."""

    drew: bool = False
    """Whether it drew random numbers."""
    parameters: tuple[str, ...] = ()
    """The names of the parameters of its module that it changed."""


def look_around(module: Any, hook: Any) -> Surroundings:
    """Return what ``hook``, which runs next, may change; ``module`` is its module, or None."""
    parameters = {} if module is None else dict(module_tree.own_parameters(module))
    reads_numbers = _may_change_silently(hook)
    with hidden_from_tools():
        states = {name: _read_parameter(one, reads_numbers=reads_numbers) for name, one in parameters.items()}
        return Surroundings(_read_random(), states)


def find_side_effects(before: Surroundings, module: Any, hook: Any) -> SideEffects:
    """Return what ``hook``, which has just run, changed."""
    now = look_around(module, hook)
    names = [name for name, state in now.parameters.items() if before.parameters.get(name, state) != state]
    return SideEffects(before.random != now.random, tuple(names))


def _read_random() -> bytes:
    state = torch.default_generator.get_state()
    return ctypes.string_at(state.data_ptr(), state.numel())


def _may_change_silently(hook: Any) -> bool:
    """Whether the code of a hook may change numbers without a new version; so may what is not written in Python."""
    function = hook.__func__ if type(hook) is MethodType else hook
    is_python = type(function) is FunctionType
    return not is_python or any(name in function.__code__.co_names for name in _SILENT_NAMES)


def _read_parameter(parameter: torch.Tensor, *, reads_numbers: bool) -> tuple[Any, ...]:
    if type(parameter) is not torch.nn.Parameter or parameter.is_inference():
        return (id(parameter),)
    state = id(parameter), parameter._version
    is_readable = parameter.device.type == "cpu" and parameter.layout is torch.strided
    if not reads_numbers or not is_readable:
        return state
    with torch.no_grad():
        plain = parameter.detach()
        if plain.numel() <= MAX_KEPT_NUMBERS:
            return (*state, repr(plain.tolist()))
        kind = torch.complex128 if plain.is_complex() else torch.float64
        return (*state, repr(torch.linalg.vector_norm(plain, dtype=kind).item()))
