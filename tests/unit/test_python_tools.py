"""A debugger and a profiler of Python change no trace."""

import cProfile
import io
import pdb
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from scenes import Net

import hookviz as hv

Record = Callable[[], hv.Trace]


def record() -> hv.Trace:
    torch.manual_seed(0)
    net = Net()
    net.l1.weight.register_hook(lambda grad: grad * 2)
    with hv.record(net, histograms=True) as trace:
        for _ in range(2):
            loss = net(torch.ones(1, 2)).sum()
            loss.backward()
    return trace


def debug(record: Record) -> tuple[hv.Trace, str]:
    """Stop in the recording, look at what is there, step into PyTorch and out again."""
    said = io.StringIO()
    line = next(n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if "loss.backward()" in text)
    commands = f"break {__file__}:{line}\nc\np loss\np trace\np net\nstep\nnext\nup\nreturn\nclear 1\nc\n"
    debugger = pdb.Pdb(stdin=io.StringIO(commands), stdout=said, nosigint=True, readrc=False)
    debugger.use_rawinput = False
    return debugger.runcall(record), said.getvalue()


def profile(record: Record) -> tuple[hv.Trace, str]:
    profiler = cProfile.Profile()
    return profiler.runcall(record), str([entry.code for entry in profiler.getstats()])


@pytest.mark.parametrize("watch", [debug, profile])
def test_tool_of_python_changes_no_trace(watch: Callable[[Record], tuple[hv.Trace, str]]) -> None:
    watched, said = watch(record)
    assert "backward" in said, "the tool saw the program"
    plain = record()
    assert str(watched) == str(plain)
    assert watched.to_records() == plain.to_records()
