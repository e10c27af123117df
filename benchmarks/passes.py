"""What recordings of ever more passes take to make, save, load and show: ``python -m benchmarks.passes``."""

import gc
import importlib.metadata
import json
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

import hookviz as hv
from benchmarks.fresh import status
from benchmarks.opening import played
from benchmarks.timing import cpu_seconds
from benchmarks.writing import grid, put, spread
from tests.browser.lab import browser

COUNTS = (100, 400, 1_600)
ROUNDS = 5
START = "<!-- passes -->\n"
ACTIONS = ("record", "save", "load", "player", "page")
HEAD = ("passes", "steps", *ACTIONS)
SHOWN = ("passes", "size of the page", "a page is shown after", "a step", "the longest frame")


def looped(count: int) -> hv.Trace:
    """A recording of ``count`` steps of training a small network that has a hook."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    net[0].weight.register_hook(lambda grad: grad * 2)
    optimizer, x = torch.optim.SGD(net.parameters(), lr=1e-3), torch.randn(3, 4)
    with hv.record(net) as trace:
        for _ in range(count):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
    return trace


def once(count: int, action: str, path: Path) -> tuple[float, int]:
    """CPU seconds of one action, also those of Graphviz's process, and by how many KiB it raises the peak here."""
    trace = looped(1 if action in ("record", "load") else count)
    actions: dict[str, Callable[[], object]] = {
        "record": lambda: looped(count),
        "save": lambda: trace.save(path),
        "load": lambda: hv.load(path),
        "player": lambda: trace.player(),
        "page": lambda: trace.to_html(path.with_suffix(".html")),
    }
    gc.collect()
    before, start = status("VmRSS"), cpu_seconds()
    made = actions[action]()
    spent, held = cpu_seconds() - start, status("VmHWM") - before
    del made
    return spent, held


def rounds(count: int, action: str, path: Path) -> list[tuple[float, int]]:
    """``once``, each time in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.passes", str(count), action, str(path)]
    done = (subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(ROUNDS))
    return [tuple(json.loads(one.stdout)) for one in done]


def tables() -> str:
    """The three tables: time and memory of what Python does, and how the page plays."""
    times, peaks, pages = [], [], []
    with tempfile.TemporaryDirectory() as folder, browser() as chrome:
        for count in COUNTS:
            path = Path(folder, f"{count}.json")
            head = [f"{count:,}", f"{len(looped(count).rows):,}"]
            found = [rounds(count, action, path) for action in ACTIONS]
            times.append([*head, *(spread([spent for spent, _ in one], seconds) for one in found)])
            peaks.append([*head, *(spread([held for _, held in one], megabytes) for one in found)])
            page = path.with_suffix(".html")
            shown = [played(chrome, page) for _ in range(ROUNDS)]
            middles = [[statistics.median(one[name]) for one in shown] for name in ("shown", "steps")]
            columns = (*middles, [max(one["frames"]) for one in shown])
            size = f"{page.stat().st_size / 1e6:.1f} MB"
            pages.append([head[0], size, *(spread(one, lambda number: f"{number:.0f} ms") for one in columns)])
    return "\n\n".join([grid(HEAD, times), grid(HEAD, peaks), grid(SHOWN, pages)])


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
    if len(sys.argv) > 1:
        print(json.dumps(once(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))))
    else:
        main()
