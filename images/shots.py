"""Pictures of the player in a real JupyterLab: ``python images/shots.py [folder]``. Needs a Chromium."""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.browser.conftest import SCRIPT  # noqa: E402
from tests.browser.lab import Lab, browser, chromium, write_notebook  # noqa: E402

WIDTHS = (1280, 800)
STEPS = {"start": 0, "hook": 8, "end": 15}
KEPT = {"player-light-1280-hook.png": "player.png", "player-dark-1280-hook.png": "player-dark.png"}
"""The pictures that stay in ``images/``."""


def shoot(page: Page, folder: Path, name: str) -> None:
    """The player at its start, at c_hook and at its end."""
    page.keyboard.press("Control+b")  # away with the side bar
    player = page.locator(".hv-player").first
    player.scroll_into_view_if_needed()
    for moment, step in STEPS.items():
        player.focus()
        for key in ["Home", *["ArrowRight"] * step]:
            page.keyboard.press(key)
        page.locator(".jp-NotebookPanel-toolbar").first.click(position={"x": 5, "y": 5})  # no focus ring
        page.wait_for_timeout(600)
        player.screenshot(path=str(folder / f"{name}-{moment}.png"))


def shoot_theme(chrome: Browser, lab: Lab, folder: Path, theme: str) -> None:
    """The player in one theme, at two widths."""
    lab.set_theme(theme)
    for width in WIDTHS:
        page = chrome.new_page(viewport={"width": width, "height": 1600}, device_scale_factor=1.5)
        lab.open(page, f"{theme}-{width}.ipynb")  # a kernel of its own, so that cells count from 1
        lab.run_all(page)
        page.wait_for_selector(".hv-player", timeout=90_000)
        shoot(page, folder, f"player-{theme}-{width}")
        page.close()


def main(folder: Path | None) -> None:
    """Take all pictures; into ``folder``, or only those that stay, into ``images/``."""
    if chromium() is None:
        print("The pictures of the player are left as they are: no Chromium is here.")
        return
    with tempfile.TemporaryDirectory() as made:
        notebooks, home, shots = (Path(made) / name for name in ("notebooks", "home", "shots"))
        for part in (notebooks, home, shots):
            part.mkdir()
        for name in (f"{theme}-{width}.ipynb" for theme in ("light", "dark") for width in WIDTHS):
            write_notebook(notebooks / name, *SCRIPT[:-1])
        target = folder or shots
        target.mkdir(exist_ok=True)
        with browser() as chrome, Lab(notebooks, home) as lab:
            for theme in ("light", "dark"):
                shoot_theme(chrome, lab, target, theme)
        if folder is None:
            for name, kept in KEPT.items():
                (HERE / kept).write_bytes((shots / name).read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
