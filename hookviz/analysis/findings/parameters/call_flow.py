"""Follows what module calls returned into later calls, by the numbers, and by whether their graph came along."""

from collections.abc import Iterable
from itertools import takewhile

from hookviz.trace import TraceData
from hookviz.trace.traversal import find_calls_in_graphs, iter_enclosing_calls
from hookviz.trace.value_rows import ValueRow
from hookviz.trace.values import as_tuple, flatten_numbers

_WITH_GRADIENTS = ("float", "bfloat", "complex")
"""The beginnings of the types that can require grad."""


class CallFlow:
    """The module calls of one trace, and where the numbers that they returned went."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self.begin: dict[int, int] = {}
        self.end: dict[int, int] = {}
        """Call → the step at which it begins, and at which its forward has returned."""
        self.last_seed = -1
        """The step at which the last pass begins."""
        for step, row in enumerate(trace.rows):
            if row.call is not None and row.kind in ("call", "forward"):
                (self.begin if row.kind == "call" else self.end)[row.call] = step
            elif row.kind == "seed":
                self.last_seed = step
        self.used = find_calls_in_graphs(trace)
        """The calls that made nodes of the graph of a pass, with all calls around them."""
        self._stepping: dict[str, set[int]] = {}
        """Name of a module → the passes after which an optimizer of its parameters took a step."""
        self._takers: dict[int, list[int]] = {}
        """Call → the later calls that were given what it returned."""
        self._cut_takers: dict[int, tuple[int, int] | None] = {}

    def follow(self, call: int) -> tuple[int, int | None]:
        """Follow what a call returned, none of which belongs to a pass.

        Returns:
            The last call that its graph reaches, and the call that was given its numbers without it, if any.
        """
        return self._find_cut_taker(call) or self._follow_numbers(self._find_anchor(call))

    def _find_cut_taker(self, call: int) -> tuple[int, int] | None:
        """Return the call, from ``call`` outward, whose numbers went into a pass without their graph, and who got them.

        What else was computed from these numbers is of no use for the pass.
        """
        if call not in self._cut_takers:
            found = [one for outer in self._list_unused(call) if (one := self._find_cut_taker_of(outer)) is not None]
            same = [one for one in found if one[1] == found[0][1]]  # a model returns what its last layer does
            self._cut_takers[call] = same[-1] if same else None
        return self._cut_takers[call]

    def _list_unused(self, call: int) -> list[int]:
        """List a call and the calls around it, as far as no node of a pass belongs to them."""
        return list(takewhile(lambda outer: outer not in self.used, iter_enclosing_calls(self.trace, call)))

    def _find_cut_taker_of(self, call: int) -> tuple[int, int] | None:
        calls, takers = self.trace.calls, self.list_takers(call)
        without = [one for one in takers if self._lacks_graph(one, call) and one in self.used]
        outermost = [one for one in without if calls[one].parent not in without]
        if outermost and calls[call].gives_grad is not False:
            return call, outermost[-1]
        beside = (self._find_cut_taker(one) for one in takers if calls[one].takes_grad and one not in self.used)
        return next((one for one in beside if one is not None), None)

    def _lacks_graph(self, taker: int, call: int) -> bool:
        """Whether a call got what ``call`` returned without its graph: it may be a leaf that requires grad itself."""
        row = self.trace.calls[taker]
        return row.takes_grad is False or call in row.cut_from

    def _find_anchor(self, call: int) -> int:
        """Return the call, from ``call`` outward, whose output is the last that is known to have a history.

        The loss uses none of them. The output of the outermost one comes nearest to the loss. If it has no history,
        its forward cuts the graph: after an inner call whose output has one, or else in the forward of ``call``.
        """
        unused = reversed(self._list_unused(call))
        return next((outer for outer in unused if self.trace.calls[outer].gives_grad is not False), call)

    def _follow_numbers(self, call: int) -> tuple[int, int | None]:
        """Follow the output of a call from one call to the next, as long as the numbers and their history go on."""
        calls = self.trace.calls
        takers = self.list_takers(call)
        goes_on = [one for one in takers if calls[one].takes_grad and not self._lacks_graph(one, call)]
        following = next((one for one in goes_on if one not in self.used), None)
        if following is not None:
            return self._follow_numbers(following)
        without = [one for one in takers if self._lacks_graph(one, call) and calls[one].parent not in takers]
        return call, without[-1] if without and not goes_on else None

    def list_replacing_hooks(self, call: int) -> list[int]:
        """Return the steps of the forward hooks that may have cut the graph of a call, or of one around it.

        They replaced the output of the innermost one that returned no graph, unless its forward returned none, either.
        """
        calls = self.trace.calls
        cut = next((outer for outer in self._list_unused(call) if calls[outer].gives_grad is False), None)
        return [] if cut is None or calls[cut].forward_grad is False else self._list_replacing("forward_hook", cut)

    def find_replaced_inputs(self, call: int) -> int | None:
        """Return the last step of a forward pre-hook that replaced the inputs of a call."""
        return next(reversed(self._list_replacing("forward_pre_hook", call)), None)

    def _list_replacing(self, kind: str, call: int) -> list[int]:
        """List the steps in which hooks of a kind replaced what a call got or returned."""
        rows = ((step, self.trace.rows[step]) for step in self.trace.lookup.steps_of_kinds(kind))
        return [step for step, row in rows if row.call == call and row.effect == "replaced" and row.hook is not None]

    def find_outer(self, call: int) -> int | None:
        """Return the innermost call around ``call`` that does not return what it returned; None if each does."""
        returned = self._list_returned(call)
        for outer in list(iter_enclosing_calls(self.trace, call))[1:]:
            given = self._list_returned(outer)
            if not any(value in given for value in returned):
                return outer
        return None

    def list_cutting_calls(self, call: int) -> list[int]:
        """Return the later calls beside ``call``, or beside one around it, that got a graph and returned none."""
        around, end = list(iter_enclosing_calls(self.trace, call)), self.end.get(call)
        beside = {self.trace.calls[outer].parent for outer in around}
        rows = ((one, self.trace.calls[one], begin) for one, begin in self.begin.items())
        later = [(one, row) for one, row, begin in rows if end is not None and begin > end and row.parent in beside]
        own = self.find_pass(call)
        cutting = [one for one, row in later if row.takes_grad and row.gives_grad is False and row.mode == "grad"]
        return [one for one in cutting if self.find_pass(one) == own]

    def list_before_steps(self, calls: list[int], owner: str) -> list[int]:
        """Return the calls before passes after which an optimizer of a module took a step; all if there are none.

        Other passes, such as those of the discriminator of a GAN, may leave out the module on purpose.
        """
        found = [call for call in calls if self.find_pass(call) in self._list_stepping_passes(owner)]
        return found or calls

    def _list_stepping_passes(self, owner: str) -> set[int]:
        """Return the passes after which an optimizer took a step that holds parameters of a module."""
        if owner not in self._stepping:
            rows = self.trace.parameters
            held = [row for row in rows if any(name.rpartition(".")[0] == owner for name in row.names)]
            optimizers = {optimizer for row in held for optimizer in row.optimizers}
            steps = (self.trace.rows[row.step] for row in self.trace.updates)
            self._stepping[owner] = {row.pass_id for row in steps if row.optimizer in optimizers}
        return self._stepping[owner]

    def find_pass(self, call: int) -> int | None:
        """Return the pass that comes after a call; None if the trace does not have the begin of the call."""
        return self.trace.rows[self.begin[call]].pass_id if call in self.begin else None

    def find_call_without_graph(self, calls: Iterable[int]) -> int | None:
        """Return the last of some calls before a pass in front of which none of them recorded a graph; else None."""
        by_pass: dict[int | None, list[int]] = {}
        for call in calls:
            by_pass.setdefault(self.find_pass(call), []).append(call)
        modes = self.trace.calls
        bare = [found for found in by_pass.values() if all(modes[call].mode != "grad" for call in found)]
        return bare[-1][-1] if bare else None

    def list_takers(self, call: int) -> list[int]:
        """Return the later calls that recorded a graph and were given what ``call`` returned, in order.

        Equal numbers tell, unless all of them are the same, as zeros are: then the memory has to be the same as well.
        """
        if call not in self._takers:
            self._takers[call] = self._find_takers(call)
        return self._takers[call]

    def _find_takers(self, call: int) -> list[int]:
        end, returned = self.end.get(call), self._list_returned(call)
        if end is None or not returned:
            return []
        calls = self.trace.calls
        telling = [value for value in returned if not _is_constant(value)]
        later = [(other, begin) for other, begin in self.begin.items() if begin > end and calls[other].mode == "grad"]
        given = ((other, self._numbers(self.trace.rows[begin].after)) for other, begin in later)
        sought = ((other, values, returned if call in calls[other].cut_from else telling) for other, values in given)
        return [other for other, values, known in sought if any(value in known for value in values)]

    def gets_graph(self, taker: int, call: int) -> bool:
        """Whether a call got what ``call`` returned with its graph: no other input of it may have brought one."""
        row, begin, returned = self.trace.calls[taker], self.begin.get(taker), self._list_returned(call)
        if not row.takes_grad or begin is None or self._lacks_graph(taker, call):
            return False
        inputs = [self.trace.values[index] for index in as_tuple(self.trace.rows[begin].after)]
        return all(value in returned for value in inputs if value[1].startswith(_WITH_GRADIENTS))

    def _list_returned(self, call: int) -> list[ValueRow]:
        """List what a call returned, as far as more than a shape is known."""
        end = self.end.get(call)
        return [] if end is None else self._numbers(self.trace.rows[end].after)

    def _numbers(self, indices: object) -> list[ValueRow]:
        """Return the rows of values of which more than a shape is known."""
        indexes = as_tuple(indices)
        rows = [self.trace.values[index] for index in indexes if isinstance(index, int)]
        return [row for row in rows if row[3] is not None or row[4] is not None]


def _is_constant(row: ValueRow) -> bool:
    """Return whether a tensor has the same number everywhere, or is a single 0 or 1: equal ones are met by chance."""
    _shape, _dtype, _device, kept, statistics, _note = row
    if statistics is not None:
        low, high, _mean, norm, *_rest = statistics
        return norm == 0 or (low is not None and low == high)
    numbers = list(flatten_numbers(kept))
    return numbers.count(numbers[0]) == len(numbers) and (len(numbers) > 1 or numbers[0] in (0, 1)) if numbers else True
