"""Pictures of the site that show the player: ``python images/site_pictures.py``. Needs a Chromium.

They are the pictures on the cards of the first page, the one of *Ask the room* in the manual, and the link preview.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from playwright.sync_api import Browser, FloatRect, Page

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import hookviz as hv  # noqa: E402
from images.film_strip import record_pass  # noqa: E402
from tests.browser.lab import browser  # noqa: E402

THEMES = {"light": "", "dark": "_dark"}
"""Theme → what it adds to the name of a picture."""
CARD = (600, 340)
PREVIEW = (1200, 630)


@contextmanager
def play(chrome: Browser, trace: hv.Trace, size: tuple[int, int], theme: str = "light", scale: float = 1) -> Iterator[Page]:
    """Open the page of a trace, with its player in focus."""
    with tempfile.TemporaryDirectory() as folder:
        trace.to_html(Path(folder, "trace.html"))
        page = chrome.new_page(
            viewport={"width": size[0], "height": size[1]},
            device_scale_factor=scale,
            reduced_motion="reduce",
            color_scheme="dark" if theme == "dark" else "light",
        )
        page.goto(Path(folder, "trace.html").as_uri() + "?embed")
        page.wait_for_selector(".hv-live .hv-picture:not([hidden])")
        page.locator(".hv-live .hv-player").focus()
        yield page
        page.close()


def press(page: Page, *keys: str) -> None:
    """Press keys, and wait until the player has come to rest."""
    for key in keys:
        page.keyboard.press(key)
    page.wait_for_timeout(500)


def record_silent_hooks() -> hv.Trace:
    """Record a pass with two hooks that do not fire, for different reasons."""
    encoder, head = torch.nn.Linear(2, 2), torch.nn.Linear(2, 1)

    def keep_features(module, args, output):
        return None

    def watch_gradient(module, grad_input, grad_output):
        return None

    with hv.record() as trace:
        encoder.register_full_backward_hook(watch_gradient)
        head.register_forward_hook(keep_features)
        features = encoder(torch.ones(1, 2))
        head.forward(features.detach()).sum().backward()
    return trace


def main() -> None:
    """Take all pictures into ``images/``."""
    with browser() as chrome:
        for theme, suffix in THEMES.items():
            with play(chrome, record_pass(), (1000, 640), theme) as page:
                press(page, "Home", *["ArrowRight"] * 5)
                page.locator(".hv-live .hv-graph").screenshot(path=HERE / f"person_student{suffix}.png")
            with play(chrome, record_pass(), (1000, 640), theme) as page:
                press(page, "p", "r")
                page.screenshot(path=HERE / f"person_lecturer{suffix}.png")
            with play(chrome, record_silent_hooks(), (1000, 900), theme) as page:
                page.locator(".hv-live .hv-unfired").screenshot(path=HERE / f"person_engineer{suffix}.png")


if __name__ == "__main__":
    main()
