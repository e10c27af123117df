"""Check the rules of a trace that types cannot express: references between tables, acyclic graphs, complete steps.

``schema`` checks the types. A trace that follows both can be shown in every view.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from hookviz.storage.schema import shorten_fault
from hookviz.support.messages import say
from hookviz.trace import (
    EVIDENCE,
    FORWARD_HOOK_KINDS,
    HOOK_KINDS,
    KINDS,
    MODULE_HOOK_KINDS,
    STEP_HOOK_KINDS,
    HookRow,
    StepRow,
    TraceData,
)
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS
from hookviz.trace.values import flatten_numbers

MAX_CALL_DEPTH = 300
"""The most module calls inside each other; Python's own recursion limit allows about as many."""
MAX_SETTING_DEPTH = 8
"""The most levels of lists in a setting of an op; most settings are a number or a list of numbers."""
MAX_SETTING_SIZE = 2**16
"""The most numbers or characters of a setting, which a formula shows in full."""

DTYPE_PATTERN = re.compile(
    r"bool|u?int(?:[1-8]|16|32|64)|b?float16|float(?:32|64|[48]_\w{1,20})|complex(?:32|64|128)"
    r"|quint(?:8|4x2|2x4)|qint(?:8|32)|bits(?:1x8|2x4|4x2|8|16)"
)
"""The names of torch's dtypes, of all releases."""
PYTHON_FLOAT = "float"
"""The dtype of a number that does not come from a tensor, such as the scale of a GradScaler."""


def find_fault(trace: TraceData) -> str:
    """Describe the first rule that ``trace`` breaks; empty if it follows all rules.

    Each ``_check_…`` function yields the faults of one table.

    >>> find_fault(TraceData()), find_fault(TraceData(ops=["MulBackward0"], edges={(0, 0): (0, 0)}))
    ('', 'the graph has a cycle: a gradient would come back to node 0')
    """
    rules = (
        _check_passes,
        _check_graph,
        _check_tensors,
        _check_saved,
        _check_scales,
        _check_calls,
        _check_hooks,
        _check_steps,
        _check_lines,
        _check_unfired,
        _check_missing,
        _check_training,
        _check_values,
    )
    return shorten_fault(next((fault for rule in rules for fault in rule(trace)), ""))


# -- the user's code


def _check_lines(trace: TraceData) -> Iterator[str]:
    sources, passes, calls = len(trace.sources), len(trace.roots), len(trace.calls)
    for index, row in enumerate(trace.lines):
        has_places = _are_indexes_valid(row.pass_id, passes) and _are_indexes_valid(row.call, calls)
        has_sources = _are_indexes_valid((row.source, *(source for _, source in row.names)), sources)
        if not (has_places and has_sources):
            yield say("damaged.row", table="lines", index=index)


def _check_unfired(trace: TraceData) -> Iterator[str]:
    for index, row in enumerate(trace.unfired_rows):
        is_known = row.kind in HOOK_KINDS and all(name in EVIDENCE for name, _ in row.evidence)
        has_place = _are_indexes_valid(row.module, len(trace.modules)) and _are_indexes_valid(row.node, len(trace.ops))
        if not (is_known and has_place):
            yield say("damaged.row", table="unfired_rows", index=index)


def _check_missing(trace: TraceData) -> Iterator[str]:
    for index, row in enumerate(trace.missing_rows):
        is_valid = _are_indexes_valid(row.module, len(trace.modules))
        if not (is_valid and _are_indexes_valid(row.cuts, len(trace.cut_rows))):
            yield say("damaged.row", table="missing_rows", index=index)
    for index, cut in enumerate(trace.cut_rows):
        if not _are_indexes_valid(cut.step, len(trace.rows)):
            yield say("damaged.row", table="cut_rows", index=index)


# -- training


def _check_training(trace: TraceData) -> Iterator[str]:
    parameters, modules = range(len(trace.parameters)), range(len(trace.modules))
    for index, row in enumerate(trace.parameters):
        if not _are_all_in(row.optimizers, range(len(trace.optimizers))):
            yield say("damaged.row", table="parameters", index=index)
    for index, spoiled in enumerate(trace.nonfinite):
        if spoiled.call >= len(trace.calls) or spoiled.module >= len(trace.modules):
            yield say("damaged.row", table="nonfinite", index=index)
    for index, update in enumerate(trace.updates):
        is_real = not any(isinstance(rate, complex) for rate in update.rates)
        is_step = update.step < len(trace.rows) and trace.rows[update.step].kind == "optimizer_step"
        has_valid_indexes = _are_all_in(update.without_grad, parameters) and _are_all_in(update.eval_norms, modules)
        if not (is_real and is_step and has_valid_indexes):
            yield say("damaged.row", table="updates", index=index)


# -- the passes and their graph


def _check_passes(trace: TraceData) -> Iterator[str]:
    hook_indexes, nodes = range(len(trace.hook_rows)), range(len(trace.ops))
    if len(trace.hooked) != len(trace.roots):
        yield say("damaged.passes", hooked=len(trace.hooked), roots=len(trace.roots))
    if len(trace.pass_numbers) != len(trace.roots):
        yield say("damaged.pass_numbers", numbers=len(trace.pass_numbers), roots=len(trace.roots))
    if any(later <= earlier for earlier, later in pairwise(trace.pass_numbers)):
        yield say("damaged.pass_numbers.order")
    for number, hooks in enumerate(trace.hooked):
        if not _are_all_in(hooks, hook_indexes):
            yield say("damaged.hooked", number=number)
        if len(set(hooks)) < len(hooks):
            yield say("damaged.hooked.twice", number=number)
    for number, roots in enumerate(trace.roots):
        if not _are_all_in((node for node, _ in roots), nodes):
            yield say("damaged.roots", number=number)


def _check_graph(trace: TraceData) -> Iterator[str]:
    nodes = range(len(trace.ops))
    next_nodes: dict[int, list[int]] = {}
    for (start, _), (end, _) in trace.edges.items():
        if start not in nodes or end not in nodes:
            yield say("damaged.edge", start=start, end=end)
        next_nodes.setdefault(start, []).append(end)
    try:
        TopologicalSorter(next_nodes).prepare()
    except CycleError as error:
        yield say("damaged.cycle", node=error.args[1][0])
    if not _are_all_in(trace.outside, nodes):
        yield say("damaged.outside")


def _check_tensors(trace: TraceData) -> Iterator[str]:
    passes, nodes, values = range(len(trace.roots)), range(len(trace.ops)), len(trace.values)
    for index, row in enumerate(trace.tensors):
        if row.pass_id not in passes or row.node not in nodes or not _are_indexes_valid((row.data, row.grad), values):
            yield say("damaged.row", table="tensors", index=index)


def _check_saved(trace: TraceData) -> Iterator[str]:
    passes, nodes, values = range(len(trace.roots)), range(len(trace.ops)), len(trace.values)
    for index, row in enumerate(trace.saved):
        if row.pass_id not in passes or row.node not in nodes or not _are_indexes_valid(row.value, values):
            yield say("damaged.row", table="saved", index=index)
        if not _is_valid_setting(row.plain):
            yield say("damaged.setting", index=index)


def _is_valid_setting(plain: Any) -> bool:
    """Whether ``plain`` is a number, a text, None, or a tuple of these within the limits of size and depth."""
    count, level = 0, [plain]
    for _ in range(MAX_SETTING_DEPTH):
        count += len(level)
        if count > MAX_SETTING_SIZE:
            return False
        if not all(isinstance(part, tuple) or _is_scalar_setting(part) for part in level):
            return False
        level = [part for parts in level if isinstance(parts, tuple) for part in parts]
    return not level


def _is_scalar_setting(x: Any) -> bool:
    if isinstance(x, str):
        return len(x) <= MAX_SETTING_SIZE
    if isinstance(x, int):
        return -(2**63) <= x < 2**64
    return x is None or isinstance(x, float | complex)


def _check_scales(trace: TraceData) -> Iterator[str]:
    passes, nodes = range(len(trace.roots)), range(len(trace.ops))
    for index, row in enumerate(trace.scales):
        if row.pass_id not in passes or not _are_all_in((*row.at, *row.others), nodes):
            yield say("damaged.row", table="scales", index=index)


# -- modules and hooks


def _check_calls(trace: TraceData) -> Iterator[str]:
    modules, nodes, calls = range(len(trace.modules)), range(len(trace.ops)), range(len(trace.calls))
    depths: list[int] = []
    for index, row in enumerate(trace.calls):
        if row.module not in modules or (row.parent is not None and row.parent >= index):
            yield say("damaged.row", table="calls", index=index)
        depths.append(1 if row.parent is None else 1 + depths[row.parent])
        if depths[-1] > MAX_CALL_DEPTH:
            yield say("damaged.depth", index=index, most=MAX_CALL_DEPTH)
    if not all(node in nodes and call in calls for node, call in trace.owners.items()):
        yield say("damaged.owners")


def _check_hooks(trace: TraceData) -> Iterator[str]:
    for index, row in enumerate(trace.hook_rows):
        if row.kind not in HOOK_KINDS:
            yield say("damaged.kind", table="hook_rows", index=index, kind=row.kind)
        elif not _has_valid_holder(trace, row):
            yield say("damaged.row", table="hook_rows", index=index)


def _has_valid_holder(trace: TraceData, row: HookRow) -> bool:
    """Whether the module, optimizer, node or output that has the hook exists and can have a hook of this kind."""
    if row.kind in (*MODULE_HOOK_KINDS, *STEP_HOOK_KINDS):
        holders = trace.optimizers if row.kind in STEP_HOOK_KINDS else trace.modules
        return row.node is None and row.output is None and _are_indexes_valid(row.module, len(holders))
    is_on_node = row.kind in ("node_pre_hook", "node_post_hook")
    is_in_graph = row.node is not None and row.node < len(trace.ops) and (row.output is None) == is_on_node
    return is_in_graph and row.module is None and not row.flags


# -- steps

_REQUIRED_INDEXES = {
    **dict.fromkeys(("call", "forward", *FORWARD_HOOK_KINDS, "cut_short", "fast_path"), ("call",)),
    **dict.fromkeys(("full_backward_pre_hook", "full_backward_hook"), ("node", "call")),
    **dict.fromkeys((*STEP_HOOK_KINDS, "optimizer_step", "unscale"), ("optimizer",)),
    **dict.fromkeys(("node_pre_hook", "compute", "node_post_hook", "synchronise", "backward_hook"), ("node",)),
    **dict.fromkeys(("tensor_hook", "multi_grad_hook", "post_accumulate_hook"), ("node", "output")),
    **dict.fromkeys(("seed", "arrive", "retain_grad", "accumulate"), ("node", "output")),
    **dict.fromkeys(("returned", "aliased", "unknown_hook"), ("node", "output")),
}
"""Kind of step → the indexes that it must have."""

_SINGLE_GRADIENT_KINDS = (
    "seed",
    "arrive",
    "retain_grad",
    "accumulate",
    "synchronise",
    "returned",
    "aliased",
    "unknown_hook",
)
"""Kinds of step with a single gradient before and after."""

_KINDS_BY_SUBJECT = {
    "grad_output": ("full_backward_hook",),
    "data": ("post_accumulate_hook",),
    "settings": STEP_HOOK_KINDS,
}
"""Subject of an effect other than the gradient → the kinds of step that may have it."""

_EFFECTS = ("kept", "edited", "replaced")


def _check_steps(trace: TraceData) -> Iterator[str]:
    hooks = range(len(trace.hook_rows))
    for index, row in enumerate(trace.rows):
        if row.kind not in KINDS:
            yield say("damaged.kind", table="rows", index=index, kind=row.kind)
        elif not (
            _has_valid_values(trace, row)
            and _has_valid_location(trace, row)
            and _has_valid_hook(trace, row, hooks)
            and _has_valid_details(trace, row, index)
        ):
            yield say("damaged.step", index=index, kind=row.kind)


def _has_valid_values(trace: TraceData, row: StepRow) -> bool:
    """Whether the values of a step exist, and whether their number fits its kind."""
    values = len(trace.values)
    if not (_are_indexes_valid(row.before, values) and _are_indexes_valid(row.after, values)):
        return False
    if row.kind in _SINGLE_GRADIENT_KINDS and (isinstance(row.before, tuple) or isinstance(row.after, tuple)):
        return False
    nodes = len(trace.ops)
    return all(_are_indexes_valid(node, nodes) and _are_indexes_valid(value, values) for node, _, value in row.parts)


def _has_valid_location(trace: TraceData, row: StepRow) -> bool:
    """Whether the pass, node, output, call and optimizer of a step exist, as far as its kind requires them."""
    # A forward without a backward pass belongs to the pass that would have come next.
    if row.pass_id >= len(trace.roots) and (row.pass_id > len(trace.roots) or row.node is not None):
        return False
    if any(getattr(row, column) is None for column in _REQUIRED_INDEXES.get(row.kind, ())):
        return False
    sizes = ((row.node, len(trace.ops)), (row.call, len(trace.calls)), (row.optimizer, len(trace.optimizers)))
    return all(_are_indexes_valid(index, size) for index, size in sizes)


def _has_valid_hook(trace: TraceData, row: StepRow, hooks: range) -> bool:
    """Whether a step has a hook and its position if a hook ran, and otherwise no hook, unless it is an exception."""
    if row.hook is None or row.hook not in hooks:
        return row.hook is None and row.kind not in HOOK_KINDS
    if row.kind == "exception":
        return True
    if row.place is None or trace.hook_rows[row.hook].kind != row.kind:
        return False
    return row.place.position < row.place.total


def _has_valid_details(trace: TraceData, row: StepRow, index: int) -> bool:
    """Whether effect, subject, ranks and cause of a step fit its kind."""
    if row.kind in HOOK_KINDS:
        if row.effect not in _EFFECTS and (row.effect != "ran" or row.kind not in STEP_HOOK_KINDS):
            return False
    elif row.effect is not None:
        return False
    if row.subject != "gradient" and row.kind not in _KINDS_BY_SUBJECT[row.subject]:
        return False
    if (row.kind == "synchronise") != (row.ranks is not None):
        return False
    return row.cause is None or (row.cause < index and trace.rows[row.cause].hook is not None)


# -- values


def _check_values(trace: TraceData) -> Iterator[str]:
    for index, (shape, dtype, _, numbers, statistics, note) in enumerate(trace.values):
        if numbers is None and statistics is None and note is None:
            yield say("damaged.value.nothing", index=index)
        elif note is None and _get_number_range(dtype) is None:
            yield say("damaged.dtype", index=index, dtype=dtype)
        elif numbers is not None and not (_has_shape(numbers, shape) and _has_dtype(numbers, dtype)):
            yield say("damaged.numbers", index=index)


def _has_shape(numbers: Any, shape: Sequence[int]) -> bool:
    """Whether ``numbers`` are lists nested by ``shape``, with at most ``MAX_KEPT_NUMBERS`` numbers in all."""
    level = [numbers]
    for length in shape:
        if not all(isinstance(part, list) and len(part) == length for part in level):
            return False
        level = [part for parts in level for part in parts]
    return len(level) <= MAX_KEPT_NUMBERS and not any(isinstance(part, list) for part in level)


@lru_cache(maxsize=256)
def _get_number_range(dtype: str) -> tuple[type, int, int] | None:
    """Return (Python type, low, high) of the numbers of a dtype: ``low <= x < high`` for integers, else 0 and 0.

    None if ``dtype`` is not a dtype.

    >>> _get_number_range("uint8"), _get_number_range("load")
    ((<class 'int'>, 0, 256), None)
    """
    integer = re.fullmatch(r"(u?)int(\d+)", dtype) if DTYPE_PATTERN.fullmatch(dtype) else None
    if integer is not None:
        bits = int(integer[2])
        return (int, 0, 2**bits) if integer[1] else (int, -(2 ** (bits - 1)), 2 ** (bits - 1))
    if dtype != PYTHON_FLOAT and not DTYPE_PATTERN.fullmatch(dtype):
        return None
    return (bool if dtype == "bool" else complex if dtype.startswith("complex") else float), 0, 0


def _has_dtype(numbers: Any, dtype: str) -> bool:
    """Whether a tensor of this dtype can contain ``numbers``; True if the dtype is unknown (the value has a note)."""
    number_range = _get_number_range(dtype)
    if number_range is None:
        return True
    number_type, low, high = number_range
    if number_type is int:
        return all(type(x) is int and low <= x < high for x in flatten_numbers(numbers))
    return all(type(x) is number_type for x in flatten_numbers(numbers))


# -- shared checks


def _are_indexes_valid(index: Any, count: int) -> bool:
    """Whether ``index`` is None, less than ``count``, or a tuple of these."""
    if index is None:
        return True
    return index < count if isinstance(index, int) else all(i is None or i < count for i in index)


def _are_all_in(indexes: Iterable[int], valid: range) -> bool:
    return all(index in valid for index in indexes)
