"""The table of hooks that did not fire, or fired in a way that one may not expect."""

from collections import Counter
from dataclasses import dataclass, replace

from hookviz.analysis.missing_gradients.places import Place
from hookviz.analysis.unfired.cause_texts import ADVICE, SENTENCES
from hookviz.analysis.unfired.causes import Cause, find_cause
from hookviz.analysis.unfired.surprises import find_surprises
from hookviz.analysis.unfired.timeline import Timeline, is_limited
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.source_code import Source
from hookviz.support.table import Table
from hookviz.trace import Hook, HookRow, TraceData, UnfiredRow
from hookviz.trace.hooks import name_of_kind

_IDLE_MODELS = N_(
    "A hook on a model that did not run is listed only if it was registered during the "
    "recording, or if you pass the model: hv.record(model)."
)


@dataclass(frozen=True)
class UnfiredHook:
    """A registered hook that did not fire, or fired in a way that one may not expect.

    ``hookviz.record`` looks at hooks of: the models that it was given; the tensors and optimizers in the variables of
    the code around it, and the models there that have to do with what ran; everything that was called; and the graphs
    of the passes. It also looks at each hook that was registered during the recording.
    """

    hook: Hook
    """The hook, with its owner and the place of its source."""
    fired: int
    """How often it fired in the whole recording."""
    cause: str
    """A name of the cause, such as ``frozen``. README lists all causes."""
    sentence: str
    """Why it did not fire."""
    advice: str
    """What to do."""
    step: int | None
    """The step to look at, counted from 0; None if there is none."""
    is_older: bool
    """Whether it was registered before the recording began."""
    is_proven: bool
    """Whether the recording proves the cause; if not, the sentence says what is left."""
    index: int | None = None
    """The index of its row in ``Trace.unfired_rows``; None if it fired."""
    cut: str = ""
    """Where the graph is cut, as a sentence, which is a part of ``sentence``; empty if that is not the cause."""
    file: str | None = None
    """The file of the line that cuts the graph, relative to the working directory, or ``In [4]`` for a cell."""
    line: int | None = None
    """The line of your code that cuts the graph, if only one can."""

    @property
    def on(self) -> str:
        """The name of the tensor, module or optimizer."""
        return self.hook.on

    @property
    def name(self) -> str:
        """The name of the hook function."""
        return self.hook.name


TOO_LATE = frozenset({"after_call", "after_call.backward", "after_pass", "after_step"})
"""The causes of hooks that were registered too late."""


def list_unfired_hooks(trace: TraceData) -> Table[UnfiredHook]:
    """List the hooks that did not fire, then those that fired in a surprising way."""
    firings = Counter(row.hook for row in trace.rows if row.hook is not None)
    rows = _list_silent(trace) if trace.unfired_rows else []
    for index, cause in find_surprises(trace):
        rows.append(_make_unfired(trace.hook_rows[index], trace.hook(index).on, firings[index], cause))
    head = [_("hook"), _("on"), _("kind"), _("fired"), _("why"), _("what to do"), _("where")]
    return Table(rows, head, _cells, nothing=_describe_none(trace, len(firings)))


def _list_silent(trace: TraceData) -> list[UnfiredHook]:
    """List the hooks that did not fire, without those of whose names one ran unobserved: it may have been that one."""
    timeline = Timeline(trace)
    notes = (row.note for row in trace.rows if row.kind == "unobserved" and row.note is not None)
    unobserved = {dict(note.details).get("hook") for note in notes}
    silent = ((index, row) for index, row in enumerate(trace.unfired_rows) if row.name not in unobserved)
    return [_make_unfired(row, row.on, 0, find_cause(row, timeline), index) for index, row in silent]


def _make_unfired(
    row: UnfiredRow | HookRow, on: str, fired: int, cause: Cause, index: int | None = None
) -> UnfiredHook:
    source = Source(row.name, row.file, row.line, row.text, row.mark)
    on = on or _describe_nameless(row)
    arguments = {**cause.arguments, "on": on, "hook": source.label}
    sentences, advice = [_(SENTENCES[cause.key]).format(**arguments)], _(ADVICE[cause.key]).format(**arguments)
    if isinstance(row, UnfiredRow) and row.registered_at is not None and cause.key in TOO_LATE:
        sentences.append(_("It was registered at {where}.").format(where=row.registered_at))
    hook = Hook(on, row.kind, source, "", 0, 1, row.flags)
    is_older = isinstance(row, UnfiredRow) and row.since is None
    sentence = join_sentences(sentences)
    unfired = UnfiredHook(hook, fired, cause.key, sentence, advice, cause.step, is_older, cause.is_proven, index)
    return unfired if cause.place is None else _add_cut(unfired, cause.place)


def _describe_nameless(row: UnfiredRow | HookRow) -> str:
    """Describe the owner of a hook that no name is known of."""
    kind = row.owner if isinstance(row, UnfiredRow) else ""
    return _("a {kind} without a name").format(kind=kind) if kind else _("a tensor without a name")


def _add_cut(row: UnfiredHook, place: Place) -> UnfiredHook:
    """Add the place where the graph is cut."""
    sentence = join_sentences([row.sentence, place.sentence])
    return replace(row, sentence=sentence, cut=place.sentence, file=place.file, line=place.line)


def _cells(row: UnfiredHook) -> tuple[str, ...]:
    kind = name_of_kind(row.hook.kind)
    return (row.hook.label, row.on, kind, str(row.fired), row.sentence, row.advice, row.hook.where)


def _describe_none(trace: TraceData, fired: int) -> str:
    """The sentences for a trace without unfired hooks: how many hooks there were, and where hookviz did not look."""
    if not fired:
        return describe_no_hooks()
    limits = [_("Only a part of what ran was recorded.")] if is_limited(trace) else []
    return join_sentences(
        [_("Every hook that hookviz knows of fired ({count}).").format(count=fired), *limits, _(_IDLE_MODELS)]
    )


def describe_no_hooks() -> str:
    """The sentences for a trace without hooks: where hookviz looked, and where it did not."""
    return join_sentences(
        [
            _(
                "No hook was registered on what hookviz looked at: the models that were given, what was "
                "called, and the tensors and optimizers in your variables."
            ),
            _(_IDLE_MODELS),
        ]
    )
