"""The public class ``Hook``: its owner, its place in torch, and its source location."""

from dataclasses import dataclass

from hookviz.support.messages import N_, _
from hookviz.support.source_code import Source

_KIND_NAMES: dict[str, str] = {
    "tensor_hook": N_("tensor hook"),
    "multi_grad_hook": N_("multi-grad hook"),
    "post_accumulate_hook": N_("post-accumulate hook"),
    "node_pre_hook": N_("node pre-hook"),
    "node_post_hook": N_("node hook"),
    "forward_pre_hook": N_("forward pre-hook"),
    "forward_hook": N_("forward hook"),
    "full_backward_pre_hook": N_("full backward pre-hook"),
    "full_backward_hook": N_("full backward hook"),
    "backward_hook": N_("legacy backward hook"),
    "state_dict_pre_hook": N_("state_dict pre-hook"),
    "state_dict_post_hook": N_("state_dict hook"),
    "load_state_dict_pre_hook": N_("load_state_dict pre-hook"),
    "load_state_dict_post_hook": N_("load_state_dict hook"),
    "step_pre_hook": N_("step pre-hook"),
    "step_post_hook": N_("step hook"),
    "parameter_registration_hook": N_("parameter registration hook"),
    "buffer_registration_hook": N_("buffer registration hook"),
    "module_registration_hook": N_("module registration hook"),
}
"""Kind of a hook → its name in tables and sentences."""
_EFFECT_NAMES: dict[str, str] = {
    "kept": N_("kept"),
    "ran": N_("ran"),
    "edited": N_("edited in place"),
    "replaced": N_("replaced"),
}
"""What a hook did → how it is said."""


def name_of_kind(kind: str) -> str:
    """Name a kind of hook.

    >>> name_of_kind("node_post_hook")
    'node hook'
    """
    return _(_KIND_NAMES.get(kind, kind))


def name_of_effect(effect: str | None) -> str:
    """Say what a hook did; empty if that is not known.

    >>> name_of_effect("edited")
    'edited in place'
    """
    return _(_EFFECT_NAMES[effect]) if effect else ""


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

    @property
    def name(self) -> str:
        """``c_hook``; the text of a lambda; the class of a callable object."""
        return self.source_.name

    @property
    def label(self) -> str:
        """The short name; a lambda is shown as ``λ`` and its body."""
        return self.source_.label

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
