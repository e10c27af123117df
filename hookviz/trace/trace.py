"""What happened in a pass: an ordered list of steps over a graph, as plain data."""

from hookviz.support.messages import say
from hookviz.support.table import Table
from hookviz.trace.reason_rows import Verifier
from hookviz.trace.rows import HOOK_KINDS, StepRow
from hookviz.trace.sentences import format_firing
from hookviz.trace.steps import Step, Steps, make_step
from hookviz.trace.tables import TraceTables


class TraceData(TraceTables):
    """What happened inside ``record()``, step by step.

    It knows no way to show itself: a ``hookviz.Trace`` adds these.
    """

    @property
    def steps(self) -> Steps:
        """Everything that happened, in order."""
        return Steps(self)

    @property
    def firings(self) -> Table[Step]:
        """The steps in which a hook of the user's ran to its end, in order: a table in Jupyter, rows in Python.

        Where a hook raised there is a step of kind ``exception``; where one that cannot be named changed a gradient,
        one of kind ``unknown_hook``.
        """
        fired = [make_step(self, index) for index, row in enumerate(self.rows) if row.kind in HOOK_KINDS]
        head = [say(f"table.{name}") for name in ("step", "hook", "on", "before", "after", "effect", "where")]
        return Table(fired, head, format_firing)

    @property
    def verifier(self) -> Verifier | None:
        """Checks the formulas that no file has checked; None where nothing can, as for rows without a view."""
        return None

    def __repr__(self) -> str:
        if not self.rows:
            return " ".join(self.notes or [say("trace.empty")])
        hooked = sum(map(_involves_hook, self.rows))
        parts = {"steps": len(self.rows), "hooked": hooked, "passes": len(self.roots)}
        return " ".join([say("trace.summary", **parts), *self.notes])


def _involves_hook(row: StepRow) -> bool:
    """Whether a hook ran in this step, if only to raise, or if nobody knows which."""
    return row.kind in HOOK_KINDS or row.kind == "unknown_hook" or (row.kind == "exception" and row.hook is not None)
