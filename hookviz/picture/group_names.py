"""The names of groups: the path of a call, what the members of a group have in common, and how many nodes it has."""

from itertools import takewhile

from hookviz.picture.grouping import Group, Member, kind_label
from hookviz.picture.primitives import MAX_NAME, fit_name, fit_on_line, strip_module
from hookviz.support.messages import _
from hookviz.trace import TraceData

MAX_KINDS = 36
"""Characters of a list of kinds: a longer one makes its box so wide that little beside it fits a screen."""


def name_group(trace: TraceData, group: Group, module: str = "", max_chars: int = MAX_NAME) -> str:
    """Return the name of a group; names of modules are relative to ``module``, and each is cut to ``max_chars``."""
    if group.named_call is not None:
        return _name_call(trace, group, module, max_chars)
    if group.kind == "stack":
        return f"{_name_equal_calls(trace, group, module, max_chars)} × {len(group.stacked_calls):,}"
    members = group.unsplit_members
    count = f"{len(members):,}"
    if group.kind == "rest":
        return _("{count} more").format(count=count)
    if group.kind in ("run", "fan"):
        return f"{count} × {kind_label(trace, members[0])}"
    ends = [_name_call(trace, member, module, max_chars) for member in (members[0], members[-1])]
    return f"{ends[0]} … {ends[1]}" if all(ends) else f"{group.offset + 1:,} – {group.offset + len(members):,}"


def describe_group(trace: TraceData, group: Group) -> str:
    """Describe what is in a group: the kinds of its members; and of other nodes, how many they are."""
    nodes = _count_nodes(len(group.nodes))
    if group.kind == "rest":
        return nodes
    if group.kind in ("run", "fan"):
        order = _("in sequence · {nodes}") if group.kind == "run" else _("in parallel · {nodes}")
        return order.format(nodes=nodes)
    members = group.unsplit_members if group.call is None else [group]
    described = ", ".join(sorted({kind_label(trace, member) for member in members}))
    if is_recomputed(trace, group):
        return _("{kind} · recomputed").format(kind=described)
    if group.call is not None or group.kind == "stack":
        return described
    return f"{fit_on_line(described, MAX_KINDS)} · {nodes}"


def is_recomputed(trace: TraceData, group: Group) -> bool:
    """Whether a group is a call that checkpointing made during a backward pass, or a stack of such calls."""
    calls = [member.call for member in group.stacked_calls if member.call is not None]
    return bool(calls) and all(trace.calls[call].recomputed for call in calls)


def _name_call(trace: TraceData, member: Member, module: str, max_chars: int) -> str:
    """Return the relative name of a call, or an empty text for a node, since the ops of most nodes are alike."""
    call = None if isinstance(member, int) else member.named_call
    return "" if call is None else fit_name(strip_module(trace.call(call), module), max_chars)


def _name_equal_calls(trace: TraceData, stack: Group, module: str, max_chars: int) -> str:
    """Return what the paths of equal calls have in common, with their first and their last number."""
    calls = [call for group in stack.stacked_calls if (call := group.named_call) is not None]
    paths = {trace.call_path(call) for call in calls}
    if len(paths) > 1:
        return _name_range([strip_module(path, module) for path in paths], max_chars)
    name = fit_name(strip_module(min(paths), module), max_chars)
    if stack.parent is None or stack.parent.kind != "stack":
        return name
    counts = sorted(trace.calls[call].nth or trace.calls[call].number for call in calls)
    return _("{module} (calls {first} – {last})").format(module=name, first=counts[0], last=counts[-1])


def _name_range(names: list[str], max_chars: int) -> str:
    """Return the name of calls whose names differ in a number only.

    >>> _name_range(["layers.9", "layers.10"], 28), _name_range(["block_0", "block_1"], 28)
    ('layers 9 – 10', 'block 0 – 1')
    """
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    before = "".join(character for character, _same in equal).rstrip("0123456789")
    rests = [name.removeprefix(before) for name in names]
    afters = [rest.lstrip("0123456789") for rest in rests]
    numbers = sorted(int(rest.removesuffix(after)) for rest, after in zip(rests, afters, strict=True))
    shown = (fit_name(before.rstrip("._"), max_chars), f"{numbers[0]} – {numbers[-1]}", afters[0].lstrip("."))
    return " ".join(filter(None, shown))


def _count_nodes(count: int) -> str:
    return _("1 node") if count == 1 else _("{count} nodes").format(count=f"{count:,}")
