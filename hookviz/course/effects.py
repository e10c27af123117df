"""What the faults of the sick network do, and their cures, measured over ten seeds.

A single training proves little: another seed gives other first weights, and another accuracy. ``make effects`` measures
each row of the table ``effects.json`` anew; ``python -m hookviz.course.effects --seeds 1`` compares one seed with it.
"""

import argparse
import json
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from statistics import mean, stdev

import torch
from torch import nn

from hookviz.course import cures, long_training
from hookviz.course.sick_net import SickNet, Tensor, measure_accuracy, train

SEEDS = range(10)
Rows = dict[str, Callable[[int], float]]
"""Row → the function that measures the accuracy on new images, in percent, for a seed."""
_TABLE = "effects.json"


# How a row is measured


def _accuracy(net: nn.Module) -> float:
    return round(100 * measure_accuracy(net), 1)


def _step_by_step(make: type[SickNet], training: Callable[..., object], seed: int) -> float:
    net = make(seed)
    training(net)
    return _accuracy(net)


def _with_faults(left: set[str], seed: int) -> float:
    return _accuracy(cures.train_with(left, seed))


def watch_sick_network(seed: int) -> dict[str, float]:
    """Train the sick network, and return how long gradients come, how they fall, and how many units are dead."""
    net = SickNet(seed)
    outputs: list[Tensor] = []
    norms: dict[str, list[float]] = {}
    net.neck.register_forward_hook(lambda module, args, output: outputs.append(output.detach()))
    for name, parameter in net.named_parameters():
        if name.endswith("weight"):
            norms[name] = []
            parameter.register_hook(partial(_keep_norm, norms[name]))  # type: ignore[no-untyped-call]
    losses = train(net)
    arrived = [sum(batch) for batch in zip(*(kept for kept in norms.values() if kept), strict=True)]
    dead = [int((output <= 0).all(0).sum()) for output in outputs]
    return {
        "last batch with a gradient": max(number for number, norm in enumerate(arrived, 1) if norm > 0),
        "gradient of body.4 / body.0": round(norms["body.4.conv.weight"][0] / norms["body.0.conv.weight"][0]),
        "dead units in batch 1": dead[0],
        "dead units in batch 40": dead[39],
        "last loss": round(losses[-1], 3),
    }


def _keep_norm(kept: list[float], grad: Tensor) -> None:
    kept.append(grad.norm().item())


def train_long(
    seed: int, weight_decay: float = 0.0, change: Callable[[cures.Unhooked], object] = lambda net: None
) -> dict[str, float]:
    """Change the cured network, train it as lesson 14 does for 30 epochs, and return its losses on new images."""
    net = cures.Unhooked(seed)
    change(net)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)  # what dropout sets to 0
        losses = long_training.train_long(net, weight_decay=weight_decay)["validation"]
    return {
        "best epoch": losses.index(min(losses)) + 1,
        "lowest validation loss": round(min(losses), 4),
        "last validation loss": round(losses[-1], 4),
    }


def add_penalty(net: cures.Unhooked, rate: float = 0.001) -> None:
    """Penalise the outputs of ``relu``: ``rate`` times the sum of their absolute values, in the mean of a batch.

    The loss of ``train_long`` has no term for it, so its gradient is added where the penalty would send it.
    """

    def penalise(module: nn.Module, args: object, output: Tensor) -> None:
        if output.requires_grad:
            gradient = rate * output.detach().sign() / len(output)
            output.register_hook(lambda grad: grad + gradient)  # type: ignore[no-untyped-call]

    net.relu.register_forward_hook(penalise)


def add_dropout(net: cures.Unhooked, probability: float = 0.25) -> None:
    """Put dropout behind ``relu``."""
    net.relu = nn.Sequential(nn.ReLU(), nn.Dropout(probability))  # type: ignore[assignment]


def _measure_rows(rows: Rows, seed: int) -> dict[str, float]:
    return {row: train_row(seed) for row, train_row in rows.items()}


# The rows

_LAST_FOUR = {cures.CUT, cures.PILE, cures.HOOK, cures.NOT_HELD}
_ONE_AFTER_ANOTHER: Rows = {
    "sick": partial(_step_by_step, SickNet, train),
    "ReLU blocks": partial(_step_by_step, cures.ReluBlocks, train),
    "living units": partial(_step_by_step, cures.LivingUnits, train),
    "repaired forward": partial(_step_by_step, cures.Repaired, train),
    "no hook": partial(_step_by_step, cures.Unhooked, train),
    "all held": partial(_step_by_step, cures.Unhooked, cures.train_all),
}
_ONE_LEFT: Rows = {
    "none": partial(_with_faults, set()),
    **{fault: partial(_with_faults, {fault}) for fault in cures.FAULTS},
    "the last four": partial(_with_faults, _LAST_FOUR),
}
TRAININGS: dict[str, Callable[[int], dict[str, float]]] = {
    "one cure after another": partial(_measure_rows, _ONE_AFTER_ANOTHER),
    "one fault left": partial(_measure_rows, _ONE_LEFT),
    "the sick network": watch_sick_network,
    "30 epochs": train_long,
    "30 epochs with weight decay": partial(train_long, weight_decay=0.01),
    "30 epochs with a penalty": partial(train_long, change=add_penalty),
    "30 epochs with dropout": partial(train_long, change=add_dropout),
}
"""Group → the function that trains networks with a seed and returns row → number; accuracies are in percent."""

Table = dict[str, dict[str, list[float]]]


def read_effects() -> Table:
    """Return the measured table: group → row → a number for each of ten seeds.

    >>> effects = read_effects()
    >>> list(effects["one fault left"])[:3], len(effects["one fault left"]["none"])
    (['none', 'sigmoids', 'dead units'], 10)
    """
    table: Table = json.loads((files("hookviz.course") / _TABLE).read_text(encoding="utf-8"))
    return table


def show_seeds(rows: dict[str, list[float]]) -> None:
    """Draw a row of dots for each list of accuracies: a dot for each seed."""
    import matplotlib.pyplot as plt

    plt.figure(figsize=(7, 0.4 * len(rows) + 0.8))
    for name, of_seeds in rows.items():
        plt.plot(of_seeds, [name] * len(of_seeds), "o", alpha=0.4)
    plt.ylim(len(rows) - 0.5, -0.5)
    plt.xlim(0, 100)
    plt.xlabel("accuracy on new images, in percent")
    plt.show()


def measure_effects(seed: int, groups: tuple[str, ...] = (*TRAININGS,)) -> dict[str, dict[str, float]]:
    """Measure the rows of groups with one seed: group → row → number."""
    return {group: TRAININGS[group](seed) for group in groups}


def find_differences(measured: dict[str, dict[str, float]], seed: int) -> list[str]:
    """Compare what was measured with one seed with the table, and return the rows that differ.

    Rounding differs between machines and grows in a training: a row may differ by three standard
    deviations of its seeds, or by a tenth.
    """
    table = read_effects()
    return [
        f"{group}, {row}: {value}, and {table[group][row][seed]} in the table"
        for group, rows in measured.items()
        for row, value in rows.items()
        if abs(value - table[group][row][seed]) > _allowance(table[group][row])
    ]


def _allowance(values: list[float]) -> float:
    return max(3 * stdev(values), 0.1 * mean(values))


def _write_or_compare() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, help="compare this many seeds with the table, and leave it as it is")
    count = parser.parse_args().seeds
    torch.set_num_threads(1)
    measured = [measure_effects(seed) for seed in SEEDS[:count]]
    if count:
        for seed, rows in enumerate(measured):
            print(*find_differences(rows, seed) or [f"seed {seed}: as in the table"], sep="\n")
        return
    table: Table = {
        group: {row: [rows[group][row] for rows in measured] for row in rows_of_group}
        for group, rows_of_group in measured[0].items()
    }
    for group, rows_of_table in table.items():
        for row, values in rows_of_table.items():
            print(f"{group + ': ' + row:50} {mean(values):8.2f} ± {stdev(values):.2f}")
    (Path(__file__).parent / _TABLE).write_text(_write_rows(table), encoding="utf-8")


def _write_rows(table: Table) -> str:
    """Write a table as JSON, with a line for each row."""
    groups = []
    for group, rows in table.items():
        lines = ",\n".join(f"    {json.dumps(row)}: {json.dumps(values)}" for row, values in rows.items())
        groups.append(f"  {json.dumps(group)}: {{\n{lines}\n  }}")
    return "{\n" + ",\n".join(groups) + "\n}\n"


if __name__ == "__main__":
    _write_or_compare()
