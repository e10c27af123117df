"""What the callbacks for Trainer and Lightning share: which steps are recorded, what is written and logged."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.integrations import training_recorder
from hookviz.integrations.training_recorder import ChosenSteps, FlightRecording, StepRecorder, TrainingRecorder


class Loop:
    """A trainer: each step has two batches, and an evaluation follows it."""

    def __init__(self, recorder: TrainingRecorder, folder: Path) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.recorder, self.folder, self.done = recorder, folder, 0
        self.logged: dict[int, dict[str, float]] = {}
        self.totals: dict[int, float] = {}
        """Step → the norm of all gradients."""

    def train(self, steps: int) -> None:
        self.recorder.training_begins(self.folder)
        for _ in range(steps):
            self.optimizer.zero_grad()
            for _batch in range(2):
                self.recorder.step_begins(self.done + 1, self.model)
                self.model(torch.randn(5, 3)).square().mean().backward()
                if _batch == 0:
                    self.recorder.step_ends(self.done)
            self.totals[self.done + 1] = float(nn.utils.clip_grad_norm_(self.model.parameters(), 0.01))
            self.optimizer.step()
            self.done += 1
            self.logged[self.done] = self.recorder.step_ends(self.done)
            self.model(torch.randn(5, 3)).sum().backward()  # a test of the model that somebody calls here
        self.recorder.training_ends(None)


def count_kinds(trace: hv.Trace, kind: str) -> int:
    return sum(step.kind == kind for step in trace.steps)


def make_recorder(*steps: int, log_norms: bool = False) -> StepRecorder:
    return StepRecorder(steps, None, log_norms)


def test_chosen_steps_are_recorded_without_what_runs_between_them_and_their_norms_are_logged(tmp_path: Path) -> None:
    recorder = make_recorder(2, 3, 5, 9, log_norms=True)
    loop = Loop(recorder, tmp_path)
    loop.train(6)
    assert [len(trace.pass_numbers) for trace in recorder.traces] == [4, 2]
    assert [count_kinds(trace, "optimizer_step") for trace in recorder.traces] == [2, 1]
    assert [count_kinds(trace, "forward") for trace in recorder.traces] == [16, 8]
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "hookviz").iterdir()}
    assert sorted(pages) == ["step_5.html", "steps_2-3.html"]
    assert "<title>Training step 5</title>" in pages["step_5.html"]
    assert [step for step, norms in loop.logged.items() if norms] == [2, 3, 5]
    for step in (2, 3, 5):
        assert set(loop.logged[step]) == {"gradient norm/0", "gradient norm/2"}
        assert math.hypot(*loop.logged[step].values()) == pytest.approx(loop.totals[step])


def test_every_third_step_is_recorded_also_if_training_resumes_and_the_last_traces_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_recorder, "MAX_TRACES", 1)
    recorder = StepRecorder(None, 3, log_norms=False)
    loop = Loop(recorder, tmp_path)
    loop.done = 4
    loop.train(6)
    assert sorted(path.name for path in (tmp_path / "hookviz").iterdir()) == ["step_6.html", "step_9.html"]
    assert len(recorder.traces) == 1


def test_norms_are_free_of_the_factor_of_a_scaler(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    recorder = make_recorder(1, log_norms=True)
    recorder.training_begins(tmp_path)
    recorder.step_begins(1, model)
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.step(optimizer)
    assert recorder.step_ends(1) == {"gradient norm/weight": pytest.approx(2**0.5), "gradient norm/bias": 1.0}


def test_a_flight_recorder_keeps_the_last_passes_and_writes_the_page_of_an_exception(tmp_path: Path) -> None:
    recorder = FlightRecording(keep=3)
    loop = Loop(recorder, tmp_path)
    loop.model.register_forward_pre_hook(lambda *_: 1 / 0 if loop.done == 3 else None)
    with pytest.raises(ZeroDivisionError) as raised:
        loop.train(5)
    recorder.training_ends(raised.value)
    [trace] = recorder.traces
    assert trace.pass_numbers == [4, 5, 6] and count_kinds(trace, "exception") == 1
    assert (tmp_path / "hookviz" / "trouble.html").exists()


@pytest.mark.parametrize(("steps", "says"), [(None, "Say which steps"), ([0], "from 1 on; this is 0")])
def test_impossible_steps_are_refused(steps: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        ChosenSteps(steps, None)


@pytest.mark.slow
def test_without_the_library_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from hookviz.integrations import lightning, transformers

    monkeypatch.setattr(lightning, "Callback", object)
    monkeypatch.setattr(transformers, "TrainerCallback", object)
    with pytest.raises(ImportError, match=r'lightning is not installed: .* pip install "hookviz\[lightning\]"'):
        lightning.RecordSteps([1])
    with pytest.raises(ImportError, match=r'transformers is not installed: .* pip install "hookviz\[transformers\]"'):
        transformers.FlightRecorder()
