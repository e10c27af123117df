"""What one can ask of a trace beside what happened: why, what is wrong, what another one does, and what one knows."""

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from hookviz.analysis.findings import Trouble
    from hookviz.analysis.formulas.reasons import Reason
    from hookviz.analysis.questions.quiz import Quiz
    from hookviz.api.comparison import Comparison
    from hookviz.api.trace import Trace
    from hookviz.support.table import Table


class TraceAnalyses:
    """Answers questions about a trace; what each needs is loaded when it is asked."""

    @property
    def _trace(self) -> "Trace":
        return cast("Trace", self)

    @property
    def troubles(self) -> "Table[Trouble]":
        """What is wrong with the gradients, or may be, and where it begins: NaN, Inf, zeros, vanishing, exploding.

        The worst finding of each kind, the worst first. Each has a ``severity``: ``error`` (something is certainly
        broken), ``warning`` (likely a problem) or ``remark`` (worth knowing, and perhaps meant). A gradient vanishes or
        explodes where a chain of several layers changes its size 10,000 times; what one layer alone does is no finding.
        Where there is none, the table says so, and what was not looked at.

        >>> import torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with x.register_hook(lambda grad: grad * 0), hookviz.record() as trace:
        ...     (x * x).backward()
        >>> trace.troubles[0].severity, trace.troubles[0].kind, trace.troubles[0].step
        ('remark', 'zero', 3)
        """
        from hookviz.analysis.findings import troubles

        return troubles(self._trace)

    def diff(self, other: "Trace") -> "Comparison":
        """Which gradients differ between this trace and ``other``, by how much, and from which firing on.

        The two are traces of the same program, recorded twice: with and without a hook, say. Nodes are matched by
        their places in the graph; NaN is like NaN. Of gradients too large to be kept the statistics are compared.

        Returns:
            A table of the gradients that differ; ``first`` is the first firing that differs, ``sentence`` says it all.

        Raises:
            TypeError: ``other`` is no trace.
            ValueError: the traces are not of the same graph; the message says where they part.

        >>> import torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with hookviz.record() as plain:
        ...     (x * x).backward()
        >>> x.grad = None
        >>> with x.register_hook(lambda grad: grad * 10), hookviz.record() as hooked:
        ...     (x * x).backward()
        >>> print(plain.diff(hooked))
        Gradients that differ: 1. The difference begins with λ grad * 10 on x, step 4 of the other trace.
        on  gradient  this trace  the other  difference  step
        x   .grad     6           60         54          4 → 5
        """
        from hookviz.api.comparison import compare

        return compare(self._trace, other)

    def why(self, step: int) -> "Table[Reason]":
        """Why gradients are what they are at ``step`` (counted from 0): PyTorch's formulas, with the values in them.

        For a node that computes there is a reason for each gradient that it sends; for one that arrives, a reason for
        each contribution, and for their sum. A formula is believed only if it comes to what was recorded; what has
        more than 64 numbers, or a graph of more than 256 nodes, is told in symbols.

        Raises:
            IndexError: there is no such step.

        >>> import torch, hookviz
        >>> c, d = (torch.tensor(x, requires_grad=True) for x in (6.0, 4.0))
        >>> with hookviz.record() as trace:
        ...     (c * d).backward(torch.tensor(2.0))
        >>> [reason.text for reason in trace.why(1)]
        ['grad × other = 2 × 4 = 8', 'grad × self = 2 × 6 = 12']
        """
        from hookviz.analysis.formulas.reasons import why

        return why(self._trace, self._trace.at(step))

    def quiz(self) -> "Quiz":
        """Questions about what the hooks do, or, where no hook runs, about what the nodes send: at most 100.

        Returns:
            A table of questions; its ``check`` judges an answer as the player does, and says why it is wrong.

        >>> import torch, hookviz
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> with x.register_hook(lambda grad: grad * 10), hookviz.record() as trace:
        ...     (x * x).backward()
        >>> quiz = trace.quiz()
        >>> quiz[0].text
        'λ grad * 10 is about to run on x; the gradient is 6. What comes out?'
        >>> quiz.check(1, 6)
        Question 1, not yet: 6 is the gradient before λ grad * 10.
        >>> quiz.check(1, 60)
        Question 1: right. That is the value in the trace.
        """
        from hookviz.analysis.questions.quiz import Quiz

        return Quiz(self._trace)
