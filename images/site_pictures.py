"""Pictures of the site that show the player: ``python images/site_pictures.py``. Needs a Chromium.

They are the pictures on the cards of the first page, and the one of *Ask the room* in the manual.
"""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import hookviz as hv  # noqa: E402
from images.film_strip import record_pass  # noqa: E402
from tests.browser.lab import browser  # noqa: E402
from tools.handouts import find_browser  # noqa: E402

THEMES = {"light": "", "dark": "_dark"}
"""Theme → what it adds to the name of a picture."""


@contextmanager
def play(
    chrome: Browser, trace: hv.Trace, size: tuple[int, int], theme: str = "light", scale: float = 1
) -> Iterator[Page]:
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


def take(page: Page, part: str, name: str) -> None:
    """Take a picture of a part of the player, without the ring of the focus."""
    page.evaluate("document.activeElement.blur()")
    page.locator(f".hv-live {part}").screenshot(path=HERE / name)


def ask_room(page: Page) -> None:
    """Ask the room about c_hook, type the votes, and reveal the answer."""
    press(page, "p", "r")
    for votes in ("3", "9", "17"):
        page.keyboard.type(votes)
        press(page, "Enter")
    press(page, "Enter")
    page.evaluate("document.activeElement.blur()")


def record_silent_hook() -> hv.Trace:
    """Record a pass with a hook that does not fire, since the code calls ``forward`` instead of the module."""
    head = torch.nn.Linear(2, 1)

    def keep_features(module, args, output):
        return None

    with hv.record() as trace:
        head.register_forward_hook(keep_features)
        head.forward(torch.ones(1, 2)).sum().backward()
    return trace


def main() -> None:
    """Take all pictures into ``images/``."""
    if find_browser() is None:
        print("The pictures of the site are left as they are: no Chromium is here.")
        return
    with browser() as chrome:
        for theme, suffix in THEMES.items():
            with play(chrome, record_pass(), (920, 520), theme) as page:
                press(page, "Home", *["ArrowRight"] * 5)
                take(page, ".hv-graph", f"person_student{suffix}.png")
            with play(chrome, record_pass(), (720, 480), theme) as page:
                ask_room(page)
                page.screenshot(path=HERE / f"person_lecturer{suffix}.png")
            with play(chrome, record_silent_hook(), (390, 900), theme, scale=1.5) as page:
                press(page, "w")
                page.evaluate("document.activeElement.blur()")
                take(page, ".hv-found", f"person_engineer{suffix}.png")
        with play(chrome, record_pass(), (1000, 640), scale=1.5) as page:
            ask_room(page)
            page.screenshot(path=HERE / "room.png")


if __name__ == "__main__":
    main()
