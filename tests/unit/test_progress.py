"""Progress is shown of what takes long, in a terminal and in Jupyter, and nothing stays of it."""

import io
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz as hv
from hookviz.player.widget import Player
from hookviz.support import progress as room
from hookviz.support.progress import progress, show_progress_with
from hookviz.what_if import whatif
from hookviz.what_if.slider_panel import make_sliders
from tests.unit.test_whatif import a_to_e
from tests.waiting import PATIENCE


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "DELAY", 1e-9)
    monkeypatch.setattr(room, "INTERVAL", 0)


def take(parts: int) -> None:
    with progress("{n} of {total}", parts) as tick:
        for _ in range(parts):
            tick()


def test_what_is_over_within_a_second_shows_nothing() -> None:
    lines: list[str] = []
    with show_progress_with(lines.append):
        take(3)
    assert lines == []


def test_each_part_that_is_done_is_shown_and_in_the_end_nothing(at_once: None) -> None:
    lines: list[str] = []
    with show_progress_with(lines.append):
        take(3)
    assert [line[:6] for line in lines] == ["1 of 3", "2 of 3", "3 of 3", ""]


def test_an_interrupt_takes_the_line_away(at_once: None) -> None:
    lines: list[str] = []

    def interrupted() -> None:
        with progress("{n} of {total}", 2) as tick:
            tick()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), show_progress_with(lines.append):
        interrupted()
    assert lines[0].startswith("1 of 2") and lines[-1] == ""


def test_a_terminal_shows_one_line_and_blanks_it(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    take(2)
    written = screen.getvalue()
    assert "1 of 2" in written and "\n" not in written
    assert written.split("\r")[-2:] == [" " * max(map(len, written.split("\r"))), ""]


def test_what_is_no_terminal_is_left_alone(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr("sys.stderr", file)
    take(2)
    assert file.getvalue() == ""


def test_no_thread_is_started(at_once: None) -> None:
    before = threading.active_count()
    with show_progress_with(lambda line: None), progress("{n} of {total}", 2) as tick:
        tick()
        assert threading.active_count() == before


COUNTED = [
    *(f"Recording the run with different hooks off: {n} of 16" for n in range(2, 17)),
    *(f"Preparing the player: {n} of 16" for n in range(1, 17)),
]


def counted(lines: list[str]) -> list[str]:
    """The lines without their bars."""
    return [" ".join(line.split()[: line.split().index("of") + 2]) for line in lines if line]


def test_a_what_if_counts_its_passes_and_then_what_the_player_is_made_of(at_once: None) -> None:
    lines: list[str] = []
    with show_progress_with(lines.append):
        whatif(a_to_e).content()
    assert counted(lines) == COUNTED
    assert lines.count("") == 2 and lines[-1] == ""


def test_a_large_file_and_a_large_graph_count_what_is_done(
    at_once: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(room, "MIN_COUNT", 3)
    y = x = torch.tensor(3.0, requires_grad=True)
    for _ in range(3):
        y = y * 2
    lines: list[str] = []
    with hv.record() as trace:
        y.backward()
    with show_progress_with(lines.append):
        trace.save(tmp_path / "trace.json")
        loaded = hv.load(tmp_path / "trace.json")
        hv.hooks(x * y)
    assert loaded == trace
    told = [line.rpartition(" of ")[0] for line in counted(lines)]
    assert list(dict.fromkeys(line.rpartition(": ")[0] for line in told)) == [
        "Putting values into formulas", "Making the file", "Reading the file", "Looking for hooks on nodes",
    ]  # fmt: skip
    done = [line.split(": ")[1].split(" of ") for line in counted(lines)]
    assert sum(part == total for part, total in done) >= 3 and lines[-1] == ""


def test_of_what_is_small_nothing_is_shown(at_once: None, tmp_path: Path) -> None:
    lines: list[str] = []
    with show_progress_with(lines.append), hv.record() as trace:
        (torch.tensor(3.0, requires_grad=True) * 2).backward()
    with show_progress_with(lines.append):
        trace.save(tmp_path / "trace.json")
    assert lines == []


def test_a_slider_shows_it_beside_itself(at_once: None) -> None:
    both, lines = whatif(a_to_e, a=(-3, 3)), list[str]()
    (slider,) = make_sliders(both, Player.showing(both.content()), lines.append)
    slider.value = 1.5
    assert counted(lines)[:15] == COUNTED[:15]
    assert counted(lines)[15:] == [f"Preparing the player: {n} of 32" for n in range(1, 33)]
    assert lines[-1] == ""


CELLS = (
    "import torch, hookviz as hv\nfrom hookviz.support import progress\nprogress.DELAY, progress.INTERVAL = 1e-9, 0\n"
    "def run():\n    x = torch.tensor(3.0, requires_grad=True)\n"
    "    x.register_hook(lambda grad: grad * 10)\n    (x * x).backward()",
    "both = hv.whatif(run)\nboth",
)


@pytest.mark.slow
def test_a_notebook_keeps_nothing_that_is_seen(tmp_path: Path) -> None:
    # Loading these takes seconds, which the quick tests should not wait for.
    import nbformat
    from nbclient import NotebookClient

    from tests.browser.lab import write_notebook

    write_notebook(tmp_path / "saved.ipynb", *CELLS)
    notebook = nbformat.read(tmp_path / "saved.ipynb", as_version=4)
    shown: list[str] = []
    client = NotebookClient(notebook, timeout=int(PATIENCE))
    handle = client.process_message

    def note(message: Any, cell: Any, index: int) -> Any:
        shown.extend(filter(None, [message["content"].get("data", {}).get("text/plain")]))
        return handle(message, cell, index)

    client.process_message = note
    client.execute()
    assert [line[:26] for line in shown[:-1]] == [
        "Recording the run with dif",
        "Preparing the player: 1 of",
        "Preparing the player: 2 of",
    ]
    *gone, last = notebook.cells[-1].outputs
    assert [dict(output.data) for output in gone] == [{}, {}]
    assert last.output_type == "execute_result" and "text/html" in last.data
    nbformat.validate(notebook)


def closed() -> io.StringIO:
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, closed()], ids=["none", "closed"])
def test_without_stderr_the_work_is_done_and_nothing_shown(
    stream: Any, at_once: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", stream)
    take(3)
    assert len(whatif(a_to_e).traces) == 16
