"""Measure recording, saving, loading and showing growing numbers of passes: ``python -m benchmarks.passes``."""

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
from benchmarks.memory import process_memory
from benchmarks.opening import time_playback
from benchmarks.tables import format_spread, make_table, replace_section
from benchmarks.timing import cpu_seconds
from hookviz.player.html_page import mimebundle
from tests.browser.lab import browser

COUNTS = (50, 500, 2_000)
ROUNDS = 3
START = "<!-- passes -->\n"
ACTIONS = ("record", "save", "load", "output", "player", "page")
HEAD = ("passes", "steps", *ACTIONS)
PLAYBACK_HEAD = ("passes", "size of the page", "a page is shown after", "a step", "the longest frame")


def record_loop(count: int) -> hv.Trace:
    """Record ``count`` training steps of a small network with a hook."""
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
    """Name of an action → function that performs it, in the order of the table."""
    return {
        "record": partial(record_loop, count),
        "save": partial(trace.save, path),
        "load": partial(hv.load, path),
        "output": partial(mimebundle, trace._data),
        "player": trace.player,
        "page": partial(trace.to_html, path.with_suffix(".html")),
    }


def send_costs(action: Callable[[], object], sender: Any) -> None:
    """Send the CPU seconds of ``action``, with Graphviz's process, and the growth of the peak of memory in KiB."""
    gc.collect()
    before, start = process_memory("VmRSS"), cpu_seconds()
    result = action()
    sender.send((cpu_seconds() - start, process_memory("VmHWM") - before))
    del result


def measure_rounds(action: Callable[[], object]) -> list[tuple[float, int]]:
    """Run ``send_costs`` in forks of this process, whose peak begins at their present memory."""
    fork, costs = multiprocessing.get_context("fork"), []
    for _ in range(ROUNDS):
        receiver, sender = fork.Pipe(duplex=False)
        process = fork.Process(target=send_costs, args=(action, sender))
        process.start()
        sender.close()
        costs.append(receiver.recv())
        process.join()
    return costs


def make_tables() -> str:
    """Make the three tables: time and memory of the actions, and playback of the page."""
    times, peaks = [], []
    with tempfile.TemporaryDirectory() as folder:
        for count in COUNTS:
            path, trace = Path(folder, f"{count}.json"), record_loop(count)
            costs = [measure_rounds(action) for action in actions(count, trace, path).values()]
            head = [f"{count:,}", f"{len(trace._data.rows):,}"]
            times.append([*head, *(format_spread([spent for spent, _ in rounds], format_seconds) for rounds in costs)])
            peaks.append([*head, *(format_spread([held for _, held in rounds], format_megabytes) for rounds in costs)])
        with browser() as chrome:  # only now: the browser's threads must not run when this process forks
            pages = [make_playback_row(chrome, count, Path(folder, f"{count}.html")) for count in COUNTS]
    return "\n\n".join([make_table(HEAD, times), make_table(HEAD, peaks), make_table(PLAYBACK_HEAD, pages)])


def make_playback_row(chrome: Browser, count: int, page: Path) -> list[str]:
    """Make the row about the playback of the page with ``count`` passes."""
    times = [time_playback(chrome, page) for _ in range(ROUNDS)]
    medians = [[statistics.median(played[name]) for played in times] for name in ("shown", "steps")]
    columns = (*medians, [max(played["frames"]) for played in times])
    size = f"{page.stat().st_size / 1e6:.1f} MB"
    return [f"{count:,}", size, *(format_spread(column, lambda number: f"{number:.0f} ms") for column in columns)]


def format_seconds(number: float) -> str:
    """Format seconds as ``0.28 s``."""
    return f"{number:.2f} s"


def format_megabytes(number: float) -> str:
    """Format KiB as ``12.3 MB``."""
    return f"{number * 1024 / 1e6:.1f} MB"


def main() -> None:
    """Print the tables and write them into the page."""
    setting = f"torch {importlib.metadata.version('torch')}, Python {platform.python_version()}, {ROUNDS} rounds."
    section = f"{make_tables()}\n\n{setting}\n"
    print(section)
    replace_section(Path(__file__).with_name("README.md"), START, section)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
