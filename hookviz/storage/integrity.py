"""Check the rules of a trace that types cannot express: references between tables, acyclic graphs, complete steps.

``schema`` checks the types. A trace that follows both can be shown in every view.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from typing import Any

from hookviz.support.groups import group
from hookviz.support.messages import _
from hookviz.trace import (
    FORWARD_HOOK_KINDS,
    HOOK_KINDS,
    MODULE_HOOK_KINDS,
    STEP_HOOK_KINDS,
    HookRow,
    StepRow,
    TraceData,
)
from hookviz.trace.cells import find_broken_references
from hookviz.trace.hook_facts import NODE_HOOK_KINDS, ON_TENSOR_KINDS
from hookviz.trace.value_rows import MAX_KEPT_NUMBERS
from hookviz.trace.values import flatten_numbers

Place = tuple[str, int]
"""(name of a table, index of a row that is not as a recording writes it)"""

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
    """Name the first row that breaks a rule; empty if ``trace`` follows all rules.

    Each ``_check_…`` function yields the faults of one table.

    >>> find_fault(TraceData()), find_fault(TraceData(ops=["MulBackward0"], edges={(0, 0): (0, 0)}))
    ('', 'row 0 of ops does not fit the rest of the trace')
    """
    # The other rules follow references, so these come first.
    faults = chain(find_broken_references(trace), *(rule(trace) for rule in _RULES))
    fault = next(faults, None)
    if fault is None:
        return ""
    table, index = fault
    return _("row {index} of {table} does not fit the rest of the trace").format(table=table, index=index)


# -- the passes and their graph


def _check_passes(trace: TraceData) -> Iterator[Place]:
    counts = {name: len(getattr(trace, name)) for name in ("hooked", "pass_numbers")}
    yield from ((name, count) for name, count in counts.items() if count != len(trace.roots))
    pairs = enumerate(pairwise(trace.pass_numbers))
    yield from (("pass_numbers", index) for index, (earlier, later) in pairs if later <= earlier)
    yield from (("hooked", index) for index, hooks in enumerate(trace.hooked) if len(set(hooks)) < len(hooks))


def _check_graph(trace: TraceData) -> Iterator[Place]:
    next_nodes = group((start, end) for (start, _ignored), (end, _ignored) in trace.edges.items())
    try:
        TopologicalSorter(next_nodes).prepare()
    except CycleError as error:
        yield "ops", error.args[1][0]
    tensors = enumerate(trace.tensors)
    yield from (("tensors", index) for index, row in tensors if row.leaf and row.node in next_nodes)


def _check_saved(trace: TraceData) -> Iterator[Place]:
    for index, row in enumerate(trace.saved):
        if not _is_valid_setting(row.plain):
            yield "saved", index


def _is_valid_setting(plain: Any) -> bool:
    """Whether ``plain`` is a number, a text, None, or a tuple of these within the limits of size and depth."""
    count, level = 0, [plain]
    for _ignored in range(MAX_SETTING_DEPTH):
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


# -- training


def _check_updates(trace: TraceData) -> Iterator[Place]:
    for index, update in enumerate(trace.updates):
        is_real = not any(isinstance(rate, complex) for rate in update.rates)
        if not (is_real and trace.rows[update.step].kind == "optimizer_step"):
            yield "updates", index


# -- modules and hooks


def _check_calls(trace: TraceData) -> Iterator[Place]:
    depths: list[int] = []
    for index, row in enumerate(trace.calls):
        if row.parent is not None and row.parent >= index:
            yield "calls", index
            return
        depths.append(1 if row.parent is None else 1 + depths[row.parent])
        if depths[-1] > MAX_CALL_DEPTH:
            yield "calls", index


def _check_hooks(trace: TraceData) -> Iterator[Place]:
    for index, row in enumerate(trace.hook_rows):
        if not _has_valid_holder(row):
            yield "hook_rows", index


def _has_valid_holder(row: HookRow) -> bool:
    """Whether a module, optimizer, node or output has the hook, and nothing else."""
    if row.kind in (*MODULE_HOOK_KINDS, *STEP_HOOK_KINDS):
        other = row.module if row.kind in STEP_HOOK_KINDS else row.optimizer
        return row.node is None and row.output is None and other is None
    is_on_node = row.kind in NODE_HOOK_KINDS
    is_in_graph = row.node is not None and (row.output is None) == is_on_node
    return is_in_graph and row.module is None and row.optimizer is None and not row.flags


# -- steps

_REQUIRED_INDEXES = {
    **dict.fromkeys(("call", "forward", *FORWARD_HOOK_KINDS, "cut_short", "fast_path"), ("call",)),
    **dict.fromkeys(("full_backward_pre_hook", "full_backward_hook"), ("node", "call")),
    **dict.fromkeys((*STEP_HOOK_KINDS, "optimizer_step", "unscale"), ("optimizer",)),
    **dict.fromkeys((*NODE_HOOK_KINDS, "compute", "synchronise", "backward_hook"), ("node",)),
    **dict.fromkeys(ON_TENSOR_KINDS, ("node", "output")),
    **dict.fromkeys(("seed", "arrive", "retain_grad", "accumulate"), ("node", "output")),
    **dict.fromkeys(("returned", "unknown_hook"), ("node", "output")),
    "aliased": ("node", "output", "cause"),
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


def _check_steps(trace: TraceData) -> Iterator[Place]:
    for index, row in enumerate(trace.rows):
        if not (
            _has_valid_values(row)
            and _has_valid_location(trace, row)
            and _has_valid_hook(trace, row)
            and _has_valid_details(trace, row, index)
        ):
            yield "rows", index


def _has_valid_values(row: StepRow) -> bool:
    """Whether the number of values of a step fits its kind."""
    return row.kind not in _SINGLE_GRADIENT_KINDS or not (isinstance(row.before, tuple) or isinstance(row.after, tuple))


def _has_valid_location(trace: TraceData, row: StepRow) -> bool:
    """Whether a step has the node, output, call and optimizer that its kind requires."""
    # A forward without a backward pass belongs to the pass that would have come next.
    if row.pass_id == len(trace.roots) and row.node is not None:
        return False
    return all(getattr(row, column) is not None for column in _REQUIRED_INDEXES.get(row.kind, ()))


def _has_valid_hook(trace: TraceData, row: StepRow) -> bool:
    """Whether a step has a hook and its position if a hook ran, and otherwise no hook, unless it is an exception."""
    if row.hook is None:
        return row.kind not in HOOK_KINDS
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


def _check_values(trace: TraceData) -> Iterator[Place]:
    for index, (shape, dtype, _ignored, numbers, statistics, note) in enumerate(trace.values):
        is_empty = numbers is None and statistics is None and note is None
        is_unknown = note is None and _get_number_range(dtype) is None
        fits = numbers is None or (_has_shape(numbers, shape) and _has_dtype(numbers, dtype))
        if is_empty or is_unknown or not fits:
            yield "values", index


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


_RULES = (
    _check_passes,
    _check_graph,
    _check_saved,
    _check_calls,
    _check_hooks,
    _check_steps,
    _check_updates,
    _check_values,
)
