"""Look at every player of pages on screens of five sizes, and list what is cut or out of sight.

``python -m tools.picture_fit build/site`` takes the players of the lessons (``make site`` builds the pages), and also a
ResNet-18, an encoder of 12 layers and an unrolled recurrent net. It ends with status 1 if anything is cut.
"""

import sys
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Page
from torch import nn

import hookviz as hv
from benchmarks.cases import encoder
from hookviz.course.vision import resnet18
from tests.browser.lab import browser

ROOT = Path(__file__).resolve().parent.parent
FIT = (ROOT / "tests/browser/fit.js").read_text(encoding="utf-8")
SCREENS = [(1280, 720), (1366, 768), (1920, 1080), (820, 1180), (390, 844)]
KEYS = ["Home", "ArrowRight", "]", "ArrowRight", "z", "End", "z"]
"""The keys after each of which the player is looked at."""
PAUSE = 80
"""Milliseconds until a picture of a group is unpacked and drawn."""


def main(paths: list[str]) -> int:
    """Print a line for each player with flaws, and the number of players and looks."""
    with tempfile.TemporaryDirectory() as folder, browser() as chrome:
        pages = [*_find_pages(paths), *_write_model_pages(Path(folder))]
        players = flawed = 0
        for path in pages:
            for width, height in SCREENS:
                page = chrome.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
                page.goto(path.resolve().as_uri())
                flaws = _find_flaws(page)
                players += len(flaws)
                for number, found in enumerate(flaws, 1):
                    flawed += bool(found)
                    if found:
                        print(f"{path.name}, player {number}, {width} x {height}: {'; '.join(found)}", flush=True)
                page.close()
    print(f"{len(pages)} pages, {players} players and screens, {flawed} with flaws")
    return int(flawed > 0)


def _find_pages(paths: list[str]) -> list[Path]:
    files = [file for path in map(Path, paths) for file in ([path] if path.is_file() else sorted(path.rglob("*.html")))]
    return [file for file in files if "hv-state" in file.read_text(encoding="utf-8", errors="replace")]


def _find_flaws(page: Page) -> list[list[str]]:
    """Return for each player of a page what is cut after one of the keys."""
    page.wait_for_timeout(500)
    flaws: list[list[str]] = []
    for player in page.locator(".hv-live .hv-player").all():
        found: dict[str, None] = {}
        player.evaluate("player => player.focus({ preventScroll: true })")
        for key in KEYS:
            page.keyboard.press(key)
            page.wait_for_timeout(PAUSE)
            found.update(dict.fromkeys(f"{key}: {flaw}" for flaw in player.evaluate(FIT)))
        flaws.append(list(found))
    return flaws


def _write_model_pages(folder: Path) -> list[Path]:
    torch.manual_seed(0)
    cell, state = nn.RNNCell(4, 8), torch.zeros(2, 8)
    with hv.record(cell) as unrolled:
        for _ in range(12):
            state = cell(torch.randn(2, 4), state)
        state.sum().backward()  # type: ignore[no-untyped-call]
    traces = {
        "resnet18": _record(resnet18(), torch.randn(2, 3, 64, 64)),
        "encoder12": _record(encoder(), torch.randn(2, 8, 256)),
        "unrolled": unrolled,
    }
    for name, trace in traces.items():
        trace.to_html(folder / f"{name}.html")
    return [folder / f"{name}.html" for name in traces]


def _record(model: nn.Module, x: torch.Tensor) -> hv.Trace:
    next(iter(model.children())).register_full_backward_hook(lambda module, grad_input, grad_output: None)
    with hv.record(model) as trace:
        model(x.requires_grad_()).sum().backward()
    return trace


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
