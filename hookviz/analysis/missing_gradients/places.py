"""The place where the way of a gradient to a parameter ends, as far as the module calls show it."""

from typing import NamedTuple

from hookviz.analysis.missing_gradients.cutting_code import CuttingCode, find_cutting_code
from hookviz.support.messages import join, say
from hookviz.trace import CallRow, LineRow, TraceData
from hookviz.trace.traversal import find_calls_in_graphs, iter_enclosing_calls, name_last_root


class Place(NamedTuple):
    """Where the way ends."""

    key: str
    """``missing.<key>`` is the key of its sentence."""
    sentence: str
    step: int | None
    """The step to look at."""
    file: str | None = None
    line: int | None = None
    """The line of the user's code that ends the way, if only one can."""


class PlaceFinder:
    """Finds the places for the parameters of one trace."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._lines = {row.call: row for row in trace.lines if row.call is not None}
        self._begin: dict[int, int] = {}
        self._end: dict[int, int] = {}
        """Call → the step at which it begins, and at which its forward has returned."""
        for step, row in enumerate(trace.rows):
            if row.call is not None and row.kind in ("call", "forward"):
                (self._begin if row.kind == "call" else self._end)[row.call] = step
        self._used, self._root = find_calls_in_graphs(trace), name_last_root(trace)

    def find(self, owner: str, module: int | None) -> Place:
        """Return the first place, on the way from a module, named ``owner``, to the loss, where the way ends."""
        calls = [index for index, call in enumerate(self.trace.calls) if call.module == module]
        names = {"on": owner, "root": self._root}
        if module is None or not calls:
            return Place("uncalled", say("missing.uncalled", **names), None)
        if not self._used.isdisjoint(calls):
            call = next(call for call in calls if call in self._used)
            return Place("unused", say("missing.unused", **names), self._begin.get(call))
        with_graph = [call for call in calls if self.trace.calls[call].mode == "grad"]
        if not with_graph:
            return self._without_graph(calls[-1], names)
        return self._after(with_graph[-1], names)

    def _without_graph(self, call: int, names: dict[str, str]) -> Place:
        mode = self.trace.calls[call].mode
        sentence = join("join.sentences", [say(f"missing.{mode}", **names), *self._called_at(call)])
        return Place(mode, sentence, self._begin.get(call))

    def _after(self, call: int, names: dict[str, str]) -> Place:
        """The place after a call that recorded a graph of which nothing belongs to a pass."""
        if self.trace.calls[call].gives_grad is False:
            return Place("inside", say("missing.inside", **names), self._end.get(call))
        user = self._call_with_the_same_numbers(call)
        if user is not None:
            names = {**names, "user": self.trace.call(user)}
            return self._with_code("between", names, call, self._end.get(call), self._lines.get(user))
        for outer in list(iter_enclosing_calls(self.trace, call))[1:]:
            if outer in self._used or self.trace.calls[outer].gives_grad is False:
                names = {**names, "outer": self.trace.call(outer)}
                return self._with_code("within", names, call, self._end.get(call), None)
        return self._with_code("after", names, call, self._end.get(call), None)

    def _call_with_the_same_numbers(self, call: int) -> int | None:
        """Return the first later call that was given what ``call`` returned, without its history."""
        end = self._end.get(call)
        if end is None:
            return None
        returned = self._numbers(self.trace.rows[end].after)
        for other, begin in self._begin.items():
            given = self._numbers(self.trace.rows[begin].after) if begin > end and self._has_no_history(other) else []
            if any(value in returned for value in given):
                return other
        return None

    def _has_no_history(self, call: int) -> bool:
        row: CallRow = self.trace.calls[call]
        return row.takes_grad is False and row.mode == "grad"

    def _numbers(self, indices: object) -> list[object]:
        """Return the rows of values of which more than a shape is known."""
        indexes = indices if isinstance(indices, tuple) else (indices,)
        rows = [self.trace.values[index] for index in indexes if isinstance(index, int)]
        return [row for row in rows if row[3] is not None or row[4] is not None]

    # -- lines of code

    def _called_at(self, call: int) -> list[str]:
        line = self._lines.get(call)
        return [] if line is None else [say("missing.called_at", where=self._where(line.source, line.line))]

    def _with_code(self, key: str, names: dict[str, str], call: int, step: int | None, until: LineRow | None) -> Place:
        """Make a place after a call, with the code that can cut there."""
        start = self._lines.get(call)
        sentence = say(f"missing.{key}", **names)
        if start is None or (until is not None and until.source != start.source):
            return Place(key, sentence, step)
        source = self.trace.sources[start.source]
        end = None if until is None else until.line
        code = find_cutting_code(source.text, source.line, start.line, end)
        hints = [self._hint(start.source, code)] if code else self._called_at(call)
        line = code[0].line if len(code) == 1 else None
        return Place(key, join("join.sentences", [sentence, *hints]), step, source.file if line else None, line)

    def _hint(self, source: int, code: list[CuttingCode]) -> str:
        first = {"where": self._where(source, code[0].line), "code": code[0].text}
        return say("missing.code", **first) if len(code) == 1 else say("missing.codes", count=len(code), **first)

    def _where(self, source: int, line: int) -> str:
        return say("hook.where", file=self.trace.sources[source].file or "", line=line)
