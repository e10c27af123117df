"""The public class ``Finding``: one problem of a recording, and the table that lists several."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from hookviz.support.messages import N_, _, join_list, join_sentences, pluralize
from hookviz.support.source_code import CodePlace
from hookviz.support.table import ShownRow, Table
from hookviz.trace import Hook, TraceData
from hookviz.trace.sentences import format_pass_number, format_step_number

_LINE_ROLES = {
    "begins": N_("line {line}"),
    "cause": N_("line {line}"),
    "cuts": N_("line {line} (cuts the graph)"),
    "backward": N_("line {line} (the backward that returns None)"),
    "derivative": N_("line {line} (the backward of the Function)"),
    "off": N_("line {line} (switches the graph off)"),
    "may_cut": N_("line {line} (may cut the graph)"),
    "raises": N_("line {line} (raises)"),
    "edits": N_("line {line} (edits in place)"),
    "returns": N_("line {line} (returns)"),
    "hook": N_("line {line} (defines the hook)"),
    "inside": N_("line {line} (in the hook)"),
    "registered": N_("line {line} (registers the hook)"),
    "removed": N_("line {line} (removes the hook)"),
    "overwrites": N_("line {line} (overwrites the handle)"),
    "pass": N_("line {line} (starts the pass)"),
    "update": N_("line {line} (the step of the optimizer)"),
    "makes": N_("line {line} (makes the optimizer)"),
    "evaluates": N_("line {line} (switches to evaluation mode)"),
    "rate": N_("line {line} (sets the learning rate)"),
    "clips": N_("line {line} (clips the gradients)"),
    "clears": N_("line {line} (clears the gradients)"),
    "replaces": N_("line {line} (replaces the parameters)"),
    "freezes": N_("line {line} (may freeze them)"),
    "zeros": N_("line {line} (sets it to 0)"),
    "draws": N_("line {line} (draws the weights)"),
}

About = Literal["hook", "parameter", "value", "training", "program"]
"""What a finding is about."""
Certainty = Literal["proven", "likely", "open"]
"""Whether the recording proves the cause of a finding, makes it likely, or leaves it open."""

_COLUMNS = {
    "pass": N_("pass"),
    "step": N_("step"),
    "severity": N_("severity"),
    "problem": N_("problem"),
    "when": N_("when"),
    "line": N_("line"),
    "what": N_("finding"),
}
"""Column of a table of findings → its heading."""
KINDS: dict[About, dict[str, str]] = {
    "parameter": {
        "cut": N_("no gradient"),
        "unreached": N_("no gradient"),
        "stopped": N_("no gradient any more"),
        "frozen": N_("frozen"),
        "missing": N_("in no optimizer"),
    },
    "value": {
        "nan": "NaN",
        "inf": "Inf",
        "zero": N_("zero"),
        "vanishing": N_("vanishing"),
        "exploding": N_("exploding"),
        "saturated": N_("saturated"),
        "softmax_twice": N_("softmax twice"),
        "sigmoid_twice": N_("sigmoid twice"),
        "raw_scores": N_("loss of raw scores"),
        "broadcast": N_("each paired with each"),
    },
    "training": {
        "updated_twice": N_("updated twice"),
        "replaced": N_("outdated optimizer"),
        "cleared": N_("gradients cleared"),
        "shared": N_("shared parameter"),
        "not_zeroed": N_("zero_grad missing"),
        "discarded": N_("gradients discarded"),
        "repeated_loss": N_("loss counted again"),
        "lr_zero": N_("learning rate 0"),
        "zeroed": N_("gradients set to 0"),
        "skipped": N_("steps skipped"),
        "clips_nothing": N_("clipping without effect"),
        "clips_scaled": N_("scaled gradients clipped"),
        "scaled_step": N_("step with scaled gradients"),
        "unscaled_loss": N_("loss not scaled"),
        "never_stepped": N_("no step"),
        "step_first": N_("step before backward"),
        "moved": N_("moved without a gradient"),
        "unmoved": N_("not moved by its steps"),
        "not_frozen": N_("not frozen"),
        "rebound": N_("update without effect"),
        "eval_norm": N_("batch norm in eval mode"),
        "frozen_norm": N_("frozen batch norm in training mode"),
        "eval_dropout": N_("dropout in eval mode"),
        "always_drops": N_("dropout in evaluation"),
    },
    "hook": {
        "exception": N_("exception"),
        "edited_in_place": N_("edited in place"),
        "repeated": N_("hook registered again"),
        "overwritten": N_("handle overwritten"),
        "copied": N_("copied hook"),
        "legacy": N_("legacy hook"),
        "recomputed": N_("other hooks in the recomputation"),
        "no_inputs": N_("hook without inputs"),
        "lost_inputs": N_("inputs lost by a hook"),
        "lost_rows": N_("rows lost by a hook"),
        "unreturned": N_("hook without a returned value"),
        "reshaped": N_("output of another shape"),
        "overwritten_output": N_("kept output overwritten"),
        "kept_last": N_("only the last one kept"),
        "early_read": N_(".grad read too early"),
        "edited_later": N_("edited after its hook"),
        "late_binding": N_("late binding"),
    },
}
"""What a finding is about → its kinds and their names; without those of hooks that did not fire, or surprisingly."""
SURPRISES = ("early", "again", "kept", "ignored", "undefined")
"""The kinds of findings about hooks that fired in a way that one may not expect."""
_CERTAINTY_NAMES = {"likely": N_("likely"), "open": N_("cause open")}
_SEVERITY_NAMES = {"error": N_("error"), "warning": N_("warning"), "remark": N_("remark")}
SEVERITIES = tuple(_SEVERITY_NAMES)
"""The severities of findings, the worst first."""


@dataclass(frozen=True, repr=False)
class Finding(ShownRow):
    """One cause, with everything that follows from it: what is so, why, and what to do.

    The severity depends on the recorded data; in case of doubt, it is the lower one:

    - ``error``: the program cannot do what it says. When the pass ends, the gradient of a leaf contains NaN or Inf, in
      ``.grad`` or in the result of ``torch.autograd.grad``, and an optimizer that uses it destroys the parameter; or
      the tensor at which the pass began contains NaN. Under a GradScaler this is not an error: it skips the step. Or
      the tensors in an optimizer are not the parameters of the model that gets the gradients. Or an exception in a hook
      ended a pass, or an exception ended the recording.
    - ``warning``: certain harm to a part. The output of a model or an intermediate gradient contains NaN or Inf, and no
      gradient of a leaf does; a gradient vanishes or explodes over a chain of layers; an op that is constant at its
      input, such as a dead ReLU, gives at least half of the leaves a gradient of exactly 0, or a parameter of an
      optimizer in each pass; a parameter is not trained although it seems to be meant to; gradients of several
      optimizer steps add up; a hook edits a gradient in place, which changes another one in the same
      memory; hooks pile up; one still changes gradients because its handle was overwritten; a hook of yours did not
      fire, for a reason that the recording proves.
    - ``remark``: worth knowing, and perhaps intended. NaN or Inf that went no further; -Inf alone in the output of a
      model, as in a mask; gradients that overflow under a GradScaler; zeros because of a mask, a weight of zeros or a
      hook; a hook that makes a gradient much larger or smaller; a frozen layer, a shared parameter, a batch norm in
      evaluation mode; a hook of a library; what the recording leaves open.

    >>> Finding(3, "zero", "The gradient becomes 0.", "remark").about
    'value'
    """

    step: int | None
    """The step that shows it, counted from 0; None if no step does."""
    kind: str
    """What is wrong, such as ``nan``, ``vanishing``, ``not_zeroed``; of a hook that did not fire the kind of
    cause, such as ``bypassed``. The page on findings lists all."""
    sentence: str
    """What is so."""
    severity: str
    """``error``, ``warning`` or ``remark``."""
    passes: tuple[int, ...] = ()
    """The passes in which it holds, counted from 0; empty if it is about the recording as a whole."""
    when: str = ""
    """When it holds, as a part of a sentence, such as "only in pass 1"; empty if the recording has a single pass."""
    line: int | None = None
    """The line of your code where the cause is, counted from 1; None if it was not observed. Of a hook whose cause has
    no line, the line of the hook."""
    file: str | None = None
    """The file of that line, relative to the working directory, or ``In [4]`` for a notebook cell."""
    line_role: str = ""
    """What the line does; empty without a line. A wrong value ``begins`` there, or it is the ``cause`` of which the
    sentences speak. It ``cuts`` the graph or ``may_cut`` it, switches it ``off``,
    ``raises``, ``edits`` in place, ``returns`` a value, begins the ``backward`` that returns None, computes the
    ``derivative`` of a Function, defines the ``hook`` or is ``inside`` it, ``registered`` or ``removed`` it; it
    ``overwrites`` the handle of a hook, starts the ``pass``, is the ``update`` of an optimizer, ``makes`` that, sets
    its learning ``rate``, ``clips`` or ``clears`` gradients, ``replaces`` parameters or perhaps ``freezes`` them, sets
    one to ``zeros`` or ``draws`` its numbers, or ``evaluates``: it switches to evaluation mode."""
    cause: str = ""
    """Why it is so; empty if ``sentence`` says that."""
    advice: str = ""
    """What to do; empty if the other sentences say that."""
    certainty: Certainty = "proven"
    """``proven``, ``likely`` or ``open``."""
    hooks: tuple[Hook, ...] = ()
    """The hooks that it is about, or that follow from it."""
    parameters: tuple[str, ...] = ()
    """The parameters that it is about, or that follow from it."""

    @property
    def about(self) -> About:
        """What it is about: ``hook``, ``parameter``, ``value``, ``training`` or ``program``."""
        if self.kind == "exception":
            return "hook" if self.hooks else "program"
        if self.kind == "frozen" and self.hooks:
            return "hook"
        return next((about for about, kinds in KINDS.items() if self.kind in kinds), "hook")

    @property
    def text(self) -> str:
        """All sentences: what is so, why, and what to do."""
        return join_sentences([self.sentence, self.cause, self.advice])

    @property
    def is_bad(self) -> bool:
        """Whether it is an error or a warning: ``run --check`` then fails."""
        return self.severity != "remark"

    def _columns(self) -> dict[str, str]:
        texts = _write_cells(self) | {"step": "" if self.step is None else str(self.step + 1)}
        return {_(heading): texts[name] for name, heading in _COLUMNS.items() if name in texts}


def name_of_finding(finding: Finding) -> str:
    """Name the kind of a finding, such as "shared parameter"."""
    if is_about_silence(finding):
        return _("hook not seen to fire") if finding.certainty == "open" else _("hook did not fire")
    if finding.about == "hook" and finding.kind in SURPRISES:
        return _("surprising hook")
    return name_of_kind(finding.kind)


def is_about_silence(finding: Finding) -> bool:
    """Return whether a finding says why hooks did not fire."""
    return finding.about == "hook" and finding.kind not in (*SURPRISES, *KINDS["hook"])


def name_of_kind(kind: str) -> str:
    """Name a kind of finding that is not about a hook that did not fire."""
    return _(next(kinds[kind] for kinds in KINDS.values() if kind in kinds))


def name_of_severity(severity: str) -> str:
    """Name one of ``SEVERITIES``."""
    return _(_SEVERITY_NAMES[severity])


def rank_severity(severity: str) -> int:
    """Return the place of a severity in ``SEVERITIES``: 0 is the worst."""
    return SEVERITIES.index(severity)


def describe_passes(passes: Collection[int], trace: TraceData) -> str:
    """Describe in which passes of ``trace`` a finding holds; empty if there is only one pass.

    >>> trace = TraceData(roots=[[(0, 0)]] * 5)
    >>> describe_passes([0], trace), describe_passes(range(5), trace), describe_passes([1, 3], trace)
    ('only in pass 1', 'in 5 of 5 passes', 'in 2 of 5 passes')
    >>> from hookviz.trace import Note
    >>> trace.remarks.append(Note.of("raised", error="ValueError"))
    >>> describe_passes([4], trace)
    'in pass 5, the last that was recorded'
    """
    total = len(trace.roots)
    if total < 2 or not passes:
        return ""
    if [*passes] == [total - 1] and trace.ended_early:
        return _("in pass {number}, the last that was recorded").format(number=format_pass_number(trace, total - 1))
    if len(passes) == 1:
        return _("only in pass {number}").format(number=format_pass_number(trace, next(iter(passes))))
    return _("in {count} of {total} passes").format(count=f"{len(passes):,}", total=f"{total:,}")


def describe_pass(trace: TraceData, finding: Finding) -> str:
    """Name the pass of a finding by its number in the recording, if the trace lacks some passes; else empty."""
    if finding.step is None or not trace.lacks_passes:
        return ""
    return _("Pass {number}").format(number=format_pass_number(trace, trace.rows[finding.step].pass_id))


def put_line(finding: Finding, place: CodePlace | None, role: str = "cause") -> Finding:
    """Add the line of a finding, if it is known, and what that line does."""
    if place is None:
        return finding
    return replace(finding, file=place.file, line=place.line, line_role=role)


class Findings(Table[Finding]):
    """The findings of a trace, the worst first; an empty table says what was looked at, and what was not.

    ``hooks``, ``parameters``, ``values`` and ``training`` are the findings about these.
    """

    def __init__(self, trace: TraceData, findings: Iterable[Finding], nothing: str) -> None:
        rows = list(findings)
        self._trace, self._empty = trace, nothing
        columns = [*(["pass"] if trace.lacks_passes else []), "step", "severity", "problem"]
        columns += [name for name in ("when", "line") if any(getattr(row, name) not in ("", None) for row in rows)]
        self._columns = columns
        super().__init__(rows, [_(_COLUMNS[name]) for name in (*columns, "what")], self._list_cells, nothing)

    def _list_cells(self, row: Finding) -> tuple[str, ...]:
        trace = self._trace
        number = "" if row.step is None else format_pass_number(trace, trace.rows[row.step].pass_id)
        step = format_step_number(trace, row.step)
        texts = _write_cells(row) | {"pass": number, "step": step}
        return tuple(texts[name] for name in (*self._columns, "what"))

    def _filter(self, rows: Iterable[Finding]) -> "Findings":
        nothing = pluralize(
            len(self), _("The only finding is not about this."), _("None of the {count} findings is about this.")
        )
        return Findings(self._trace, rows, nothing if self else self._empty)

    @property
    def hooks(self) -> "Findings":
        """The findings about hooks: those that did not fire, fired surprisingly, raised, or changed something else."""
        return self._filter(row for row in self if row.about == "hook" or row.hooks)

    @property
    def parameters(self) -> "Findings":
        """The findings about parameters that get no gradient, or that nothing trains."""
        return self._filter(row for row in self if row.about == "parameter" or row.parameters)

    @property
    def values(self) -> "Findings":
        """The findings about the values of gradients: NaN, Inf, zeros, vanishing, exploding."""
        return self._filter(row for row in self if row.about == "value")

    @property
    def training(self) -> "Findings":
        """The findings about the training loop."""
        return self._filter(row for row in self if row.about == "training")


def _write_cells(finding: Finding) -> dict[str, str]:
    """Write the cells of a finding in each table: column → text."""
    texts = {"severity": describe_severity(finding), "problem": name_of_finding(finding), "when": finding.when}
    return texts | {"line": describe_line(finding), "what": finding.text}


def describe_severity(finding: Finding) -> str:
    """Say how bad a finding is and, unless it is proven, how certain."""
    severity = name_of_severity(finding.severity)
    if finding.certainty == "proven":
        return severity
    return f"{severity} ({_(_CERTAINTY_NAMES[finding.certainty])})"


def describe_line(finding: Finding) -> str:
    """Describe the line of a finding, such as "train.py, line 12 (the hook)"; empty if it is not known."""
    if finding.line is None:
        return ""
    line = _(_LINE_ROLES[finding.line_role]).format(line=finding.line)
    return join_list([finding.file, line]) if finding.file else line
