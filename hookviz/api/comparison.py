"""The result of ``Trace.diff``: a table of the gradients that differ, and in Jupyter a player of both traces."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hookviz.analysis.comparison import Difference, find_differences
from hookviz.api.display import Displayable
from hookviz.api.trace import Trace, data_of
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.printable import describe_type
from hookviz.support.table import Table, cells_of, head_of
from hookviz.trace import FORWARD_HOOK_KINDS, Step

if TYPE_CHECKING:
    from hookviz.player.payload import Content


class Comparison(Displayable, Table[Difference]):
    """The gradients that differ between two traces, and the first firing that differs.

    Jupyter shows the two traces side by side; ``print`` shows the table.
    """

    def __init__(
        self,
        traces: tuple[Trace, Trace],
        rows: list[Difference],
        first: Step | None,
        first_is_cause: bool,
        sentences: Sequence[str],
    ) -> None:
        self.traces = traces
        """This trace and the other trace."""
        self._first_is_cause = first_is_cause
        self._remarks = sentences[1:]
        self.first = first
        """The first firing that differs, in the other trace unless only this one has it; None if no firing differs."""
        self.sentence = sentence = join_sentences(sentences)
        """A summary in plain English."""
        super().__init__(rows, head_of(rows), cells_of, nothing=sentence)

    def content(self) -> "Content":
        """Everything that the player shows, as plain data."""
        from hookviz.player.several_runs import Variant, several_runs

        this, other = map(data_of, self.traces)
        this_run = Variant(this, _("This trace"), _("This step is only in the other trace."))
        other_run = Variant(
            other, _("The other trace"), _("This step is only in this trace; the other has none here."), baseline=0
        )
        content = several_runs([this_run, other_run], shown=1)
        content["first_difference"] = self._find_first_on_timeline(content)
        content["initial_state"]["split"] = True
        content["notes"].insert(0, self._describe_difference(content["first_difference"]))
        return content

    def _describe_difference(self, mark: int) -> str:
        """The summary, with the step number that the player shows; ``mark`` is that number minus 1, or -1."""
        if mark < 0 or self.first is None or self.first.hook is None:
            return self.sentence
        arguments = {"hook": self.first.hook.label, "on": self.first.on, "step": mark + 1}
        if self._first_is_cause:
            text = N_("Gradients that differ: {count}. The difference begins at step {step}, with {hook} on {on}.")
        elif self.first.kind in FORWARD_HOOK_KINDS:
            text = N_(
                "Gradients that differ: {count}. The values of the forward differ, too. The first hook to receive such "
                "a value is {hook} on {on}, step {step}."
            )
        else:
            text = N_(
                "Gradients that differ: {count}. They differ before any observed hook changes one. The first "
                "hook to receive such a gradient is {hook} on {on}, step {step}."
            )
        return join_sentences([_(text).format(count=len(self), **arguments), *self._remarks])

    def _find_first_on_timeline(self, content: "Content") -> int:
        """The step on the common timeline of the first firing that differs; -1 if the content does not show one."""
        if self.first is None:
            return -1
        side = 0 if self.first.trace is data_of(self.traces[0]) else 1
        firing = [step.index for step in self.traces[side].firings].index(self.first.index)
        firings = content["runs"][side]["firings"]  # the content of a long trace has only the first of them
        return firings[firing]["step"] if firing < len(firings) else -1

    def __repr__(self) -> str:
        return f"{self.sentence}\n{super().__repr__()}" if len(self) else self.sentence


def compare(this: Trace, other: Trace) -> Comparison:
    """Compare the gradients of two traces of the same program.

    Raises:
        TypeError: ``other`` is not a Trace.
        ValueError: the graphs of the two traces differ.
    """
    if not isinstance(other, Trace):
        raise TypeError(_("diff() takes the other trace; this is {kind}.").format(kind=describe_type(other)))
    rows, first, first_is_cause, sentences = find_differences(data_of(this), data_of(other))
    return Comparison((this, other), rows, first, first_is_cause, sentences)
