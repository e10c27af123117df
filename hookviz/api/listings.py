"""The listings of a trace for programs and consoles: ``text``, ``to_records`` and ``to_pandas``."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import pandas as pd

    from hookviz.trace import TraceData


class TraceListings:
    """Adds the listings to a trace; the code of each one is imported when it is first called."""

    @property
    def _listed_trace(self) -> "TraceData":
        return cast("TraceData", self)

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

        return make_records(self._listed_trace)

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

        return make_data_frame(self._listed_trace)
