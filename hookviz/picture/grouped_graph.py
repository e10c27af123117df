"""The boxes of groups and what steps write on them, and the arrows and ports of a view with such boxes."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping import Group, Member, View, kind_label
from hookviz.picture.grouping.activity import BoxActivity, NormRange, PassActivity, list_norm_ranges
from hookviz.picture.primitives import MAX_NAME, Arrow, fit_on_line, relative_name
from hookviz.support.messages import _
from hookviz.trace import TraceData
from hookviz.trace.values import format_number

MAX_PORTS = 3
"""The maximum number of ports on one side of a view; if there are more neighbours, one port stands for all of them."""


@dataclass
class StackBar:
    """A bar of a stack: one of its members, or several of them if they are many."""

    group_id: str
    """The id of its first member."""
    count: int
    steps: list[int]
    norms: list[tuple[int, float]]
    """(step, norm of the gradient that arrived then)."""


@dataclass
class GroupBox:
    """The closed box of a group, which can be entered."""

    id: str
    name: str
    description: str
    """The kind of its members, and how many nodes it has."""
    texts: dict[str, dict[int, str]]
    """Id of a text on it → step → the text from that step on."""
    steps: list[int]
    """The steps about what is in it."""
    full_name: str = ""
    """Its whole name; ``name`` may be cut, or relative."""
    stack: list[StackBar] = field(default_factory=list)
    """Its bars, if it stands for equal siblings."""

    def longest_text(self, text_id: str) -> str:
        """Return the longest text that any step writes in one place; empty if none does."""
        return max(self.texts.get(text_id, {}).values(), key=len, default="")


@dataclass
class Port:
    """The end of arrows that lead from or to boxes outside the view."""

    id: str
    label: str
    is_source: bool
    """Whether gradients come from there, rather than go there."""
    member: Member | None = None
    """The node or group outside; None if there are several."""


def make_group_box(trace: TraceData, group: Group, activity: PassActivity, module: str) -> GroupBox:
    """Make the closed box of ``group``; names inside ``module`` are relative to it."""
    name, description = describe_group(trace, group, module)
    inside = activity.merge_group(group)
    ranges = {norms.step: _format_range(norms) for norms in list_norm_ranges(inside.arrivals)}
    texts = {ids.gradient_id(group.id): ranges}
    if inside.hooks:
        texts[ids.fired_count_id(group.id)] = _count_fired(inside, activity.first)
    return GroupBox(group.id, name, description, texts, inside.steps)


def _count_fired(activity: BoxActivity, first_step: int) -> dict[int, str]:
    """Return step → how many hooks have fired by then, from ``first_step`` on."""
    first_firings = {hook: step for step, hook in reversed(activity.firings)}
    counts = enumerate(sorted(first_firings.values()), 1)
    total = len(activity.hooks)
    return {first_step: _format_fired(0, total), **{step: _format_fired(count, total) for count, step in counts}}


def _format_fired(fired: int, count: int) -> str:
    return (_("1 hook, {fired} fired") if count == 1 else _("{count} hooks, {fired} fired")).format(
        fired=fired, count=count
    )


def _format_range(norms: NormRange) -> str:
    low, high = format_number(norms.low, 2), format_number(norms.high, 2)
    has_finite = norms.low <= norms.high
    text = (low if low == high else f"{low} … {high}") if has_finite else ""
    nonfinite = _("{count} with NaN or Inf").format(count=f"{norms.nonfinite_count:,}") if norms.nonfinite_count else ""
    return _("gradient norm {norms}").format(norms=" · ".join(filter(None, (text, nonfinite))))


def describe_group(trace: TraceData, group: Group, module: str = "") -> tuple[str, str]:
    """Return the name and the description of a group; names inside ``module`` are relative to it."""
    nodes = _count_nodes(len(group.nodes))
    if group.call is not None:
        kind = trace.modules[trace.calls[group.call].module].kind
        return relative_name(trace.call(group.call), module), f"{kind} · {nodes}"
    members = group.unsplit_members
    count, labels = f"{len(members):,}", {kind_label(trace, member) for member in members}
    if group.kind != "part":
        order = _("in sequence · {nodes}") if group.kind == "run" else _("in parallel · {nodes}")
        return f"{count} × {labels.pop()}", order.format(nodes=nodes)
    ends = [_name_call(trace, member, module) for member in (members[0], members[-1])]
    range_text = f"{group.offset + 1:,} – {group.offset + len(members):,}"
    kinds = ", ".join(sorted(labels))
    return f"{ends[0]} … {ends[1]}" if all(ends) else range_text, f"{kinds} · {nodes}"


def _name_call(trace: TraceData, member: Member, module: str) -> str:
    """Return the relative name of a call, or an empty text for a node, since the ops of most nodes are alike."""
    call = None if isinstance(member, int) else member.call
    return "" if call is None else relative_name(trace.call(call), module)


def _count_nodes(count: int) -> str:
    return _("1 node") if count == 1 else _("{count} nodes").format(count=f"{count:,}")


def _count_places(count: int) -> str:
    return _("1 place") if count == 1 else _("{count} places").format(count=f"{count:,}")


def box_id(member: Member) -> str:
    """Return the id of the box of a node or a group."""
    return ids.node_id(member) if isinstance(member, int) else member.id


@dataclass
class ViewArrows:
    """The arrows of a view: one for each edge between two nodes, one for all edges between two other boxes."""

    single: dict[tuple[int, int], Arrow]
    """(node, input) → the arrow of that edge."""
    bundles: dict[str, Arrow]
    """Id of an arrow that stands for several edges → the arrow."""
    ports: list[Port]
    starts: dict[str, set[int]]
    """Id of such an arrow → the nodes at which its edges start."""


def connect_view(view: View) -> ViewArrows:
    """Make the arrows between the boxes of ``view``, and its ports with the arrows from and to them."""
    arrows = ViewArrows({}, {}, [], {})
    outside: dict[tuple[bool, str], dict[str, set[int]]] = {}  # (is a source, label) → box inside → nodes at the start
    members: dict[str, Member] = {}
    for (start, slot), end in _list_edges(view):
        near_start, near_end = view.members_by_node.get(start), view.members_by_node.get(end)
        if near_start is not None and near_end is not None:
            _add_arrow(arrows, (start, slot, end), near_start, near_end)
        elif near_start is not None or near_end is not None:
            is_source, inner = near_start is None, near_end if near_start is None else near_start
            assert inner is not None
            neighbour = _find_outside_member(view, start if is_source else end)
            label = _label_outside_member(view.tree.trace, neighbour)
            members.setdefault(label, neighbour)
            outside.setdefault((is_source, label), {}).setdefault(box_id(inner), set()).add(start)
    _add_ports(arrows, outside, members)
    return arrows


def _list_edges(view: View) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield ((node, input), node) for each edge of this pass from or to a node in the view.

    An edge from another pass can end at a leaf of this one; it is left out.
    """
    tree, inside = view.tree, view.members_by_node
    for node in inside:
        yield from (((node, slot), end) for slot, end in tree.edges_out.get(node, ()))
        for start, slot in tree.edges_in.get(node, ()):
            if start in tree.innermost_groups and start not in inside:
                yield (start, slot), node


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
    """Return the outermost group around a node outside that is not around the view as well, or else the node."""
    enclosing = set(view.group.chain_outwards())
    member: Member = node
    group: Group | None = view.tree.innermost_groups[node]
    while group is not None and group not in enclosing:
        member, group = group, group.parent
    return member


def _label_outside_member(trace: TraceData, member: Member) -> str:
    """Return the label of a port to a node or group outside."""
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
            ports = {_count_places(len(ports)): joined}
        for label, near in ports.items():
            label_text = (_("from {where}") if is_source else _("to {where}")).format(where=label)
            port = Port(ids.port_id(len(arrows.ports)), label_text, is_source, members.get(label))
            arrows.ports.append(port)
            for box, starts in near.items():
                _add_to_bundle(arrows, *((port.id, box) if is_source else (box, port.id)), starts)
