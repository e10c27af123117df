"""The modules and parameters in a model, told apart by identity: a module need not be hashable to be followed.

``Module.named_modules`` keeps what it has seen in a set. A class with ``__eq__`` and no ``__hash__``, as every
dataclass, raises there, and with it the whole model.
"""

from collections.abc import Iterator

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
        children = [(name, child) for name, child in module._modules.items() if child is not None]
        queue += [(f"{path}.{name}" if path else name, child, above) for name, child in reversed(children)]


def modules(root: Module) -> Iterator[Module]:
    """``root`` and all modules in it, each once."""
    return (module for _, module in named_modules(root))


def named_parameters(root: Module) -> Iterator[tuple[str, Parameter]]:
    """(path, parameter) of all parameters in ``root``, each once."""
    seen: set[int] = set()
    for path, module in named_modules(root):
        for name, parameter in module._parameters.items():
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield f"{path}.{name}" if path else name, parameter


def parameters(root: Module) -> Iterator[Parameter]:
    """All parameters in ``root``, each once."""
    return (parameter for _, parameter in named_parameters(root))
