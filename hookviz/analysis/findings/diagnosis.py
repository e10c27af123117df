"""All findings of a trace: the worst of each kind."""

from collections.abc import Iterator
from dataclasses import dataclass

from hookviz.analysis.findings.nonfinite import nonfinite, remains
from hookviz.analysis.findings.pass_statistics import Finding, PassStatistics
from hookviz.analysis.findings.vanishing import vanishing_or_exploding
from hookviz.analysis.findings.zeros import zeros
from hookviz.support.messages import join, say
from hookviz.support.table import Table
from hookviz.trace import TensorRow, TraceData

SEVERITIES = ("error", "warning", "remark")
"""How bad a finding is, the worst first."""

_KINDS = ("nan", "inf", "zero", "exploding", "vanishing")


@dataclass(frozen=True)
class Trouble:
    """A finding about the gradients of a trace.

    Its severity follows from what the trace holds; where that leaves a doubt, it is the lower one:

    - ``error``: something is certainly broken. NaN or Inf stands in the gradient of a leaf when the pass is over, in
      ``.grad`` or in what ``torch.autograd.grad`` returned, and an optimizer that uses it destroys the parameter; or
      the tensor at which the pass began holds NaN. Not under a GradScaler, which then skips the step.
    - ``warning``: likely a problem. NaN or Inf is in what a model returns, or in a gradient on its way, and in no
      gradient of a leaf; a gradient vanishes or explodes over a chain of layers; an op that is flat where it was used,
      such as a dead ReLU, leaves at least half of the leaves with a gradient of exactly 0.
    - ``remark``: worth knowing, and perhaps meant. NaN or Inf that went no further, or -Inf alone in what a model
      returns, as where something is masked; gradients that overflow under a GradScaler; zeros that a mask, a weight of
      zeros or a hook makes; a hook that makes a gradient much larger or smaller.
    """

    step: int
    """Where it begins, counted from 0."""
    kind: str
    """``nan``, ``inf``, ``zero``, ``vanishing`` or ``exploding``."""
    sentence: str
    """What it is and whose work."""
    severity: str
    """``error``, ``warning`` or ``remark``."""


def troubles(trace: TraceData) -> Table[Trouble]:
    """The findings of a trace, the worst first: of each kind the worst, of equally bad ones that of the first pass."""
    found: dict[str, Finding] = {}
    left: Finding | None = None
    for of in _passes(trace):
        for one in _found(of):
            known = found.get(one.kind)
            if known is None or _rank(one.severity) < _rank(known.severity):
                found[one.kind] = one
        if left is None and found.keys().isdisjoint(("nan", "inf")):
            left = remains(of)
    if left is not None:
        found.setdefault(left.kind, left)

    def order(one: Finding) -> tuple[int, int, int]:
        return _rank(one.severity), trace.rows[one.step].pass_id, _KINDS.index(one.kind)

    rows = [Trouble(*one[:4]) for one in sorted(found.values(), key=order)]
    head = [say(f"table.{name}") for name in ("step", "severity", "trouble", "what")]
    return Table(rows, head, lambda row: _cells(trace, row), nothing_found(trace))


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity)


def _cells(trace: TraceData, row: Trouble) -> tuple[str, ...]:
    count = say("table.count", step=row.step + 1, steps=len(trace.rows))
    return count, say(f"trouble.severity.{row.severity}"), say(f"trouble.what.{row.kind}"), row.sentence


def _passes(trace: TraceData) -> Iterator[PassStatistics]:
    steps: dict[int, list[int]] = {}
    tensors: dict[int, list[TensorRow]] = {}
    for index, row in enumerate(trace.rows):
        steps.setdefault(row.pass_id, []).append(index)
    for tensor in trace.tensors:
        tensors.setdefault(tensor.pass_id, []).append(tensor)
    for pass_id, there in steps.items():
        yield PassStatistics(trace, there, tensors.get(pass_id, []))


def _found(of: PassStatistics) -> Iterator[Finding]:
    yield from nonfinite(of)
    dead = zeros(of)
    if dead is not None:
        yield dead
    yield from vanishing_or_exploding(of)


def nothing_found(trace: TraceData) -> str:
    """What to say where nothing was found: also what was not looked at, for there nothing can be found."""
    if not any(row.kind in ("seed", "arrive", "accumulate", "returned") for row in trace.rows):
        return say("trouble.none.empty")
    missing = []
    hidden = {index for index, value in enumerate(trace.values) if value[-1] is not None}
    if hidden and (count := len(hidden & _shown(trace))):
        missing.append(say("trouble.unlooked.values", count=f"{count:,}"))
    if trace.outside or {row.kind for row in trace.rows} & {"unobserved", "compiled", "fast_path"}:
        missing.append(say("trouble.unlooked.parts"))
    return join("join.sentences", [say("trouble.none"), *missing])


def _shown(trace: TraceData) -> set[int]:
    """The numbers of all gradients that steps show."""
    found: set[int] = set()
    for kept in (kept for row in trace.rows if row.node >= 0 for kept in (row.before, row.after)):
        found.update(kept if isinstance(kept, tuple) else (kept,))
    return found
