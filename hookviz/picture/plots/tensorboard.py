"""The numbers of a trace's plots as curves for TensorBoard."""

from pathlib import Path

from hookviz.picture.plots.series import MEASURES, list_losses, list_series
from hookviz.support.atomic_files import to_path
from hookviz.support.messages import _
from hookviz.support.optional_modules import load_optional
from hookviz.trace import TraceData


def write_tensorboard(trace: TraceData, folder: str | Path) -> None:
    """Write a file of events; what an event is counted by is the number of its pass.

    Raises:
        ImportError: TensorBoard is not installed; the message says how to install it.
    """
    missing = _('TensorBoard is not installed: install it with: pip install "hookviz[tensorboard]"')
    writer = load_optional("tensorboard.summary", missing).Writer(str(to_path(folder)))
    for loss in list_losses(trace):
        number = trace.pass_number(loss.pass_id)
        writer.add_scalar("loss", loss.value, number)
        if loss.rate is not None:
            writer.add_scalar("learning rate", loss.rate, number)
    for measure in MEASURES:
        for series in list_series(trace, measure):
            for point in series.points:
                writer.add_scalar(f"gradient {measure}/{series.name}", point.value, trace.pass_number(point.pass_id))
    writer.close()
