"""The public class ``Hook``: its owner, its place in torch, and its source location."""

from collections.abc import Sequence
from dataclasses import dataclass

from hookviz.support.messages import N_, _
from hookviz.support.source_code import Source

_EFFECT_NAMES: dict[str, str] = {
    "kept": N_("kept"),
    "ran": N_("ran"),
    "edited": N_("edited in place"),
    "replaced": N_("replaced"),
}
"""What a hook did → how it is said."""


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


@dataclass(frozen=True)
class Hook:
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
