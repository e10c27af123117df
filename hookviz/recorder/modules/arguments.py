"""Flattens the arguments and outputs of modules into leaves, each with the path that leads to it, and measures them.

From what was measured follows what a forward hook did to them.
"""

import dataclasses
import inspect
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from hookviz.autograd.identity_map import IdentityMap
from hookviz.autograd.tensor_statistics import measure_or_defer
from hookviz.autograd.tensor_types import is_tensor
from hookviz.recorder.fingerprint import Fingerprint, fingerprint_of, mark_of
from hookviz.support.terminal_text import truncate
from hookviz.support.user_objects import read_attribute
from hookviz.trace import TraceData
from hookviz.trace.notes import Note
from hookviz.trace.value_rows import DeferredRow, ValueRow
from hookviz.trace.values import is_same_value

MAX_DEPTH, MAX_PARTS = 6, 64
"""How deep containers are opened, and into how many parts; one more part counts those left out."""

_SAFE_REPR_TYPES = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
"""Types whose ``repr`` runs no code of the user's and is complete."""


class PytreeLeaf(NamedTuple):
    """A leaf of a structure at one moment, without holding it."""

    label: str
    fingerprint: Fingerprint | None
    """The fingerprint of a tensor; None for other objects."""
    value: int
    """The number of its value in the trace."""
    by_keyword: bool = False
    """Whether it was passed by keyword: torch gives such arguments only to hooks that were registered for them."""


def labelled_arguments(module: torch.nn.Module, args: Any, kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (label, object) for the leaves of a module's arguments, labelled by the parameters of its ``forward``."""
    # A scripted module has no Python ``forward``.
    forward = inspect.getattr_static(type(module), "forward", None)
    names = _forward_parameter_names(forward.__func__ if isinstance(forward, staticmethod) else forward)
    names = names if isinstance(forward, staticmethod) else names[1:]
    args = args if isinstance(args, tuple) else (args,)
    for i, item in enumerate(args):
        yield from labelled_leaves(names[i] if i < len(names) else f"args[{i}]", item)
    for name, item in kwargs.items():
        yield from labelled_leaves(name, item)


_parameter_names_cache: WeakKeyDictionary[Any, tuple[str, ...]] = WeakKeyDictionary()
"""Weak keys, since a function keeps everything that it refers to alive."""


def _forward_parameter_names(forward: Any) -> tuple[str, ...]:
    """Return the names of the positional parameters of a module's ``forward``."""
    with suppress(KeyError, TypeError):
        return _parameter_names_cache[forward]
    try:
        parameters = list(inspect.signature(forward).parameters.values())
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


def _container_parts(item: Any) -> Sequence[tuple[str, Any]] | None:
    """Return (path, part) for each part of a container; None for an empty one, and for other objects.

    None of the user's code runs: a subclass with an ``__iter__`` or ``items`` of its own is not opened.
    """
    kind = type(item)
    if kind in _MAPPINGS:
        parts: Sequence[tuple[str, Any]] = [(f"[{_key_text(key)}]", part) for key, part in item.items()]
    elif kind is tuple or kind is list:
        parts = [(f"[{i}]", part) for i, part in enumerate(item)]
    elif issubclass(kind, (tuple, list)):
        parts = _open_sequence(item, kind)
    else:
        parts = _open_dataclass(item, kind)
    return parts or None


_MAPPINGS = (dict, OrderedDict, defaultdict)


def _open_sequence(item: Any, kind: type[Any]) -> list[tuple[str, Any]]:
    """Open a named tuple, or a subclass that leaves it to tuple or list how it is read."""
    names, base = inspect.getattr_static(kind, "_fields", None), tuple if issubclass(kind, tuple) else list
    if kind is torch.Size or inspect.getattr_static(kind, "__iter__") is not base.__iter__:
        return []
    parts = list(base.__iter__(item))
    labels = [f".{name}" for name in names] if type(names) is tuple and len(names) == len(parts) else None
    return [(f"[{i}]" if labels is None else labels[i], part) for i, part in enumerate(parts)]


def _open_dataclass(item: Any, kind: type[Any]) -> list[tuple[str, Any]]:
    if not dataclasses.is_dataclass(kind):
        return []
    return [(f".{field.name}", read_attribute(item, field.name, _COMPUTED)) for field in dataclasses.fields(kind)]


_COMPUTED = object()
"""Stands for a field that only code of the user's can read."""


def _key_text(key: Any) -> str:
    return repr(key) if type(key) in _SAFE_REPR_TYPES else f"<{type(key).__name__}>"


def object_row(item: Any) -> ValueRow:
    """Return the row of a value that is not a tensor: its type, and its ``repr`` if that is safe to call.

    >>> object_row(0.5)[-1].text
    '0.5'
    """
    kind = type(item)
    if kind is _More:
        return ((), kind.__name__, "", None, None, Note.of("value.more", count=int(item)))
    if item is _COMPUTED:
        return ((), "", "", None, None, Note.of("value.computed"))
    if kind in (tuple, list, dict):
        text = "…" if item else repr(item)
    elif kind in _SAFE_REPR_TYPES:
        text = repr(item)
    else:
        text = "…" if issubclass(kind, (tuple, list, dict)) else f"<{kind.__name__}>"
    return ((), kind.__name__, "", None, None, Note.verbatim(truncate(text, 80)))


def list_edited_values(given: Iterable[PytreeLeaf], returned: Iterable[Any]) -> tuple[int, ...]:
    """Return the values of the given tensors that were edited in place and returned: at one address, a later version.

    ``given`` are the leaves as they were before.
    """
    known = {leaf.fingerprint.mark[0]: (leaf.fingerprint.mark[1], leaf.value) for leaf in given if leaf.fingerprint}
    marks = [mark_of(item) for item in returned if is_tensor(item)]
    found = ((version, known[address]) for address, version in marks if address and address in known)
    return tuple([value for version, (before, value) in found if version > before])


class ArgumentProbe:
    """Measures arguments and outputs into a trace, and compares them before and after a hook."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._measured: IdentityMap[tuple[int, int]] = IdentityMap()
        """Tensor → its version when it was measured, and the number of its value."""

    def measure(self, labelled: Iterable[tuple[str, Any]], *, again: bool = False) -> list[PytreeLeaf]:
        """Measure labelled objects as they are now.

        A tensor whose version has not changed since the last measurement is measured again only if ``again`` is true. A
        hook may write past torch, through ``.data`` or numpy, and then the version stays the same.
        """
        return [self._measure_leaf(label, item, again) for label, item in labelled]

    def _measure_leaf(self, label: str, item: Any, again: bool) -> PytreeLeaf:
        if not is_tensor(item):
            return PytreeLeaf(label, None, self._append(object_row(item)))
        fingerprint = fingerprint_of(item)
        version, value = self._measured.get(item) or (None, 0)
        is_known = version == fingerprint.mark[1]
        if not is_known or again or fingerprint.layout is None:
            row = measure_or_defer(item, self.trace.statistics)
            if not is_known or isinstance(row, DeferredRow) or not is_same_value(self.trace.values[value], row):
                value = self._append(row)
            self._measured.put(item, (fingerprint.mark[1], value))
        fingerprint.value = value
        return PytreeLeaf(label, fingerprint, value)

    def _append(self, row: Any) -> int:
        self.trace.values.append(row)
        return len(self.trace.values) - 1

    def forget(self, tensor: torch.Tensor) -> None:
        """Measure ``tensor`` again the next time."""
        self._measured.forget(tensor)

    def forget_all(self) -> None:
        """Measure every tensor again the next time, because values got new numbers."""
        self._measured.clear()

    def compare(self, before: Sequence[PytreeLeaf], after: Sequence[PytreeLeaf]) -> str:
        """Classify what a hook did, from the leaves before and after it: "kept", "edited" or "replaced"."""
        if [leaf.label for leaf in before] != [leaf.label for leaf in after]:
            return "replaced"
        effects = {self._compare_leaves(*pair) for pair in zip(before, after, strict=True)}
        return next(effect for effect in ("replaced", "edited", "kept") if effect in {*effects, "kept"})

    def _compare_leaves(self, before: PytreeLeaf, after: PytreeLeaf) -> str:
        def has_same_numbers() -> bool:
            return is_same_value(self.trace.values[before.value], self.trace.values[after.value])

        if before.fingerprint is None or after.fingerprint is None:
            return "kept" if before.fingerprint is after.fingerprint and has_same_numbers() else "replaced"
        return after.fingerprint.find_effect(before.fingerprint, has_same_numbers)
