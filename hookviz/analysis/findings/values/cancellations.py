"""Find gradients that are 0 because what arrives on two paths cancels, as in ``log_prob - old_log_prob``."""

from typing import NamedTuple

from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.support.messages import N_, _, join_list
from hookviz.trace import StepRow

ADVICE = N_("Detach what should be a constant, such as an old value with which a new one is compared.")


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
