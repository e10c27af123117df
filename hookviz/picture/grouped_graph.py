"""Boxes that hold others: what stands on them, and where the ways from and to the outside end."""

from collections.abc import Iterator
from dataclasses import dataclass

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping import Group, Member, View, kind_label
from hookviz.picture.grouping.activity import BoxActivity, NormRange, PassActivity, list_norm_ranges
from hookviz.picture.primitives import MAX_NAME, Arrow, fit_on_line, relative_name
from hookviz.support.messages import join, say
from hookviz.trace import TraceData
from hookviz.trace.values import number

MAX_PORTS = 3
"""On one side of a box no more neighbours than this are named."""


@dataclass
class GroupBox:
    """A box that can be entered."""

    id: str
    name: str
    description: str
    """What kind of thing it is, and how much is in it."""
    texts: dict[str, dict[int, str]]
    """Id of a text on it → step → what it says from then on."""
    steps: list[int]
    """Those that are about what is in it."""

    def longest_text(self, text_id: str) -> str:
        """The longest text in one of its places."""
        return max(self.texts.get(text_id, {}).values(), key=len, default="")


@dataclass
class Port:
    """What lies outside the box that one has entered, where a way leads there."""

    id: str
    label: str
    is_source: bool
    """Whether gradients come from there."""
    member: Member | None = None
    """What lies there; None where that is more than one thing."""


def make_group_box(trace: TraceData, group: Group, activity: PassActivity, module: str) -> GroupBox:
    """The closed box of ``fold`` within the module ``around``."""
    return make_activity_box(
        group.id, *describe_group(trace, group, module), activity.merge_group(group), activity.first
    )


def make_activity_box(id: str, name: str, description: str, activity: BoxActivity, first_step: int) -> GroupBox:
    """A closed box in which ``of`` happened; from step ``first`` on it tells how many of its hooks have fired."""
    texts = {
        ids.gradient_id(id): {range_.step: _format_range(range_) for range_ in list_norm_ranges(activity.arrivals)}
    }
    if activity.hooks:
        firings = {hook: step for step, hook in reversed(activity.firings)}
        steps = sorted(firings.values())
        counts = {step: _format_fired(count, len(activity.hooks)) for count, step in enumerate(steps, 1)}
        texts[ids.fired_count_id(id)] = {first_step: _format_fired(0, len(activity.hooks)), **counts}
    return GroupBox(id, name, description, texts, activity.steps)


def _format_fired(fired: int, count: int) -> str:
    return say("fold.hook" if count == 1 else "fold.hooks", fired=fired, count=count)


def _format_range(norms: NormRange) -> str:
    low, high = number(norms.low, 2), number(norms.high, 2)
    has_finite = norms.low <= norms.high
    text = (low if low == high else say("fold.range", low=low, high=high)) if has_finite else ""
    nonfinite = say("fold.bad", count=f"{norms.nonfinite_count:,}") if norms.nonfinite_count else ""
    return say("fold.norms", norms=join("join.facts", (text, nonfinite)))


def describe_group(trace: TraceData, group: Group, module: str = "") -> tuple[str, str]:
    """What a box is called, inside the module ``around``, and what it is."""
    nodes = format_count("node", len(group.nodes))
    if group.call >= 0:
        kind = trace.modules[trace.calls[group.call].module].kind
        return relative_name(trace.call(group.call), module), say("fold.about", kind=kind, nodes=nodes)
    members = group.unsplit_members
    count, labels = f"{len(members):,}", {kind_label(trace, member) for member in members}
    if group.kind != "part":
        return say("fold.many", count=count, kind=labels.pop()), say(f"fold.{group.kind}", nodes=nodes)
    ends = [_name_call(trace, member, module) for member in (members[0], members[-1])]
    range_text = say("fold.part", first=f"{group.offset + 1:,}", last=f"{group.offset + len(members):,}")
    kinds = ", ".join(sorted(labels))
    return say("fold.ends", first=ends[0], last=ends[1]) if all(ends) else range_text, say(
        "fold.about", kind=kinds, nodes=nodes
    )


def _name_call(trace: TraceData, member: Member, module: str) -> str:
    """A name for one end of a part; a node's op is none, since most are alike."""
    call = -1 if isinstance(member, int) else member.call
    return relative_name(trace.call(call), module) if call >= 0 else ""


def format_count(kind: str, count: int) -> str:
    """``1 node``, ``2 nodes``."""
    return say(f"fold.{kind}" if count == 1 else f"fold.{kind}s", count=f"{count:,}")


def box_id(member: Member) -> str:
    """The id of a node's box, or of a closed one."""
    return ids.node_id(member) if isinstance(member, int) else member.id


@dataclass
class ViewArrows:
    """The arrows of a view: one for each edge between two nodes, one for all edges between two other boxes."""

    single: dict[tuple[int, int], Arrow]
    bundles: dict[str, Arrow]
    ports: list[Port]
    starts: dict[str, set[int]]
    """Id of an arrow for several edges → the nodes from which they lead."""


def connect_view(view: View) -> ViewArrows:
    """How the boxes of ``view`` hang together, and with what lies outside."""
    arrows = ViewArrows({}, {}, [], {})
    outside: dict[tuple[bool, str], dict[str, set[int]]] = {}
    members: dict[str, Member] = {}
    for (start, slot), end in _list_edges(view):
        near_start, near_end = view.members_by_node.get(start), view.members_by_node.get(end)
        if near_start is not None and near_end is not None:
            _add_arrow(arrows, (start, slot, end), near_start, near_end)
        elif near_start is not None or near_end is not None:
            above, near = near_start is None, near_end if near_start is None else near_start
            assert near is not None
            far = _find_outside_member(view, start if above else end)
            label = _label_outside_member(view.tree.trace, far)
            members.setdefault(label, far)
            outside.setdefault((above, label), {}).setdefault(box_id(near), set()).add(start)
    _add_ports(arrows, outside, members)
    return arrows


def _list_edges(view: View) -> Iterator[tuple[tuple[int, int], int]]:
    """Those from and to what is seen; a leaf may be used in other passes, too."""
    tree, inside = view.tree, view.members_by_node
    for node in inside:
        yield from (((node, slot), end) for slot, end in tree.edges_out.get(node, ()))
        before = tree.edges_in.get(node, ())
        yield from (
            ((start, slot), node) for start, slot in before if start in tree.innermost_groups and start not in inside
        )


def _add_arrow(arrows: ViewArrows, edge: tuple[int, int, int], start_member: Member, end_member: Member) -> None:
    start, slot, end = edge
    if isinstance(start_member, int) and isinstance(end_member, int):
        arrows.single[start, slot] = Arrow(ids.edge_id(start, slot, end), ids.node_id(start), ids.node_id(end))
    elif start_member is not end_member:
        _add_to_bundle(arrows, box_id(start_member), box_id(end_member), {start})


def _add_to_bundle(arrows: ViewArrows, start: str, end: str, starts: set[int]) -> None:
    arrow_id = ids.bundle_id(start, end)
    arrows.bundles.setdefault(arrow_id, Arrow(arrow_id, start, end))
    arrows.starts.setdefault(arrow_id, set()).update(starts)


def _find_outside_member(view: View, node: int) -> Member:
    """What a node outside is to be seen as: the nearest box around it that is not around the view as well."""
    enclosing = set(view.group.chain_outwards())
    member: Member = node
    group: Group | None = view.tree.innermost_groups[node]
    while group is not None and group not in enclosing:
        member, group = group, group.parent
    return member


def _label_outside_member(trace: TraceData, member: Member) -> str:
    """What it is called."""
    return fit_on_line(trace.name(member, 0) if isinstance(member, int) else describe_group(trace, member)[0], MAX_NAME)


def _add_ports(
    arrows: ViewArrows, outside: dict[tuple[bool, str], dict[str, set[int]]], members: dict[str, Member]
) -> None:
    for is_source in (True, False):
        ports = {label: near for (side, label), near in outside.items() if side is is_source}
        if len(ports) > MAX_PORTS:
            joined: dict[str, set[int]] = {}
            for near in ports.values():
                for box, starts in near.items():
                    joined.setdefault(box, set()).update(starts)
            ports = {format_count("place", len(ports)): joined}
        for label, near in ports.items():
            label_text = say("fold.from" if is_source else "fold.to", where=label)
            port = Port(ids.port_id(len(arrows.ports)), label_text, is_source, members.get(label))
            arrows.ports.append(port)
            for box, starts in near.items():
                _add_to_bundle(arrows, *((port.id, box) if is_source else (box, port.id)), starts)
