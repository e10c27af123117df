"""The data of a trace with its steps: what ``record()`` observed, in order."""

from hookviz.support.messages import say
from hookviz.support.table import Table
from hookviz.trace.named_tables import NamedTables
from hookviz.trace.rows import HOOK_KINDS, StepRow
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
        """The steps in which a user's hook ran without an exception, in order: a table in Jupyter, a list in Python.

        If a hook raised, there is a step of kind ``exception`` instead; if an unknown hook changed a gradient, one of
        kind ``unknown_hook``. If the trace lacks passes (``keep``, ``every``), the table begins with the number of the
        pass.
        """
        steps = [make_step(self, index) for index, row in enumerate(self.rows) if row.kind in HOOK_KINDS]
        columns = ("step", "hook", "on", "before", "after", "effect", "where")
        head = [say(f"table.{name}") for name in (("pass", *columns) if self.lacks_passes else columns)]
        return Table(steps, head, format_firing)

    def __repr__(self) -> str:
        if not self.rows:
            return " ".join(self.notes or [say("trace.empty")])
        hooked = sum(map(involves_hook, self.rows))
        parts = {"steps": len(self.rows), "hooked": hooked, "passes": len(self.roots)}
        numbers = [_say_numbers(self)] if self.lacks_passes else []
        return " ".join([say("trace.summary", **parts), *numbers, *self.notes])


def _say_numbers(trace: TraceData) -> str:
    """Say which of all passes a trace holds."""
    first, last = (format_pass_number(trace, pass_id) for pass_id in (0, len(trace.roots) - 1))
    if len(trace.roots) == 1:
        return say("trace.number", number=last)
    return say("trace.numbers", first=first, last=last)


def involves_hook(row: StepRow) -> bool:
    """Whether a hook, known or unknown, ran or raised in this step."""
    return row.kind in HOOK_KINDS or row.kind == "unknown_hook" or (row.kind == "exception" and row.hook is not None)
