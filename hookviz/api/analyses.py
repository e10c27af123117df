"""The analyses of a trace: ``findings``, ``hooks`` and ``why``."""

from typing import TYPE_CHECKING

from hookviz.api.holder import TableHolder

if TYPE_CHECKING:
    from hookviz.analysis.findings import Findings
    from hookviz.analysis.formulas.reasons import Reason
    from hookviz.analysis.hook_counts import HookCount
    from hookviz.support.table import Table


class TraceAnalyses(TableHolder):
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
    def hooks(self) -> "Table[HookCount]":
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

    def why(self, step: int) -> "Table[Reason]":
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
