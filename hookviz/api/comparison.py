"""Two traces of one program side by side, as a person holds them: a table, and in Jupyter a player of both."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookviz.analysis.comparison.comparison import Difference, differences
from hookviz.api.display import Displayed
from hookviz.support.messages import join, say
from hookviz.support.table import Table
from hookviz.trace import Step, TraceData
from hookviz.trace.sentences import brief
from hookviz.trace.values import number

if TYPE_CHECKING:
    from hookviz.player.payload import Content


class Comparison(Displayed, Table[Difference]):
    """The gradients that differ between two traces, and the first firing that differs.

    In Jupyter it shows both side by side; printed, it is a table.
    """

    def __init__(
        self,
        pair: tuple[TraceData, TraceData],
        rows: list[Difference],
        first: Step | None,
        caused: bool,
        said: Sequence[str],
    ) -> None:
        self.traces = pair
        """This trace and the other."""
        self._caused = caused
        self._more = said[1:]
        self.first = first
        """The first firing from which they differ, in the other trace unless only this one has it; None when equal."""
        self.sentence = sentence = join("join.sentences", said)
        """The whole in plain English."""
        head = [say(f"table.{name}") for name in ("on", "gradient", "this", "other", "difference", "step")]
        super().__init__(rows, head, _cells, nothing=sentence)

    def content(self) -> "Content":
        """All that the player shows, as plain data."""
        from hookviz.player.several_runs import Variant, several_runs
        from hookviz.player.wording import add_notes

        this, other = self.traces
        one = Variant(this, say("variant.this"), say("absent.this"))
        two = Variant(other, say("variant.other"), say("absent.other"), baseline=0)
        content = several_runs([one, two], shown=1)
        content["first_difference"] = self._mark(content)
        content["initial_state"]["split"] = True
        add_notes(content, [self._begins(content["first_difference"])])
        return content

    def _begins(self, mark: int) -> str:
        """The sentence, with the step counted as the player counts them."""
        if mark < 0 or self.first is None or self.first.hook is None:
            return self.sentence
        where = {"hook": self.first.hook.label, "on": self.first.on, "step": mark + 1}
        return join(
            "join.sentences",
            [say("diff.begins" if self._caused else "diff.begun", count=len(self), **where), *self._more],
        )

    def _mark(self, content: "Content") -> int:
        """The place on the common timeline of the first firing that differs; -1 if there is none."""
        if self.first is None:
            return -1
        side = 0 if self.first.trace is self.traces[0] else 1
        place = [step.index for step in self.first.trace.firings].index(self.first.index)
        firings = content["runs"][side]["firings"]  # of a long trace not all
        return firings[place]["step"] if place < len(firings) else -1

    def __repr__(self) -> str:
        return f"{self.sentence}\n{super().__repr__()}" if len(self) else self.sentence


def _cells(row: Difference) -> tuple[str, ...]:
    amount = "" if row.amount is None else number(row.amount)
    steps = (say("name.none") if step is None else str(step + 1) for step in row.steps)
    return (row.on, say(f"card.{row.kind}"), brief(row.before), brief(row.after), amount, " → ".join(steps))


def compare(this: TraceData, other: TraceData) -> Comparison:
    """Which gradients differ between ``this`` and ``other``, two traces of the same program.

    Raises:
        TypeError: ``other`` is no trace.
        ValueError: the traces are not of the same graph.
    """
    found = differences(this, other)
    return Comparison((this, other), found.rows, found.first, found.caused, found.said)
