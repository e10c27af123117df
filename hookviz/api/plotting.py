"""The plots of a trace: gradients of layers and losses, as pictures and as curves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hookviz.api.readings import TracePasses
from hookviz.support.messages import _

if TYPE_CHECKING:
    from hookviz.picture.plots.plot import Plot


class TracePlots(TracePasses):
    """The methods that plot a trace."""

    def plot(
        self,
        kind: str = "layers",
        *,
        of: str = "gradients",
        measure: str = "norm",
        layers: str | Sequence[str] = "*",
        step: int | None = None,
        others: "Mapping[str, TracePlots] | None" = None,
    ) -> "Plot":
        """Plot gradients, outputs or weights of the layers, or the loss. It needs the extra ``plots``.

        Args:
            kind: ``layers``: a bar for each layer in one pass, with a line from its smallest to its largest number
                other than 0 in all passes; ``curves``: a curve for each layer over the passes; ``training``: a heat
                map of layers and passes; ``histograms``: how the numbers of each layer are distributed, as a histogram
                of one pass, or, with several passes and no ``step``, as a heat map over all passes; ``loss``: the
                number at which each pass starts, and the learning rates if one changes.
            of: ``gradients`` of leaves, as hooks left them, before they are added to ``.grad``; ``outputs`` of the
                modules that call no others (of several calls in a pass, the last; calls without a graph, as in an
                evaluation, only if there is no pass at all); ``weights`` when their gradients
                arrived. Outputs, weights and histograms need ``record(histograms=True)``.
            measure: the ``norm``, the root mean square (``rms``), the mean absolute value (``mean_abs``), the ``mean``,
                the standard deviation (``std``), the share of ``zeros``, or of weights the ``update``: how far the
                optimizer's step after the pass moved a weight, divided by the weight (root mean squares). Norm, root
                mean square and zeros of gradients need no histograms. The standard deviation divides by the number of
                numbers. ≈ marks what is known from about 2,000 numbers of a tensor: of an embedding, of which a step
                moves few rows, the update is a rough estimate. Sparse gradients are left out.
            layers: a pattern for the names of the layers, such as ``*.weight``, or several.
            step: a step of the pass that ``layers`` and ``histograms`` show, counted from 0; the last pass if None.
            others: name → another trace, whose last pass ``layers`` shows beside this one.

        Raises:
            ImportError: Matplotlib is not installed; the message says how to install it.
            IndexError: the trace has no such step.
            TypeError: ``others`` has no names.
            ValueError: there is no such plot, or nothing was recorded that it could show.

        >>> import torch, hookviz
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sigmoid(), torch.nn.Linear(2, 1))
        >>> with hookviz.record(net, histograms=True) as trace:
        ...     net(torch.ones(1, 2)).sum().backward()
        >>> [name for name, _norm in trace.plot("layers", layers="*.weight").table]
        ['net.0.weight', 'net.2.weight']
        >>> [row[0] for row in trace.plot("histograms", of="outputs").table]
        ['net.0', 'net.1', 'net.2']
        """
        from hookviz.picture.plots.plot import PlotOptions, make_plot

        at = None if step is None else self._data.at(step)
        if others is not None and not isinstance(others, Mapping):
            raise TypeError(_('others is name → trace: write others={"with batch norm": other_trace}.'))
        beside = {name: other._data for name, other in (others or {}).items()}
        patterns = (layers,) if isinstance(layers, str) else tuple(layers)
        return make_plot(self._data, PlotOptions(kind, of, measure, patterns, at, beside))

    def to_tensorboard(self, folder: str | Path) -> None:
        """Write the numbers of ``plot`` as curves for TensorBoard, which counts by the numbers of the passes.

        There are the loss and the learning rate, and of each layer the norm, root mean square and share of zeros of its
        gradient; with ``record(histograms=True)`` also mean, standard deviation and share of zeros of its output, norm
        and update of its weight, and the histograms. It needs the extra ``tensorboard``.

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
