"""An animation of a pass for slides and chats: one frame per step, with the picture and the step's sentence."""

from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from hookviz.picture.figure import Figure
from hookviz.picture.letters import text_width
from hookviz.picture.rasterizer import load_module, render_png
from hookviz.picture.scene import Scene
from hookviz.picture.styles import FONT, GREY, INK
from hookviz.picture.svg import DARK_FILTER, escape_text, view_box
from hookviz.support.atomic_files import to_path
from hookviz.support.messages import _
from hookviz.support.terminal_text import wrap
from hookviz.trace import TraceData

FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    ".gif": ("GIF", {"optimize": True}),
    ".webp": ("WEBP", {"lossless": True, "method": 4}),
    ".png": ("PNG", {"optimize": True}),
}
"""Suffix of a file → Pillow's name of its format, and options; a PNG is animated, too."""
MAX_FRAMES = 200
"""The most frames of an animation: longer ones take minutes to draw and are too large for a chat."""
MIN_WIDTH, MAX_WIDTH = 200, 4_000
"""Pixels."""
FRAME_WIDTH, MARGIN = 720.0, 14
"""Points; a frame is scaled to the pixels that are wanted."""
MAX_SCALE = 2.0
"""The picture of a small graph is not blown up to the whole width."""
HEAD_SIZE, SENTENCE_SIZE, LINE_HEIGHT = 14, 18, 27
"""Points of the letters below the picture, and of a line."""


class Film(NamedTuple):
    """What an animation shows, and how."""

    trace: TraceData
    steps: Sequence[int]
    width: int
    """Pixels."""
    seconds: float
    """How long each step is shown."""
    dark: bool


def encode_animation(film: Film, path: str | Path) -> bytes:
    """Draw ``film`` in the format that the suffix of ``path`` names. Equal films give equal bytes.

    Raises:
        ValueError: the suffix is none of ``FORMATS``, there are no steps or too many, or a size is wrong.
        ImportError: resvg or Pillow is not installed.
    """
    suffix = to_path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(
            _("An animation ends in one of {formats}, not in {suffix}.").format(
                suffix=suffix or "''", formats=", ".join(FORMATS)
            )
        )
    _check_film(film)
    pillow, (file_format, options) = load_module("PIL.Image"), FORMATS[suffix]
    frames = [pillow.open(BytesIO(render_png(svg, film.width))).convert("RGB") for svg in draw_frames(film)]
    durations = [round(film.seconds * 1000)] * len(frames)
    durations[-1] *= 2  # the end stays longer, before the animation begins again
    buffer = BytesIO()
    frames[0].save(buffer, file_format, save_all=True, append_images=frames[1:], duration=durations, loop=0, **options)
    return buffer.getvalue()


def choose_steps(trace: TraceData, steps: Iterable[int] | None) -> list[int]:
    """Return the steps to show; all if ``steps`` is None.

    Raises:
        IndexError: the trace has no such step.
    """
    return [*range(len(trace.rows))] if steps is None else [trace.at(step) for step in steps]


def _check_film(film: Film) -> None:
    if not film.trace.rows:
        raise ValueError(_("There is nothing to animate. {why}").format(why=repr(film.trace)))
    if not film.steps:
        raise ValueError(
            _("steps is empty: give the steps to show, such as steps=range(10), or leave it out to show all.")
        )
    if len(film.steps) > MAX_FRAMES:
        raise ValueError(
            _(
                "An animation has at most {most} steps, and this one would have {steps}: choose some with "
                "steps=range(...)."
            ).format(steps=f"{len(film.steps):,}", most=MAX_FRAMES)
        )
    if not MIN_WIDTH <= film.width <= MAX_WIDTH:
        raise ValueError(
            _("width is a number of pixels from {least} to {most}, not {width}.").format(
                width=film.width, least=MIN_WIDTH, most=MAX_WIDTH
            )
        )
    if not 0.02 <= film.seconds <= 60:
        raise ValueError(
            _("seconds is how long each step is shown, from 0.02 to 60, not {seconds}.").format(seconds=film.seconds)
        )


def draw_frames(film: Film) -> list[str]:
    """Draw the frames as SVG, all of the same size: the picture at the top, its step and sentence below the tallest."""
    passes = [film.trace.rows[step].pass_id for step in film.steps]
    scenes = {pass_id: Scene.from_trace(film.trace, pass_id) for pass_id in passes}
    pictures = [Figure(scenes[pass_id], step).svg() for pass_id, step in zip(passes, film.steps, strict=True)]
    captions = [_write_caption(film, step) for step in film.steps]
    widths, heights = zip(*map(view_box, pictures), strict=True)
    scale = min(FRAME_WIDTH / max(widths), MAX_SCALE)
    top = scale * max(heights)
    bottom = top + LINE_HEIGHT * max(map(len, captions)) + MARGIN
    effect = f' filter="{DARK_FILTER}"' if film.dark else ""
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {FRAME_WIDTH} {bottom}" font-family="{FONT}"><g{effect}>'
        f'<rect width="{FRAME_WIDTH}" height="{bottom}" fill="white"/>'
        f"{_place(picture, scale, top)}{''.join(_set_lines(caption, top))}</g></svg>"
        for picture, caption in zip(pictures, captions, strict=True)
    ]


def _write_caption(film: Film, step: int) -> list[str]:
    """Return "Step 3 of 16", and the sentence of the step on lines that fit the frame."""
    head = _("Step {step} of {steps}").format(step=step + 1, steps=len(film.trace.rows))
    room = round(FRAME_WIDTH) - 2 * MARGIN
    return [head, *wrap(film.trace.steps[step].sentence, room, lambda text: round(text_width(text, SENTENCE_SIZE)))]


def _place(picture: str, scale: float, height: float) -> str:
    """Put a picture into the middle of the upper part of a frame, which is ``height`` points high."""
    wide, high = (scale * size for size in view_box(picture))
    position = f'x="{(FRAME_WIDTH - wide) / 2}" y="{(height - high) / 2}" width="{wide}" height="{high}"'
    return picture[picture.index("<svg") :].replace("<svg", f"<svg {position}", 1)


def _set_lines(lines: Sequence[str], top: float) -> Iterable[str]:
    for number, line in enumerate(lines):
        size, color = (SENTENCE_SIZE, INK) if number else (HEAD_SIZE, GREY)
        place = f'x="{MARGIN}" y="{top + LINE_HEIGHT * number + SENTENCE_SIZE}"'
        yield f'<text {place} font-size="{size}" fill="{color}">{escape_text(line)}</text>'
