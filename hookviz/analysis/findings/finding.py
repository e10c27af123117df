"""The public class ``Finding``: one problem of a recording, and the table that lists several."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from hookviz.support.messages import N_, _, join_list
from hookviz.support.table import Table
from hookviz.trace import TraceData
from hookviz.trace.sentences import format_pass_number, format_step_number

_LINE_ROLES = {
    "step": N_("line {line}"),
    "cuts": N_("line {line} (cuts the graph)"),
    "backward": N_("line {line} (the backward that returns None)"),
    "hook": N_("line {line} (the hook)"),
}


SEVERITIES = ("error", "warning", "remark")
"""The severities of findings, the worst first."""
_COLUMNS = {
    "pass": N_("pass"),
    "step": N_("step"),
    "severity": N_("severity"),
    "trouble": N_("problem"),
    "when": N_("when"),
    "line": N_("line"),
    "what": N_("finding"),
}
"""Column of a table of findings → its heading."""
_KIND_NAMES = {
    "unfired": N_("hook did not fire"),
    "odd_hook": N_("surprising hook"),
    "cut": N_("no gradient"),
    "nan": "NaN",
    "inf": "Inf",
    "zero": N_("zero"),
    "vanishing": N_("vanishing"),
    "exploding": N_("exploding"),
    "softmax_twice": N_("softmax twice"),
    "replaced": N_("outdated optimizer"),
    "missing": N_("in no optimizer"),
    "unreached": N_("no gradient"),
    "frozen": N_("frozen"),
    "shared": N_("shared parameter"),
    "not_zeroed": N_("zero_grad missing"),
    "lr_zero": N_("learning rate 0"),
    "zeroed": N_("gradients set to 0"),
    "skipped": N_("steps skipped"),
    "eval_norm": N_("batch norm in eval mode"),
}
"""Kind of a finding → its name."""
_SEVERITY_NAMES = {
    "error": N_("error"),
    "warning": N_("warning"),
    "remark": N_("remark"),
}


def name_of_finding(kind: str) -> str:
    """Name a kind of finding, such as "shared parameter"."""
    return _(_KIND_NAMES[kind])


def name_of_severity(severity: str) -> str:
    """Name one of ``SEVERITIES``."""
    return _(_SEVERITY_NAMES[severity])


@dataclass(frozen=True)
class Finding:
    """A problem of a recording: what is wrong, how bad it is, and the step that shows it.

    The severity depends on the recorded data; in case of doubt, it is the lower one:

    - ``error``: something is certainly broken. When the pass ends, the gradient of a leaf contains NaN or Inf, in
      ``.grad`` or in the result of ``torch.autograd.grad``, and an optimizer that uses it destroys the parameter; or
      the tensor at which the pass began contains NaN. Under a GradScaler this is not an error: it skips the step. Or
      the tensors in an optimizer are not the parameters of the model that gets the gradients.
    - ``warning``: likely a problem. The output of a model or an intermediate gradient contains NaN or Inf, and no
      gradient of a leaf does; a gradient vanishes or explodes over a chain of layers; an op that is constant at its
      input, such as a dead ReLU, gives at least half of the leaves a gradient of exactly 0; a parameter is not trained
      although it seems to be meant to; gradients of several optimizer steps add up; a hook edits a gradient in place,
      which sets another one in the same memory to 0; a hook did not fire, for a reason that the recording proves.
    - ``remark``: worth knowing, and perhaps intended. NaN or Inf that went no further; -Inf alone in the output of a
      model, as in a mask; gradients that overflow under a GradScaler; zeros because of a mask, a weight of zeros or a
      hook; a hook that makes a gradient much larger or smaller; a frozen layer, a shared parameter, a batch norm in
      evaluation mode.

    >>> Finding(3, "zero", "The gradient becomes 0.", "remark").severity
    'remark'
    """

    step: int | None
    """The step that shows it, counted from 0; None if no step does."""
    kind: str
    """What is wrong, such as ``nan``, ``zero``, ``vanishing``, ``not_zeroed`` or ``lr_zero``."""
    sentence: str
    """What is wrong, and what causes it."""
    severity: str
    """``error``, ``warning`` or ``remark``."""
    passes: tuple[int, ...] = ()
    """The passes in which it holds, counted from 0; empty if it is about the recording as a whole."""
    when: str = ""
    """When it holds, as a part of a sentence, such as "only in pass 1"; empty if the recording has a single pass."""
    line: int | None = None
    """The line of your code to look at, counted from 1; None if the trace does not have it."""
    file: str | None = None
    """The file of that line, relative to the working directory, or ``In [4]`` for a notebook cell."""
    line_role: str = "step"
    """What the line does: it runs at the ``step``, ``cuts`` the graph, begins the ``backward`` that returns None, or
    defines the ``hook``."""


def rank_severity(severity: str) -> int:
    """Return the place of a severity in ``SEVERITIES``: 0 is the worst."""
    return SEVERITIES.index(severity)


def describe_passes(passes: Collection[int], trace: TraceData) -> str:
    """Describe in which passes of ``trace`` a finding holds; empty if there is only one pass.

    >>> trace = TraceData(roots=[[(0, 0)]] * 5)
    >>> describe_passes([0], trace), describe_passes(range(5), trace), describe_passes([1, 3], trace)
    ('only in pass 1', 'in 5 of 5 passes', 'in 2 of 5 passes')
    """
    total = len(trace.roots)
    if total < 2 or not passes:
        return ""
    if len(passes) == 1:
        return _("only in pass {number}").format(number=format_pass_number(trace, next(iter(passes))))
    return _("in {count} of {total} passes").format(count=f"{len(passes):,}", total=f"{total:,}")


def describe_pass(trace: TraceData, finding: Finding) -> str:
    """Name the pass of a finding by its number in the recording, if the trace lacks some passes; else empty."""
    if finding.step is None or not trace.lacks_passes:
        return ""
    return _("Pass {number}").format(number=format_pass_number(trace, trace.rows[finding.step].pass_id))


def make_table(
    trace: TraceData, findings: Iterable[Finding], nothing: str, more_columns: Iterable[str] = ()
) -> Table[Finding]:
    """Make a table of findings; ``nothing`` is its text without findings.

    ``more_columns`` are attributes of the findings, ``when`` or ``line``; one that no finding has is left out.
    """
    rows = list(findings)
    columns = [*(["pass"] if trace.lacks_passes else []), "step", "severity", "trouble"]
    columns += [name for name in more_columns if any(getattr(row, name) not in ("", None) for row in rows)]
    head = [_(_COLUMNS[name]) for name in (*columns, "what")]

    def cells(row: Finding) -> tuple[str, ...]:
        number = "" if row.step is None else format_pass_number(trace, trace.rows[row.step].pass_id)
        step = format_step_number(trace, row.step)
        texts = {"pass": number, "step": step, "severity": name_of_severity(row.severity), "when": row.when}
        texts |= {"trouble": name_of_finding(row.kind), "line": describe_line(row)}
        return (*(texts[name] for name in columns), row.sentence)

    return Table(rows, head, cells, nothing)


def describe_line(finding: Finding) -> str:
    """Describe the line of a finding, such as "train.py, line 12 (the hook)"; empty if it is not known."""
    if finding.line is None:
        return ""
    line = _(_LINE_ROLES[finding.line_role]).format(line=finding.line)
    return join_list([finding.file, line]) if finding.file else line
