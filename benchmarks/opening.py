"""Measure how fast large traces open and play, and how much is sent: ``python -m benchmarks.opening``."""

import json
import os
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
from benchmarks.peers.workloads import WORKS
from benchmarks.tables import format_spread, make_table, report
from benchmarks.timing import cpu_seconds
from tests.browser.lab import browser

ROUNDS = 5
START = "<!-- opening -->\n"
HEAD = ("trace", "steps", "player", "output", "sent", "a page is shown after", "a step", "the longest frame")
TRACES: dict[str, Callable[[], Case]] = {
    "scalars": WORKS["scalars"],
    "resnet": CASES["resnet"],
    "encoder": CASES["encoder"],
    "encoder48": WORKS["encoder48"],
    "chain": lambda: Case("chain of 10,000 ops", lambda x: chain(x, 10_000), scalar()),
    "fan": lambda: Case("fan of 10,000 inputs", _fan, scalar()),
}
DISPLAYS: dict[str, Callable[[hv.Trace], object]] = {
    "player": lambda trace: trace.player(),
    "output": lambda trace: trace._repr_mimebundle_(),
}
PLAYBACK, FIRST_FRAME = (
    Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("playback.js", "first_frame.js")
)
"""The scripts that step and scrub and measure the time of each, and that notes when the player appears."""


def _fan(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x, *(torch.ones((), requires_grad=True) for _ in range(9_999))])


def record_case(case: Case) -> hv.Trace:
    """Record the pass of ``case``."""
    models = [case.run] if isinstance(case.run, torch.nn.Module) else []
    with hv.record(*models) as trace:
        case.root().backward()
    return trace


def time_to_open(name: str, display: str) -> list[float]:
    """Measure the CPU seconds from the trace ``name`` to its display, each round in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.opening", name, display]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # an installed hookviz is compiled
    done = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment) for _ in range(ROUNDS + 1)
    )
    return [float(process.stdout) for process in done][1:]


def time_first_opening(name: str, display: str) -> float:
    """Measure the CPU seconds to display the first trace of this process, with those of Graphviz's process."""
    import_module("IPython")  # a kernel has imported it before
    trace = record_case(TRACES[name]())
    start = cpu_seconds()
    DISPLAYS[display](trace)
    return cpu_seconds() - start


def widget_state_size(trace: hv.Trace) -> int:
    """The size in bytes of the widget's state when it opens, without the script and style that all players share."""
    state = trace.player().get_state()
    return len(json.dumps({name: value for name, value in state.items() if name not in ("_esm", "_css")}).encode())


def time_playback(chrome: Browser, path: Path) -> dict[str, list[float]]:
    """Measure the milliseconds until the page at ``path`` appears, of each step, and of each frame of a scrub."""
    page = chrome.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(FIRST_FRAME)
    page.goto(path.as_uri())
    page.locator(".hv-live .hv-picture").wait_for()
    page.wait_for_function("window.shownAfter")
    times: dict[str, list[float]] = page.evaluate(PLAYBACK)
    page.close()
    return times


def make_row(name: str, chrome: Browser) -> list[str]:
    """Make the row of one trace."""
    case = TRACES[name]()
    trace = record_case(case)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        trace.to_html(page)
        times = [time_playback(chrome, page) for _ in range(ROUNDS)]
    medians = [[statistics.median(played[name]) for played in times] for name in ("shown", "steps")]
    frames = [max(played["frames"]) for played in times]
    size = f"{widget_state_size(trace) / 1000:.0f} KB"
    opening_times = (time_to_open(name, display) for display in DISPLAYS)
    texts = [format_spread(seconds, lambda number: f"{number:.2f} s") for seconds in opening_times]
    texts += [size, *(format_spread(column, lambda number: f"{number:.0f} ms") for column in (*medians, frames))]
    return [case.name, f"{len(trace.steps):,}", *texts]


def main(names: Sequence[str]) -> None:
    """Print the table of the traces called ``names``; without names, measure all and write it into the page, too."""
    with browser() as chrome:
        table = make_table(HEAD, [make_row(name, chrome) for name in names or TRACES])
    report(table, f"{ROUNDS} rounds", None if names else Path(__file__).with_name("README.md"), START)


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if sys.argv[-1] in DISPLAYS:
        print(time_first_opening(*sys.argv[1:]))
    else:
        main(sys.argv[1:])
