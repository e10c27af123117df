"""Find the names that tensors have in the variables of the user's code, and check names that the user passes."""

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

import torch

from hookviz.autograd.module_tree import named_modules, named_parameters
from hookviz.autograd.tensor_types import is_tensor
from hookviz.support.messages import _
from hookviz.support.printable import describe_type
from hookviz.support.source_code import shorten_filename
from hookviz.support.user_objects import is_of, own_attributes
from hookviz.support.wrapped_functions import is_installed_file

_LIBRARY_FOLDERS = tuple(
    os.path.join(folder, "") for folder in (os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(__file__)))
)
MAX_FRAMES = 100
"""Names are looked for in the variables of up to this many functions that are running."""
_IGNORED_NAMES = frozenset({"In", "Out", "exit", "quit"})
_TYPES_WITHOUT_TENSORS = frozenset(
    {bool, int, float, str, bytes, type(None), type, FunctionType, BuiltinFunctionType, ModuleType}
)
"""Types of values that contain no tensor: most variables of a notebook have one of them."""


def caller_frame(depth: int = 1) -> FrameType:
    """Return the innermost frame of the user's code: neither of this package nor of torch."""
    frame = sys._getframe(depth)
    while frame.f_back is not None and is_library_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def is_library_file(file: str) -> bool:
    """Whether a file belongs to this package, to torch, or to what runs a ``with`` statement."""
    return file.startswith(_LIBRARY_FOLDERS) or file == contextlib.__file__


def user_frames() -> list[FrameType]:
    """Return the frames of the user's own code, the innermost first: of no installed package.

    A library may run between them, such as one that trains the user's model. If there are none, only that of the code
    that ``caller_frame`` returns.
    """
    innermost = frame = caller_frame(2)
    found: list[FrameType] = []
    outer: FrameType | None = frame
    while outer is not None and len(found) < MAX_FRAMES:
        file = outer.f_code.co_filename
        if not (is_library_file(file) or is_installed_file(file)):
            found.append(outer)
        outer = outer.f_back
    return found or [innermost]


def validate_names(names: Mapping[str, torch.Tensor] | None) -> dict[str, torch.Tensor]:
    """Check that ``names`` maps names to tensors, and return a copy; an empty dict for None.

    Raises:
        TypeError: ``names`` is not such a mapping.
    """
    if names is None:
        return {}
    wrong = describe_type(names) if not isinstance(names, Mapping) else ""
    for name, tensor in {} if wrong else names.items():
        if not isinstance(name, str) or not is_tensor(tensor):
            wrong = f"dict[{type(name).__name__}, {type(tensor).__name__}]"
    if wrong:
        raise TypeError(_("names takes a dict of name → tensor, not {wrong}.").format(wrong=wrong))
    return dict(names)


def interesting_variables(frame: FrameType) -> dict[str, Any]:
    """Map names to what a frame's variables and then its globals hold, without the types that contain no tensor."""
    local = frame.f_locals
    found = _interesting_items(local)
    if local is not frame.f_globals:
        for name, value in _interesting_items(frame.f_globals).items():
            found.setdefault(name, value)
        _clear_locals_cache(frame, local)
    return found


def tensor_variables(frame: FrameType, *, with_modules: bool = True) -> dict[str, torch.Tensor]:
    """Map names to the tensors in a frame's variables and then its globals; the items of a container as ``w[0]``.

    Without ``with_modules``, the parameters of modules are left out.
    """
    return tensors_among(interesting_variables(frame), with_modules=with_modules)


def tensors_among(variables: Mapping[str, Any], *, with_modules: bool) -> dict[str, torch.Tensor]:
    """Map names to the tensors in variables, also in lists, tuples and dicts, and on request in modules."""
    found: dict[str, torch.Tensor] = {}
    for name, value in variables.items():
        if is_tensor(value):
            found[name] = value
        else:
            found.update(_tensors_in_variable(name, value, with_modules))
    return found


def variable_name(value: object, frame: FrameType) -> str | None:
    """Find the name of a variable that holds ``value``, first in the frame, then in its globals."""
    local = frame.f_locals
    found = _find_name(local, value) or _find_name(frame.f_globals, value)
    if local is not frame.f_globals:
        _clear_locals_cache(frame, local)
    return found


def expression_for(value: object, frame: FrameType) -> str | None:
    """Find the variable that holds ``value``, or else the attribute of an object in a variable: ``self.optimizer``."""
    name = variable_name(value, frame)
    if name is not None:
        return name
    for owner_name, owner in copy_locals(frame).items():
        attributes = {} if issubclass(type(owner), _CONTAINERS) else own_attributes(owner)
        found = _find_name(attributes, value) if len(attributes) <= MAX_ATTRIBUTES else None
        if found is not None:
            return f"{owner_name}.{found}"
    return None


class Holder(NamedTuple):
    """A model that a variable holds, and the expression that reaches it."""

    name: str
    root: torch.nn.Module


def find_holder(module: torch.nn.Module, frame: FrameType, visited: set[int]) -> Holder | None:
    """Find the model that holds ``module`` and that a variable of a frame, or an attribute of ``self``, holds.

    ``visited`` has the ``id`` of models that are known not to hold it; those that were looked at are added.
    """
    name = variable_name(module, frame)
    if name is not None and name not in _SELVES:
        return Holder(name, module)
    for holder in list_models(frame):
        if id(holder.root) not in visited and any(inner is module for _, inner in named_modules(holder.root)):
            return holder
        visited.add(id(holder.root))
    return None


def list_models(frame: FrameType) -> list[Holder]:
    """List the models that variables of a frame hold, and then those in attributes of other variables.

    The latter are objects such as ``self``, and classes that the file of the frame defines.
    """
    variables = interesting_variables(frame)
    modules = ((name, value) for name, value in variables.items() if is_of(value, torch.nn.Module))
    models = [Holder(name, module) for name, module in modules if name not in _SELVES]
    local = {name: value for name, value in copy_locals(frame).items() if name in variables}
    others = [(name, value) for name, value in local.items() if not issubclass(type(value), _CONTAINERS)]
    others += _own_classes(frame)
    return [*models, *(held for name, value in others for held in _models_in_attributes(name, value))]


_SELVES = ("self", "cls")
"""What methods call their own object: this names no model."""
_CONTAINERS = (torch.nn.Module, torch.Tensor, torch.optim.Optimizer, dict, list, tuple, set)
"""What is not looked at for attributes that are models."""
MAX_ATTRIBUTES = 200
"""An object with more attributes is not looked at."""


def _own_classes(frame: FrameType) -> list[tuple[str, type]]:
    names = frame.f_globals
    classes = [(name, value) for name, value in list(names.items()) if type(value) is type]
    return [(name, value) for name, value in classes if value.__module__ == names.get("__name__")]


def _models_in_attributes(name: str, owner: Any) -> Iterator[Holder]:
    for namespace in (own_attributes(owner), own_attributes(type(owner))):
        for attribute, value in list(namespace.items()) if len(namespace) <= MAX_ATTRIBUTES else ():
            if is_of(value, torch.nn.Module):
                yield Holder(f"{name}.{attribute}", value)


def _find_name(namespace: Mapping[str, Any], value: object) -> str | None:
    for name, held in list(namespace.items()):
        if held is value and not name.startswith("_") and name not in _IGNORED_NAMES:
            return name
    return None


def copy_locals(frame: FrameType) -> dict[str, Any]:
    """Copy the local variables of a running function; the frame keeps no reference to the values because of it."""
    local = frame.f_locals
    found = dict(local)
    _clear_locals_cache(frame, local)
    return found


def _clear_locals_cache(frame: FrameType, local: dict[str, Any]) -> None:
    """Empty the dict behind ``f_locals``: before Python 3.13 the frame keeps it, and with it every tensor in it."""
    function = frame.f_code.co_flags & 0x3 == 0x3  # CO_OPTIMIZED and CO_NEWLOCALS: not a module or class body
    if function and sys.version_info < (3, 13) and sys.getrefcount(local) <= 4:  # the user holds no locals()
        local.clear()


def _interesting_items(namespace: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value
        for name, value in list(namespace.items())
        if type(value) not in _TYPES_WITHOUT_TENSORS and not name.startswith("_") and name not in _IGNORED_NAMES
    }


def _tensors_in_variable(name: str, value: Any, with_modules: bool) -> Iterator[tuple[str, torch.Tensor]]:
    if is_of(value, torch.nn.Module):
        if with_modules:
            yield from ((f"{name}.{path}", parameter) for path, parameter in named_parameters(value))
    elif type(value) in (list, tuple):
        yield from ((f"{name}[{i}]", x) for i, x in enumerate(value[:64]) if is_tensor(x))
    elif type(value) is dict and len(value) <= 64:
        yield from ((f"{name}[{_write_key(key)}]", x) for key, x in value.items() if is_tensor(x))


def _write_key(key: Any) -> str:
    """Write the key of a dict; that of another type by its name, since its ``repr`` may be the user's."""
    return repr(key) if type(key) in (str, int, float, bool, bytes, type(None)) else f"<{type(key).__name__}>"


def find_code_place() -> str | None:
    """Return file and line of the innermost frame of the user's own code; None if there is none."""
    frame = user_frames()[0]
    filename = frame.f_code.co_filename
    file = None if is_installed_file(filename) else shorten_filename(filename)
    return None if file is None else f"{file}:{frame.f_lineno}"
