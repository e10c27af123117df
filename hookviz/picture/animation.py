"""An animation of a pass for slides and chats: one frame per step, with the picture and the step's sentence."""

from collections import Counter
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from hookviz.picture.dot_source import LAYOUT_FONT, build_figure
from hookviz.picture.graphviz_digraph import Rendered
from hookviz.picture.html_labels import GREY, INK, format_text, text_width
from hookviz.picture.scene import Scene
from hookviz.support.atomic_files import to_path
from hookviz.support.columns import wrap
from hookviz.support.messages import say
from hookviz.trace import TraceData

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = {".gif": "GIF", ".webp": "WEBP", ".png": "PNG"}
"""Suffix of a file → Pillow's name of its format; a PNG is animated, too."""
MAX_FRAMES = 200
"""The most frames of an animation: longer ones take minutes to draw and are too large for a chat."""
MIN_WIDTH, MAX_WIDTH = 200, 4_000
"""Pixels."""
COLORS = 64
"""The colours that all frames share."""
_POINTS_PER_INCH = 72
_MAX_ZOOM = 2.0
"""Pixels per point at most: the picture of a small graph is not blown up to the whole width."""
_SENTENCE_SIZE, _HEAD_SIZE = 18, 14
"""Points of the caption's letters in an animation of ``_CAPTION_WIDTH`` points."""
_CAPTION_WIDTH, _MARGIN = 720, 14
"""Points."""


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
        ImportError: Pillow is not installed.
    """
    file_format = _check_format(path)
    _check_film(film)
    frames = _share_palette(_draw_frames(film), film.dark)
    if file_format == "WEBP":  # it has no palettes
        frames = [frame.convert("RGB") for frame in frames]
    options: dict[str, Any] = {"lossless": True, "method": 4} if file_format == "WEBP" else {"optimize": True}
    buffer = BytesIO()
    milliseconds = round(film.seconds * 1000)
    durations = [milliseconds] * len(frames)
    durations[-1] *= 2  # the end stays longer, before the animation begins again
    frames[0].save(buffer, file_format, save_all=True, append_images=frames[1:], duration=durations, loop=0, **options)
    return buffer.getvalue()


def choose_steps(trace: TraceData, steps: Iterable[int] | None) -> list[int]:
    """Return the steps to show; all if ``steps`` is None.

    Raises:
        IndexError: the trace has no such step.
    """
    return [*range(len(trace.rows))] if steps is None else [trace.at(step) for step in steps]


def _check_format(path: str | Path) -> str:
    suffix = to_path(path).suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(say("error.animate.format", suffix=suffix or "''", formats=", ".join(FORMATS)))
    return FORMATS[suffix]


def _check_film(film: Film) -> None:
    if not film.trace.rows:
        raise ValueError(say("error.animate.empty", why=repr(film.trace)))
    if not film.steps:
        raise ValueError(say("error.animate.no_steps"))
    if len(film.steps) > MAX_FRAMES:
        raise ValueError(say("error.animate.many", steps=f"{len(film.steps):,}", most=MAX_FRAMES))
    if not MIN_WIDTH <= film.width <= MAX_WIDTH:
        raise ValueError(say("error.animate.width", width=film.width, least=MIN_WIDTH, most=MAX_WIDTH))
    if not 0.02 <= film.seconds <= 60:
        raise ValueError(say("error.animate.seconds", seconds=film.seconds))


def _draw_frames(film: Film) -> "list[Image]":
    """Draw the frames, all of the same size: the picture at the top, and the caption below the tallest picture."""
    pillow = _load_pillow()
    passes = [film.trace.rows[step].pass_id for step in film.steps]
    scenes = {pass_id: Scene.from_trace(film.trace, pass_id) for pass_id in passes}
    # The figures of one pass have the same layout at every step.
    widest = max(_draw(build_figure(scene, None), 1).width for scene in scenes.values())
    zoom = min(film.width / widest, _MAX_ZOOM * film.width / _CAPTION_WIDTH)
    figures = [build_figure(scenes[pass_id], step) for pass_id, step in zip(passes, film.steps, strict=True)]
    pictures = [_fit(_draw(figure, zoom), film.width) for figure in figures]
    captions = [_fit(_draw_caption(film, step), film.width) for step in film.steps]
    top = max(picture.height for picture in pictures)
    size = film.width, top + max(caption.height for caption in captions)
    frames = []
    for picture, caption in zip(pictures, captions, strict=True):
        frame = pillow.new("RGB", size, "white")
        frame.paste(picture, ((film.width - picture.width) // 2, (top - picture.height) // 2))
        frame.paste(caption, (round(_MARGIN * film.width / _CAPTION_WIDTH), top))
        frames.append(frame)
    return frames


def _draw(figure: Rendered, zoom: float) -> "Image":
    """Draw a figure with ``zoom`` pixels per point."""
    figure.attr("graph", dpi=f"{_POINTS_PER_INCH * zoom:.3f}")
    with _load_pillow().open(BytesIO(figure.pipe("png"))) as picture:
        return _on_white(picture)


def _on_white(picture: "Image") -> "Image":
    opaque: Image = _load_pillow().new("RGBA", picture.size, "white")
    opaque.alpha_composite(picture.convert("RGBA"))
    flat: Image = opaque.convert("RGB")
    return flat


def _fit(picture: "Image", width: int) -> "Image":
    """Return the picture, made smaller if rounding made it wider than ``width``."""
    if picture.width <= width:
        return picture
    return picture.resize((width, max(1, round(picture.height * width / picture.width))))


def _draw_caption(film: Film, step: int) -> "Image":
    """Draw "Step 3 of 16" and the sentence of the step, on lines that fit the width."""
    head = say("player.step_of", step=step + 1, steps=len(film.trace.rows))
    lines = wrap(
        film.trace.steps[step].sentence, _CAPTION_WIDTH - 2 * _MARGIN, lambda text: text_width(text, _SENTENCE_SIZE)
    )
    texts = [(head, _HEAD_SIZE, GREY), *((line, _SENTENCE_SIZE, INK) for line in lines)]
    rows = "".join(
        f'<TR><TD ALIGN="LEFT"><FONT POINT-SIZE="{size}" COLOR="{color}">{format_text(text)}</FONT></TD></TR>'
        for text, size, color in texts
    )
    caption: Rendered = Rendered("caption", format="svg")
    caption.attr("graph", margin="0", pad="0", bgcolor="white", fontname=LAYOUT_FONT)
    caption.attr("node", shape="plain", margin="0", fontname=LAYOUT_FONT)
    caption.node("caption", f'<<TABLE BORDER="0" CELLSPACING="0" CELLPADDING="3">{rows}</TABLE>>')
    return _draw(caption, film.width / _CAPTION_WIDTH)


def _share_palette(frames: "list[Image]", dark: bool) -> "list[Image]":
    """Reduce the frames to ``COLORS`` colours that all of them share, so that a format can keep what stays the same."""
    pillow = _load_pillow()
    counts: Counter[tuple[int, int, int]] = Counter()
    for frame in frames:
        counts.update({color: count for count, color in cast(Any, frame.getcolors(frame.width * frame.height))})
    by_shade: dict[tuple[int, ...], tuple[int, int, int]] = {}
    for color, _ in counts.most_common():
        # Pillow does not distinguish colours that differ in their last two bits alone.
        by_shade.setdefault(tuple(channel >> 2 for channel in color), color)
    colors = [channel for color in [*by_shade.values()][:COLORS] for channel in color]
    palette = pillow.new("P", (1, 1))
    palette.putpalette(colors)
    reduced = [frame.quantize(palette=palette, dither=pillow.Dither.NONE) for frame in frames]
    if dark:
        for frame in reduced:
            frame.putpalette(_darken(frame.getpalette() or []))
    return reduced


def _darken(palette: Sequence[int]) -> list[int]:
    """Invert lightness but keep hues, as the style sheet of the pages does in dark mode.

    >>> _darken([255, 255, 255, 0, 0, 0])
    [17, 17, 17, 238, 238, 238]
    """
    darkened: list[int] = []
    for red, green, blue in zip(palette[::3], palette[1::3], palette[2::3], strict=True):
        inverted = [0.933 * 255 - 0.866 * value for value in (red, green, blue)]
        grey = sum(weight * value for weight, value in zip((0.213, 0.715, 0.072), inverted, strict=True))
        darkened += [min(255, max(0, round(2 * grey - value))) for value in inverted]
    return darkened


def _load_pillow() -> Any:
    """Return Pillow's module ``Image``.

    Raises:
        ImportError: Pillow is not installed; the message says how to install it.
    """
    try:
        from PIL import Image
    except ImportError:
        raise ImportError(say("error.animate.pillow"), name="PIL") from None
    return Image
