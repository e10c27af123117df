"""Long operations show progress in a terminal and in Jupyter, and clear it at the end."""

import io
from types import SimpleNamespace
from typing import Any

import IPython
import IPython.display
import pytest
import torch

from hookviz.support import progress as progress_module
from hookviz.what_if import whatif


class FakeTerminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "DELAY", 1e-9)
    monkeypatch.setattr(progress_module, "INTERVAL", 0)


def run_once() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    (x * x).backward()


def test_a_terminal_shows_one_line_and_clears_it(no_delay: None, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = FakeTerminal()
    monkeypatch.setattr("sys.stderr", terminal)
    whatif(run_once)
    output = terminal.getvalue()
    assert "2 of 2" in output and "\n" not in output
    assert output.split("\r")[-2:] == [" " * max(map(len, output.split("\r"))), ""]


class Notebook:
    """Stands for the kernel of a notebook, and keeps what is displayed in it."""

    kernel = True

    def __init__(self) -> None:
        self.outputs: list[dict[str, str]] = []
        self.lines: list[str] = []

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        number = len(self.outputs)
        self.outputs.append({})

        def update(data: dict[str, str], *, raw: bool) -> None:
            self.outputs[number] = data
            self.lines += data.values()

        update(data, raw=raw)
        return SimpleNamespace(update=update)


def test_a_notebook_shows_lines_and_keeps_none(no_delay: None, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Notebook()
    monkeypatch.setattr(IPython, "get_ipython", lambda: notebook)
    monkeypatch.setattr(IPython.display, "display", notebook.display)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    whatif(run_once).content()
    assert [line[:26] for line in notebook.lines] == [
        "Recording the run with dif",
        "Preparing the player: 1 of",
        "Preparing the player: 2 of",
    ]
    assert notebook.outputs == [{}, {}]


def closed_stream() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, closed_stream(), io.StringIO()], ids=["none", "closed", "no terminal"])
def test_without_a_terminal_the_work_is_done_without_progress(
    stream: io.StringIO | None, no_delay: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    assert len(whatif(run_once).traces) == 2
    assert stream is None or stream.closed or stream.getvalue() == ""
