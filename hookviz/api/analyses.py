"""The analyses of a trace: ``findings``, ``troubles``, ``hooks``, ``unfired``, ``missing_gradients`` and ``why``."""

from typing import TYPE_CHECKING

from hookviz.api.holder import TableHolder

if TYPE_CHECKING:
    from hookviz.analysis.findings import Finding
    from hookviz.analysis.formulas.reasons import Reason
    from hookviz.analysis.hook_counts import HookCount
    from hookviz.analysis.missing_gradients import MissingGradient
    from hookviz.analysis.unfired import UnfiredHook
    from hookviz.support.table import Table


class TraceAnalyses(TableHolder):
    """Adds the analyses to a trace; the code of each one is imported when it is first called."""

    @property
    def findings(self) -> "Table[Finding]":
        """Everything that is wrong in the recording, the worst first, each with the step that shows it.

        The table has the ``troubles`` of the gradients, and the mistakes of a training loop that the optimizer steps in
        the recording show: parameters in no optimizer or without a gradient, ``zero_grad`` forgotten, a learning rate
        of 0, an optimizer made before the model was replaced, steps that a GradScaler skipped, and others. Each finding
        has a ``severity``: ``error``, ``warning`` or ``remark``; if several passes were recorded, ``when`` says in
        which of them it holds. An empty table says what was checked, and what was not.

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
        from hookviz.analysis.findings import find_findings

        return find_findings(self._data)

    @property
    def troubles(self) -> "Table[Finding]":
        """Problems of the gradients, and the step where each begins: NaN, Inf, zeros, vanishing, exploding.

        The table has the worst finding of each kind, the worst first. Each has a ``severity``: ``error`` (something is
        certainly broken), ``warning`` (likely a problem) or ``remark`` (worth knowing, and perhaps intended). A
        gradient vanishes or explodes if a chain of several layers changes its size by a factor of 10,000; a change by
        a single layer is not a finding. An empty table says that nothing was found, and what was not checked.

        >>> import torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with x.register_hook(lambda grad: grad * 0), hookviz.record() as trace:
        ...     (x * x).backward()
        >>> trace.troubles[0].severity, trace.troubles[0].kind, trace.troubles[0].step
        ('remark', 'zero', 3)
        """
        from hookviz.analysis.findings import find_troubles

        return find_troubles(self._data)

    @property
    def hooks(self) -> "Table[HookCount]":
        """Every hook that fired or was registered, and how often it fired in each pass; unfired hooks come last.

        ``unfired`` says which hooks hookviz knows, and has the causes. If only some passes are kept, these are
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

    @property
    def unfired(self) -> "Table[UnfiredHook]":
        """The registered hooks that did not fire, with the cause and what to do; then surprising firings.

        The hooks were registered during the recording, or before it on a module, parameter, tensor or optimizer that
        hookviz knows: from the models that ``record`` was given, the modules that were called, the graphs, and the
        variables of the code around ``record``. The cause is one that the recording proves (``is_proven``); if it
        proves none, the sentence lists the explanations that remain. The table also lists hooks that fired early,
        without a gradient, or again in a recomputation. An empty table says how many hooks there were, and where
        hookviz did not look.

        >>> import torch, hookviz
        >>> layer = torch.nn.Linear(1, 1)
        >>> handle = layer.register_forward_hook(print)
        >>> with hookviz.record(layer) as trace:
        ...     layer.forward(torch.ones(1)).backward()
        >>> [(row.name, row.on, row.cause) for row in trace.unfired]
        [('print', 'layer', 'bypassed')]
        """
        from hookviz.analysis.unfired import list_unfired_hooks

        return list_unfired_hooks(self._data)

    @property
    def missing_gradients(self) -> "Table[MissingGradient]":
        """The parameters that require grad and that no gradient reached, with the cut in the graph.

        They are parameters of the models that ``record`` was given, and of the modules that were called. hookviz
        looks for the place from module call to module call, and names the line of code if the recorded code has only
        one there that can cut the graph. A parameter that some pass of the recording reached is not listed. A row
        may also name a node that got a gradient and returned None, and the line of its backward. After
        ``record(cuts=True)``, which follows the ops, a row names the op that cuts, with its line.

        >>> import torch, hookviz
        >>> first, second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        >>> with hookviz.record() as trace:
        ...     second(first(torch.ones(1)).detach()).backward()
        >>> row = trace.missing_gradients[0]
        >>> row.parameters, row.place, row.step
        (('first.weight', 'first.bias'), 'between', 1)
        """
        from hookviz.analysis.missing_gradients import list_missing_gradients

        return list_missing_gradients(self._data)

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
