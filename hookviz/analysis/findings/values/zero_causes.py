"""Explain zeros: an op is constant, everywhere or at its input, or multiplies by zeros; or what arrives cancels."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hookviz.analysis.findings.ops import PRODUCTS, get_op, skip_views
from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.support.messages import N_, _, join_first, join_list
from hookviz.trace import StepRow, TensorRow
from hookviz.trace.values import Value, format_number

_STEPS = {"Round": "round", "Floor": "floor", "Ceil": "ceil", "Trunc": "trunc", "Sign": "sign"}
"""Op whose derivative is 0 everywhere → its function."""
_SATURATED = {
    "Tanh": N_("It is saturated: its outputs are -1 or 1 where a gradient arrives, and its slope there is 0."),
    "Sigmoid": N_("It is saturated: its outputs are 0 or 1 where a gradient arrives, and its slope there is 0."),
}
_FACTORS = {
    **{op: tuple(slot for slot, _name in factors) for op, factors in PRODUCTS.items()},
    "Mul": (0, 1),
    "Convolution": (1,),
}
"""Product → the slots of its factors; a convolution takes the data at slot 0."""
_BIASES = {"Addmm": 0, "Convolution": 2}
_TINY = 1e-15
"""Products of gradients below this may underflow."""
CANCELLED = N_("Detach what should be a constant, such as an old value with which a new one is compared.")


def explain_zeros(statistics: PassStatistics, node: int) -> Iterator[str]:
    """Yield the sentences on why an op sends zeros, as far as its kind and the known numbers show it."""
    op = get_op(statistics.trace, node)
    if op in _STEPS:
        yield _("The derivative of {function} is 0 everywhere.").format(function=_STEPS[op])
    elif op in _SATURATED:
        yield _(_SATURATED[op])
        yield from _describe_range(statistics, node)
    elif op in _EXPLANATIONS:
        yield from _EXPLANATIONS[op](statistics, node)


def advise_on_zeros(statistics: PassStatistics, node: int) -> str:
    """Return what to do about an op whose derivative is 0 everywhere; empty for another op."""
    function = _STEPS.get(get_op(statistics.trace, node))
    if function is None:
        return ""
    text = _("To train what comes before it, let the gradient pass as if it were not there: x + (x.{function}() - x)")
    return f"{text.format(function=function)}.detach()."


# -- parameters of zeros


def list_zero_parameters(statistics: PassStatistics, node: int) -> list[str]:
    """List the parameters that a product multiplies by and that hold only zeros.

    The numbers of large parameters are not read. There the gradients show it: where a product sends exact zeros to one
    factor, the other one is 0.
    """
    found = []
    for slot in _FACTORS.get(get_op(statistics.trace, node), ()):
        place = skip_views(statistics.trace, statistics.trace.edges.get((node, slot)), "Expand")
        rows = [] if place is None else statistics.tensors_of(place[0])
        row = next((row for row in rows if row.leaf and row.name), None)
        if row is not None and _is_zero_parameter(statistics, node, slot, row):
            found.append(row.name)
    return found


def _is_zero_parameter(statistics: PassStatistics, node: int, slot: int, row: TensorRow) -> bool:
    if row.data is not None and statistics.norm(row.data) is not None:
        return statistics.norm(row.data) == 0
    other = next((one for one in _FACTORS[get_op(statistics.trace, node)] if one != slot), 0)
    if _sends_zero(statistics, node, other):
        return True
    users = [place for place, end in statistics.trace.edges.items() if end[0] == node]
    return _has_data(statistics, node) and any(_shows_zero(statistics, user, place) for user, place in users)


def _shows_zero(statistics: PassStatistics, node: int, slot: int) -> bool:
    """Whether a product sends zeros to one factor, which shows that the other one, in ``slot``, is 0."""
    factors = _FACTORS.get(get_op(statistics.trace, node), ())
    others = [one for one in factors if one != slot and (node, one) in statistics.trace.edges]
    return slot in factors and len(factors) > 1 and any(_sends_zero(statistics, node, one) for one in others)


def _sends_zero(statistics: PassStatistics, node: int, slot: int) -> bool:
    """Whether an op makes exact zeros of a gradient without any, which is large enough not to underflow.

    Where a gradient is 0, a factor may be anything.
    """
    step = statistics.compute_steps.get(node)
    sent = () if step is None else statistics.sent(node)
    index = sent[slot] if slot < len(sent) else None
    if step is None or index is None or statistics.norm(index) != 0:
        return False
    arrived = statistics.trace.rows[step].before
    is_everywhere = all(value.zero == 0 for value in statistics.values(arrived))
    return is_everywhere and max(statistics.norms(arrived), default=0.0) > _TINY


def _has_data(statistics: PassStatistics, node: int) -> bool:
    """Whether what the module around an op was given holds more than zeros."""
    given = statistics.find_only("call", statistics.trace.owners.get(node))
    return given is not None and bool(statistics.norm(given))


def describe_zero_factors(statistics: PassStatistics, node: int) -> Iterator[str]:
    """Name the parameters of zeros that a product multiplies by, and those by which other ops of the pass multiply."""
    own = list_zero_parameters(statistics, node)
    if own:
        yield _("It multiplies by {names}: all 0.").format(names=join_first(own))
        nodes = sorted(statistics.compute_steps)
        others = dict.fromkeys(name for other in nodes for name in list_zero_parameters(statistics, other))
        more = [name for name in others if name not in own]
        if more:
            text = _("This pass multiplies by more that is all 0: {names}.")
            yield text.format(names=join_first(more))


# -- functions that are constant where their inputs are


def _explain_relu(statistics: PassStatistics, node: int) -> Iterator[str]:
    given = _find_input(statistics, node)
    if given is None or given.max is None or not given.max <= 0:
        return
    numbers = {"low": format_number(given.min or 0.0, 4), "high": format_number(given.max, 4)}
    call = _find_maker(statistics, node)
    if call is None:
        yield _("No number that comes in is above 0: they lie between {low} and {high}.").format(**numbers)
        return
    text = _("{module} returned no number above 0: they lie between {low} and {high}.")
    yield text.format(module=statistics.describe_module(call), **numbers)
    yield from _blame_bias(statistics, node, given.max)


def _blame_bias(statistics: PassStatistics, node: int, highest: float) -> Iterator[str]:
    """Say what the bias of the layer before an op is, if it is the same negative number everywhere."""
    place = statistics.trace.edges.get((node, 0))
    slot = None if place is None else _BIASES.get(get_op(statistics.trace, place[0]))
    leaf = None if place is None or slot is None else statistics.trace.edges.get((place[0], slot))
    rows = [] if leaf is None else statistics.tensors_of(leaf[0])
    row = next((row for row in rows if row.leaf), None)
    value = None if row is None or row.data is None else statistics.value(row.data)
    if row is None or value is None or value.min is None or value.min != value.max or not value.min < 0:
        return
    number = {"name": row.name, "bias": format_number(value.min, 4)}
    if highest - value.min > 0:
        text = _("{name} is {bias} everywhere; without it, they would reach {most}.")
        yield text.format(most=format_number(highest - value.min, 4), **number)
    else:
        yield _("{name} is {bias} everywhere.").format(**number)


def _explain_clamp(statistics: PassStatistics, node: int) -> Iterator[str]:
    given, rows = _find_input(statistics, node), statistics.trace.lookup.saved(statistics.pass_id, node)
    limits = {row.name: row.plain for row in rows if isinstance(row.plain, int | float)}
    if given is None or given.min is None or given.max is None:
        return
    numbers = {"low": format_number(given.min, 4), "high": format_number(given.max, 4)}
    if given.min >= limits.get("max", float("inf")):
        text = _("No number that comes in is below its limit, {limit}: they lie between {low} and {high}.")
        yield text.format(limit=format_number(limits["max"]), **numbers)
    elif given.max <= limits.get("min", -float("inf")):
        text = _("No number that comes in is above its limit, {limit}: they lie between {low} and {high}.")
        yield text.format(limit=format_number(limits["min"]), **numbers)


def _explain_single(statistics: PassStatistics, node: int) -> Iterator[str]:
    """Say that a softmax or layer norm runs over one number only, and always makes the same of it."""
    axis, own = (statistics.saved_setting(node, name) for name in ("dim", "normalized_shape"))
    shape = _get_shape(statistics, node) or ()
    sizes = own if isinstance(own, tuple) else (shape[axis],) if isinstance(axis, int) and shape else ()
    if sizes and all(size == 1 for size in sizes):
        yield _("It runs over a dimension of size 1: its result is the same whatever the number there is.")


def _describe_range(statistics: PassStatistics, node: int) -> Iterator[str]:
    given = _find_input(statistics, node)
    if given is not None and given.min is not None and given.max is not None:
        text = _("What comes in lies between {low} and {high}.")
        yield text.format(low=format_number(given.min, 4), high=format_number(given.max, 4))


_EXPLANATIONS: dict[str, Callable[[PassStatistics, int], Iterator[str]]] = {
    **dict.fromkeys(("Relu", "Threshold"), _explain_relu),
    **dict.fromkeys(("Softmax", "LogSoftmax", "NativeLayerNorm"), _explain_single),
    **dict.fromkeys(("Clamp", "ClampMin", "ClampMax", "Hardtanh"), _explain_clamp),
}


# -- what came in


def _find_input(statistics: PassStatistics, node: int) -> Value | None:
    """Return what an op was given in the forward: what it saved, its module was given, or a module returned."""
    call, maker = statistics.trace.owners.get(node), _find_maker(statistics, node)
    alone = call is not None and len(statistics.trace.lookup.nodes_by_call.get(call, ())) == 1
    found = [statistics.find_only("call", call)] if alone else []
    found += [statistics.find_only("forward", maker)] if maker is not None else []
    shape = _get_shape(statistics, node)
    values = [statistics.saved_tensor(node, "self"), *statistics.values(tuple(found))]
    return next((value for value in values if value is not None and value.shape == shape), None)


def _find_maker(statistics: PassStatistics, node: int) -> int | None:
    """Return the outermost module call that returned the input of an op, and in which the op is not."""
    place = statistics.trace.edges.get((node, 0))
    around = statistics.enclosing_calls(node)
    calls = [] if place is None else [call for call in statistics.enclosing_calls(place[0]) if call not in around]
    return calls[-1] if calls else None


def _get_shape(statistics: PassStatistics, node: int) -> tuple[int, ...] | None:
    """Return the shape of what an op sends, which is that of its input."""
    index = statistics.sent(node)[0]
    return None if index is None else tuple(statistics.trace.values[index][0])


# -- gradients that cancel


class Cancellation(NamedTuple):
    """The gradients of two paths or more, whose sum is 0."""

    sentence: str
    nodes: tuple[int, ...]
    """The op in which the paths meet, if they do."""


def cancels(statistics: PassStatistics, row: StepRow) -> bool:
    """Whether several gradients, not all 0, arrive somewhere and add up to 0.

    At a leaf that is normal: the loss of a critic, ``fake - real``, does not depend on its last bias.
    """
    if statistics.trace.ops[row.own_node] == "AccumulateGrad":
        return False
    norms = [norm for part in row.parts for norm in statistics.norms(part[2])]
    return len(norms) > 1 and any(norms) and statistics.norms(row.after) == [0.0]


def describe_cancellation(statistics: PassStatistics, step: int) -> Cancellation:
    """Describe what cancels at a step."""
    row = statistics.trace.rows[step]
    senders = dict.fromkeys(part[0] for part in row.parts if part[0] is not None)
    users: dict[int, set[int]] = {}
    for (user, _slot), (used, _output) in statistics.trace.edges.items():
        users.setdefault(used, set()).add(user)
    paths = [_follow_users(users, sender) for sender in senders]
    joint = next((node for node in (paths or [[]])[0] if all(node in path for path in paths[1:])), None)
    names = [_name_path(statistics, path, joint) for path in paths]
    text = _(
        "The gradient becomes 0 at {on}: what arrives there from {senders} adds up to 0. The loss depends on the same "
        "numbers in opposite ways, as in x - x."
    )
    sentence = text.format(on=statistics.describe_node(row.own_node), senders=join_list(list(dict.fromkeys(names))))
    return Cancellation(sentence, () if joint is None else (joint,))


def _follow_users(users: dict[int, set[int]], node: int) -> list[int]:
    """Return a node and those that use it, as far as each has a single user."""
    path = [node]
    while len(users.get(path[-1], ())) == 1:
        path += users[path[-1]]
    return path


def _name_path(statistics: PassStatistics, path: list[int], joint: int | None) -> str:
    """Name a path by the first tensor on it that has a name, else by its first op."""
    named = statistics.trace.naming.tensors
    before = path[: path.index(joint)] if joint in path else path
    return next((named[node, 0] for node in before if (node, 0) in named), statistics.describe_node(path[0]))
