"""What recordings of ever more passes take to make, save, load and show: ``python -m benchmarks.passes``."""

import gc
import importlib.metadata
import multiprocessing
import platform
import statistics
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Browser
from torch import nn

import hookviz as hv
from benchmarks.fresh import status
from benchmarks.opening import played
from benchmarks.timing import cpu_seconds
from benchmarks.writing import grid, put, spread
from tests.browser.lab import browser

COUNTS = (100, 400, 1_600)
ROUNDS = 3
START = "<!-- passes -->\n"
ACTIONS = ("record", "save", "load", "player", "page")
HEAD = ("passes", "steps", *ACTIONS)
PLAYED = ("passes", "size of the page", "a page is shown after", "a step", "the longest frame")


def looped(count: int) -> hv.Trace:
    """A recording of ``count`` steps of training a small network that has a hook."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 1), nn.Tanh())
    net[0].weight.register_hook(lambda grad: grad * 2)
    optimizer, x = torch.optim.SGD(net.parameters(), lr=1e-3), torch.randn(3, 4)
    with hv.record(net) as trace:
        for _ in range(count):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
    return trace


def actions(count: int, trace: hv.Trace, path: Path) -> dict[str, Callable[[], object]]:
    """Name of an action → what does it, in the order of the table."""
    return {
        "record": partial(looped, count),
        "save": partial(trace.save, path),
        "load": partial(hv.load, path),
        "player": trace.player,
        "page": partial(trace.to_html, path.with_suffix(".html")),
    }


def once(action: Callable[[], object], answer: Any) -> None:
    """Send CPU seconds, also those of Graphviz's process, and by how many KiB ``action`` raises the peak here."""
    gc.collect()
    before, start = status("VmRSS"), cpu_seconds()
    made = action()
    answer.send((cpu_seconds() - start, status("VmHWM") - before))
    del made


def rounds(action: Callable[[], object]) -> list[tuple[float, int]]:
    """``once``, each time in a process of its own: a copy of this one, whose peak begins at what it holds."""
    copy, found = multiprocessing.get_context("fork"), []
    for _ in range(ROUNDS):
        answer, sends = copy.Pipe(duplex=False)
        process = copy.Process(target=once, args=(action, sends))
        process.start()
        sends.close()
        found.append(answer.recv())
        process.join()
    return found


def tables() -> str:
    """The three tables: time and memory of what Python does, and how the page plays."""
    times, peaks = [], []
    with tempfile.TemporaryDirectory() as folder:
        for count in COUNTS:
            path, trace = Path(folder, f"{count}.json"), looped(count)
            found = [rounds(action) for action in actions(count, trace, path).values()]
            head = [f"{count:,}", f"{len(trace.rows):,}"]
            times.append([*head, *(spread([spent for spent, _ in one], seconds) for one in found)])
            peaks.append([*head, *(spread([held for _, held in one], megabytes) for one in found)])
        with browser() as chrome:  # only now: a browser's threads must not be there when this process is copied
            pages = [shown(chrome, count, Path(folder, f"{count}.html")) for count in COUNTS]
    return "\n\n".join([grid(HEAD, times), grid(HEAD, peaks), grid(PLAYED, pages)])


def shown(chrome: Browser, count: int, page: Path) -> list[str]:
    """How the page of ``count`` passes plays."""
    found = [played(chrome, page) for _ in range(ROUNDS)]
    middles = [[statistics.median(one[name]) for one in found] for name in ("shown", "steps")]
    columns = (*middles, [max(one["frames"]) for one in found])
    size = f"{page.stat().st_size / 1e6:.1f} MB"
    return [f"{count:,}", size, *(spread(one, lambda number: f"{number:.0f} ms") for one in columns)]


def seconds(number: float) -> str:
    """``0.28 s``."""
    return f"{number:.2f} s"


def megabytes(number: float) -> str:
    """KiB as ``12.3 MB``."""
    return f"{number * 1024 / 1e6:.1f} MB"


def main() -> None:
    """Print the tables and write them into the page."""
    where = f"torch {importlib.metadata.version('torch')}, Python {platform.python_version()}, {ROUNDS} rounds."
    found = f"{tables()}\n\n{where}\n"
    print(found)
    put(Path(__file__).with_name("README.md"), START, found)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
