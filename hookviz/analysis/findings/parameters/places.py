"""The place where the graph between a parameter and the loss is cut, as far as the module calls show it."""

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from hookviz.analysis.findings.parameters.call_code import (
    CallCode,
    Reading,
    describe_code,
    may_use,
)
from hookviz.analysis.findings.parameters.call_flow import CallFlow
from hookviz.analysis.findings.parameters.cutting_code import leaves_torch
from hookviz.analysis.findings.parameters.graph_switches import GraphSwitches
from hookviz.analysis.findings.parameters.missed_calls import find_missed_call, find_missed_use
from hookviz.support.messages import N_, _, join_list, join_sentences
from hookviz.support.source_code import CodePlace
from hookviz.trace import LineRow, MissingRow, TraceData
from hookviz.trace.traversal import iter_enclosing_calls, name_last_root

_CUTS = {
    "between": N_(
        "The graph is cut between {on} and {user}: {user} got the numbers that {on} returned, but without a graph."
    ),
    "within": N_(
        "In the forward of {outer}, after {on} returned, the graph is cut, or the output of {on} is "
        "not used for {root}."
    ),
    "after": N_("After {on} returned, the graph is cut, or the output of {on} is not used for {root}."),
}
"""Where the graph is cut → the sentence."""

_MODES = {
    "no_grad": N_("{on} ran in torch.no_grad(): PyTorch recorded no graph."),
    "inference": N_("{on} ran in torch.inference_mode(): PyTorch recorded no graph."),
    "checkpoint": N_(
        "{on} ran in a reentrant checkpoint: none of its inputs requires grad, or no gradient came to its output."
    ),
}
"""Mode of a call → why it recorded no graph."""

CUTS = frozenset({"op", "hook", "between", "inside", "within", "taken", "after", "either", "none_returned"})
"""The kinds of places where code cuts the graph (of a forward, an op of it, or between two calls) or returns None."""
MISSED = "missed"
"""The place of code because of which a forward did not call a part of its module."""
LIKELY_PLACES = ("within", "taken", "after", "either")
"""The kinds of places that the calls do not prove: the output may also be unused, or another place counts."""
_ROLES = {"none_returned": "backward", "hook": "hook", "no_grad": "off", "inference": "off"}
"""Kind of place → what its line does, if it does not simply cut."""


class Place(NamedTuple):
    """Where the graph is cut."""

    key: str
    """What kind of place it is: ``uncalled``, ``no_grad``, ``inference``, ``checkpoint``, ``frozen`` (the parameters
    did not require grad when their module was called), ``no_pass`` (no pass began after that), ``hook`` (a forward hook
    replaced an output), ``inside`` (the forward of a module that got their output), ``between`` (two module calls),
    ``within`` (the forward of a module, after an inner one returned), ``taken`` (the forward of a module that got the
    graph), ``after`` (an outermost module returned, or an inner one whose output it returns), ``either`` (one of two
    places, each before another pass), ``unused`` (their module belongs to the graph, and they do not), ``unnamed`` (nor
    does the text of its forward name them), or ``none_returned`` (they belong to the graph, and a node in front of them
    got a gradient and returned None).
    After ``record(cuts=True)`` also ``op``: an op whose result has no graph. One that runs in ``no_grad`` has the place
    ``no_grad``; the same holds for ``inference`` and ``checkpoint``."""
    sentence: str
    step: int | None
    """The step to look at."""
    code: CodePlace | None = None
    """The line of the user's code that cuts, if only one can."""
    is_likely: bool = False
    """Whether the code around that line also calls what was not followed, and may cut there."""

    @property
    def is_proven(self) -> bool:
        """Whether the recording shows the place itself; otherwise it shows between which calls it is."""
        return self.key not in LIKELY_PLACES and not self.is_likely

    @property
    def line_role(self) -> str:
        """What its line does, as ``Finding.line_role`` names it."""
        if self.code is None or self.key not in (*CUTS, "no_grad", "inference"):
            return "cause"
        return _ROLES.get(self.key, "cuts" if self.is_proven else "may_cut")


FOLLOW_OPS = N_("To see the line that cuts, if there is one, record with cuts=True or --cuts.")


def follows_ops(trace: TraceData) -> bool:
    """Return whether the recording followed each op, to find those that cut."""
    return any(note.fact == "cuts" for note in trace.remarks)


class _BareCalls:
    """Finds the places of calls that recorded no graph."""

    def __init__(self, trace: TraceData, code: CallCode, flow: CallFlow) -> None:
        self.trace, self._code, self._flow = trace, code, flow
        self._switches = GraphSwitches(code)

    def find(self, call: int) -> Place:
        """The place of a call that recorded no graph: where the outermost call around it in the same mode was made."""
        mode = self.trace.calls[call].mode
        around = takewhile(lambda outer: self.trace.calls[outer].mode == mode, iter_enclosing_calls(self.trace, call))
        outermost = list(around)[-1]
        sentence = _(_MODES[mode]).format(on=self.trace.plain_call(outermost))
        line, step = self._code.lines.get(outermost), self._flow.begin.get(outermost)
        called, found = self._code.called_at(outermost), self._switches.find(outermost, mode)
        if found is None and mode == "no_grad":
            return self._switched_off(outermost, called, step)
        if found is None:
            code = self._code.place_of(line) if line is not None and mode == "checkpoint" else None
            return Place(mode, join_sentences([sentence, *called]), step, code)
        code = found.place
        text = _("{function}() yields inside it ({where}): it stays on in the code that asks for the next value.")
        more = text.format(function=found.function, where=code.where) if found.function else ""
        more = more or _("That mode is switched on at {where}.").format(where=code.where)
        return Place(mode, join_sentences([sentence, *called, more]), step, code, is_likely=bool(found.function))

    def _switched_off(self, call: int, called: Iterable[str], step: int | None) -> Place:
        """The place of a call for which code elsewhere had switched the graph off."""
        sentence = _(
            "{on} ran while PyTorch recorded no graph, as in torch.no_grad() or after set_grad_enabled(False)."
        )
        sentences, switch = (
            [sentence.format(on=self.trace.plain_call(call)), *called],
            self._switches.find_permanent(call),
        )
        if switch is None:
            return Place("no_grad", join_sentences(sentences), step)
        text = _("set_grad_enabled(False) at {where} holds until other code switches the graph on again.")
        sentences.append(text.format(where=switch.where))
        return Place("no_grad", join_sentences(sentences), step, switch, is_likely=True)


class _Forwards:
    """Finds the places in the forward of a call, in front of it, or in a hook of it."""

    def __init__(self, trace: TraceData, code: CallCode, flow: CallFlow) -> None:
        self.trace, self._code, self._flow = trace, code, flow

    def on_the_way(self, path: tuple[int, int], taker: int, names: dict[str, str]) -> Place:
        """The place in front of a call or in its forward: it was given the numbers, and some graph."""
        text = _(
            "{user} got the numbers that {on} returned. Before it got them or in the forward of {user} the graph is "
            "cut, or that input is not used for {root}."
        )
        before = self._code.read_after(
            path, self._code.lines.get(taker), names["root"], self._flow.list_takers(path[1])
        )
        inside = self._code.read_inside(taker)
        code = list(dict.fromkeys([*before.code, *inside.code]))
        reading = Reading(code, before.other or inside.other)
        return _make_place("taken", text.format(**names), self._flow.begin.get(taker), reading)

    def inside_of(self, call: int, names: dict[str, str]) -> Place:
        """The place in the forward of a call that was given a graph, and of which the pass used something else."""
        text = _(
            "{user} got what {on} returned, with its graph. In the forward of {user} the graph is cut, or that "
            "input is not used for {root}."
        )
        reading, step = self._code.read_inside(call), self._flow.begin.get(call)
        replacing = self._flow.find_replaced_inputs(call)
        index = None if replacing is None else self.trace.rows[replacing].hook
        code = dict.fromkeys([*([] if index is None else self._code.read_hook(index)), *reading.code])
        sentence = join_sentences([text.format(**names), *self._tell_replacement(replacing)])
        return _make_place("taken", sentence, step, reading._replace(code=list(code)))

    def inside(self, call: int, names: dict[str, str]) -> Place:
        """The place in a call that was given a graph, and returned something without one."""
        text = _(
            "The forward of {on} cuts the graph, or does not use them: what it returned does not require grad (detach, "
            "no_grad, .data, numpy, or an op without a gradient)."
        )
        replacing = self._flow.find_replaced_inputs(call)
        sentence = join_sentences([text.format(**names), *self._tell_replacement(replacing)])
        return Place("inside", sentence, self._flow.end.get(call))

    def _tell_replacement(self, step: int | None) -> list[str]:
        """Say that a hook replaced the inputs of a call at a step."""
        hook = None if step is None else self.trace.steps[step].hook
        if step is None or hook is None:
            return []
        text = _("Or {hook} on {on} cuts it, which replaced the inputs (step {step}).")
        return [text.format(hook=hook.label, on=hook.on, step=f"{step + 1:,}")]

    def after_hooks(self, steps: list[int]) -> Place:
        """The place at forward hooks that replaced the output of a call, which had no graph afterwards."""
        rows = [self.trace.rows[step] for step in steps]
        hooks, call = [self.trace.hook(row.hook) for row in rows if row.hook is not None], rows[0].call
        assert call is not None
        if len(steps) > 1 or not self.trace.calls[call].forward_grad:
            text = _("The graph is cut in the forward of {on}, or in a hook that replaced its output: {hooks}.")
            names = {"on": self.trace.plain_call(call), "hooks": join_list(hook.label for hook in hooks)}
            return Place("inside", text.format(**names), self._flow.end.get(call))
        [hook] = hooks
        sentence = _("{hook} on {on} returned a tensor without a graph, which replaced the output (step {step}).")
        text = sentence.format(hook=hook.label, on=hook.on, step=f"{steps[0] + 1:,}")
        return Place("hook", text, steps[0], None if hook.line is None else CodePlace(hook.file, hook.line))


class PlaceFinder:
    """Finds the places for the parameters of one trace."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._code = CallCode(trace)
        self._follows_ops = follows_ops(trace)
        self._flow, self._root = CallFlow(trace), name_last_root(trace)
        self._bare_calls = _BareCalls(trace, self._code, self._flow)
        self._forwards = _Forwards(trace, self._code, self._flow)

    def find(self, owner: str, module: int | None, frozen: bool = False) -> Place:
        """Return the place where the graph between a module, named ``owner``, and the loss is cut.

        If it is cut at several places, this is the one nearest to the loss that the calls show. ``frozen``: whether the
        parameters in question did not require grad when the module was called.
        """
        calls, came = self._list_calls(module)
        names = {"on": owner, "root": self._root}
        if module is None or not calls:
            return Place("uncalled", _("{on} was never called as a module.").format(**names), None)
        if frozen:
            text = _("They did not require grad when {on} was called, only later: the graph was made without them.")
            return Place("frozen", text.format(**names), self._flow.begin.get(calls[-1]))
        if not came:
            step = self._flow.end.get(calls[-1], self._flow.begin.get(calls[-1]))
            return Place("no_pass", _("No backward pass began after {on} was called.").format(**names), step)
        # What is called after the last pass is only evaluated.
        return self._find_among(self._flow.list_before_steps(came, owner), names)

    def _list_calls(self, module: int | None) -> tuple[list[int], list[int]]:
        """List the calls of a module, and those of them that came before the last pass."""
        every = enumerate(self.trace.calls)
        calls = [index for index, call in every if call.module == module and not call.transformed]
        return calls, [call for call in calls if self._flow.begin.get(call, 0) < self._flow.last_seed]

    def find_missed_call(self, caller: int, attribute: str) -> Place | None:
        """Return the line of the forward of a module because of which it did not call one of its parts."""
        found = find_missed_call(self._code, caller, attribute)
        return None if found is None else Place(MISSED, found.sentence, None, found.code)

    def find_since(self, step: int, owner: str, module: int) -> Place:
        """Return the place where the graph of what a module computed after a step is cut."""
        calls = [index for index, call in enumerate(self.trace.calls) if call.module == module]
        later = [call for call in calls if step < self._flow.begin.get(call, 0) < self._flow.last_seed]
        names = {"on": owner, "root": self._root}
        if not later:
            return Place("uncalled", _("{on} was not called any more.").format(**names), None)
        return self._find_among(later, names)

    def explain_unused(self, place: Place, row: MissingRow) -> Place:
        """Add to the place of a parameter that no op of the graph uses what the text of the forward shows of it."""
        if place.key != "unused" or row.module is None:
            return place
        kind, attribute = self.trace.modules[row.module].kind, row.name.rpartition(".")[2]
        forward = self._code.find_forward(row.module)
        if forward is None:
            return place
        reading = self._code.read([forward.region])
        if not may_use(self._code, forward, attribute):
            text = _("The forward of {class} does not name {name}.").format(**{"class": kind, "name": attribute})
            return Place("unnamed", join_sentences([place.sentence, text]), place.step, forward.place)
        code = [one for one in reading.code if self._code.is_about(one, forward.region, f"self.{attribute}")]
        if code:
            return _make_place("within", place.sentence, place.step, reading._replace(code=code))
        missed = find_missed_use(self._code, row.module, attribute)
        if missed is None:
            return place
        sentence = join_sentences([place.sentence, missed.sentence])
        return Place("unused", sentence, place.step, missed.code, missed.is_likely)

    def _find_among(self, calls: list[int], names: dict[str, str]) -> Place:
        """Return the place for calls of a module before the last pass."""
        if not self._flow.used.isdisjoint(calls):
            call = next(call for call in calls if call in self._flow.used)
            text = _("{on} belongs to the graph of {root}, but these parameters do not: no op of the graph uses them.")
            return Place("unused", text.format(**names), self._flow.begin.get(call))
        with_graph = [call for call in calls if self.trace.calls[call].mode == "grad"]
        if not with_graph:
            return self._bare_calls.find(calls[-1])
        place = self.weigh(self._after(with_graph[-1], names), calls)
        others = [call for call in calls if call not in with_graph]
        # If the graph ends within a forward that the loss depends on, calls of another forward explain nothing.
        if place.key != "after" or place.code is not None or not others:
            return place
        return place._replace(sentence=join_sentences([place.sentence, self._bare_calls.find(others[-1]).sentence]))

    def weigh(self, place: Place, calls: Sequence[int]) -> Place:
        """Say that a place may not be the one that counts, if before another pass the calls recorded no graph at all.

        The place that is nearer to the last pass is named first.
        """
        bare = self._flow.find_call_without_graph(calls)
        if bare is None:
            return place
        places = [self._bare_calls.find(bare), place]
        if bare != calls[-1]:
            places.reverse()
        text = _("The cause is at one of two places, each before another pass.")
        return places[0]._replace(key="either", sentence=join_sentences([text, *(one.sentence for one in places)]))

    def weigh_cuts(self, place: Place, owner: str, module: int | None) -> Place:
        """Say that ops that cut may not be what counts, as ``weigh`` does, for the calls of a module."""
        counting = self._flow.list_before_steps(self._list_calls(module)[1], owner)
        if counting and all(self.trace.calls[call].mode != "grad" for call in counting):
            return self._bare_calls.find(counting[-1])
        return self.weigh(place, counting) if counting else place

    def find_before(self, step: int) -> Place | None:
        """Return where the graph of what the last call before a step returned is cut; None if nothing was called."""
        ended = [call for call, end in self._flow.end.items() if end < step]
        if not ended:
            return None
        last = ended[-1]
        row, names = self.trace.calls[last], {"on": self.trace.plain_call(last), "root": _("the loss")}
        earlier = self._find_graph_before(last, step) if row.frozen or row.mode != "grad" else None
        if earlier is not None and (row.frozen or self._may_cut_after(earlier, names["root"])):
            return self._after(earlier, names)
        if row.mode != "grad":
            return self._bare_calls.find(last)
        if row.frozen:
            text = _("What {on} returned does not require grad: neither its inputs nor its parameters do.")
            return Place("frozen", text.format(**names), self._flow.end[last])
        inside = (call for call in ended if last in iter_enclosing_calls(self.trace, call))
        with_grad = [call for call in inside if self.trace.calls[call].gives_grad]
        return self._after(with_grad[-1] if with_grad else last, names)

    def _find_graph_before(self, last: int, step: int) -> int | None:
        """Return the last call that returned a graph between the pass before a step and a call; None if none did."""
        seeds = (at for at, row in enumerate(self.trace.rows[:step]) if row.kind == "seed")
        start = max(seeds, default=-1)
        ended = ((call, end) for call, end in self._flow.end.items() if start < end < self._flow.end[last])
        found = [call for call, _end in ended if self.trace.calls[call].gives_grad]
        return found[-1] if found else None

    def _may_cut_after(self, call: int, root: str) -> bool:
        """Return whether code between a call and the pass can cut, beside what only switches the graph off."""
        reading = self._code.read_after((call, call), self._code.pass_line, root)
        return any(re.search(r"no_grad|inference_mode", one.text) is None for one in reading.code)

    def find_without_graph(self, module: int | None) -> Place | None:
        """Return the place of the last call of a module none of whose calls recorded a graph."""
        calls = [index for index, call in enumerate(self.trace.calls) if call.module == module]
        has_graph = any(self.trace.calls[call].mode == "grad" for call in calls)
        return None if has_graph or not calls else self._bare_calls.find(calls[-1])

    def _after(self, call: int, names: dict[str, str]) -> Place:
        """The place after a call that recorded a graph of which nothing belongs to a pass."""
        last, user = self._flow.follow(call)
        names = {**names, "on": self.trace.plain_call(last)}
        replacing, forwards = self._flow.list_replacing_hooks(last), self._forwards
        if replacing:
            return forwards.after_hooks(replacing)
        if self.trace.calls[last].gives_grad is False:
            return forwards.inside(last, names)
        if user is not None:
            is_same = self.trace.calls[last].module == self.trace.calls[user].module
            name = self.trace.call if is_same else self.trace.plain_call
            names |= {"on": name(last), "user": name(user)}
            return self._with_code("between", names, (call, last), self._code.lines.get(user))
        takers = self._flow.list_takers(last)
        taker = next((one for one in takers if self.trace.calls[one].takes_grad and one in self._flow.used), None)
        if taker is not None:
            names["user"] = self.trace.plain_call(taker)
            is_whole = self._flow.gets_graph(taker, last)
            return forwards.inside_of(taker, names) if is_whole else forwards.on_the_way((call, last), taker, names)
        outer = self._flow.find_outer(last)
        if outer is None:
            return self._with_code("after", names, (call, last), self._code.pass_line)
        names["outer"] = self.trace.plain_call(outer)
        return self._with_code("within", names, (call, last), None)

    def _with_code(self, key: str, names: dict[str, str], path: tuple[int, int], until: LineRow | None) -> Place:
        """Make a place after the last call that a graph reached, with the code that can cut there."""
        last = path[-1]
        reading = self._code.read_after(path, until, names["root"], self._flow.list_takers(last))
        if key in LIKELY_PLACES:
            inside = (self._code.read_inside(call) for call in self._flow.list_cutting_calls(last))
            code = dict.fromkeys((*reading.code, *(one for found in inside for one in found.code)))
            # No op was seen that cuts; what is written through .data is no op of the tensor that it is written to.
            unseen = [one for one in code if leaves_torch(one.text) or re.search(r"\.data\b", one.text)]
            reading = reading._replace(code=unseen if self._follows_ops else list(code))
        sentence, step = _(_CUTS[key]).format(**names), self._flow.end.get(last)
        return _make_place(key, sentence, step, reading, self._code.called_at(last))


def _make_place(key: str, sentence: str, step: int | None, reading: Reading, otherwise: Iterable[str] = ()) -> Place:
    """Make a place with the code that can cut there; without any, with other sentences."""
    text = join_sentences([sentence, *([describe_code(reading)] if reading.code else otherwise)])
    code = reading.code[0].place if len(reading.code) == 1 else None
    return Place(key, text, step, code, code is not None and bool(reading.other))
