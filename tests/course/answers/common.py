"""Wrong answers to any question that asks for a function, and mistakes that are a right answer with other text."""

from typing import Any

import torch


def raises(*_: Any) -> torch.Tensor:
    raise RuntimeError("no")


def leaves_python(*_: Any) -> None:
    raise SystemExit


def changed(source: str, name: str, *replacements: tuple[str, str]) -> Any:
    """What ``source`` defines under a name, with other text in some places."""
    for old, new in replacements:
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    names: dict[str, Any] = {}
    exec(compile(source, f"changed {name}", "exec"), names)
    return names[name]
