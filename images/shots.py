"""Pictures of the player in a real JupyterLab: ``python images/shots.py [folder]``. Needs a Chromium."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import torch
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect
from torch import nn

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import hookviz as hv  # noqa: E402
from images.film_strip import make_film_strips  # noqa: E402
from tests.browser.conftest import SCRIPT  # noqa: E402
from tests.browser.lab import Lab, browser, write_notebook  # noqa: E402
from tools.handouts import find_browser  # noqa: E402

SCREENS = {"1280": (1280, 720), "800": (800, 720), "1920": (1920, 1080)}
"""A small projector, half a screen, a large projector; JupyterLab as it comes, with its side bar open."""
PAPER = (1280, 1040)
CLOSED = ("800", "paper")
"""Where one closes the side bar: in half a screen, and for the pictures that stay."""
STEPS = {"start": 0, "hook": 8, "end": 15}
MOVING = "player.webp"
KEPT = {"light": "player.png", "dark": "player-dark.png"}


def go(page: Page, step: int) -> None:
    """The player at ``step``, its upper edge at that of the notebook, without the ring of the focus."""
    player = page.locator(".hv-player").first
    player.evaluate("player => player.scrollIntoView({block: 'start'})")
    player.focus()
    for key in ["Home", *["ArrowRight"] * step]:
        page.keyboard.press(key)
    page.locator(".jp-NotebookPanel-toolbar").first.click(position={"x": 5, "y": 5})
    page.wait_for_timeout(600)


def opened(chrome: Browser, lab: Lab, theme: str, screen: str) -> Page:
    """A page with a notebook that has run, with a kernel of its own, so that cells count from 1."""
    width, height = SCREENS.get(screen, PAPER)
    page = chrome.new_page(viewport={"width": width, "height": height}, device_scale_factor=1.5)
    lab.open(page, f"{theme}-{screen}.ipynb")
    if screen in CLOSED:
        page.keyboard.press("Control+b")
    lab.run_all(page)
    page.wait_for_selector(".hv-player", timeout=90_000)
    page.wait_for_timeout(2000)
    return page


def shoot(chrome: Browser, lab: Lab, target: Path, theme: str) -> None:
    """Every moment on every screen, in one theme, as people see it."""
    for screen in SCREENS:
        page = opened(chrome, lab, theme, screen)
        for moment, step in STEPS.items():
            go(page, step)
            page.screenshot(path=str(target / f"{theme}-{screen}-{moment}.png"))
        page.close()


def keep(chrome: Browser, lab: Lab, target: Path, theme: str) -> None:
    """The player alone, at c_hook, without the note on keys: a picture has none."""
    page = opened(chrome, lab, theme, "paper")
    page.add_style_tag(content=".hv-keys { display: none !important }")
    go(page, STEPS["hook"])
    page.locator(".hv-player").first.screenshot(path=str(target / KEPT[theme]))
    page.close()


def a_to_e() -> None:
    """The pass of the picture, with its hooks."""
    a, b, d = (torch.tensor(x, requires_grad=True) for x in (2.0, 3.0, 4.0))

    def c_hook(grad):
        return grad + 2

    c = a * b
    c.register_hook(c_hook)
    d.register_hook(lambda grad: grad + 100)
    e = c * d
    e.register_hook(lambda grad: grad * 2)
    e.backward()


@contextmanager
def played(chrome: Browser, page: Path, size: tuple[int, int] = (1000, 800), scale: float = 1.5) -> Iterator[Locator]:
    """The player in the file at ``page``, and its page closed afterwards."""
    opened = chrome.new_page(
        viewport={"width": size[0], "height": size[1]}, device_scale_factor=scale, reduced_motion="reduce"
    )
    opened.goto(page.as_uri())
    opened.wait_for_selector(".hv-live .hv-picture:not([hidden])")
    player = opened.locator(".hv-live .hv-player")
    player.focus()
    yield player
    opened.close()


def still(player: Locator) -> bytes:
    """A picture of it. The ring of the focus is for those who press keys."""
    player.evaluate("player => player.blur()")
    player.page.wait_for_timeout(300)
    return player.screenshot()


def switched(chrome: Browser, target: Path, made: Path) -> None:
    """A what-if as a page, with the first hook off."""
    hv.whatif(a_to_e).to_html(made / "whatif.html")
    with played(chrome, made / "whatif.html") as player:
        player.press("End")
        player.press("1")
        player.page.wait_for_selector("[aria-checked=false]")
        (target / "whatif.png").write_bytes(still(player))


def vanishing(chrome: Browser, target: Path, made: Path) -> None:
    """A large trace at its end: twenty layers of sigmoids, from which less and less of the gradient comes."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Sigmoid()) for _ in range(20)]
    model = nn.Sequential(*layers)
    with hv.record(model) as trace:
        model(torch.randn(8, 16)).square().mean().backward()
    trace.to_html(made / "large.html")
    with played(chrome, made / "large.html", (1100, 860)) as player:
        player.press("End")
        here = player.locator(".hv-here")
        while here.inner_text() != "the whole pass":
            around = player.locator(".hv-trail button").last.inner_text()
            player.press("u")
            expect(here).to_have_text(around)
        player.locator(".hv-found summary").click()
        (target / "large.png").write_bytes(still(player))


def moving(chrome: Browser, target: Path, made: Path) -> None:
    """The player step by step, as one moving picture."""
    with hv.record() as trace:
        a_to_e()
    trace.to_html(made / "moving.html")
    frames = []
    with played(chrome, made / "moving.html", scale=1) as player:
        for _ in trace.steps:
            frames.append(Image.open(BytesIO(still(player))).convert("RGB"))
            player.press("ArrowRight")
    pauses = [*[1_500] * (len(frames) - 1), 4_000]
    first, *others = frames
    first.save(target / MOVING, save_all=True, append_images=others, duration=pauses, loop=0, quality=80, method=6)


def main(folder: Path | None) -> None:
    """Take all pictures into ``folder``, or only those that stay into ``images/``."""
    if find_browser() is None:
        print("The pictures of the player are left as they are: no Chromium is here.")
        return
    take, target = (keep, HERE) if folder is None else (shoot, folder)
    target.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        notebooks, home = (Path(made) / name for name in ("notebooks", "home"))
        notebooks.mkdir()
        home.mkdir()
        for name in (f"{theme}-{screen}" for theme in KEPT for screen in (*SCREENS, "paper")):
            write_notebook(notebooks / f"{name}.ipynb", *SCRIPT[:-1])
        with browser() as chrome, Lab(notebooks, home) as lab:
            for theme in KEPT:
                lab.set_theme(theme)
                take(chrome, lab, target, theme)
            switched(chrome, target, notebooks)
            vanishing(chrome, target, notebooks)
            moving(chrome, target, notebooks)
            make_film_strips(chrome, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
