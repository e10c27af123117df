"""What a trace holds: its steps, its notes, and which passes of the recording they belong to."""

from hookviz.api.holder import TableHolder
from hookviz.support.table import Table
from hookviz.trace import Step, Steps
from hookviz.trace.value_rows import StatisticsMode


class TracePasses(TableHolder):
    """Adds the steps and passes to a trace."""

    @property
    def steps(self) -> Steps:
        """All steps, in order."""
        return self._data.steps

    @property
    def firings(self) -> Table[Step]:
        """The steps in which a user's hook ran without an exception, in order: a table in Jupyter, a list in Python.

        If a hook raised, there is a step of kind ``exception`` instead; if an unknown hook changed a gradient, one of
        kind ``unknown_hook``. If the trace lacks passes (``keep``, ``every``), the table begins with the number of the
        pass.
        """
        return self._data.firings

    @property
    def notes(self) -> list[str]:
        """What could not be observed, and why, in sentences."""
        return self._data.notes

    @property
    def pass_numbers(self) -> list[int]:
        """The number of each pass among all that ran during the recording, from 1."""
        return self._data.pass_numbers

    def pass_number(self, pass_id: int) -> int:
        """Return the number of a pass among all that ran during the recording, counted from 1.

        ``record(keep=...)`` drops passes and ``record(every=...)`` skips them; the others keep their numbers.
        """
        return self._data.pass_number(pass_id)

    @property
    def lacks_passes(self) -> bool:
        """Whether passes ran, before or between those of the trace, that the trace does not hold."""
        return self._data.lacks_passes

    @property
    def dropped(self) -> int:
        """The number of earlier passes, nested ones included, that ``record(keep=...)`` has dropped."""
        return self._data.dropped

    @property
    def rank(self) -> int | None:
        """The rank of this process among ``ranks`` processes of ``torch.distributed``; None without it."""
        return self._data.rank

    @property
    def ranks(self) -> int | None:
        """The number of these processes; None without ``torch.distributed``."""
        return self._data.ranks

    @property
    def statistics(self) -> StatisticsMode | None:
        """Which statistics were read of tensors with more than 64 numbers: all, or only the norm while it is finite.

        None for the rule: the norm of very large ones, and all statistics of the others.
        """
        return self._data.statistics
