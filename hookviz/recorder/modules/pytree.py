"""Flattens the arguments and outputs of modules into leaves, each with the path that leads to it."""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from hookviz.recorder.fingerprint import Fingerprint
from hookviz.support.columns import truncate
from hookviz.trace.notes import Note
from hookviz.trace.value_rows import ValueRow

MAX_DEPTH, MAX_PARTS = 6, 64
"""How deep containers are opened, and into how many parts; one more part counts those left out."""

_SAFE_REPR_TYPES = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
"""Types whose ``repr`` runs no code of the user's and is complete."""


class PytreeLeaf(NamedTuple):
    """A leaf of a structure at one moment, without holding it."""

    label: str
    fingerprint: Fingerprint | None
    """The fingerprint of a tensor; None for other objects."""
    identity: int
    value: int
    """The number of its value in the trace."""


def labelled_arguments(module: torch.nn.Module, args: Any, kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (label, object) for the leaves of a module's arguments, labelled by the parameters of its ``forward``."""
    # A scripted module has no Python ``forward``.
    names = _forward_parameter_names(getattr(type(module), "forward", None))
    args = args if isinstance(args, tuple) else (args,)
    for i, item in enumerate(args):
        yield from labelled_leaves(names[i] if i < len(names) else f"args[{i}]", item)
    for name, item in kwargs.items():
        yield from labelled_leaves(name, item)


_parameter_names_cache: WeakKeyDictionary[Any, tuple[str, ...]] = WeakKeyDictionary()
"""Weak keys, since a function keeps everything that it refers to alive."""


def _forward_parameter_names(forward: Any) -> tuple[str, ...]:
    """Return the names of the positional parameters of a module's ``forward``, without ``self``."""
    with suppress(KeyError, TypeError):
        return _parameter_names_cache[forward]
    try:
        parameters = list(inspect.signature(forward).parameters.values())[1:]
    except Exception:  # a class may define its own ``__signature__``
        return ()
    names = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    with suppress(TypeError):
        _parameter_names_cache[forward] = names
    return names


def labelled_leaves(label: str, item: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield (label, object) for each leaf of nested tuples, lists, dicts and dataclasses.

    >>> list(labelled_leaves("x", {"a": (1, 2)}))
    [("x['a'][0]", 1), ("x['a'][1]", 2)]
    """
    parts = _container_parts(item) if type(item) is not torch.Tensor and depth < MAX_DEPTH else None
    if parts is None:
        yield label, item
        return
    for path, part in parts[:MAX_PARTS]:
        yield from labelled_leaves(f"{label}{path}", part, depth + 1)
    if len(parts) > MAX_PARTS:
        yield f"{label}[…]", _More(len(parts) - MAX_PARTS)


class _More(int):
    """The number of parts that are left out."""


class _Unreadable(str):
    """The name of the exception that reading a field raised."""


def _container_parts(item: Any) -> list[tuple[str, Any]] | None:
    """Return (path, part) for each part of a container; None for an empty one, for other objects, and on an error."""
    try:
        return None if isinstance(item, torch.Size) or not is_container(item) else _open_container(item)
    except Exception:  # container classes of the user's run their own code
        return None


def _open_container(item: Any) -> list[tuple[str, Any]]:
    if isinstance(item, (tuple, list)):
        names = getattr(item, "_fields", None)
        return [(f".{names[i]}" if names else f"[{i}]", part) for i, part in enumerate(item)]
    if isinstance(item, dict):
        return [(f"[{_key_text(key)}]", part) for key, part in item.items()]
    return [(f".{field.name}", _field_value(item, field.name)) for field in dataclasses.fields(item)]


def _field_value(item: Any, name: str) -> Any:
    """Return the value of a dataclass field, which may be computed on access."""
    try:
        return getattr(item, name)
    except Exception as error:
        return _Unreadable(type(error).__name__)


def is_container(item: Any) -> bool:
    """Return whether ``item`` is a non-empty container that can be opened without running the user's code."""
    if isinstance(item, (tuple, list, dict)):
        return len(item) > 0
    return dataclasses.is_dataclass(item) and not isinstance(item, type)


def _key_text(key: Any) -> str:
    return repr(key) if isinstance(key, _SAFE_REPR_TYPES) else f"<{type(key).__name__}>"


def object_row(item: Any) -> ValueRow:
    """Return the row of a value that is not a tensor: its type, and its ``repr`` if that is safe to call.

    >>> object_row(0.5)[-1].text
    '0.5'
    """
    if isinstance(item, _More):
        return ((), type(item).__name__, "", None, None, Note.of("value.more", count=int(item)))
    if isinstance(item, _Unreadable):
        return ((), "", "", None, None, Note.of("value.unknown", why=str(item)))
    if isinstance(item, (tuple, list, dict)) or type(item) in _SAFE_REPR_TYPES:
        text = repr(item) if type(item) in (*_SAFE_REPR_TYPES, tuple, list, dict) and not is_container(item) else "…"
    else:
        text = f"<{type(item).__name__}>"
    return ((), type(item).__name__, "", None, None, Note.verbatim(truncate(text, 80)))
