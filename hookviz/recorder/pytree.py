"""What a module is given and what it returns: tensors and other things, each under the path that leads to it."""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from hookviz.recorder.fingerprint import Fingerprint
from hookviz.support.printable import truncate
from hookviz.trace.notes import Note
from hookviz.trace.value_rows import Row

MAX_DEPTH, MAX_PARTS = 6, 64
"""How deep containers are opened, and into how many things one is taken apart; a last thing counts those left out."""

_SAFE_REPR_TYPES = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
"""Types whose ``repr`` runs no code of anybody's and says it all."""


class PytreeLeaf(NamedTuple):
    """A thing in a structure at one moment, seen without holding it."""

    label: str
    fingerprint: Fingerprint | None
    """Of a tensor; None for anything else."""
    identity: int
    value: int
    """Its number among the values of the trace."""


def arguments(module: torch.nn.Module, args: Any, kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """(label, thing) for everything a module is called with, under the names that its ``forward`` gives them."""
    names = _forward_parameter_names(getattr(type(module), "forward", None))  # a scripted one has none
    args = args if isinstance(args, tuple) else (args,)
    for i, thing in enumerate(args):
        yield from leaves(names[i] if i < len(names) else f"args[{i}]", thing)
    for name, thing in kwargs.items():
        yield from leaves(name, thing)


_parameter_names_cache: WeakKeyDictionary[Any, tuple[str, ...]] = WeakKeyDictionary()
"""Weak, since a function keeps all that it refers to."""


def _forward_parameter_names(forward: Any) -> tuple[str, ...]:
    """The positional parameters of a module's ``forward``, less ``self``."""
    with suppress(KeyError, TypeError):
        return _parameter_names_cache[forward]
    try:
        parameters = list(inspect.signature(forward).parameters.values())[1:]
    except Exception:  # a class may say of itself what it likes
        return ()
    names = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    with suppress(TypeError):
        _parameter_names_cache[forward] = names
    return names


def leaves(label: str, thing: Any, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(label, thing) for each thing in nested tuples, lists, dicts and dataclasses.

    >>> list(leaves("x", {"a": (1, 2)}))
    [("x['a'][0]", 1), ("x['a'][1]", 2)]
    """
    parts = _container_parts(thing) if type(thing) is not torch.Tensor and depth < MAX_DEPTH else None
    if parts is None:
        yield label, thing
        return
    for path, part in parts[:MAX_PARTS]:
        yield from leaves(f"{label}{path}", part, depth + 1)
    if len(parts) > MAX_PARTS:
        yield f"{label}[…]", _More(len(parts) - MAX_PARTS)


class _More(int):
    """So many things that are not taken apart."""


class _Unreadable(str):
    """A thing that cannot be read, by the exception that says so."""


def _container_parts(thing: Any) -> list[tuple[str, Any]] | None:
    """(path, part) for each part of a container; None for anything else, for an empty one, and where it refuses."""
    try:
        return None if isinstance(thing, torch.Size) or not is_container(thing) else _open_container(thing)
    except Exception:  # a class of a person's has its own code for this
        return None


def _open_container(thing: Any) -> list[tuple[str, Any]]:
    if isinstance(thing, (tuple, list)):
        names = getattr(thing, "_fields", None)
        return [(f".{names[i]}" if names else f"[{i}]", part) for i, part in enumerate(thing)]
    if isinstance(thing, dict):
        return [(f"[{_key_text(key)}]", part) for key, part in thing.items()]
    return [(f".{field.name}", _field_value(thing, field.name)) for field in dataclasses.fields(thing)]


def _field_value(thing: Any, name: str) -> Any:
    """A field of a dataclass, which may be computed when it is asked for."""
    try:
        return getattr(thing, name)
    except Exception as error:
        return _Unreadable(type(error).__name__)


def is_container(thing: Any) -> bool:
    """Whether ``thing`` is a container that can be taken apart without running anybody's code."""
    if isinstance(thing, (tuple, list, dict)):
        return len(thing) > 0
    return dataclasses.is_dataclass(thing) and not isinstance(thing, type)


def _key_text(key: Any) -> str:
    return repr(key) if isinstance(key, _SAFE_REPR_TYPES) else f"<{type(key).__name__}>"


def object_row(thing: Any) -> Row:
    """What a trace keeps of a thing that is not a tensor: what it is, in its own words where they are safe to ask for.

    >>> row_of(0.5)[-1].text
    '0.5'
    """
    if isinstance(thing, _More):
        return ((), type(thing).__name__, "", None, None, Note.of("value.more", count=int(thing)))
    if isinstance(thing, _Unreadable):
        return ((), "", "", None, None, Note.of("value.unknown", why=str(thing)))
    if isinstance(thing, (tuple, list, dict)) or type(thing) in _SAFE_REPR_TYPES:
        text = repr(thing) if type(thing) in (*_SAFE_REPR_TYPES, tuple, list, dict) and not is_container(thing) else "…"
    else:
        text = f"<{type(thing).__name__}>"
    return ((), type(thing).__name__, "", None, None, Note.verbatim(truncate(text, 80)))
