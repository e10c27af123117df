"""List the modules and parameters of a model by identity, so that modules need not be hashable.

``Module.named_modules`` puts modules into a set, and raises for a model with a module of a class that has ``__eq__``
and no ``__hash__``, such as a dataclass.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor
from torch.nn import Module, Parameter


def named_modules(root: Module, *, every_path: bool = False) -> Iterator[tuple[str, Module]]:
    """Yield (path, module) of ``root`` and of all modules in it, in the order of ``root.named_modules()``.

    A module with several paths comes once, or with ``every_path`` once for each path.

    >>> from torch.nn import ReLU, Sequential
    >>> act = ReLU()
    >>> [path for path, _ in named_modules(Sequential(act, act))]
    ['', '0']
    >>> [path for path, _ in named_modules(Sequential(act, act), every_path=True)]
    ['', '0', '1']
    """
    visited: set[int] = set()
    queue: list[tuple[str, Module, tuple[int, ...]]] = [("", root, ())]
    while queue:
        path, module, ancestors = queue.pop()
        if id(module) in (ancestors if every_path else visited):
            continue
        visited.add(id(module))
        yield path, module
        ancestors = (*ancestors, id(module)) if every_path else ()
        reversed_children = reversed(list(children(module)))
        queue += [(f"{path}.{name}" if path else name, child, ancestors) for name, child in reversed_children]


def children(module: Module) -> Iterator[tuple[str, Module]]:
    """Yield (name, module) of the modules directly in ``module``."""
    return ((name, child) for name, child in _entries_of(module, "_modules") if child is not None)


def own_parameters(module: Module) -> Iterator[tuple[str, Parameter]]:
    """Yield (name, parameter) of the parameters of ``module`` itself, without the parameters of the modules in it."""
    return ((name, parameter) for name, parameter in _entries_of(module, "_parameters") if parameter is not None)


def list_own_parameters(modules: Iterable[Module]) -> list[Parameter]:
    """List the parameters of ``modules`` themselves, quickly: once for each module that holds them."""
    dicts = [vars(module).get("_parameters") or {} for module in modules]
    return [parameter for entries in dicts for parameter in entries.values() if parameter is not None]


def own_buffers(module: Module) -> Iterator[tuple[str, Tensor]]:
    """Yield (name, buffer) of the buffers of ``module`` itself, without the buffers of the modules in it."""
    return ((name, entry) for name, entry in _entries_of(module, "_buffers") if entry is not None)


def has_forward(module: Module) -> bool:
    """Return whether ``module`` has a forward of its own, which a container such as ``ModuleList`` has not."""
    return type(module).forward is not Module.forward or "forward" in vars(module)


def _entries_of(module: Module, attribute: str) -> list[tuple[str, Any]]:
    """List the items of a module's dict of modules or parameters.

    A module whose ``__init__`` does not call ``Module.__init__`` has no such dicts, and ``Module.__getattr__`` would
    raise for them.
    """
    return list((vars(module).get(attribute) or {}).items())


def all_modules(root: Module) -> Iterator[Module]:
    """Yield ``root`` and all modules in it, each once."""
    return (module for _, module in named_modules(root))


def named_parameters(root: Module) -> Iterator[tuple[str, Parameter]]:
    """Yield (path, parameter) of all parameters in ``root``, each once."""
    visited: set[int] = set()
    for path, module in named_modules(root):
        for name, parameter in own_parameters(module):
            if id(parameter) not in visited:
                visited.add(id(parameter))
                yield f"{path}.{name}" if path else name, parameter


def all_parameters(root: Module) -> Iterator[Parameter]:
    """Yield all parameters in ``root``, each once."""
    return (parameter for _, parameter in named_parameters(root))
