"""The hooks that did not fire, or fired in a way that one may not expect, each with its cause."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hookviz.analysis.findings.finding import Certainty, Finding, put_line
from hookviz.analysis.findings.hooks.cause import Cause
from hookviz.analysis.findings.hooks.causes import find_cause
from hookviz.analysis.findings.hooks.explanations import EXPLANATIONS, Explanation
from hookviz.analysis.findings.hooks.firings import function_of, list_hooks_at
from hookviz.analysis.findings.hooks.program_text import FORWARD, PASSED, REPLACED, VARIABLE, find_hook_line
from hookviz.analysis.findings.hooks.surprises import find_surprises
from hookviz.analysis.findings.hooks.timeline import TWIN, Timeline
from hookviz.analysis.findings.parameters.missing_gradients import advise_on_cut
from hookviz.analysis.findings.parameters.places import CUTS, FOLLOW_OPS, MISSED, follows_ops
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.source_code import CodePlace
from hookviz.trace import HOOK_KINDS, Hook, HookRow, TraceData, UnfiredRow
from hookviz.trace.traversal import write_access

_UNUSED_OR_CUT = N_("{root} does not use {on}, or the graph is cut on the way.")
_NOT_USED = N_("No op that cuts was seen on the way: look whether {on} is used for {root}.")
_ROLES = {FORWARD: "cause", PASSED: "cause", MISSED: "cause", REPLACED: "replaces"}
"""Kind of place → what its line does, if it does not cut the graph."""

_OF_ALL = ("frozen", "no_forward", "not_called")
"""Kinds of causes that some modules of most nets have."""
_SENTENCES = {
    FORWARD: N_("{on} was never called."),
    PASSED: N_("{on} was never called."),
    REPLACED: N_("What {hook} was registered on was gone before a pass used it."),
}
"""Kind of place → why the hook did not fire, where the place says the rest."""


@dataclass(frozen=True)
class ExplainedHook:
    """A hook that did not fire, or fired in a way that one may not expect."""

    hook: Hook
    key: int | str
    """Its key in the dict of its owner."""
    cause: Cause
    fired: int = 0
    is_older: bool = False
    """Whether it was registered before the recording began."""
    is_idle: bool = False
    """Whether it is on a parameter of a model of which nothing was called."""
    is_from_library: bool = False
    registered_at: str | None = None
    index: int | None = None
    """The index of its row in the trace; None if it fired."""
    fires_elsewhere: bool = False
    """Whether its function fired as a hook of the same kind on another owner."""
    fires_there: bool = False
    """Whether it did so on an owner with the same name."""
    follows_ops: bool = False
    """Whether the recording followed each op, to find those that cut."""
    cut_advice: str = ""
    """What to do about the code that cuts it off; empty if nothing is known of that."""

    @property
    def explanation(self) -> Explanation:
        """What is said of its cause."""
        return EXPLANATIONS[self.cause.key]

    @property
    def is_relevant(self) -> bool:
        """Whether what ran has to do with it, so that it belongs into the findings."""
        said = EXPLANATIONS[self.cause.what_is_open or self.cause.key]
        is_placed = self.cause.place is not None and self.cause.place.key != TWIN
        is_unrelated = not is_placed and (self.explanation.is_unrelated or said.is_unrelated)
        return not (self.is_older and (self.is_idle or is_unrelated))

    @property
    def severity(self) -> str:
        """A warning if it is yours, its cause is proven, and nothing shows that it is intended; else a remark.

        To remove an older hook before the model runs is a usual way to switch it off; a function that fires on what
        took the place of an owner was registered there, too; and who registers one on all modules of a net means those
        that run.
        """
        is_left_behind = self.fires_elsewhere and (self.explanation.is_unrelated or self.explanation.kind in _OF_ALL)
        is_left_behind = is_left_behind or (self.fires_there and self.explanation.kind == "substituted")
        is_switched_off = self.explanation.kind == "removed" and self.is_older
        is_intended = self.explanation.is_intended or is_switched_off or is_left_behind
        is_harm = not self.fired and self.cause.is_proven and not is_intended and not self.is_from_library
        return "warning" if is_harm else "remark"

    @property
    def arguments(self) -> dict[str, str]:
        """What its sentences name."""
        names = {"on": self.hook.on, "code": write_access(self.hook.on), "hook": self.hook.label}
        return {**self.cause.arguments, **names, "step": f"{(self.cause.step or 0) + 1:,}"}

    @property
    def reason(self) -> str:
        """Why it did not fire."""
        place = "" if self.cause.place is None else self.cause.place.key
        sentence = _SENTENCES.get(place, self.explanation.sentence)
        sentences = [_(sentence).format(**self.arguments)]
        if self.cause.place is not None:
            sentences.append(self.cause.place.sentence)
        elif self._is_somewhere_cut:
            sentences.append(_("What happens to it on the way was not observed."))
        return join_sentences(sentences)

    def _rate_certainty(self) -> Certainty:
        if not self.cause.is_proven:
            return "open"
        place = self.cause.place
        is_read = place is not None and (place.is_likely or place.key in (FORWARD, PASSED, REPLACED, VARIABLE))
        return "likely" if is_read else "proven"

    def _advise(self) -> str:
        if self.cause.place is not None and self.cause.place.key == FORWARD:
            return _("Call the module itself.")
        if self.cause.place is not None and self.cause.place.key == PASSED:
            return _("Use the module itself there, without .forward.")
        if self._is_somewhere_cut and not self.follows_ops:
            return join_sentences([_(_UNUSED_OR_CUT).format(**self.arguments), _(FOLLOW_OPS)])
        if self.cut_advice and self.cause.key in ("outside", "not_in_graph"):
            return self.cut_advice
        return _(_NOT_USED if self._is_somewhere_cut else self.explanation.advice).format(**self.arguments)

    @property
    def _is_somewhere_cut(self) -> bool:
        """Whether what it is on does not reach the loss, and nothing shows where it stops."""
        return self.cause.place is None and self.cause.key in ("outside", "not_in_graph")

    def find_line(self) -> tuple[CodePlace | None, str]:
        """Return the line of the cause, and what it does: where it is, or where the hook was registered, or is."""
        place = self.cause.place
        if place is not None and place.code is not None:
            return place.code, _ROLES.get(place.key, "may_cut" if place.is_likely else "cuts")
        return find_hook_line(self.hook, self.registered_at)

    def make_finding(self) -> Finding:
        """Make the finding that is about this hook alone."""
        finding = Finding(
            self.cause.step,
            self.explanation.kind,
            _(_describe(self)).format(hook=self.hook.label, on=self.hook.on),
            self.severity,
            cause=self.reason,
            advice=self._advise(),
            certainty=self._rate_certainty(),
            hooks=(self.hook,),
        )
        return put_line(finding, *self.find_line())


def _describe(hook: ExplainedHook) -> str:
    if hook.fired:
        return N_("{hook} on {on} fired in a way that you may not expect.")
    if hook.cause.is_proven:
        return N_("{hook} on {on} did not fire.")
    return N_("{hook} on {on} was not seen to fire.")


def list_silent_hooks(trace: TraceData) -> list[ExplainedHook]:
    """List the hooks that did not fire, then those that fired in a surprising way."""
    firings = Counter(row.hook for row in trace.rows if row.hook is not None)
    found = [*_list_silent(trace)] if trace.unfired_rows else []
    for index, cause in find_surprises(trace):
        row = trace.hook_rows[index]
        hook = _make_hook(trace, row, trace.hook(index).on)
        found.append(ExplainedHook(hook, row.key, cause, firings[index]))
    return found


def _list_silent(trace: TraceData) -> Iterator[ExplainedHook]:
    timeline = Timeline(trace)
    owners: dict[object, set[str]] = {}
    for number in list_hooks_at(trace, trace.lookup.steps_of_kinds(*HOOK_KINDS)):
        fired = trace.hook_rows[number]
        owners.setdefault((fired.kind, *function_of(fired)), set()).add(trace.hook(number).on)
    for index, row in enumerate(trace.unfired_rows):
        if row.name in timeline.unobserved_hooks:  # one with this name ran unobserved: it may have been this one
            continue
        hook, cause = _make_hook(trace, row, row.on), find_cause(row, timeline)
        is_idle = row.leaf and "." in row.on and not row.in_graph and timeline.caller_of(row) is None
        is_older = row.since is None
        firing = owners.get((row.kind, *function_of(row)), ())
        advice = advise_on_cut(trace, cause.place) if cause.place is not None and cause.place.key in CUTS else ""
        more = row.library, row.registered_at, index, bool(firing), row.on in firing, follows_ops(trace), advice
        yield ExplainedHook(hook, row.key, cause, 0, is_older, is_idle, *more)


def _make_hook(trace: TraceData, row: UnfiredRow | HookRow, on: str) -> Hook:
    return trace.hook_of_row(row, on or _describe_nameless(trace, row))


def _describe_nameless(trace: TraceData, row: UnfiredRow | HookRow) -> str:
    """Describe the owner of a hook that no name is known of."""
    if isinstance(row, UnfiredRow) and row.returned is not None:
        return trace.name_returned(row.returned)
    kind, op = (row.owner, row.made_by) if isinstance(row, UnfiredRow) else ("", "")
    if op:
        return _("the output of {op}").format(op=op)
    return _("a {kind} without a name").format(kind=kind) if kind else _("a tensor without a name")
