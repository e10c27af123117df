"""How long a large trace takes to open, what is sent, and how smoothly it plays: ``python -m benchmarks.opening``."""

import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import torch
from playwright.sync_api import Browser

import hookviz as hv
from benchmarks.cases import CASES, Case, chain, scalar
from benchmarks.peers.works import WORKS
from benchmarks.timing import cpu_seconds
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
SHOWN_AS: dict[str, Callable[[hv.Trace], object]] = {
    "player": lambda trace: trace.player(),
    "output": lambda trace: trace._repr_mimebundle_(),
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


def opened(name: str, what: str) -> list[float]:
    """CPU seconds from the trace of the work called ``name`` to what is shown of it, each round in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.opening", name, what]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # whoever installs hookviz has it compiled
    done = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(ROUNDS + 1)
    )
    return [float(one.stdout) for one in done][1:]


def first(name: str, what: str) -> float:
    """CPU seconds that opening a first trace takes, which was just recorded: in this process and in Graphviz's."""
    import_module("IPython")  # without it there is no kernel that could ask
    trace = recorded(OPENED[name]())
    start = cpu_seconds()
    SHOWN_AS[what](trace)
    return cpu_seconds() - start


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
        page = Path(folder, "page.html")
        trace.to_html(page)
        times = [played(chrome, page) for _ in range(ROUNDS)]
    middles = [[statistics.median(one[name]) for one in times] for name in ("shown", "steps")]
    frames = [max(one["frames"]) for one in times]
    size = f"{sent(trace) / 1000:.0f} KB"
    texts = [spread(found, lambda number: f"{number:.2f} s") for found in (opened(name, what) for what in SHOWN_AS)]
    texts += [size, *(spread(found, lambda number: f"{number:.0f} ms") for found in (*middles, frames))]
    return [case.name, f"{len(trace.steps):,}", *texts]


def main(names: Sequence[str]) -> None:
    """Print the table of the traces called ``names``; of all of them, write it into the page, too."""
    with browser() as chrome:
        table = grid(HEAD, [row(name, chrome) for name in names or OPENED])
    where = f"torch {importlib.metadata.version('torch')}, Python {platform.python_version()}, {ROUNDS} rounds."
    found = f"{table}\n\n{where}\n"
    print(found)
    if not names:
        put(Path(__file__).with_name("README.md"), START, found)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if sys.argv[-1] in SHOWN_AS:
        print(first(*sys.argv[1:]))
    else:
        main(sys.argv[1:])
