"""The callbacks for Lightning and transformers' Trainer, in trainings of tiny models with these libraries."""

import math
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import hookviz as hv
from tests.requirements import skip_or_fail

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

TRAINERS = ("lightning", "transformers")
ACCUMULATION = {"lightning": "accumulate_grad_batches", "transformers": "gradient_accumulation_steps"}
EVALUATION: dict[str, dict[str, Any]] = {
    "lightning": {"val_check_interval": 1},
    "transformers": {"eval_strategy": "steps", "eval_steps": 1},
}
STEPS = 5


def callbacks_for(library: str) -> Any:
    """Return the module with the callbacks; to import it with its library takes seconds."""
    return import_module(f"hookviz.integrations.{library}")


class Run:
    """A training of five steps: its model, the losses of its batches, and the trainer."""

    def __init__(self, library: str, folder: Path, edit: Callable[[Any], object] | None, callbacks: list[Any]) -> None:
        if find_spec(library) is None:
            skip_or_fail("recipes", f"{library} is not installed: make test installs the trainers")
        self.folder, self.callbacks, self.losses = folder, callbacks, list[float]()
        torch.manual_seed(0)
        self.model = _make_lightning_model(self.losses) if library == "lightning" else _make_bert()
        if edit is not None:
            edit(self.model)

    def weights(self) -> list[Any]:
        return [parameter.tolist() for parameter in self.model.parameters()]


def _make_lightning_model(losses: list[float]) -> Any:
    import lightning

    class Classifier(lightning.LightningModule):  # type: ignore[misc]
        logs = True

        def __init__(self) -> None:
            super().__init__()
            self.encoder = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Dropout(0.2))
            self.classifier = torch.nn.Linear(8, 2)

        def forward(self, x: torch.Tensor) -> Any:
            return self.classifier(self.encoder(x))

        def training_step(self, batch: Any, batch_idx: int) -> torch.Tensor:
            loss = torch.nn.functional.cross_entropy(self(batch[0]), batch[1])
            losses.append(loss.item())
            if self.logs:
                self.log("loss", loss)
            return loss

        def validation_step(self, batch: Any, batch_idx: int) -> None:
            self(batch[0])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    return Classifier()


def _make_bert() -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}

    return BertForSequenceClassification(BertConfig(vocab_size=20, **sizes))


def fit_lightning(run: Run, ckpt_path: Path | None = None, **options: Any) -> Any:
    import lightning

    data = TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,)))
    off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    quiet = {**dict.fromkeys(off, False), "num_sanity_val_steps": 0, "log_every_n_steps": 1, "max_steps": STEPS}
    trainer = lightning.Trainer(
        accelerator="cpu", default_root_dir=run.folder, callbacks=run.callbacks, **{**quiet, **options}
    )
    trainer.fit(run.model, DataLoader(data, batch_size=4), DataLoader(data, batch_size=32), ckpt_path=ckpt_path)
    return trainer


def fit_transformers(run: Run, ckpt_path: Path | None = None, **options: Any) -> Any:
    from transformers import Trainer, TrainingArguments

    rows = [{"input_ids": torch.randint(0, 20, (6,)), "labels": number % 2} for number in range(64)]
    quiet = {"report_to": "none", "save_strategy": "no", "disable_tqdm": True, "use_cpu": True, "logging_steps": 1}
    arguments = TrainingArguments(
        str(run.folder), max_steps=STEPS, per_device_train_batch_size=4, **{**quiet, **options}
    )

    class NotingTrainer(Trainer):  # type: ignore[misc]
        def compute_loss(self, *args: Any, **kwargs: Any) -> Any:
            loss = super().compute_loss(*args, **kwargs)
            run.losses.append((loss[0] if isinstance(loss, tuple) else loss).item())
            return loss

    trainer = NotingTrainer(run.model, arguments, train_dataset=rows, eval_dataset=rows[:8], callbacks=run.callbacks)
    trainer.train(resume_from_checkpoint=None if ckpt_path is None else str(ckpt_path))
    return trainer


FIT = {"lightning": fit_lightning, "transformers": fit_transformers}


def train(
    library: str, folder: Path, *callbacks: Any, edit: Callable[[Any], object] | None = None, **options: Any
) -> tuple[Run, Any]:
    """Train a tiny model with a library; return the run and its trainer."""
    run = Run(library, folder, edit, [*callbacks])
    return run, FIT[library](run, **options)


@pytest.mark.parametrize(("kind", "accumulate"), [("RecordSteps", 2), ("FlightRecorder", 1)])
@pytest.mark.parametrize("library", TRAINERS)
def test_training_is_the_same_bit_for_bit(library: str, kind: str, accumulate: int, tmp_path: Path) -> None:
    """Evaluation runs after each step, and is not recorded; the page lies in the output folder."""
    options = {ACCUMULATION[library]: accumulate, **EVALUATION[library]}
    plain, _trainer = train(library, tmp_path, **options)
    make = getattr(callbacks_for(library), kind)
    callback = make([2, 3], log_norms=True) if kind == "RecordSteps" else make(keep=2)
    recorded, _trainer = train(library, tmp_path, callback, **options)
    assert recorded.losses == plain.losses and recorded.weights() == plain.weights()
    [trace] = callback.traces
    assert len(trace.pass_numbers) == 2 * accumulate and not trace.findings
    if kind == "RecordSteps":
        called = [step.on for step in trace.steps if step.kind == "call" and step.on.startswith("run.model ")]
        assert called == [f"run.model (call {call})" for call in range(2, 2 * accumulate + 1)]
        assert [path.name for path in (tmp_path / "hookviz").iterdir()] == ["steps_2-3.html"]


@pytest.mark.parametrize("library", TRAINERS)
def test_norms_reach_tensorboard_and_leave_the_other_curves(library: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    callback = callbacks_for(library).RecordSteps([2, 4], log_norms=True)
    if library == "lightning":
        from lightning.pytorch.loggers import TensorBoardLogger

        train(library, tmp_path, callback, logger=TensorBoardLogger(tmp_path))
    else:
        train(library, tmp_path, callback, report_to="tensorboard", max_grad_norm=0.1)
    [events] = tmp_path.rglob("events.out.tfevents.*")
    curves = EventAccumulator(str(events.parent)).Reload()
    tags = curves.Tags()["scalars"]
    [tag] = [tag for tag in tags if tag.endswith("gradient norm/classifier")]
    assert [scalar.step for scalar in curves.Scalars(tag)] == ([1, 3] if library == "lightning" else [2, 4])
    [losses] = [curves.Scalars(tag) for tag in tags if tag in ("loss", "train/loss")]
    assert len(losses) == STEPS
    if library == "transformers":
        norms = [curves.Scalars(tag)[0].value for tag in tags if "gradient norm/" in tag]
        assert math.hypot(*norms) == pytest.approx(curves.Scalars("train/grad_norm")[1].value, rel=1e-5)


def raise_in_step_three(model: Any) -> None:
    calls = iter(range(3))
    model.classifier.register_forward_pre_hook(lambda *_: None if next(calls) < 2 else 1 / 0)


def return_nan(model: Any) -> None:
    model.classifier.register_forward_hook(lambda module, args, output: output * math.nan)


@pytest.mark.parametrize("library", TRAINERS)
def test_a_flight_recorder_writes_a_page_for_an_exception_and_lets_go(library: str, tmp_path: Path) -> None:
    callback = callbacks_for(library).FlightRecorder(keep=1)
    with pytest.raises(ZeroDivisionError):
        train(library, tmp_path, callback, edit=raise_in_step_three)
    assert (tmp_path / "hookviz" / "trouble.html").exists()
    assert "ZeroDivisionError" in callback.traces[0].notes[0]
    with hv.record() as trace:
        torch.ones(1, requires_grad=True).sum().backward()
    assert len(trace.pass_numbers) == 1


@pytest.mark.parametrize("library", TRAINERS)
def test_a_flight_recorder_writes_a_page_for_nan_and_training_goes_on(library: str, tmp_path: Path) -> None:
    callback = callbacks_for(library).FlightRecorder()
    run, _trainer = train(library, tmp_path, callback, edit=return_nan)
    assert (tmp_path / "hookviz" / "trouble.html").exists() and len(run.losses) == STEPS
    assert callback.traces[0].pass_numbers == [1] and callback.traces[0].findings[0].kind == "nan"


@pytest.mark.parametrize("library", TRAINERS)
def test_steps_count_on_when_a_training_resumes(library: str, tmp_path: Path) -> None:
    callback = callbacks_for(library).RecordSteps([2, 5])
    if library == "lightning":
        _run, trainer = train(library, tmp_path, max_steps=3)
        trainer.save_checkpoint(tmp_path / "three.ckpt")
        train(library, tmp_path, callback, ckpt_path=tmp_path / "three.ckpt")
    else:
        train(library, tmp_path, save_strategy="steps", save_steps=3)
        train(library, tmp_path, callback, ckpt_path=tmp_path / "checkpoint-3")
    assert [path.name for path in (tmp_path / "hookviz").iterdir()] == ["step_5.html"]
