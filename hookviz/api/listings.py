"""The listings of a trace for programs and consoles: ``text``, ``to_records`` and ``to_pandas``."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hookviz.api.holder import TableHolder

if TYPE_CHECKING:
    import pandas as pd


class TraceListings(TableHolder):
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
        Trace: 5 steps, 1 of them hooks, 1 backward pass(es).
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
