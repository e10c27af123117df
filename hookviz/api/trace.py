"""The public ``Trace``: the recorded data, with methods to show, save and analyse it; ``load`` opens a saved one."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hookviz.api.display import Displayable
from hookviz.api.plotting import TracePlots
from hookviz.api.readings import TraceAnalyses, TraceListings
from hookviz.support.atomic_files import to_path, write_atomically
from hookviz.support.messages import _
from hookviz.support.printable import check_flag
from hookviz.trace import TraceData

if TYPE_CHECKING:
    from hookviz.api.comparison import Comparison
    from hookviz.picture import Figure
    from hookviz.player.payload import Content
    from hookviz.player.widget import Player


class Trace(TracePlots, TraceAnalyses, TraceListings, Displayable):
    """The events that ``record()`` recorded, with methods to show, save and analyse them.

    ``steps`` holds every event, in order; ``firings`` holds the steps in which one of your hooks ran to its end.
    Jupyter shows a trace as the player. The code that shows a trace is imported when it is first needed.

    >>> import torch, hookviz as hv
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 10), hv.record() as trace:
    ...     (x * x).backward()
    >>> len(trace.steps), trace.firings[0].sentence
    (5, 'λ grad * 10 on x replaced the gradient: 6 → 60.')
    """

    def figure(self, step: int | None = None, *, tensors: bool = False, internal: bool = False) -> "Figure":
        """Draw the picture at ``step`` (counted from 0, the last one if None).

        Args:
            step: the step to show.
            tensors: draw also the Python tensor of each node, with its data, grad, grad_fn and hooks.
            internal: draw also the nodes that torch makes on its own, such as ``TBackward0``.

        Raises:
            IndexError: the trace has no such step.
        """
        from hookviz.picture import build_trace_figure

        at = None if step is None else self._data.at(step)
        return build_trace_figure(self._data, at, tensors=tensors, internal=internal)

    def diff(self, other: "Trace") -> "Comparison":
        """Compare this trace with ``other``: which gradients differ, by how much, and from which firing on.

        Both are traces of the same program, recorded twice, for example with and without a hook. Nodes are matched by
        their places in the graph; NaN equals NaN. Gradients whose numbers were not kept are compared by their
        statistics.

        Returns:
            A table of the gradients that differ; ``first`` is the first firing that differs, ``sentence`` a summary.

        Raises:
            TypeError: ``other`` is not a Trace.
            ValueError: the graphs of the two traces differ; the message says where.

        >>> import torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with hookviz.record() as plain:
        ...     (x * x).backward()
        >>> x.grad = None
        >>> with x.register_hook(lambda grad: grad * 10), hookviz.record() as hooked:
        ...     (x * x).backward()
        >>> print(plain.diff(hooked))
        Gradients that differ: 1. The difference begins with λ grad * 10 on x, step 4 of the other trace.
        on  gradient  this trace  the other  difference  step
        x   .grad     6           60         54          4 → 5
        """
        from hookviz.api.comparison import compare

        return compare(self, other)

    def content(self) -> "Content":
        """Everything that the player shows, as plain data."""
        from hookviz.player.trace_content import TraceContent

        return TraceContent.of(self._data).full_content()

    def player(self) -> "Player":
        """The widget; for a large trace it requests further steps from the kernel when it shows them, and for plots."""
        from hookviz.player.widget import Player

        return Player.of(self._data)

    def save(self, path: str | Path) -> None:
        """Write the trace as JSON for ``hookviz.load``; an existing file stays unchanged if writing fails.

        Raises:
            OSError: the file cannot be written; the message says why.
            TypeError: ``path`` is not a path.
            ValueError: ``path`` contains a null character, or is named like a web page.
        """
        from hookviz.storage.files import encode_trace

        if to_path(path).suffix.lower() in (".html", ".htm"):
            raise ValueError(
                _(
                    "save() writes a recording for hookviz.load(), and no page: choose another name than {name}, such "
                    "as trace.json, or write the page with to_html()."
                ).format(name=to_path(path).name)
            )
        write_atomically(json.dumps(encode_trace(self._data), allow_nan=False), path)

    def to_html(
        self,
        path: str | Path,
        title: str | None = None,
        *,
        source: bool = True,
        values: bool = True,
        plots: bool = False,
        languages: str | Sequence[str] | None = None,
    ) -> None:
        """Write an HTML page with the player of this trace: a single file that needs no Python, server or network.

        Without JavaScript, and on paper, the page shows a picture and the table of firings. An existing file stays
        unchanged if writing fails.

        The page contains: the names of tensors, modules and functions; the shape, dtype, device and numbers or
        statistics of each tensor; the source text and line of each hook, and its file as a path relative to the
        working folder or to its library; messages of exceptions. Other paths of your machine appear only if such a
        text quotes them.

        Args:
            path: the file, such as ``lesson.html``.
            title: the heading of the page.
            source: False leaves out the source of hooks and the names and lines of their files.
            values: False leaves out all numbers of tensors and everything computed from them, such as norms and
                findings; shapes stay. If ``source`` or ``values`` is False, notes and messages of exceptions are left
                out, too, because they may quote them.
            plots: True adds the plots of the trace, which the view menu of the player opens: the gradients of the
                layers, the loss, and the histograms if ``record`` took them. The file grows by about 10 KB for each,
                and by up to 60 KB for heat maps of many layers. It needs the extra ``plots``.
            languages: the language of the page, or several, such as ``("en", "zh")``: the page opens in the reader's
                language if it is one of them, else in the first, and has a switch. None is the current language.

        Raises:
            ImportError: ``plots`` is True, and Matplotlib is not installed.
            ValueError: nothing was recorded, ``path`` contains a null character, or hookviz does not have a language.
            OSError: the file cannot be written; the message says why.
            TypeError: ``path`` is not a path, or ``source``, ``values`` or ``plots`` is not a bool.

        >>> import tempfile, torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with hookviz.record() as trace:
        ...     (x * x).backward()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.to_html(f"{folder}/square.html", title="The square of 3")
        ...     "The square of 3" in Path(folder, "square.html").read_text(encoding="utf-8")
        True
        """
        from hookviz.player.editions import check_languages
        from hookviz.player.html_page import page

        check_flag("plots", plots)
        chosen = check_languages(languages)
        text = page(self._data, title, source=source, values=values, plots=plots, languages=chosen)
        write_atomically(text, path)

    def animate(
        self,
        path: str | Path,
        *,
        steps: Iterable[int] | None = None,
        width: int = 800,
        seconds: float = 1.5,
        dark: bool = False,
    ) -> None:
        """Write an animation of the pass: one frame per step, with the picture and the step's sentence below it.

        The suffix of ``path`` chooses the format: ``.gif``, ``.webp`` or ``.png`` (an animated PNG). It needs the
        extra ``images``. An existing file stays unchanged if writing fails.

        Args:
            path: the file, such as ``pass.gif``.
            steps: the steps to show, counted from 0, such as ``range(3, 10)``; all if None, at most 200.
            width: the width in pixels.
            seconds: how long each step is shown; the last one is shown twice as long.
            dark: light text on a dark background.

        Raises:
            ImportError: resvg or Pillow is not installed; the message says how to install them.
            IndexError: the trace has no such step.
            ValueError: nothing was recorded, there are no steps or too many, the suffix is unknown, or a size is wrong.
            OSError: the file cannot be written; the message says why.
            TypeError: ``path`` is not a path.

        >>> import tempfile, torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with hookviz.record() as trace:
        ...     (x * x).backward()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.animate(f"{folder}/square.gif", steps=range(2))
        ...     Path(folder, "square.gif").read_bytes()[:6]
        b'GIF89a'
        """
        from hookviz.picture.animation import Film, choose_steps, encode_animation

        film = Film(self._data, choose_steps(self._data, steps), width, seconds, dark)
        write_atomically(encode_animation(film, path), path)

    def _repr_mimebundle_(self, **_ignored: Any) -> dict[str, Any]:
        from hookviz.player.html_page import mimebundle

        return mimebundle(self._data)

    def __eq__(self, other: object) -> bool:
        return self._data == other._data if isinstance(other, Trace) else NotImplemented

    def __repr__(self) -> str:
        return repr(self._data)


def load(path: str | Path) -> Trace:
    """Load a trace from the file that ``Trace.save`` wrote to ``path``.

    The contents of the file are checked before the trace is built, and nothing in a file is ever run: a file from
    somebody else can do no harm. ``hookviz.storage.schema`` describes the format.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: the file cannot be read, for example because it is a folder.
        TypeError: ``path`` is not a path.
        ValueError: the file does not hold a trace, or a damaged one, or one of another version; or the file is larger
            than 512 MB, or not a regular file. The message says which.

    >>> import tempfile, torch, hookviz as hv
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with hv.record() as trace:
    ...     (x * x).backward()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trace.save(f"{folder}/pass.json")
    ...     loaded = hv.load(f"{folder}/pass.json")
    >>> loaded.steps[-1].sentence == trace.steps[-1].sentence
    True
    """
    from hookviz.storage.files import read_trace

    return Trace(read_trace(path))


def data_of(trace: Trace) -> TraceData:
    """Return the tables of a trace, which its user does not see."""
    return trace._data
