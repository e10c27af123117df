"""List the modules and parameters of a model by identity, so that modules need not be hashable.

``Module.named_modules`` puts modules into a set, and raises for a model with a module of a class that has ``__eq__``
and no ``__hash__``, such as a dataclass.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor
from torch.nn import DataParallel, Module, Parameter
from torch.nn.parallel import DistributedDataParallel

from hookviz.autograd.torch_internals import COMPILED_MODEL


def named_modules(root: Module, *, every_path: bool = False) -> Iterator[tuple[str, Module]]:
    """Yield (path, module) of ``root`` and of all modules in it, in the order of ``root.named_modules()``.

    A module with several paths comes once, or with ``every_path`` once for each path. A model in a wrapper of torch's,
    such as DDP, has the paths that it has without: ``head.weight``, not ``module.head.weight``.

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
        for name, child in reversed(list(children(module))):
            queue.append((path if _is_wrapped(module, name) else join_path(path, name), child, ancestors))


def join_path(*names: str) -> str:
    """Join the names that are not empty with a dot.

    >>> join_path("", "head", "weight")
    'head.weight'
    """
    return ".".join(filter(None, names))


def _is_wrapped(module: Module, name: str) -> bool:
    """Whether the child of this name is the user's model, which ``module`` distributes or compiles."""
    is_parallel = name == "module" and issubclass(type(module), (DistributedDataParallel, DataParallel))
    return is_parallel or name == COMPILED_MODEL


def unwrap(module: Module) -> Module:
    """Return the user's model in the wrappers of torch's, such as DDP, or ``module`` itself if it is not one.

    >>> from torch.nn import DataParallel, ReLU
    >>> unwrap(DataParallel(ReLU()))
    ReLU()
    """
    wrapped = next((child for name, child in children(module) if _is_wrapped(module, name)), None)
    return module if wrapped is None else unwrap(wrapped)


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
                yield join_path(path, name), parameter


def all_parameters(root: Module) -> Iterator[Parameter]:
    """Yield all parameters in ``root``, each once."""
    return (parameter for _, parameter in named_parameters(root))
