"""Write pictures of eight scenes in a headless Chromium, and print the sizes of their pages.

``python -m tests.inventory.scenes FOLDER`` writes FOLDER/01_hook.png to FOLDER/08_static.png, to be looked at.
"""

import gzip
import io
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import torch
from playwright.sync_api import Browser

import hookviz as hv
from tests.browser.helpers import press
from tests.browser.lab import browser
from tests.proof.mutants import KINDS_OF_TRACE
from tests.scenes import recorded

Displayable = Any
"""A trace, a what-if or a comparison: whatever has ``to_html``."""


def multiply(*, hooked: bool = True) -> None:
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (2.0, 3.0, 4.0))
    c = a * b
    if hooked:
        c.register_hook(lambda grad: grad + 2)
    d.register_hook(lambda grad: grad + 100)
    e = c * d
    e.register_hook(lambda grad: grad * 2)
    e.backward()


def compare_with_and_without_a_hook() -> Displayable:
    with hv.record() as plain:
        multiply(hooked=False)
    with hv.record() as hooked:
        multiply()
    return plain.diff(hooked)


def train_with_a_fault() -> hv.Trace:
    layer = torch.nn.Linear(2, 1)
    sgd = torch.optim.SGD(layer.parameters(), lr=0.0)
    with hv.record(layer) as trace:
        for _ in range(3):
            layer(torch.ones(2)).relu().sum().backward()
            sgd.step()
    return trace


class Scene(NamedTuple):
    """A page, and how it is shown."""

    make: Callable[[], Displayable]
    step: int = 0
    """The step that the address names, counted from 1; 0 for none."""
    keys: str = ""
    """The keys that are pressed, separated by blanks."""
    settings: dict[str, Any] = {}  # noqa: RUF012 - a default of a named tuple, which nobody changes
    """Settings of the browser's page."""


SCREEN: dict[str, Any] = {"viewport": {"width": 1280, "height": 720}, "reduced_motion": "reduce"}
DARK = {"color_scheme": "dark"}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
SCENES = {
    "01_hook": Scene(recorded, 9),
    "02_end_phone": Scene(recorded, 16, settings=PHONE),
    "03_modules_tensors": Scene(KINDS_OF_TRACE["modules"], 0, "] ] t"),
    "04_large_dark": Scene(KINDS_OF_TRACE["large"], 0, "]", DARK),
    "05_whatif_dark": Scene(lambda: hv.whatif(multiply), 0, "1 End", DARK),
    "06_comparison": Scene(compare_with_and_without_a_hook, 0, "End"),
    "07_training_with_findings": Scene(train_with_a_fault, 0, "w"),
    "08_static": Scene(recorded, settings={"java_script_enabled": False}),
}


def write_page(page_scene: Scene, path: Path) -> tuple[int, int]:
    """Write the page of a scene; return its size in bytes, raw and gzipped."""
    torch.manual_seed(0)
    with redirect_stdout(io.StringIO()):  # a hook prints
        page_scene.make().to_html(path)
    content = path.read_bytes()
    return len(content), len(gzip.compress(content, mtime=0))


def take_picture(chrome: Browser, page_scene: Scene, page: Path, picture: Path) -> None:
    """Open the page of a scene, press its keys, and write what the screen shows."""
    tab = chrome.new_page(**(SCREEN | page_scene.settings))
    tab.goto(page.as_uri() + (f"#step-{page_scene.step}" if page_scene.step else ""))
    if page_scene.settings.get("java_script_enabled", True):
        tab.locator(".hv-live .hv-picture svg").first.wait_for()
        tab.locator(".hv-live .hv-player").focus()
        for key in page_scene.keys.split():
            press(tab, key)
            tab.wait_for_timeout(500)  # a large trace draws the next box
    tab.wait_for_timeout(500)
    tab.screenshot(path=picture)
    tab.close()


def main(folder: Path) -> None:
    """Write all pictures into the folder, and print the sizes of the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    print("| scene | bytes | gzipped |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as pages, browser() as chrome:
        for name, page_scene in SCENES.items():
            page = Path(pages, f"{name}.html")
            raw, packed = write_page(page_scene, page)
            print(f"| {name} | {raw:,} | {packed:,} |", flush=True)
            take_picture(chrome, page_scene, page, folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
