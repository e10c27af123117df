"""``record(until=..., on_trouble=...)``: the last passes are kept when something goes wrong, and written to a file."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import leaf
from torch import nn

import hookviz as hv
from hookviz.storage.integrity import find_fault


class Training:
    """Trains a small network; the input of the pass with the number ``bad`` holds NaN."""

    def __init__(self, bad: int = 0) -> None:
        torch.manual_seed(0)
        self.net, self.bad = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)), bad
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.01)
        self.losses: list[float] = []

    def run(self, passes: int) -> None:
        for number in range(len(self.losses) + 1, len(self.losses) + passes + 1):
            x = torch.full((3, 4), number / 1000)
            x[0, 0] = math.nan if number == self.bad else 0.5
            self.opt.zero_grad()
            loss = self.net(x).square().mean()
            loss.backward()
            self.losses.append(loss.item())
            if number != self.bad:
                self.opt.step()


def stop_notes(trace: hv.Trace) -> list[str]:
    return [note.text for note in trace._data.remarks if note.fact.startswith("until")]


def test_a_recording_stops_after_the_pass_with_nan_and_keeps_the_last_passes() -> None:
    plain, training = Training(bad=11), Training(bad=11)
    plain.run(20)
    with hv.record(training.net, keep=5, until="nan") as trace:
        training.run(20)
    assert trace.pass_numbers == [7, 8, 9, 10, 11] and len(trace._data.roots) == 5
    assert stop_notes(trace) == [
        'record(until="nan") stopped the recording after pass 11: NaN or Inf was in training.net.0. '
        "What ran after it was not observed."
    ]
    assert any(trouble.kind == "nan" for trouble in trace.findings.values)
    assert find_fault(trace._data) == ""
    assert str(plain.losses) == str(training.losses)
    pairs = zip(plain.net.parameters(), training.net.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_what_runs_after_the_recording_stopped_leaves_no_row_and_a_hook_of_it_is_not_silent() -> None:
    training = Training(bad=3)
    with hv.record(training.net, until="nan") as trace:
        training.run(3)
        sizes = [len(trace._data.rows), len(trace._data.values), len(trace._data.ops), len(trace._data.calls)]
        training.net[0].weight.register_hook(lambda grad: grad * 2)
        training.net.register_forward_hook(lambda module, inputs, output: None)
        training.run(2)
        assert [len(trace._data.rows), len(trace._data.values), len(trace._data.ops), len(trace._data.calls)] == sizes
    assert trace.steps[-1].pass_number == 3
    assert not trace.hooks and not trace.findings.hooks


def pass_with_infinite_gradient() -> None:
    x = leaf(0.0)
    x.sqrt().backward()


def pass_with_nan_loss() -> None:
    x = leaf(-1.0)
    loss = (x.detach().sqrt() + x * 0).detach().requires_grad_()
    loss.backward()


def pass_that_returns_nan() -> None:
    x = leaf(2.0)
    torch.autograd.grad(x * 3, x, torch.tensor(math.nan))


@pytest.mark.parametrize(
    ("run", "why"),
    [
        (pass_with_infinite_gradient, "NaN or Inf was in x.grad"),
        (pass_with_nan_loss, "NaN or Inf was in loss."),
        (pass_that_returns_nan, "NaN or Inf was in x.grad"),
    ],
)
def test_the_note_says_where_nan_or_inf_was_first_seen(run: Callable[[], None], why: str) -> None:
    with hv.record(until="nan") as trace:
        (leaf(1.0) * 2).backward()
        run()
        (leaf(1.0) * 2).backward()
    (note,) = stop_notes(trace)
    assert why in note and "after pass 2" in note and trace.pass_numbers == [1, 2]


def test_infinite_numbers_inside_a_pass_that_reach_no_leaf_do_not_stop_the_recording() -> None:
    with hv.record(until="nan") as trace:
        for _ in range(2):
            x = leaf(1.0)
            y = x * 2
            y.register_hook(lambda grad: torch.zeros_like(grad))
            (y * 1).backward(torch.tensor(math.inf))
    assert stop_notes(trace) == [] and len(trace._data.roots) == 2


def test_an_error_in_the_function_is_reported_once_and_the_recording_goes_on() -> None:
    training = Training()

    def raise_error(trace: hv.Trace) -> bool:
        raise KeyError("loss")

    with pytest.warns(hv.HookvizWarning, match="raised KeyError: 'loss'. The recording goes on") as caught:  # noqa: SIM117
        with hv.record(training.net, until=raise_error) as trace:
            training.run(4)
    assert len(caught) == 1 and len(stop_notes(trace)) == 1 and len(trace._data.roots) == 4
    assert not any(row.kind in ("exception", "unobserved") for row in trace._data.rows)


# -- the file of on_trouble


def record_and_raise(act: Callable[[], object], error: BaseException, **options: Any) -> hv.Trace:
    """Record ``act`` and then ``error``, which must leave the block as it is; return the trace."""
    traces: list[hv.Trace] = []

    def run() -> None:
        with hv.record(**options) as trace:
            traces.append(trace)
            act()
            raise error

    with pytest.raises(type(error)) as caught:
        run()
    assert caught.value is error
    return traces[0]


def run_passes() -> None:
    for _ in range(10):
        (leaf(1.0) * 2).backward()


def test_an_exception_in_the_block_writes_the_trace_and_propagates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "crash.json"
    trace = record_and_raise(run_passes, ArithmeticError("out of luck"), on_trouble=path, keep=3)
    loaded = hv.load(path)
    assert loaded == trace and loaded.pass_numbers == [8, 9, 10]
    assert "The recording ended with an exception, ArithmeticError: out of luck." in "".join(loaded.notes)
    assert capsys.readouterr().err == f"hookviz: ArithmeticError: out of luck ended the recording. Wrote {path}.\n"


def test_stopping_writes_the_file_once_while_the_block_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    training, path = Training(bad=4), tmp_path / "crash.json"

    def run() -> None:
        training.run(4)
        assert hv.load(path).pass_numbers == [3, 4]
        path.unlink()
        training.run(5)

    record_and_raise(run, ArithmeticError(), keep=2, until="nan", on_trouble=path)
    assert not path.exists()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('hookviz: record(until="nan") stopped') and line.endswith(f"Wrote {path}.")


def test_a_block_that_ends_well_or_by_ctrl_c_or_exit_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hv.record(until="nan", on_trouble=tmp_path / "crash.html"):
        run_passes()
    record_and_raise(run_passes, KeyboardInterrupt(), on_trouble=tmp_path / "crash.html")
    record_and_raise(run_passes, SystemExit(), on_trouble=tmp_path / "crash.html")
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""


def test_a_file_that_cannot_be_written_is_a_warning_and_the_exception_propagates(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    with pytest.warns(hv.HookvizWarning, match=r"could not write crash\.html \(.*gone"):
        record_and_raise(folder.rmdir, ArithmeticError(), on_trouble=folder / "crash.html")


def test_writing_the_page_changes_no_random_numbers_of_the_program(tmp_path: Path) -> None:
    training = Training(bad=1)
    state = torch.random.get_rng_state()
    with hv.record(training.net, until="nan", on_trouble=tmp_path / "crash.html"):
        training.run(1)
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"until": "inf"}, ValueError, 'until takes one of these: "nan", a function of the trace, None; not'),
        ({"on_trouble": "crash"}, ValueError, r"must end in \.html \(a page\) or \.json"),
        ({"on_trouble": "none/crash.html"}, FileNotFoundError, "there is no folder"),
    ],
)
def test_impossible_options_are_refused_before_the_program_runs(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message), hv.record(**options):
        pytest.fail("the program runs")
