"""The trace that a person holds: what happened, and every way to show, save and question it."""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookviz.api.analyses import TraceAnalyses
from hookviz.api.display import Displayed
from hookviz.support.atomic_files import write_atomically
from hookviz.trace import TraceData

if TYPE_CHECKING:
    from hookviz.picture import Figure
    from hookviz.player.payload import Content
    from hookviz.player.widget import Player
    from hookviz.trace.reason_rows import Verifier


class Trace(TraceAnalyses, Displayed, TraceData):
    """What happened inside ``record()``.

    ``steps`` are all that happened, in order; ``firings`` are those in which a hook of the user's ran to its end.
    In Jupyter a trace shows itself as the player. What it needs to show itself is loaded when it is asked to.
    """

    def figure(self, step: int | None = None, *, tensors: bool = False) -> "Figure":
        """The picture at ``step`` (counted from 0, the last one if None): a ``graphviz.Digraph``.

        Raises:
            IndexError: there is no such step.
        """
        from hookviz.picture import figure

        return figure(self, None if step is None else self.at(step), tensors=tensors)

    def content(self) -> "Content":
        """All that the player shows, as plain data."""
        from hookviz.player.trace_content import TraceContent

        return TraceContent(self).full_content()

    def player(self) -> "Player":
        """The widget; of a large trace it asks the kernel for what it shows next."""
        from hookviz.player.widget import Player

        return Player.of(self)

    @property
    def verifier(self) -> "Verifier | None":
        """Computes formulas with torch; None where torch cannot be imported."""
        return _torch_verifier()

    def save(self, path: str | Path) -> None:
        """Write the trace as JSON, to be read again by ``hookviz.load``; a file that is there stays if this fails.

        The file says why gradients are what they are, so that it can be shown where there is no torch.

        Raises:
            OSError: the file cannot be written; the message says why.
            TypeError: ``path`` is no path.
            ValueError: ``path`` contains a null character.
        """
        from hookviz.analysis.formulas.reason_table import with_reasons
        from hookviz.storage.files import encode

        write_atomically(json.dumps(encode(with_reasons(self)), allow_nan=False), path)

    def to_html(self, path: str | Path, title: str | None = None, *, source: bool = True, values: bool = True) -> None:
        """Write a page that plays this trace: one file, for which no Python, server or network is needed.

        Without JavaScript, and on paper, it is a picture with the table of firings. A file that is there stays as it
        is if anything fails.

        A page holds what the trace does: the names of tensors, modules and functions; of each tensor the shape, dtype,
        device and numbers or statistics; of each hook the source text, the line, and the file, as a path relative to
        the working folder or to its library; messages of exceptions. It holds no path of your machine besides those
        that are quoted in such a text.

        Args:
            path: where to, such as ``lesson.html``.
            title: the heading of the page.
            source: False leaves out the source of hooks and the names and lines of their files.
            values: False leaves out all numbers of tensors and what is computed from them, such as norms and findings;
                shapes stay. Without either, notes and messages of exceptions, which may quote them, are left out.

        Raises:
            ValueError: nothing was recorded, or ``path`` contains a null character.
            OSError: the file cannot be written; the message says why.
            TypeError: ``path`` is no path, or ``source`` or ``values`` neither True nor False.

        >>> import tempfile, torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with hookviz.record() as trace:
        ...     (x * x).backward()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.to_html(f"{folder}/square.html", title="The square of 3")
        ...     "The square of 3" in Path(folder, "square.html").read_text(encoding="utf-8")
        True
        """
        from hookviz.player.html_page import page

        write_atomically(page(self, title, source=source, values=values), path)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        from hookviz.player.html_page import mimebundle

        return mimebundle(self)


@cache
def _torch_verifier() -> "Verifier | None":
    try:  # the one import of torch outside the parts that record
        from hookviz.autograd.formulas.verifier import TorchVerifier
    except (ImportError, OSError):  # it is not installed, or lacks a library
        return None
    return TorchVerifier()
