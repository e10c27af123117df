"""Boxes that hold others: what stands on them, and where the ways from and to the outside end."""

from collections.abc import Iterator
from dataclasses import dataclass

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping import Group, Member, View, label_of
from hookviz.picture.grouping.activity import Activity, Of, Range, ranges
from hookviz.picture.primitives import NAME_ROOM, Arrow, short, within
from hookviz.support.messages import join, say
from hookviz.trace import TraceData
from hookviz.trace.values import format_number

FEW_PORTS = 3
"""On one side of a box no more neighbours than this are named."""


@dataclass
class GroupBox:
    """A box that can be entered."""

    id: str
    name: str
    about: str
    """What kind of thing it is, and how much is in it."""
    texts: dict[str, dict[int, str]]
    """Id of a text on it → step → what it says from then on."""
    steps: list[int]
    """Those that are about what is in it."""

    def longest(self, spot: str) -> str:
        """The longest text in one of its places."""
        return max(self.texts.get(spot, {}).values(), key=len, default="")


@dataclass
class Port:
    """What lies outside the box that one has entered, where a way leads there."""

    id: str
    label: str
    above: bool
    """Whether gradients come from there."""
    far: Member | None = None
    """What lies there; None where that is more than one thing."""


def group_box(trace: TraceData, fold: Group, happened: Activity, around: str) -> GroupBox:
    """The closed box of ``fold`` within the module ``around``."""
    return box_about(fold.id, *named(trace, fold, around), happened.inside(fold), happened.first)


def box_about(id: str, name: str, about: str, of: Of, first: int) -> GroupBox:
    """A closed box in which ``of`` happened; from step ``first`` on it tells how many of its hooks have fired."""
    texts = {ids.gradient(id): {found.step: _range(found) for found in ranges(of.arrived)}}
    if of.hooks:
        firings = {hook: step for step, hook in reversed(of.fired)}
        steps = sorted(firings.values())
        counts = {step: _fired(count, len(of.hooks)) for count, step in enumerate(steps, 1)}
        texts[ids.fired(id)] = {first: _fired(0, len(of.hooks)), **counts}
    return GroupBox(id, name, about, texts, of.steps)


def _fired(fired: int, count: int) -> str:
    return say("fold.hook" if count == 1 else "fold.hooks", fired=fired, count=count)


def _range(found: Range) -> str:
    low, high = format_number(found.low, 2), format_number(found.high, 2)
    finite = found.low <= found.high
    norms = (low if low == high else say("fold.range", low=low, high=high)) if finite else ""
    bad = say("fold.bad", count=f"{found.bad:,}") if found.bad else ""
    return say("fold.norms", norms=join("join.facts", (norms, bad)))


def named(trace: TraceData, fold: Group, around: str = "") -> tuple[str, str]:
    """What a box is called, inside the module ``around``, and what it is."""
    nodes = count_of("node", len(fold.nodes))
    if fold.call >= 0:
        kind = trace.modules[trace.calls[fold.call].module].kind
        return within(trace.call(fold.call), around), say("fold.about", kind=kind, nodes=nodes)
    members = fold.counted
    many, like = f"{len(members):,}", {label_of(trace, member) for member in members}
    if fold.kind != "part":
        return say("fold.many", count=many, kind=like.pop()), say(f"fold.{fold.kind}", nodes=nodes)
    ends = [_called(trace, member, around) for member in (members[0], members[-1])]
    places = say("fold.part", first=f"{fold.place + 1:,}", last=f"{fold.place + len(members):,}")
    kinds = ", ".join(sorted(like))
    return say("fold.ends", first=ends[0], last=ends[1]) if all(ends) else places, say(
        "fold.about", kind=kinds, nodes=nodes
    )


def _called(trace: TraceData, member: Member, around: str) -> str:
    """A name for one end of a part; a node's op is none, since most are alike."""
    call = -1 if isinstance(member, int) else member.call
    return within(trace.call(call), around) if call >= 0 else ""


def count_of(kind: str, count: int) -> str:
    """``1 node``, ``2 nodes``."""
    return say(f"fold.{kind}" if count == 1 else f"fold.{kind}s", count=f"{count:,}")


def spot(member: Member) -> str:
    """The id of a node's box, or of a closed one."""
    return ids.node(member) if isinstance(member, int) else member.id


@dataclass
class Ways:
    """The arrows of a view: one for each edge between two nodes, one for all edges between two other boxes."""

    single: dict[tuple[int, int], Arrow]
    bundles: dict[str, Arrow]
    ports: list[Port]
    starts: dict[str, set[int]]
    """Id of an arrow for several edges → the nodes from which they lead."""


def ways(view: View) -> Ways:
    """How the boxes of ``view`` hang together, and with what lies outside."""
    found = Ways({}, {}, [], {})
    outside: dict[tuple[bool, str], dict[str, set[int]]] = {}
    places: dict[str, Member] = {}
    for (start, slot), end in _edges(view):
        at, to = view.shown.get(start), view.shown.get(end)
        if at is not None and to is not None:
            _join(found, (start, slot, end), at, to)
        elif at is not None or to is not None:
            above, near = at is None, to if at is None else at
            assert near is not None
            far = _far(view, start if above else end)
            label = _outside(view.tree.trace, far)
            places.setdefault(label, far)
            outside.setdefault((above, label), {}).setdefault(spot(near), set()).add(start)
    _open_ports(found, outside, places)
    return found


def _edges(view: View) -> Iterator[tuple[tuple[int, int], int]]:
    """Those from and to what is seen; a leaf may be used in other passes, too."""
    tree, mine = view.tree, view.shown
    for node in mine:
        yield from (((node, slot), end) for slot, end in tree.following.get(node, ()))
        before = tree.before.get(node, ())
        yield from (((start, slot), node) for start, slot in before if start in tree.around and start not in mine)


def _join(found: Ways, edge: tuple[int, int, int], at: Member, to: Member) -> None:
    start, slot, end = edge
    if isinstance(at, int) and isinstance(to, int):
        found.single[start, slot] = Arrow(ids.edge(start, slot, end), ids.node(start), ids.node(end))
    elif at is not to:
        _bundle(found, spot(at), spot(to), {start})


def _bundle(found: Ways, start: str, end: str, starts: set[int]) -> None:
    name = ids.bundle(start, end)
    found.bundles.setdefault(name, Arrow(name, start, end))
    found.starts.setdefault(name, set()).update(starts)


def _far(view: View, node: int) -> Member:
    """What a node outside is to be seen as: the nearest box around it that is not around the view as well."""
    mine = set(view.fold.chain())
    at: Member = node
    around: Group | None = view.tree.around[node]
    while around is not None and around not in mine:
        at, around = around, around.parent
    return at


def _outside(trace: TraceData, far: Member) -> str:
    """What it is called."""
    return short(trace.name(far, 0) if isinstance(far, int) else named(trace, far)[0], NAME_ROOM)


def _open_ports(found: Ways, outside: dict[tuple[bool, str], dict[str, set[int]]], far: dict[str, Member]) -> None:
    for above in (True, False):
        there = {label: near for (side, label), near in outside.items() if side is above}
        if len(there) > FEW_PORTS:
            joined: dict[str, set[int]] = {}
            for near in there.values():
                for one, starts in near.items():
                    joined.setdefault(one, set()).update(starts)
            there = {count_of("place", len(there)): joined}
        for label, near in there.items():
            said = say("fold.from" if above else "fold.to", where=label)
            port = Port(ids.port(len(found.ports)), said, above, far.get(label))
            found.ports.append(port)
            for one, starts in near.items():
                _bundle(found, *((port.id, one) if above else (one, port.id)), starts)
