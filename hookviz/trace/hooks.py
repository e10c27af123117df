"""The public class ``Hook``: its owner, its place in torch, and its source location."""

from dataclasses import dataclass

from hookviz.support.messages import say
from hookviz.support.source_code import Source


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
        return say("hook.where", file=self.file, line=self.line) if self.file else ""
