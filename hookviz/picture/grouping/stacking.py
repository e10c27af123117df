"""Stacks: three or more equal calls beside one another are one box: the layers of an encoder, or a cell in a loop.

Where a module is called again and again with other nodes between, each round of the loop is a group.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import groupby, pairwise
from statistics import median_low
from typing import Any, NamedTuple

from hookviz.picture.grouping.tree import MAX_VISIBLE_BOXES, BoxTree, Group, Member, part_size
from hookviz.picture.repeated_calls import leads_back

MIN_STACK_SIZE = 3
"""Fewer calls than this do not become a stack."""
MAX_STACK_SIZE = 64
"""A stack of more calls is made of smaller ones: each call has its own view with the stacks before and after it."""
MIN_NAMED_ALIKE = 5
"""Fewer calls whose names end in numbers, such as ``layer1`` to ``layer4``, are not a stack: each has its own part."""
UNEQUAL_OPS = ("AccumulateGrad", "BackwardHookFunctionBackward")
"""The ops that equal calls may differ in: the first call that uses a parameter has its node, and hooks add nodes."""


class _Shape(NamedTuple):
    """What equal calls have in common, and what they may differ in."""

    skeleton: tuple[Any, ...]
    """Whether it is recomputed, the class of its module, and the skeletons of the calls in it, each as a number."""
    ops: Counter[str]
    """The ops in it, at any depth."""

    def is_like(self, largest: "_Shape") -> bool:
        """Whether it is ``largest`` without some ops: torch makes no nodes for what needs no gradient."""
        return self.ops <= largest.ops and 2 * self.ops.total() >= largest.ops.total()


def stack_equal_calls(tree: BoxTree) -> None:
    """Put equal calls of each level of ``tree`` into stacks."""
    shapes = _list_shapes(tree)
    for group in list(tree.groups):
        if len(group.members) >= MIN_STACK_SIZE:
            stacks = [*_Level(tree, group.members, shapes).find_stacks()]
            group.members = _replace_with_stacks(tree, group.members, stacks)


def _replace_with_stacks(tree: BoxTree, members: list[Member], stacks: Iterable[list[int]]) -> list[Member]:
    """Return ``members`` with each stack, given by the indices of its members, in the place of the first of these."""
    made: dict[int, Member] = {}
    stacked: set[int] = set()
    for indices in stacks:
        made[indices[0]] = _make_stack(tree, [members[index] for index in indices])
        stacked.update(indices)
    return [made.get(index, member) for index, member in enumerate(members) if index in made or index not in stacked]


def _make_stack(tree: BoxTree, members: list[Member]) -> Group:
    """Make a stack; if it is large, of smaller ones."""
    if len(members) > MAX_STACK_SIZE:
        size = part_size(len(members))
        chunks = [members[start : start + size] for start in range(0, len(members), size)]
        members = [_make_stack(tree, chunk) if len(chunk) > 1 else chunk[0] for chunk in chunks]
    return tree.make_group("stack", members)


def _list_shapes(tree: BoxTree) -> dict[Member, _Shape]:
    """Return the shape of each call; in a pass with nodes, not of calls without nodes, such as dropout's.

    Calls that checkpointing made have none, and a shape all the same.
    """
    trace = tree.trace
    shapes: dict[Member, _Shape] = {}
    numbers: dict[tuple[Any, ...], int] = {}
    skeletons: dict[Member, int] = {}
    for call, group in reversed(tree.calls.items()):  # inner calls first
        row = trace.calls[call]
        inside = sorted(skeletons[member] for member in group.members if not isinstance(member, int))
        skeleton = (row.recomputed, trace.modules[row.module].kind, *inside)
        skeletons[group] = numbers.setdefault(skeleton, len(numbers))
        if group.nodes or row.recomputed or not tree.nodes:
            ops = Counter(trace.ops[node] for node in group.nodes)
            for op in UNEQUAL_OPS:
                del ops[op]
            shapes[group] = _Shape(skeleton, ops)
    return shapes


class _Level:
    """The members of a group, among which stacks are looked for."""

    def __init__(self, tree: BoxTree, members: list[Member], shapes: dict[Member, _Shape]) -> None:
        self._tree, self._members, self._shapes = tree, members, shapes

    def find_stacks(self) -> Iterator[list[int]]:
        """Yield the indexes of the members of each stack: first calls of one module, then those of equal ones."""
        stacked: set[int] = set()
        for key_of, least in (
            (self._path, MIN_STACK_SIZE),
            (self._numbered_path, MIN_STACK_SIZE),
            (self._numbered_name, MIN_NAMED_ALIKE),
        ):
            for indices in self._group_calls(key_of, stacked, least):
                for stack in self._split_into_stacks(indices, only_whole=key_of == self._path):
                    stacked.update(stack)
                    yield stack

    def _group_calls(self, key_of: Any, stacked: set[int], least: int) -> list[list[int]]:
        """Group the calls with equal keys and equal skeletons, and leave out those that are unlike most of them."""
        groups: dict[Any, list[int]] = {}
        for index, member in enumerate(self._members):
            if member in self._shapes and index not in stacked:
                groups.setdefault((key_of(member), self._shapes[member].skeleton), []).append(index)
        return [self._leave_out_unlike(indices) for indices in groups.values() if len(indices) >= least]

    def _leave_out_unlike(self, indices: list[int]) -> list[int]:
        shapes = {index: self._shapes[self._members[index]] for index in indices}
        distinct = {frozenset(shape.ops.items()): shape for shape in shapes.values()}
        alike = [[index for index in indices if shapes[index].is_like(largest)] for largest in distinct.values()]
        return max(alike, key=len)

    def _split_into_stacks(self, indices: list[int], *, only_whole: bool) -> Iterator[list[int]]:
        """Yield all of ``indices`` if no arrow leads out of them and back, and else those that follow one another."""
        if len(indices) < MIN_STACK_SIZE:
            return
        is_run = indices[-1] - indices[0] == len(indices) - 1
        if is_run or not leads_back(set(indices), self._followers.__getitem__):
            yield indices
        elif not only_whole:
            for _, run in groupby(enumerate(indices), key=lambda pair: pair[1] - pair[0]):
                stack = [index for _, index in run]
                if len(stack) >= MIN_STACK_SIZE:
                    yield stack

    @cached_property
    def _followers(self) -> list[set[int]]:
        """For each member the indices of the others to which arrows lead from it."""
        index_of = {node: index for index, node in _index_nodes(self._members)}
        followers: list[set[int]] = [set() for _ in self._members]
        for index, node in _index_nodes(self._members):
            ends = (index_of.get(end, index) for _slot, end in self._tree.edges_out.get(node, ()))
            followers[index].update(end for end in ends if end != index)
        return followers

    def _path(self, group: Group) -> str:
        assert group.call is not None
        return self._tree.trace.call_path(group.call)

    def _numbered_path(self, group: Group) -> tuple[str, str | None]:
        """Return the path without the number that equal siblings differ in, such as ``layers`` of ``layers.3``."""
        return _split_at_number(self._path(group))

    def _numbered_name(self, group: Group) -> tuple[str, bool]:
        """Return the path without the number at its end, such as ``net.block_`` of ``net.block_3``, and if it has one.

        A ``conv`` beside ``conv2`` to ``conv6`` has none, and is no part of their stack, which has a range as its name.
        """
        path = self._path(group)
        name = path.rstrip("0123456789")
        return name, name != path


def _index_nodes(members: Iterable[Member]) -> Iterator[tuple[int, int]]:
    """Yield (index of a member, node) for each node in ``members`` at any depth."""
    for index, member in enumerate(members):
        for node in (member,) if isinstance(member, int) else member.nodes:
            yield index, node


def _split_at_number(path: str) -> tuple[str, str | None]:
    """Return what is before and after the last number of a path; without a number, the path and None.

    >>> _split_at_number("net.layers.3"), _split_at_number("blocks.12.attention"), _split_at_number("net.cell")
    (('net.layers', ''), ('blocks', 'attention'), ('net.cell', None))
    """
    parts = path.split(".")
    at = next((index for index in reversed(range(len(parts))) if re.fullmatch("[0-9]+", parts[index])), None)
    return (path, None) if at is None else (".".join(parts[:at]), ".".join(parts[at + 1 :]))


# -- rounds of a loop


def stack_rounds(tree: BoxTree) -> None:
    """Put the rounds of a loop into a stack, on each level of ``tree`` with too many boxes."""
    for group in list(tree.groups):
        if len(group.members) > MAX_VISIBLE_BOXES and group.kind in ("pass", "call"):
            group.members = _stack_rounds_of_level(tree, group.members)


def _stack_rounds_of_level(tree: BoxTree, members: list[Member]) -> list[Member]:
    rounds = _find_rounds(tree, members)
    if not rounds:
        return members
    groups: list[Member] = [tree.make_group("round", members[start:end]) for start, end in rounds]
    return [*members[: rounds[0][0]], _make_stack(tree, groups), *members[rounds[-1][1] :]]


def _find_rounds(tree: BoxTree, members: list[Member]) -> list[tuple[int, int]]:
    """Return from where to where each round goes: the nodes before a call in the order of backward, and the call."""
    calls: dict[str, list[int]] = {}
    for index, member in enumerate(members):
        if not isinstance(member, int) and member.call is not None:
            calls.setdefault(tree.trace.call_path(member.call), []).append(index)
    indices = max(calls.values(), key=len, default=[])
    if len(indices) < MIN_NAMED_ALIKE:
        return []
    gaps = [after - before for before, after in pairwise(indices)]
    usual = median_low(gaps)
    if 2 * gaps.count(usual) < len(gaps):
        return []
    first = max(indices[0] - usual + 1, 0)
    return [(before + 1, call + 1) for before, call in pairwise([first - 1, *indices])]
