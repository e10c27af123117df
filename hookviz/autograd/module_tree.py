"""The modules and parameters in a model, told apart by identity: a module need not be hashable to be followed.

``Module.named_modules`` keeps what it has seen in a set. A class with ``__eq__`` and no ``__hash__``, as every
dataclass, raises there, and with it the whole model.
"""

from collections.abc import Iterator
from typing import Any

from torch.nn import Module, Parameter


def named_modules(root: Module, *, again: bool = False) -> Iterator[tuple[str, Module]]:
    """(path, module) of ``root`` and of all modules in it, in the order of ``root.named_modules()``.

    A module that stands in several places comes once, or with ``again`` once for each place.

    >>> from torch.nn import ReLU, Sequential
    >>> act = ReLU()
    >>> [path for path, _ in named_modules(Sequential(act, act))]
    ['', '0']
    >>> [path for path, _ in named_modules(Sequential(act, act), again=True)]
    ['', '0', '1']
    """
    seen: set[int] = set()
    queue: list[tuple[str, Module, tuple[int, ...]]] = [("", root, ())]
    while queue:
        path, module, above = queue.pop()
        if id(module) in (above if again else seen):
            continue
        seen.add(id(module))
        yield path, module
        above = (*above, id(module)) if again else ()
        found = reversed(list(children(module)))
        queue += [(f"{path}.{name}" if path else name, child, above) for name, child in found]


def children(module: Module) -> Iterator[tuple[str, Module]]:
    """(name, module) of the modules directly in ``module``."""
    return ((name, child) for name, child in _items(module, "_modules") if child is not None)


def own_parameters(module: Module) -> Iterator[tuple[str, Parameter]]:
    """(name, parameter) of the parameters of ``module`` itself, without those of the modules in it."""
    return ((name, parameter) for name, parameter in _items(module, "_parameters") if parameter is not None)


def _items(module: Module, attribute: str) -> list[tuple[str, Any]]:
    """The items of one of a module's dicts; none for a class whose ``__init__`` does not call that of ``Module``.

    Such a module has no dicts, and ``Module.__getattr__`` raises where it is asked for one.
    """
    return list((vars(module).get(attribute) or {}).items())


def modules(root: Module) -> Iterator[Module]:
    """``root`` and all modules in it, each once."""
    return (module for _, module in named_modules(root))


def named_parameters(root: Module) -> Iterator[tuple[str, Parameter]]:
    """(path, parameter) of all parameters in ``root``, each once."""
    seen: set[int] = set()
    for path, module in named_modules(root):
        for name, parameter in own_parameters(module):
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield f"{path}.{name}" if path else name, parameter


def parameters(root: Module) -> Iterator[Parameter]:
    """All parameters in ``root``, each once."""
    return (parameter for _, parameter in named_parameters(root))
