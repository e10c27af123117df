"""The names of groups: the path of a call, what the members of a group have in common, and how many nodes it has."""

from hookviz.picture.grouping import Group, Member, kind_label
from hookviz.picture.primitives import MAX_NAME, fit_on_line, strip_module
from hookviz.support.messages import _
from hookviz.trace import TraceData


def name_group(trace: TraceData, group: Group, module: str = "", max_chars: int = MAX_NAME) -> str:
    """Return the name of a group; names of modules are relative to ``module``, and each is cut to ``max_chars``."""
    if group.call is not None:
        return _name_call(trace, group, module, max_chars)
    members = group.unsplit_members
    count = f"{len(members):,}"
    if group.kind == "rest":
        return _("{count} more").format(count=count)
    if group.kind in ("run", "fan"):
        return f"{count} × {kind_label(trace, members[0])}"
    ends = [_name_call(trace, member, module, max_chars) for member in (members[0], members[-1])]
    return f"{ends[0]} … {ends[1]}" if all(ends) else f"{group.offset + 1:,} – {group.offset + len(members):,}"


def describe_group(trace: TraceData, group: Group) -> str:
    """Describe what is in a group: the kinds of its members, and how many nodes."""
    nodes = _count_nodes(len(group.nodes))
    if group.kind == "rest":
        return nodes
    if group.kind in ("run", "fan"):
        order = _("in sequence · {nodes}") if group.kind == "run" else _("in parallel · {nodes}")
        return order.format(nodes=nodes)
    members = group.unsplit_members if group.call is None else [group]
    kinds = ", ".join(sorted({kind_label(trace, member) for member in members}))
    return f"{kinds} · {nodes}"


def _name_call(trace: TraceData, member: Member, module: str, max_chars: int) -> str:
    """Return the relative name of a call, or an empty text for a node, since the ops of most nodes are alike."""
    call = None if isinstance(member, int) else member.call
    return "" if call is None else fit_on_line(strip_module(trace.call(call), module), max_chars)


def _count_nodes(count: int) -> str:
    return _("1 node") if count == 1 else _("{count} nodes").format(count=f"{count:,}")
