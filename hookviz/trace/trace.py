"""The data of a trace with its steps: what ``record()`` observed, in order."""

from hookviz.support.messages import _, join_list, pluralize
from hookviz.support.table import Table
from hookviz.trace.hook_facts import HOOK_KINDS
from hookviz.trace.named_tables import NamedTables
from hookviz.trace.notes import Note
from hookviz.trace.rows import StepRow
from hookviz.trace.sentences import format_firing, format_pass_number
from hookviz.trace.steps import Step, Steps, make_step


class TraceData(NamedTables):
    """The steps that happened inside ``record()``.

    It has no views: ``hookviz.Trace`` adds them.
    """

    @property
    def steps(self) -> Steps:
        """All steps, in order."""
        return Steps(self)

    @property
    def firings(self) -> Table[Step]:
        """The steps in which a user's hook ran without an exception, in order; ``hookviz.Trace.firings`` says more."""
        steps = [make_step(self, index) for index, row in enumerate(self.rows) if row.kind in HOOK_KINDS]
        head = [_("step"), _("hook"), _("on"), _("before"), _("after"), _("effect"), _("where")]
        if self.lacks_passes:
            head.insert(0, _("pass"))
        return Table(steps, head, format_firing)

    def __repr__(self) -> str:
        if not self.rows:
            return " ".join(self.notes or [Note.of("trace.empty").text])
        numbers = [_say_numbers(self)] if self.lacks_passes else []
        return " ".join(
            [
                _("Trace: {counts}. Display it in Jupyter to step through it.").format(counts=describe_counts(self)),
                *numbers,
                *self.notes,
            ]
        )


def describe_counts(trace: TraceData) -> str:
    """Say how many steps, hooks and passes a trace holds, as a part of a sentence."""
    hooked = sum(map(involves_hook, trace.rows))
    return join_list(
        [
            pluralize(len(trace.rows), _("{count} step"), _("{count} steps")),
            pluralize(hooked, _("{count} of them a hook"), _("{count} of them hooks")),
            pluralize(len(trace.roots), _("{count} backward pass"), _("{count} backward passes")),
        ]
    )


def _say_numbers(trace: TraceData) -> str:
    """Say which of all passes a trace holds."""
    first, last = (format_pass_number(trace, pass_id) for pass_id in (0, len(trace.roots) - 1))
    if len(trace.roots) == 1:
        return _("It holds pass {number} of the recording.").format(number=last)
    return _("It holds passes from {first} to {last} of the recording.").format(first=first, last=last)


def involves_hook(row: StepRow) -> bool:
    """Whether a hook, known or unknown, ran or raised in this step."""
    return row.kind in HOOK_KINDS or row.kind == "unknown_hook" or (row.kind == "exception" and row.hook is not None)
