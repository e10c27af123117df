"""Measure how much slower a recorded step of Trainer and of Lightning is: ``python -m benchmarks.training_steps``.

It needs the packages of the extras ``lightning`` and ``transformers``. Steps with and without a recording alternate
in one process. The clock counts the processor's time of this process, in one thread, so that other programs on the
machine matter little.
"""

import logging
import statistics
import tempfile
import time
import warnings
from contextlib import ExitStack
from typing import Any

import torch

import hookviz as hv
from benchmarks.tables import format_spread

STEPS, WARM_UP = 36, 6
"""Training steps of a measurement, and how many of the first do not count."""
RECORDINGS: dict[str, dict[str, Any]] = {"recorded": {}, 'statistics="norm"': {"statistics": "norm"}}
"""What is compared with a plain step: a name, and the options of ``hv.record``."""
TINY = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
LARGE = {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048}


class StepClock:
    """Times the steps of a training: in turn a plain one, and one with each kind of recording."""

    def __init__(self) -> None:
        self.kinds = ["plain", *RECORDINGS]
        self.seconds: dict[str, list[float]] = {kind: [] for kind in self.kinds}
        self._count, self._began, self._recording = 0, 0.0, ExitStack()

    def begin(self, model: torch.nn.Module) -> None:
        """Start the clock, and the recording of a step if it is its turn."""
        kind = self.kinds[self._count % len(self.kinds)]
        self._began = time.process_time()
        if kind != "plain":
            self._recording.enter_context(hv.record(model, **RECORDINGS[kind]))

    def end(self) -> None:
        """End the recording, and stop the clock."""
        self._recording.close()
        seconds = time.process_time() - self._began
        if self._count >= WARM_UP:
            self.seconds[self.kinds[self._count % len(self.kinds)]].append(seconds)
        self._count += 1

    def describe(self) -> str:
        """Describe the plain step in milliseconds, and the others as ratios to the plain ones next to them."""
        plain = self.seconds["plain"]
        texts = [f"plain {1000 * statistics.median(plain):.1f} ms"]
        for kind in self.kinds[1:]:
            ratios = [slow / fast for slow, fast in zip(self.seconds[kind], plain, strict=False)]
            texts.append(f"{kind} × {format_spread(ratios)}")
        return ", ".join(texts)


def time_trainer(sizes: dict[str, int], batch: int, length: int) -> str:
    """Time the steps of ``transformers.Trainer`` with a BERT of these sizes."""
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainerCallback, TrainingArguments

    clock = StepClock()

    class TimesSteps(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, args: Any, state: Any, control: Any, **named: Any) -> None:
            clock.begin(named["model"])

        def on_step_end(self, args: Any, state: Any, control: Any, **named: Any) -> None:
            clock.end()

    model = BertForSequenceClassification(BertConfig(vocab_size=20, **sizes))
    rows = [{"input_ids": torch.randint(0, 20, (length,)), "labels": number % 2} for number in range(batch * STEPS)]
    with tempfile.TemporaryDirectory() as folder:
        quiet = {
            "report_to": "none",
            "save_strategy": "no",
            "logging_strategy": "no",
            "use_cpu": True,
            "disable_tqdm": True,
        }
        arguments = TrainingArguments(folder, max_steps=STEPS, per_device_train_batch_size=batch, **quiet)
        Trainer(model, arguments, train_dataset=rows, callbacks=[TimesSteps()]).train()
    return clock.describe()


def time_lightning(width: int, batch: int) -> str:
    """Time the batches of Lightning with four linear layers of this width."""
    import lightning

    clock = StepClock()

    class Regression(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(4)])

        def training_step(self, given: list[torch.Tensor], index: int) -> torch.Tensor:
            loss: torch.Tensor = self.net(given[0]).square().mean()
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.AdamW(self.parameters(), lr=1e-3)

    class TimesBatches(lightning.Callback):  # type: ignore[misc]
        def on_train_batch_start(self, trainer: Any, model: Any, *_: Any) -> None:
            clock.begin(model)

        def on_train_batch_end(self, *_: Any) -> None:
            clock.end()

    data = torch.utils.data.TensorDataset(torch.randn(batch * STEPS, width))
    quiet = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    trainer = lightning.Trainer(max_steps=STEPS, accelerator="cpu", callbacks=[TimesBatches()], **quiet)
    trainer.fit(Regression(), torch.utils.data.DataLoader(data, batch_size=batch))
    return clock.describe()


def main() -> None:
    """Print a line for each framework and size."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    print("Trainer, tiny:", time_trainer(TINY, 4, 6))
    print("Trainer, large:", time_trainer(LARGE, 8, 64))
    print("Lightning, tiny:", time_lightning(8, 4))
    print("Lightning, large:", time_lightning(1024, 256))


if __name__ == "__main__":
    main()
