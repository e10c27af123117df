"""The public class ``Hook``: its owner, its place in torch, its source; and what tells the hooks of one name apart."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hookviz.support.groups import group
from hookviz.support.held_values import HeldValue
from hookviz.support.messages import N_, _
from hookviz.support.source_code import Source, describe_place
from hookviz.support.table import ShownRow
from hookviz.trace.hook_facts import name_of_kind

_EFFECT_NAMES: dict[str, str] = {
    "kept": N_("kept"),
    "ran": N_("ran"),
    "edited": N_("edited in place"),
    "replaced": N_("replaced"),
}
"""What a hook did → how it is said."""
MAX_SHOWN = 2
"""A label shows up to this many of the values that a hook holds."""
_WORDS = frozenset({"True", "False", "None", "nan", "inf"})
"""Values that say nothing without the name of their variable."""


def name_of_effect(effect: str | None) -> str:
    """Say what a hook did; empty if that is not known.

    >>> name_of_effect("edited")
    'edited in place'
    """
    return _(_EFFECT_NAMES[effect]) if effect else ""


def shows_line(hook: "Hook") -> bool:
    """Whether the label of a hook has its line."""
    return hook.line is not None and hook.distinction.endswith(_("line {line}").format(line=hook.line))


def shared_label(hooks: Sequence["Hook"]) -> str:
    """Return the label that hooks with one function share: without what tells them apart, if that differs."""
    labels = {hook.label for hook in hooks}
    return labels.pop() if len(labels) == 1 else hooks[0].source_.label


@dataclass(frozen=True, repr=False)
class Hook(ShownRow):
    """A registered hook: its owner (``on``), the dict that holds it, its place there, and its source location."""

    on: str
    """The name of the tensor, node, module or optimizer that has the hook."""
    kind: str
    """How it was registered: ``tensor_hook``, ``post_accumulate_hook``, ``forward_hook``, … as in ``Step.kind``."""
    source_: Source
    kept_in: str
    """The dict of PyTorch that holds it, such as ``c._backward_hooks``."""
    place: int
    """Its position among the hooks of its dict, counted from 0, in the order in which they run."""
    total: int
    """How many hooks its dict holds."""
    flags: tuple[str, ...] = ()
    """How it was registered: ``with_kwargs``, ``always_call``, ``global``."""
    distinction: str = ""
    """What tells it from others of its name: ``layer3``, the value of a variable that it closes over; ``line 12``."""

    @property
    def name(self) -> str:
        """``c_hook``; the text of a lambda; the class of a callable object."""
        return self.source_.name

    @property
    def label(self) -> str:
        """The short name; ``hook (layer3)`` where several are called ``hook``. A lambda is ``λ`` and its body."""
        return f"{self.source_.label} ({self.distinction})" if self.distinction else self.source_.label

    @property
    def file(self) -> str | None:
        """The file with its source: ``In [4]`` or a relative path; None if Python does not know it."""
        return self.source_.file

    @property
    def line(self) -> int | None:
        """The first line in ``file``, counted from 1."""
        return self.source_.line

    @property
    def source(self) -> str | None:
        """Its source text; None if Python has none."""
        return self.source_.text

    @property
    def where(self) -> str:
        """File and line as text; empty if unknown."""
        return self.source_.where

    def _columns(self) -> dict[str, str]:
        kind = name_of_kind(self.kind)
        if self.flags:
            kind = _("{kind} ({flags})").format(kind=kind, flags=", ".join(self.flags))
        place = f"{self.place + 1}/{self.total}"
        columns = {_("on"): self.on, _("hook"): self.label, _("kind"): kind}
        return {**columns, _("kept in"): self.kept_in, _("place"): place, _("where"): self.where}


class LabelledHook(NamedTuple):
    """A hook among those that are told apart."""

    source: Source
    held: tuple[HeldValue, ...]
    """What its function holds that others with the same source may not."""
    owner: Hashable
    """What the hooks of one owner have in common."""


class HookLabels:
    """Finds what the label of a hook says beside its name."""

    def __init__(self, hooks: Iterable[LabelledHook]) -> None:
        self._sources: dict[Hashable, set[tuple[str | None, int | None]]] = {}
        """Label and owner → the places of the functions that share them."""
        self._shown: dict[Hashable, list[str]] = {}
        """Function → the variables whose values tell its hooks apart."""
        every = list(hooks)
        self._held = group((_function_of(hook.source), dict(hook.held)) for hook in every if hook.held)
        """Function → what the hooks with this function hold."""
        for hook in every:
            self._sources.setdefault(self._label(hook), set()).add((hook.source.file, hook.source.line))

    def distinguish(self, hook: LabelledHook, on: str) -> str:
        """Return what tells a hook on ``on`` from others of its name; empty if there is none, or its owner does."""
        source, values = hook.source, self._list_values(hook)
        places = self._sources.get(self._label(hook), set())
        shown = [_write(*pair) for pair in values if not _ends_with(on, pair[1])]
        if len(places) > 1 and source.line is not None:
            is_one_file = len({file for file, _line in places}) == 1
            here = _("line {line}").format(line=source.line)
            shown.append(here if is_one_file else describe_place(source.file, source.line))
        return ", ".join(shown)

    def _label(self, hook: LabelledHook) -> Hashable:
        return hook.source.label, tuple(self._list_values(hook)), hook.owner

    def _list_values(self, hook: LabelledHook) -> list[HeldValue]:
        """List the values of a hook that tell it from others with its function."""
        key = _function_of(hook.source)
        if key not in self._shown:
            self._shown[key] = _choose_variables(self._held.get(key, []))
        held = dict(hook.held)
        return [(name, held[name]) for name in self._shown[key] if name in held]


def _function_of(source: Source) -> Hashable:
    return source.name, source.file, source.line


def _choose_variables(held: list[dict[str, str]]) -> list[str]:
    """Choose the variables that tell the most hooks apart; of several that do so equally, one of texts, or the first.

    >>> _choose_variables([{"store": "a", "name": "x"}, {"store": "a", "name": "y"}])
    ['name']
    """
    names = list(dict.fromkeys(name for one in held for name in one))
    chosen: list[str] = []
    count = 1
    while len(chosen) < MAX_SHOWN and count < len(held):
        counts = {name: len({tuple(one.get(part) for part in (*chosen, name)) for one in held}) for name in names}
        are_texts = {name: all(_is_text(one.get(name, "")) for one in held) for name in names}
        best = max(names, key=lambda name: (counts[name], are_texts[name]), default=None)
        if best is None or counts[best] <= count:
            break
        chosen.append(best)
        count = counts[best]
    return chosen


def _is_text(value: str) -> bool:
    return value[:1].isalpha() and value not in _WORDS


def _write(name: str, value: str) -> str:
    return value if _is_text(value) or name.isdecimal() else f"{name}={value}"


def _ends_with(on: str, value: str) -> bool:
    """Whether the name of an owner ends with a value: the last parts of the path ``net.layers.0``, or all of it."""
    path = on.partition(" (")[0]  # without the number of the call
    return path == value or path.endswith((f".{value}", f" {value}"))
