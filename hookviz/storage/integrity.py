"""The rules of a trace that types cannot tell: what points to what, what each kind of step has, which graphs there are.

``schema`` has checked the types; these rules make sure that every view of the trace finds what it needs.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from typing import Any

from hookviz.storage.schema import shortened
from hookviz.support.messages import say
from hookviz.trace import (
    FORWARD_HOOK_KINDS,
    HOOK_KINDS,
    KINDS,
    MODULE_HOOK_KINDS,
    STEP_HOOK_KINDS,
    HookRow,
    StepRow,
    TraceData,
)
from hookviz.trace.reason_rows import StepReasons
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS
from hookviz.trace.values import flatten_numbers

DEEPEST_CALLS = 300
"""So many module calls may lie inside each other: Python itself stops at about as many."""
DEEPEST_SETTING = 8
"""A setting of an op is a number, a list of numbers, or seldom a list of lists."""
LONGEST = 2**16
"""Numbers that a setting may have in all, or characters: it is written out in a formula."""

DTYPE = re.compile(
    r"bool|u?int(?:[1-8]|16|32|64)|b?float16|float(?:32|64|[48]_\w{1,20})|complex(?:32|64|128)"
    r"|quint(?:8|4x2|2x4)|qint(?:8|32)|bits(?:1x8|2x4|4x2|8|16)"
)
"""What torch calls its dtypes, in some release or other."""
PYTHON_FLOAT = "float"
"""The dtype of a number that is no tensor's: a GradScaler's scale."""


def fault_of(trace: TraceData) -> str:
    """The first rule that ``trace`` breaks, in words; empty where it keeps them all.

    >>> fault_of(TraceData()), fault_of(TraceData(ops=["MulBackward0"], edges={(0, 0): (0, 0)}))
    ('', 'the graph has a cycle: a gradient would come back to node 0')
    """
    rules = (_passes, _graph, _tensors, _saved, _scales, _calls, _hooks, _steps, _reasons, _values)
    return shortened(next((fault for rule in rules for fault in rule(trace)), ""))


# -- the passes and their graph


def _passes(trace: TraceData) -> Iterator[str]:
    hooks, nodes = range(len(trace.hook_rows)), range(len(trace.ops))
    if len(trace.hooked) != len(trace.roots):
        yield say("damaged.passes", hooked=len(trace.hooked), roots=len(trace.roots))
    for number, there in enumerate(trace.hooked):
        if not _all(there, hooks):
            yield say("damaged.hooked", number=number)
        if len(set(there)) < len(there):
            yield say("damaged.hooked.twice", number=number)
    for number, places in enumerate(trace.roots):
        if not _all((node for node, _ in places), nodes):
            yield say("damaged.roots", number=number)


def _graph(trace: TraceData) -> Iterator[str]:
    nodes = range(len(trace.ops))
    below: dict[int, list[int]] = {}
    for (start, _), (end, _) in trace.edges.items():
        if start not in nodes or end not in nodes:
            yield say("damaged.edge", start=start, end=end)
        below.setdefault(start, []).append(end)
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        yield say("damaged.cycle", node=error.args[1][0])
    if not _all(trace.outside, nodes):
        yield say("damaged.outside")


def _tensors(trace: TraceData) -> Iterator[str]:
    passes, nodes, values = range(len(trace.roots)), range(len(trace.ops)), len(trace.values)
    for index, row in enumerate(trace.tensors):
        if row.pass_id not in passes or row.node not in nodes or not _is_known((row.data, row.grad), values):
            yield say("damaged.row", table="tensors", index=index)


def _saved(trace: TraceData) -> Iterator[str]:
    passes, nodes, values = range(len(trace.roots)), range(len(trace.ops)), len(trace.values)
    for index, row in enumerate(trace.saved):
        if row.pass_id not in passes or row.node not in nodes or not _is_known(row.value, values):
            yield say("damaged.row", table="saved", index=index)
        if not _is_setting(row.plain):
            yield say("damaged.setting", index=index)


def _is_setting(plain: Any) -> bool:
    """Whether ``plain`` is a number, a text, None, or a tuple of such that is neither long nor deep."""
    count, level = 0, [plain]
    for _ in range(DEEPEST_SETTING):
        count += len(level)
        if count > LONGEST:
            return False
        if not all(isinstance(part, tuple) or _is_plain(part) for part in level):
            return False
        level = [part for parts in level if isinstance(parts, tuple) for part in parts]
    return not level


def _is_plain(x: Any) -> bool:
    if isinstance(x, str):
        return len(x) <= LONGEST
    if isinstance(x, int):
        return -(2**63) <= x < 2**64
    return x is None or isinstance(x, float | complex)


def _scales(trace: TraceData) -> Iterator[str]:
    passes, nodes = range(len(trace.roots)), range(len(trace.ops))
    for index, row in enumerate(trace.scales):
        if row.pass_id not in passes or not _all((*row.at, *row.others), nodes):
            yield say("damaged.row", table="scales", index=index)


# -- modules and hooks


def _calls(trace: TraceData) -> Iterator[str]:
    modules, nodes, calls = range(len(trace.modules)), range(len(trace.ops)), range(len(trace.calls))
    depths: list[int] = []
    for index, row in enumerate(trace.calls):
        if row.module not in modules or (row.parent is not None and row.parent >= index):
            yield say("damaged.row", table="calls", index=index)
        depths.append(1 if row.parent is None else 1 + depths[row.parent])
        if depths[-1] > DEEPEST_CALLS:
            yield say("damaged.depth", index=index, most=DEEPEST_CALLS)
    if not all(node in nodes and call in calls for node, call in trace.owners.items()):
        yield say("damaged.owners")


def _hooks(trace: TraceData) -> Iterator[str]:
    for index, row in enumerate(trace.hook_rows):
        if row.kind not in HOOK_KINDS:
            yield say("damaged.kind", table="hook_rows", index=index, kind=row.kind)
        elif not _is_kept(trace, row):
            yield say("damaged.row", table="hook_rows", index=index)


def _is_kept(trace: TraceData, row: HookRow) -> bool:
    """Whether a hook is where a hook of its kind can be: on a module, an optimizer, a node or one of its outputs."""
    if row.kind in (*MODULE_HOOK_KINDS, *STEP_HOOK_KINDS):
        holders = trace.optimizers if row.kind in STEP_HOOK_KINDS else trace.modules
        return row.node == row.output == -1 and row.module < len(holders)
    of_node = row.kind in ("node_pre_hook", "node_post_hook")
    placed = 0 <= row.node < len(trace.ops) and (row.output == -1) == of_node
    return placed and row.module == -1 and not row.flags


# -- steps

_NEEDS = {
    **dict.fromkeys(("call", "forward", *FORWARD_HOOK_KINDS, "cut_short", "fast_path"), ("call",)),
    **dict.fromkeys(("full_backward_pre_hook", "full_backward_hook"), ("node", "call")),
    **dict.fromkeys((*STEP_HOOK_KINDS, "optimizer_step", "unscale"), ("optimizer",)),
    **dict.fromkeys(("node_pre_hook", "compute", "node_post_hook", "synchronise", "backward_hook"), ("node",)),
    **dict.fromkeys(("tensor_hook", "multi_grad_hook", "post_accumulate_hook"), ("node", "output")),
    **dict.fromkeys(("seed", "arrive", "retain_grad", "accumulate"), ("node", "output")),
    **dict.fromkeys(("returned", "aliased", "unknown_hook"), ("node", "output")),
}
"""Kind of step → where it must have happened."""

_LEAST = {
    kind: tuple(0 if place in _NEEDS.get(kind, ()) else -1 for place in ("node", "output", "call", "optimizer"))
    for kind in KINDS
}
"""Kind of step → the smallest number that its node, output, call and optimizer may have."""

_ONE = ("seed", "arrive", "retain_grad", "accumulate", "synchronise", "returned", "aliased", "unknown_hook")
"""Kinds of step that are about one gradient."""

_SUBJECTS = {
    "grad_output": ("full_backward_hook",),
    "data": ("post_accumulate_hook",),
    "settings": STEP_HOOK_KINDS,
}
"""What an effect may be on besides the gradient → the kinds of step in which it is."""

_EFFECTS = ("kept", "edited", "replaced")


def _steps(trace: TraceData) -> Iterator[str]:
    hooks = range(len(trace.hook_rows))
    for index, row in enumerate(trace.rows):
        if row.kind not in _LEAST:
            yield say("damaged.kind", table="rows", index=index, kind=row.kind)
        elif not (
            _is_shown(trace, row)
            and _is_placed(trace, row)
            and _is_hooked(trace, row, hooks)
            and _is_told(trace, row, index)
        ):
            yield say("damaged.step", index=index, kind=row.kind)


def _is_shown(trace: TraceData, row: StepRow) -> bool:
    """Whether the values of a step are there, and as many as steps of its kind have."""
    values = len(trace.values)
    if not (_is_known(row.before, values) and _is_known(row.after, values)):
        return False
    if row.kind in _ONE and (isinstance(row.before, tuple) or isinstance(row.after, tuple)):
        return False
    return all(node < len(trace.ops) and _is_known(value, values) for node, _, value in row.parts)


def _is_placed(trace: TraceData, row: StepRow) -> bool:
    """Whether a step happened in a pass and a place that are there."""
    # A forward that no backward has followed belongs to the pass that might have come.
    if row.pass_id >= len(trace.roots) and (row.pass_id > len(trace.roots) or row.node >= 0):
        return False
    node, output, call, optimizer = _LEAST[row.kind]
    there = node <= row.node < len(trace.ops) and output <= row.output
    return there and call <= row.call < len(trace.calls) and optimizer <= row.optimizer < len(trace.optimizers)


def _is_hooked(trace: TraceData, row: StepRow, hooks: range) -> bool:
    """Whether a step in which a hook ran has that hook, and no other step has one."""
    if row.hook is None or row.hook not in hooks:
        return row.hook is None and row.kind not in HOOK_KINDS
    if row.kind == "exception":
        return True
    if row.place is None or trace.hook_rows[row.hook].kind != row.kind:
        return False
    return row.place.position < row.place.total


def _is_told(trace: TraceData, row: StepRow, index: int) -> bool:
    """Whether what else a step says is what steps of its kind say."""
    if row.kind in HOOK_KINDS:
        if row.effect not in _EFFECTS and (row.effect != "ran" or row.kind not in STEP_HOOK_KINDS):
            return False
    elif row.effect is not None:
        return False
    if row.subject != "gradient" and row.kind not in _SUBJECTS[row.subject]:
        return False
    if (row.kind == "synchronise") != (row.ranks is not None):
        return False
    return row.cause is None or (row.cause < index and trace.rows[row.cause].hook is not None)


# -- reasons


def _reasons(trace: TraceData) -> Iterator[str]:
    if trace.explained and len(trace.explained) != len(trace.rows):
        yield say("damaged.explained", count=len(trace.explained), steps=len(trace.rows))
        return
    count = len(trace.reasons)
    for index, (row, explained) in enumerate(zip(trace.rows, trace.explained, strict=False)):
        if not (_is_known(explained, count) and _is_explained_so(row, explained)):
            yield say("damaged.reasons", index=index, kind=row.kind)


def _is_explained_so(row: StepRow, explained: StepReasons) -> bool:
    """Whether a step has as many reasons as a step of its kind can have: one for each gradient that is explained."""
    if explained is None:
        return True
    if row.kind == "compute" and isinstance(row.after, tuple):
        return isinstance(explained, tuple) and len(explained) == len(row.after)
    return row.kind in ("compute", "arrive", "accumulate") and isinstance(explained, int)


# -- values


def _values(trace: TraceData) -> Iterator[str]:
    for index, (shape, dtype, _, numbers, statistics, note) in enumerate(trace.values):
        if numbers is None and statistics is None and note is None:
            yield say("damaged.value.nothing", index=index)
        elif note is None and _numbers_of(dtype) is None:
            yield say("damaged.dtype", index=index, dtype=dtype)
        elif numbers is not None and not (_fits(numbers, shape) and _all_fit(numbers, dtype)):
            yield say("damaged.numbers", index=index)


def _fits(numbers: Any, shape: Sequence[int]) -> bool:
    """Whether ``numbers`` are nested as a tensor of this shape is: at most ``FEW``, one by one."""
    level = [numbers]
    for length in shape:
        if not all(isinstance(part, list) and len(part) == length for part in level):
            return False
        level = [part for parts in level for part in parts]
    return len(level) <= MAX_KEPT_NUMBERS and not any(isinstance(part, list) for part in level)


@lru_cache(maxsize=256)
def _numbers_of(dtype: str) -> tuple[type, int, int] | None:
    """The type of the numbers that torch reads from a tensor of this dtype, and from where to where whole ones go.

    None for what is no dtype.

    >>> _numbers_of("uint8"), _numbers_of("load")
    ((<class 'int'>, 0, 256), None)
    """
    whole = re.fullmatch(r"(u?)int(\d+)", dtype) if DTYPE.fullmatch(dtype) else None
    if whole is not None:
        bits = int(whole[2])
        return (int, 0, 2**bits) if whole[1] else (int, -(2 ** (bits - 1)), 2 ** (bits - 1))
    if dtype != PYTHON_FLOAT and not DTYPE.fullmatch(dtype):
        return None
    return (bool if dtype == "bool" else complex if dtype.startswith("complex") else float), 0, 0


def _all_fit(numbers: Any, dtype: str) -> bool:
    """Whether torch could have read ``numbers`` from a tensor of this dtype; where there is a note, it may be any."""
    found = _numbers_of(dtype)
    if found is None:
        return True
    kind, low, high = found
    if kind is int:
        return all(type(x) is int and low <= x < high for x in flatten_numbers(numbers))
    return all(type(x) is kind for x in flatten_numbers(numbers))


# -- what all of them ask


def _is_known(index: Any, count: int) -> bool:
    """Whether there is a value for ``index``: a number, several of them, or None."""
    if index is None:
        return True
    return index < count if isinstance(index, int) else all(one is None or one < count for one in index)


def _all(indexes: Iterable[int], there: range) -> bool:
    return all(index in there for index in indexes)
