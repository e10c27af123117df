"""The plots of a trace: gradients of layers and losses, as pictures and as curves."""

from pathlib import Path
from typing import TYPE_CHECKING

from hookviz.api.readings import TracePasses

if TYPE_CHECKING:
    from hookviz.picture.plots.plot import Plot


class TracePlots(TracePasses):
    """The methods that plot a trace."""

    def plot(self, kind: str = "layers", *, measure: str = "norm", step: int | None = None) -> "Plot":
        """Plot the gradients of the layers, or the loss. It needs the extra ``plots``.

        Args:
            kind: ``layers``: a bar for each layer in one pass, with a line from its smallest to its largest number in
                all passes; ``training``: a heat map of layers and passes; ``loss``: the number at which each pass
                starts, and the learning rate if it changes.
            measure: of a gradient as hooks left it, before it is added to ``.grad``: its ``norm``, the root mean square
                of its numbers (``rms``), or the share of them that are 0 (``zeros``).
            step: a step of the pass that ``layers`` shows, counted from 0; the last pass if None.

        Raises:
            ImportError: Matplotlib is not installed; the message says how to install it.
            IndexError: the trace has no such step.
            ValueError: there is no such kind or measure, or nothing was recorded that it could show.

        >>> import torch, hookviz
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sigmoid(), torch.nn.Linear(2, 1))
        >>> with hookviz.record(net) as trace:
        ...     net(torch.ones(1, 2)).sum().backward()
        >>> [name for name, _norm in trace.plot("layers").table]
        ['net.0.weight', 'net.0.bias', 'net.2.weight', 'net.2.bias']
        """
        from hookviz.picture.plots.plot import make_plot

        return make_plot(self._data, kind, measure, None if step is None else self._data.at(step))

    def to_tensorboard(self, folder: str | Path) -> None:
        """Write the numbers of ``plot`` as curves for TensorBoard, which counts by the numbers of the passes.

        There are the loss and the learning rate, and of each layer the three measures of its gradient. It needs the
        extra ``tensorboard``.

        Args:
            folder: the folder of the run, such as ``runs/plain``; it is made if it is missing.

        Raises:
            ImportError: TensorBoard is not installed; the message says how to install it.
            OSError: the folder cannot be written.
            TypeError: ``folder`` is not a path.

        >>> import tempfile, torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with hookviz.record() as trace:
        ...     (x * x).backward()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.to_tensorboard(folder)
        ...     len(list(Path(folder).glob("events*")))
        1
        """
        from hookviz.picture.plots.tensorboard import write_tensorboard

        write_tensorboard(self._data, folder)
