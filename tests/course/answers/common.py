"""Wrong answers to any question that asks for a function, and mistakes that are a right answer with other text."""

import inspect
import sys
from typing import Any

import torch


def raises(*_: Any) -> torch.Tensor:
    raise RuntimeError("no")


def leaves_python(*_: Any) -> None:
    raise SystemExit


def changed(source: str, name: str, *replacements: tuple[str, str], names: dict[str, Any] | None = None) -> Any:
    """What ``source`` defines under a name, with other text in some places; ``names`` are those that it knows."""
    for old, new in replacements:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    space = dict(names or {})
    exec(compile(source, f"changed {name}", "exec"), space)
    return space[name]


def changed_part(part: Any, *replacements: tuple[str, str]) -> Any:
    """A tool or a cure of the course, with other text in some places."""
    return changed(inspect.getsource(part), part.__name__, *replacements, names=vars(sys.modules[part.__module__]))
