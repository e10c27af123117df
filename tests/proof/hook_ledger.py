"""What a program itself knows of its hooks: which of them fired, and which causes can explain that one did not."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.autograd.graph import Node, get_gradient_edge

from tests.reasons import reasons

from .compare import graph_nodes, has_valid_grad_fn

MODULE_PLACES = ("forward_pre", "forward", "backward_pre", "backward")


@dataclass
class HookEntry:
    """A hook of the program."""

    name: str
    place: str
    kind: str
    """The construction that should keep it from firing; empty if none was meant to."""
    since: int
    """How often the program had begun what could call it (passes, calls of the module, steps) when it was added."""
    until: int | None = None
    """The same number when it was removed."""
    tensors: tuple[weakref.ref[Tensor], ...] = ()
    names: tuple[str, ...] = ()
    """The names of its tensors, where the program has them in variables; otherwise that of its module."""
    fired: int = 0
    none_in: set[int] = field(default_factory=set)
    """The passes in which a gradient that it was called with was None."""
    since_pass: int = 0
    """The number of passes that had begun when it was added."""


@dataclass
class PassEntry:
    """A backward pass of the program."""

    is_partial: bool
    reached: frozenset[str]
    """The names of the tensors in variables that belonged to its graph."""
    hooked: frozenset[str]
    """The hooks whose tensor belonged to its graph."""
    raised: bool = True


@dataclass
class Window:
    """What ran while one recording was open: the numbers when it began."""

    trace: Any
    passes: int
    fired: Counter[str]
    """Hook → how often it had fired before."""
    is_whole: bool
    end: int = 0
    """The number of passes when it ended."""


@dataclass
class HookLedger:
    """All hooks, passes and recordings of a program."""

    hooks: list[HookEntry] = field(default_factory=list)
    passes: list[PassEntry] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    """The passes that run, the innermost last."""
    calls: dict[str, int] = field(default_factory=dict)
    """Module → how often it was called. The steps of the optimizer are under ``optimizer``."""
    failed: set[str] = field(default_factory=set)
    """The modules whose last call raised."""

    def count(self, place: str, name: str = "") -> int:
        """Return how often something ran that could call a hook at a place."""
        return len(self.passes) if place not in (*MODULE_PLACES, "step") else self.calls.get(name, 0)

    def add(self, place: str, kind: str, tensors: Iterable[Tensor] = (), names: tuple[str, ...] = ()) -> HookEntry:
        """Add a hook that is about to be registered."""
        since = self.count(place, names[0] if names else "")
        references = tuple(weakref.ref(tensor) for tensor in tensors)
        name, begun = f"h{len(self.hooks)}", len(self.passes)
        entry = HookEntry(name, place, kind, since, tensors=references, names=names, since_pass=begun)
        self.hooks.append(entry)
        return entry

    def remove(self, number: int) -> None:
        """Note that a hook is removed."""
        entry = self.hooks[number]
        if entry.until is None:
            entry.until = self.count(entry.place, entry.names[0] if entry.names else "")

    def named(self, tensor: Tensor, name: str) -> None:
        """Note that the program has a tensor in a variable from now on."""
        for entry in self.hooks:
            if any(reference() is tensor for reference in entry.tensors):
                entry.names += (name,)

    @contextmanager
    def call(self, name: str) -> Iterator[None]:
        """Note that a module is called, or that the optimizer takes a step, and whether that raises."""
        self.calls[name] = self.calls.get(name, 0) + 1
        self.failed.add(name)
        yield
        self.failed.discard(name)

    def pass_begins(self, roots: Iterable[Tensor], named: Mapping[str, Tensor], *, is_partial: bool) -> PassEntry:
        """Note that a pass begins, and which of the named tensors and of those with hooks belong to its graph."""
        nodes = set(graph_nodes(roots))
        reached = frozenset(name for name, tensor in named.items() if _is_reached(tensor, nodes))
        tensors = ((entry.name, tensor()) for entry in self.hooks for tensor in entry.tensors)
        hooked = frozenset(name for name, tensor in tensors if tensor is not None and _is_reached(tensor, nodes))
        self.passes.append(PassEntry(is_partial, reached, hooked))
        self.running.append(len(self.passes) - 1)
        return self.passes[-1]

    def recording_begins(self, trace: Any, *, is_whole: bool) -> None:
        """Note that a recording began; None if nothing is recorded."""
        if trace is not None:
            self.windows.append(Window(trace, len(self.passes), self._firings(), is_whole))

    def recording_ends(self) -> None:
        """Note that a recording is about to end: from now on its counter has what fired in it."""
        if self.windows:
            window = self.windows[-1]
            before, window.end = window.fired, len(self.passes)
            window.fired = Counter({name: n - before[name] for name, n in self._firings().items()})

    def _firings(self) -> Counter[str]:
        return Counter({entry.name: entry.fired for entry in self.hooks})


def _is_reached(tensor: Tensor, nodes: set[Node]) -> bool:
    return has_valid_grad_fn(tensor) and tensor.requires_grad and get_gradient_edge(tensor).node in nodes


def check_unfired(ledger: HookLedger) -> None:
    """Assert that each recording lists the hooks that did not fire in it, with causes that are possible."""
    for window in ledger.windows:
        _check_window(ledger, window)


def _check_window(ledger: HookLedger, window: Window) -> None:
    entries = {entry.name: entry for entry in ledger.hooks}
    rows = list(reasons(window.trace))
    silent = [row.name for row in rows if not row.fired]
    assert len(set(silent)) == len(silent), f"listed twice: {silent}"
    wrong = [entries[name] for name in silent if window.fired[name]]
    assert not wrong, f"fired, but listed as silent: {wrong}"
    if window.is_whole:
        missing = [entry for entry in ledger.hooks if _must_be_listed(ledger, entry) and entry.name not in silent]
        assert not missing, f"did not fire, and not listed: {missing}"
        odd = {row.name for row in rows if row.cause in ("undefined", "partly")}
        with_none = [entry for entry in ledger.hooks if entry.none_in and entry.place in ("tensor", "multi")]
        # Of a hook in which a pass ended there is a step of the exception, without what it was called with.
        certain = {one.name for one in with_none if not all(ledger.passes[index].raised for index in one.none_in)}
        possible = {entry.name for entry in with_none}
        assert certain <= odd <= possible, f"called with None: {sorted(certain)} {sorted(possible)}, listed: {odd}"
    for row in rows:
        if not row.fired and row.is_proven:
            allowed = possible_causes(ledger, entries[row.name], window)
            assert row.cause in allowed, f"{row.cause} is not one of {sorted(allowed)}: {entries[row.name]}"


def _must_be_listed(ledger: HookLedger, entry: HookEntry) -> bool:
    """Return whether a hook that did not fire has to be among those that a recording of the whole program lists."""
    if entry.place.startswith("node"):  # hookviz knows the hooks of a node only once a pass has the node on its graph
        return False
    # torch's own part of a multi-grad hook may raise before the hook runs: its step is then that of the hook.
    may_have_raised = entry.place.startswith("multi") and any(
        one.raised for one in ledger.passes[max(entry.since - 1, 0) :]
    )
    return not (entry.fired or may_have_raised)


def possible_causes(ledger: HookLedger, entry: HookEntry, window: Window) -> set[str]:
    """Return the causes for which a hook of the program can be silent in a recording."""
    if entry.place == "step":
        return {*_causes_of_steps(ledger, entry), "raised"}
    if entry.place in MODULE_PLACES:
        return set(_causes_of_modules(ledger, entry, window))
    return set(_causes_of_tensors(ledger, entry, window))


def _causes_of_steps(ledger: HookLedger, entry: HookEntry) -> Iterator[str]:
    if entry.until is not None:
        yield "removed"
    if not ledger.calls.get("optimizer"):
        yield "no_step"
    elif ledger.calls["optimizer"] == entry.since:
        yield "after_step"


def _causes_of_tensors(ledger: HookLedger, entry: HookEntry, window: Window) -> Iterator[str]:
    begin = max(entry.since, window.passes)
    passes = ledger.passes[begin : window.end if entry.until is None else min(entry.until, window.end)]
    begun = [one for one in passes if not one.raised]  # torch may refuse a pass before it begins
    in_window = ledger.passes[window.passes : window.end]
    if not begun:
        yield from ("removed",) if entry.until is not None else ()  # perhaps in a later recording
        yield from ("after_pass",) if in_window else ()
    if all(one.raised for one in in_window):
        yield "no_pass"
    if in_window and in_window[-1].raised:
        yield "raised"
    if all(one.raised for one in passes):
        yield "raised"
    if any(one.is_partial for one in passes):
        yield from ("partial", "partial.grad" if entry.place == "post_accumulate" else "partial")
    if entry.kind == "frozen":
        yield "frozen"
    if entry.names and not any(one.reached.intersection(entry.names) for one in passes):
        yield from ("not_in_graph", "not_in_graph.view")
        yield from (("detour", "dropped") if entry.kind not in ("detached", "frozen", "multi outside") else ())
    if not entry.names and not any(entry.name in one.hooked for one in passes):
        yield from ("not_in_graph", "not_in_graph.view", "detour", "dropped")
    if ledger.passes[window.passes : entry.since]:
        yield "after_pass"  # the tensor may have been in the graph of one of these


def _causes_of_modules(ledger: HookLedger, entry: HookEntry, window: Window) -> Iterator[str]:
    (name,) = entry.names
    calls = ledger.calls.get(name, 0)
    in_window = ledger.passes[window.passes : window.end]
    is_used = any(f"{name}.weight" in one.reached for one in in_window)
    if entry.until is not None and entry.until == entry.since:
        yield "removed"
    if not window.is_whole:
        yield from ("removed",) if entry.until is not None else ()
        yield from ("never_called", "no_pass", "outside", "partial", "raised")
    if not calls:
        yield "bypassed" if is_used else "never_called"
    elif entry.since == calls:
        yield "after_call" if entry.place.startswith("forward") else "after_call.backward"
    if name in ledger.failed:
        yield "raised"
    if in_window and in_window[-1].raised:
        yield "raised"
    if entry.place.startswith("backward") and calls:
        yield from _causes_of_backward_hooks(ledger, entry)


def _causes_of_backward_hooks(ledger: HookLedger, entry: HookEntry) -> Iterator[str]:
    """Yield the causes for which a backward hook of a module that was called is silent."""
    if entry.names == ("unrecorded",):
        yield "no_grad"
        return
    passes = ledger.passes[entry.since_pass :]
    if all(one.raised for one in ledger.passes):
        yield "no_pass"
    if all(one.raised for one in passes):
        yield "raised"
    if any(one.is_partial for one in passes):
        yield "partial"
    if entry.until == entry.since and any(f"{entry.names[0]}.output {entry.since}" in one.reached for one in passes):
        yield "after_call.backward"  # it came after this call, and may have stayed for the pass through it
    calls = range(entry.since + 1, 1 + (ledger.calls[entry.names[0]] if entry.until is None else entry.until))
    if not any(f"{entry.names[0]}.output {call}" in one.reached for call in calls for one in passes):
        yield "outside"
