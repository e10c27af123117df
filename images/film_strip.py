"""The film strips ``motion_light.png`` and ``motion_dark.png``: a gradient on its way through a hook, in six frames."""

import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Literal

import torch
from PIL import Image
from playwright.sync_api import Browser, FloatRect, Page

import hookviz as hv

SIZE = (960, 720)
FRAMES: list[tuple[int, list[float]]] = [(3, [140, 300]), (4, [180, 400, 550, 900])]
"""(step, milliseconds after the next step at which frames are taken): the gradient of c arrives, and c_hook gets it."""
COLUMNS, GAP = 2, 16
STOP = """(time) => document.getAnimations().forEach((animation) => {
  animation.updatePlaybackRate(1e-4);
  animation.currentTime = time;
})"""
"""Stops every motion at a time; one whose end has come ends."""


def record_pass() -> hv.Trace:
    """Record the pass through a to e with a single hook."""
    a, b, d = (torch.tensor(x, requires_grad=True) for x in (2.0, 3.0, 4.0))

    def c_hook(grad):
        return grad + 2

    c = a * b
    c.register_hook(c_hook)
    e = c * d
    with hv.record() as trace:
        e.backward()
    return trace


def take_frames(page: Page) -> Iterator[Image.Image]:
    """Take the picture and the panel at each moment."""
    boxes = [page.locator(f".hv-live {name}").bounding_box() for name in (".hv-graph", ".hv-panel")]
    assert boxes[0] and boxes[1]
    width = boxes[1]["x"] + boxes[1]["width"] - boxes[0]["x"]
    clip = FloatRect(x=boxes[0]["x"], y=boxes[0]["y"], width=width, height=boxes[0]["height"])
    player = page.locator(".hv-live .hv-player")
    for step, times in FRAMES:
        player.evaluate("player => player.focus({preventScroll: true})")
        for key in ["Home", *["ArrowRight"] * step]:
            page.keyboard.press(key)
        page.wait_for_timeout(400)
        page.keyboard.press("ArrowRight")
        player.blur()  # the ring of the focus is for those who press keys
        for time in times:
            page.evaluate(STOP, time)
            page.wait_for_timeout(100)
            yield Image.open(BytesIO(page.screenshot(clip=clip)))


def join_frames(frames: list[Image.Image], ground: str) -> Image.Image:
    """Join the frames to one picture, row by row."""
    width, height = (size + GAP for size in frames[0].size)
    rows = -(-len(frames) // COLUMNS)
    strip = Image.new("RGB", (COLUMNS * width + GAP, rows * height + GAP), ground)
    for number, frame in enumerate(frames):
        strip.paste(frame, (GAP + number % COLUMNS * width, GAP + number // COLUMNS * height))
    return strip


def make_film_strips(chrome: Browser, target: Path) -> None:
    """Write the film strips of both themes into the folder ``target``."""
    grounds: dict[Literal["light", "dark"], str] = {"light": "#d8dee8", "dark": "#343b46"}
    with tempfile.TemporaryDirectory() as made:
        path = Path(made, "page.html")
        record_pass().to_html(path)
        for theme, ground in grounds.items():
            page = chrome.new_page(
                viewport={"width": SIZE[0], "height": SIZE[1]}, device_scale_factor=1.5, color_scheme=theme
            )
            page.goto(path.as_uri())
            page.locator(".hv-live .hv-picture").wait_for()
            join_frames(list(take_frames(page)), ground).save(target / f"motion_{theme}.png", optimize=True)
            page.close()
