"""Find the problems of a trace: the worst finding of each kind."""

from collections.abc import Iterator
from dataclasses import dataclass

from hookviz.analysis.findings.nonfinite import find_harmless_nonfinite, find_nonfinite
from hookviz.analysis.findings.pass_statistics import Finding, PassStatistics
from hookviz.analysis.findings.vanishing_exploding import find_vanishing_or_exploding
from hookviz.analysis.findings.zeros import find_zeros
from hookviz.support.messages import join, say
from hookviz.support.table import Table
from hookviz.trace import TensorRow, TraceData
from hookviz.trace.sentences import format_pass_number

SEVERITIES = ("error", "warning", "remark")
"""The severities of findings, the worst first."""

_KINDS = ("nan", "inf", "zero", "exploding", "vanishing")


@dataclass(frozen=True)
class Trouble:
    """A finding about the gradients of a trace.

    The severity depends on the recorded data; in case of doubt, it is the lower one:

    - ``error``: something is certainly broken. When the pass ends, the gradient of a leaf contains NaN or Inf, in
      ``.grad`` or in the result of ``torch.autograd.grad``, and an optimizer that uses it destroys the parameter; or
      the tensor at which the pass began contains NaN. Under a GradScaler this is not an error: it skips the step.
    - ``warning``: likely a problem. The output of a model or an intermediate gradient contains NaN or Inf, and no
      gradient of a leaf does; a gradient vanishes or explodes over a chain of layers; an op that is constant at its
      input, such as a dead ReLU, gives at least half of the leaves a gradient of exactly 0.
    - ``remark``: worth knowing, and perhaps intended. NaN or Inf that went no further; -Inf alone in the output of a
      model, as in a mask; gradients that overflow under a GradScaler; zeros because of a mask, a weight of zeros or a
      hook; a hook that makes a gradient much larger or smaller.
    """

    step: int
    """The step where it begins, counted from 0."""
    kind: str
    """``nan``, ``inf``, ``zero``, ``vanishing`` or ``exploding``."""
    sentence: str
    """What is wrong, and what causes it."""
    severity: str
    """``error``, ``warning`` or ``remark``."""


def find_troubles(trace: TraceData) -> Table[Trouble]:
    """List the worst finding of each kind, the worst first; of equally bad ones of a kind, the first pass counts."""
    worst: dict[str, Finding] = {}
    harmless: Finding | None = None
    for statistics in _split_passes(trace):
        for finding in _find_in_pass(statistics):
            known = worst.get(finding.kind)
            if known is None or _rank_severity(finding.severity) < _rank_severity(known.severity):
                worst[finding.kind] = finding
        if harmless is None and worst.keys().isdisjoint(("nan", "inf")):
            harmless = find_harmless_nonfinite(statistics)
    if harmless is not None:
        worst.setdefault(harmless.kind, harmless)

    def order(finding: Finding) -> tuple[int, int, int]:
        return _rank_severity(finding.severity), trace.rows[finding.step].pass_id, _KINDS.index(finding.kind)

    rows = [Trouble(*finding[:4]) for finding in sorted(worst.values(), key=order)]
    columns = ("step", "severity", "trouble", "what")
    head = [say(f"table.{name}") for name in (("pass", *columns) if trace.lacks_passes else columns)]
    return Table(rows, head, lambda row: _format_trouble(trace, row), describe_no_findings(trace))


def _rank_severity(severity: str) -> int:
    return SEVERITIES.index(severity)


def _format_trouble(trace: TraceData, row: Trouble) -> tuple[str, ...]:
    """The cells of a row in the table of findings."""
    number = (format_pass_number(trace, trace.rows[row.step].pass_id),) if trace.lacks_passes else ()
    count = say("table.count", step=row.step + 1, steps=len(trace.rows))
    words = say(f"trouble.severity.{row.severity}"), say(f"trouble.what.{row.kind}"), row.sentence
    return (*number, count, *words)


def _split_passes(trace: TraceData) -> Iterator[PassStatistics]:
    """The statistics of each pass of a trace."""
    steps: dict[int, list[int]] = {}
    tensors: dict[int, list[TensorRow]] = {}
    for index, row in enumerate(trace.rows):
        steps.setdefault(row.pass_id, []).append(index)
    for tensor in trace.tensors:
        tensors.setdefault(tensor.pass_id, []).append(tensor)
    for pass_id, indices in steps.items():
        yield PassStatistics(trace, indices, tensors.get(pass_id, []))


def _find_in_pass(statistics: PassStatistics) -> Iterator[Finding]:
    """Find everything that is wrong in one pass."""
    yield from find_nonfinite(statistics)
    zeros = find_zeros(statistics)
    if zeros is not None:
        yield zeros
    yield from find_vanishing_or_exploding(statistics)


def describe_no_findings(trace: TraceData) -> str:
    """The sentence for a trace without findings; it also lists what was not examined."""
    if not any(row.kind in ("seed", "arrive", "accumulate", "returned") for row in trace.rows):
        return say("trouble.none.empty")
    unexamined = []
    hidden = {index for index, value in enumerate(trace.values) if value[-1] is not None}
    if hidden and (count := len(hidden & _list_gradient_values(trace))):
        unexamined.append(say("trouble.unlooked.values", count=f"{count:,}"))
    if trace.outside or {row.kind for row in trace.rows} & {"unobserved", "compiled", "fast_path"}:
        unexamined.append(say("trouble.unlooked.parts"))
    return join("join.sentences", [say("trouble.none"), *unexamined])


def _list_gradient_values(trace: TraceData) -> set[int]:
    """The indices of the values in all steps of nodes."""
    indices: set[int] = set()
    for values in (values for row in trace.rows if row.node is not None for values in (row.before, row.after)):
        indices.update(values if isinstance(values, tuple) else (values,))
    return indices
