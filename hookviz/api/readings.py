"""What is read from a trace: its steps and passes, its analyses, and its listings for programs and consoles."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hookviz.support.table import Table
from hookviz.trace import Step, Steps, TraceData
from hookviz.trace.value_rows import StatisticsMode

if TYPE_CHECKING:
    import pandas as pd

    from hookviz.analysis.findings import Findings
    from hookviz.analysis.formulas.reasons import Reason
    from hookviz.analysis.hook_counts import HookCount


class TracePasses:
    """Keeps the tables of a trace behind one private attribute, and shows its steps and passes."""

    def __init__(self, data: TraceData | None = None) -> None:
        self._tables = TraceData() if data is None else data

    @property
    def _data(self) -> TraceData:
        """The tables, with all rows expanded once the recording is over."""
        self._tables.expand()
        return self._tables

    @property
    def steps(self) -> Steps:
        """All steps, in order."""
        return self._data.steps

    @property
    def firings(self) -> Table[Step]:
        """The steps in which a user's hook ran without an exception, in order: a table in Jupyter, a list in Python.

        If a hook raised, there is a step of kind ``exception`` instead; if an unknown hook changed a gradient, one of
        kind ``unknown_hook``. If the trace lacks passes (``keep``, ``every``), the table begins with the number of the
        pass.
        """
        return self._data.firings

    @property
    def notes(self) -> list[str]:
        """What could not be observed, and why, in sentences."""
        return self._data.notes

    @property
    def pass_numbers(self) -> list[int]:
        """The number of each pass among all that ran during the recording, from 1."""
        return self._data.pass_numbers

    def pass_number(self, pass_id: int) -> int:
        """Return the number of a pass among all that ran during the recording, counted from 1.

        ``record(keep=...)`` drops passes and ``record(every=...)`` skips them; the others keep their numbers.
        """
        return self._data.pass_number(pass_id)

    @property
    def lacks_passes(self) -> bool:
        """Whether passes ran, before or between those of the trace, that the trace does not hold."""
        return self._data.lacks_passes

    @property
    def dropped(self) -> int:
        """The number of earlier passes, nested ones included, that ``record(keep=...)`` has dropped."""
        return self._data.dropped

    @property
    def rank(self) -> int | None:
        """The rank of this process among ``ranks`` processes of ``torch.distributed``; None without it."""
        return self._data.rank

    @property
    def ranks(self) -> int | None:
        """The number of these processes; None without ``torch.distributed``."""
        return self._data.ranks

    @property
    def statistics(self) -> StatisticsMode | None:
        """Which statistics were read of tensors with more than 64 numbers: all, or only the norm while it is finite.

        None for the rule: the norm of very large ones, and all statistics of the others.
        """
        return self._data.statistics


class TraceAnalyses(TracePasses):
    """Adds the analyses to a trace; the code of each one is imported when it is first called."""

    @property
    def findings(self) -> "Findings":
        """Everything that is wrong in the recording, the worst first: one cause each, with all that follows from it.

        Hooks that did not fire and why; parameters that no gradient reached, with the line that cuts the graph; the
        values of gradients (NaN, Inf, zeros, vanishing, exploding); and mistakes of the training loop. Each has a
        ``severity`` (``error``, ``warning`` or ``remark``) and a ``certainty`` (``proven``, ``likely`` or ``open``);
        ``sentence`` says what is so, ``cause`` why, and ``advice`` what to do. ``findings.hooks``, ``.parameters``,
        ``.values`` and ``.training`` are those about these. A gradient vanishes or explodes if a chain of several
        layers changes its size by a factor of 10,000. An empty list says what was looked at, and what was not.

        >>> import torch, hookviz
        >>> layer = torch.nn.Linear(1, 1)
        >>> handle = layer.register_forward_hook(print)
        >>> with hookviz.record(layer) as trace:
        ...     layer.forward(torch.ones(1)).backward()
        >>> [(finding.severity, finding.kind, finding.advice) for finding in trace.findings.hooks]
        [('warning', 'bypassed', 'Call the module itself.')]

        >>> import torch, hookviz
        >>> net = torch.nn.Linear(1, 1)
        >>> sgd = torch.optim.SGD(net.parameters(), lr=0.1)
        >>> with hookviz.record(net) as trace:
        ...     for _ in range(3):
        ...         net(torch.ones(1)).backward()
        ...         sgd.step()
        >>> [(finding.severity, finding.kind, finding.when) for finding in trace.findings]
        [('warning', 'not_zeroed', 'in 2 of 3 passes')]
        """
        from hookviz.analysis.findings import diagnose

        return diagnose(self._data).findings

    @property
    def hooks(self) -> Table["HookCount"]:
        """Every hook that fired or was registered, and how often it fired in each pass; unfired hooks come last.

        The hooks were registered during the recording, or before it on a module, parameter, tensor or optimizer that
        hookviz knows: from the models that ``record`` was given, the modules that were called, the graphs, and the
        variables of the code around ``record``. ``finding`` of a row says why a hook did not fire, or what is
        surprising about it: early, again in a recomputation, or with None. If only some passes are kept, these are
        counted; a hook that fired only in others is not listed. ``hookviz.hooks(..., trace=trace)`` adds the counts to
        the hooks that are registered now.

        >>> import torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> def watch(grad): ...
        >>> handle = x.register_hook(watch)
        >>> with hookviz.record() as trace:
        ...     for _ in range(2):
        ...         (x * x).backward()
        >>> [(row.name, row.on, row.fired, row.passes) for row in trace.hooks]
        [('watch', 'x', 2, (1, 1))]
        """
        from hookviz.analysis.hook_counts import list_hooks

        return list_hooks(self._data)

    def why(self, step: int) -> Table["Reason"]:
        """Explain the gradients of ``step`` (counted from 0) with PyTorch's formulas and the values in them.

        A step in which a node computes has a reason for each gradient that the node sends; a step in which a gradient
        arrives has a reason for each contribution, and one for their sum. A formula explains a gradient only if its
        result equals the recorded gradient. For tensors of more than 64 numbers, in graphs of more than 256 nodes, and
        where PyTorch is not installed, the formulas are shown without values.

        Raises:
            IndexError: the trace has no such step.

        >>> import torch, hookviz
        >>> c, d = (torch.tensor(x, requires_grad=True) for x in (6.0, 4.0))
        >>> with hookviz.record() as trace:
        ...     (c * d).backward(torch.tensor(2.0))
        >>> [reason.text for reason in trace.why(1)]
        ['grad × other = 2 × 4 = 8', 'grad × self = 2 × 6 = 12']
        """
        from hookviz.analysis.formulas.reasons import explain_step

        return explain_step(self._data, self._data.at(step))


class TraceListings(TracePasses):
    """Adds the listings to a trace; the code of each one is imported when it is first called."""

    def text(self, steps: Iterable[int] | None = None, width: int | None = None) -> str:
        """Return a timeline as plain text: one line per step, and a heading for each pass.

        A line has the number of the step, counted from 1; the pass, if there are several; what happened; the name of
        the tensor, node, hook or module, indented by the modules around it; the values before → after; and where the
        hook is defined. ``print(trace)`` shows the same text, but of a trace with more than 200 steps only the first
        and the last 100. A line says which steps are left out, and … marks text that had to be shortened.

        Args:
            steps: the steps to list, counted from 0, such as ``range(100, 200)``; all if None.
            width: the longest line, in characters, at least 72. If None, the width of the terminal, or 100 without one.

        Raises:
            IndexError: the trace has no such step.
            TypeError: ``steps`` or ``width`` does not consist of whole numbers.
            ValueError: ``width`` is too small.

        >>> import torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with x.register_hook(lambda grad: grad * 10), hookviz.record() as trace:
        ...     (x * x).backward()
        >>> print(trace.text(range(2, 5), width=80))
        Trace: 5 steps, 1 of them a hook, 1 backward pass.
        step  what         name              before → after    hook at
        … steps 1 to 2 are left out (2)
        Pass 1 of 1: backward of MulBackward0
           3  arrive       x                 6
           4  tensor hook  λ grad * 10 on x  6 → 60, replaced
           5  write .grad  x                 60
        print(trace.text()) lists all 5 steps, print(trace.text(steps)) those that you
        choose.
        """
        from hookviz.analysis.text_timeline import write_text

        return write_text(self._data, steps, width)

    def __str__(self) -> str:
        from hookviz.analysis.text_timeline import choose_printed_steps, write_text

        return write_text(self._data, choose_printed_steps(self._data))

    def to_records(self) -> list[dict[str, Any]]:
        """Return one flat dict per step, in order, for any tool that takes plain data.

        The fields of each dict:

        - ``step`` and ``pass``: counted from 0, as in ``trace.steps``; ``kind``: see ``Step.kind``.
        - ``on``: the name of the tensor, node, module call or optimizer; ``op``: the autograd node, such as
          ``MulBackward0``; ``module`` and ``call``: the path of the module, and which of its calls it is, from 1.
        - ``hook`` and ``effect``: the name of the hook, and what it did (``kept``, ``edited``, ``replaced``, ``ran``).
        - ``file`` and ``line``: where the hook is defined; for other steps, the line of your code that led to them.
        - ``norm_before`` and ``norm_after``: the 2-norms of what the step began and ended with.
        - ``tensors``, ``shape``, ``dtype``, ``min``, ``max``, ``mean``, ``nan``, ``inf`` and ``zero`` describe what the
          step ended with or, if that is nothing, what it began with. ``tensors`` is the number of these tensors; the
          statistics of several are those of all their numbers, their ``shape`` is None, and so is their ``dtype`` if
          they differ in it. ``nan``, ``inf`` and ``zero`` count numbers.

        A field is None where it does not apply to a step, and where a number was not read (see
        ``record(statistics="norm")``).

        >>> import torch, hookviz
        >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
        >>> with x.register_hook(lambda grad: grad * 10), hookviz.record() as trace:
        ...     x.sum().backward()
        >>> [(row["step"], row["on"], row["norm_after"]) for row in trace.to_records() if row["hook"]]
        [(3, 'x', 14.14...)]
        """
        from hookviz.analysis.step_records import make_records

        return make_records(self._data)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame with one row per step; ``to_records`` describes the columns.

        Counts that may be missing are of type ``Int64``; a norm or statistic that is missing is NaN, so look at the
        counts ``nan`` and ``inf`` to find gradients that are NaN or infinite.

        Raises:
            ImportError: pandas is not installed.

        >>> import torch, hookviz
        >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
        >>> with x.register_hook(lambda grad: grad * 10), hookviz.record() as trace:
        ...     x.sum().backward()
        >>> frame = trace.to_pandas()
        >>> frame[frame["kind"] == "tensor_hook"][["step", "on", "norm_before", "norm_after"]].round(2)
           step on  norm_before  norm_after
        3     3  x         1.41       14.14
        """
        from hookviz.analysis.step_records import make_data_frame

        return make_data_frame(self._data)
