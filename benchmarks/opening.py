"""How long a large trace takes to open, what is sent, and how smoothly it plays: ``python -m benchmarks.opening``."""

import importlib.metadata
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Browser

import hookviz as hv
from benchmarks.cases import CASES, Case, chain, scalar
from benchmarks.peers.works import WORKS
from benchmarks.writing import grid, put, spread
from tests.browser.lab import browser

ROUNDS = 5
START = "<!-- opening -->\n"
HEAD = ("trace", "steps", "player", "output", "sent", "a page is shown after", "a step", "the longest frame")
OPENED: dict[str, Callable[[], Case]] = {
    "scalars": WORKS["scalars"],
    "resnet": CASES["resnet"],
    "encoder": CASES["encoder"],
    "encoder48": WORKS["encoder48"],
    "chain": lambda: Case("chain of 10,000 ops", lambda x: chain(x, 10_000), scalar()),
    "fan": lambda: Case("fan of 10,000 inputs", _fan, scalar()),
}
PLAYED, SHOWN = (Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("played.js", "shown.js"))
"""What steps and scrubs, and tells how long each took; what notes when the player is there."""


def _fan(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x, *(torch.ones((), requires_grad=True) for _ in range(9_999))])


def recorded(case: Case) -> hv.Trace:
    """The pass of ``case``."""
    models = [case.run] if isinstance(case.run, torch.nn.Module) else []
    with hv.record(*models) as trace:
        case.root().backward()
    return trace


def opened(path: Path, open_it: Callable[[hv.Trace], Any]) -> list[float]:
    """CPU seconds from a trace that nobody has looked at to what is shown of it, once for each round."""
    found = []
    for _ in range(ROUNDS):
        trace = hv.load(path)
        start = time.process_time()
        open_it(trace)
        found.append(time.process_time() - start)
    return found


def sent(trace: hv.Trace) -> int:
    """Bytes of the widget's state when it opens, without the script and the style that every player has."""
    state = trace.player().get_state()
    return len(json.dumps({name: value for name, value in state.items() if name not in ("_esm", "_css")}).encode())


def played(chrome: Browser, path: Path) -> dict[str, list[float]]:
    """Milliseconds until the page at ``path`` is shown, of each step, and of each frame of a scrub."""
    page = chrome.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(SHOWN)
    page.goto(path.as_uri())
    page.locator(".hv-live .hv-picture").wait_for()
    page.wait_for_function("window.shownAfter")
    found: dict[str, list[float]] = page.evaluate(PLAYED)
    page.close()
    return found


def row(name: str, chrome: Browser) -> list[str]:
    """One line of the table."""
    case = OPENED[name]()
    trace = recorded(case)
    with tempfile.TemporaryDirectory() as folder:
        saved, page = Path(folder, "trace.json"), Path(folder, "page.html")
        trace.save(saved)
        trace.to_html(page)
        first, output = opened(saved, lambda it: it.player()), opened(saved, lambda it: it._repr_mimebundle_())
        times = [played(chrome, page) for _ in range(ROUNDS)]
    middles = [[statistics.median(one[name]) for one in times] for name in ("shown", "steps")]
    frames = [max(one["frames"]) for one in times]
    size = f"{sent(trace) / 1000:.0f} KB"
    texts = [spread(found, lambda number: f"{number:.2f} s") for found in (first, output)]
    texts += [size, *(spread(found, lambda number: f"{number:.0f} ms") for found in (*middles, frames))]
    return [case.name, f"{len(trace.steps):,}", *texts]


def main(names: Sequence[str]) -> None:
    """Print the table of the traces called ``names``; of all of them, write it into the page, too."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    hv.draw(scalar() * 2).pipe("svg")  # the libraries that pictures need are loaded once
    with browser() as chrome:
        table = grid(HEAD, [row(name, chrome) for name in names or OPENED])
    where = f"torch {importlib.metadata.version('torch')}, Python {platform.python_version()}, {ROUNDS} rounds."
    found = f"{table}\n\n{where}\n"
    print(found)
    if not names:
        put(Path(__file__).with_name("README.md"), START, found)


if __name__ == "__main__":
    main(sys.argv[1:])
