"""The numbers of a trace's plots as curves and histograms for TensorBoard."""

from pathlib import Path
from typing import Any

from hookviz.picture.plots.series import (
    LEAVES_MEASURES,
    Measure,
    list_distributions,
    list_losses,
    list_rates,
    list_series,
)
from hookviz.support.atomic_files import to_path
from hookviz.support.messages import _
from hookviz.support.optional_modules import load_optional
from hookviz.trace import TraceData
from hookviz.trace.histogram_rows import SUBJECTS, HistogramRow

_SINGULAR = {"gradients": "gradient", "outputs": "output", "weights": "weight"}
_MEASURES: dict[str, tuple[Measure, ...]] = {
    "gradients": LEAVES_MEASURES,
    "outputs": ("mean", "std", "zeros"),
    "weights": ("norm", "update"),
}


def write_tensorboard(trace: TraceData, folder: str | Path) -> None:
    """Write a file of events; what an event is counted by is the number of its pass.

    Raises:
        ImportError: TensorBoard is not installed; the message says how to install it.
    """
    missing = _('TensorBoard is not installed: install it with: pip install "hookviz[tensorboard]"')
    writer = load_optional("torch.utils.tensorboard", missing).SummaryWriter(str(to_path(folder)))
    for loss in list_losses(trace):
        writer.add_scalar("loss", loss.value, trace.pass_number(loss.pass_id))
    for name, rates in list_rates(trace).items():
        for pass_id, rate in rates.items():
            writer.add_scalar(f"learning rate/{name}", rate, trace.pass_number(pass_id))
    for of in SUBJECTS if trace.histograms else ("gradients",):
        for measure in _MEASURES[of]:
            _write_curves(writer, trace, of, measure)
    for of in SUBJECTS if trace.histograms else ():
        for name, rows in list_distributions(trace, of):
            for pass_id, row in rows.items():
                _write_histogram(writer, f"{_SINGULAR[of]}s/{name}", row, trace.pass_number(pass_id))
    writer.close()


def _write_curves(writer: Any, trace: TraceData, of: str, measure: Measure) -> None:
    try:
        found = list_series(trace, of, measure)
    except ValueError:  # nothing was recorded that has this measure
        return
    for series in found:
        for point in series.points:
            tag = f"{_SINGULAR[of]} {measure}/{series.name}"
            writer.add_scalar(tag, point.value, trace.pass_number(point.pass_id))


def _write_histogram(writer: Any, tag: str, row: HistogramRow, number: int) -> None:
    """Write a histogram whose bins have these upper limits."""
    ranges = sorted(row.ranges())
    if not ranges:
        return
    counts: dict[float, int] = {}
    for low, high, count in ranges:
        counts.setdefault(low, 0)
        counts[high] = counts.get(high, 0) + count
    writer.add_histogram_raw(
        tag,
        min=ranges[0][0],
        max=ranges[-1][1],
        num=row.read,
        sum=row.mean * row.read,
        sum_squares=row.rms**2 * row.read,
        bucket_limits=list(counts),
        bucket_counts=list(counts.values()),
        global_step=number,
    )
