"""A trace as a file: versioned JSON, read back exactly as it was written."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hookviz.progress import maybe
from hookviz.still import no_collection
from hookviz.trace import (
    EFFECTS,
    HOOK_KINDS,
    KINDS,
    MISSING,
    MODULE_HOOK_KINDS,
    STEP_HOOK_KINDS,
    CallRow,
    HookRow,
    ModuleRow,
    SavedRow,
    ScaleRow,
    StepRow,
    TensorRow,
    Trace,
)
from hookviz.values import Row
from hookviz.whole import path_of
from hookviz.words import say

FORMAT, VERSION = "hookviz", 1

_ROWS: dict[str, Any] = {
    "tensors": TensorRow,
    "saved": SavedRow,
    "scales": ScaleRow,
    "hook_rows": HookRow,
    "modules": ModuleRow,
    "optimizers": ModuleRow,
    "calls": CallRow,
    "rows": StepRow,
}


_LATER = ("saved", "scales")
"""What files of earlier versions do not have."""


@no_collection()
def encode(trace: Trace) -> dict[str, Any]:
    """The trace as JSON's own types; steps, tensors and hooks as columns, which are shorter than objects."""
    with maybe(say("progress.writing", n="{n}", total="{total}"), _size(trace)) as tick:
        columns = {name: _columns(getattr(trace, name), kind, tick) for name, kind in _ROWS.items()}
        values = [_encode_value(row) for row in trace.values]
        tick(len(values))
    return {
        "format": FORMAT,
        "version": VERSION,
        "ops": trace.ops,
        "edges": [[*start, *end] for start, end in trace.edges.items()],
        "owners": list(trace.owners.items()),
        "roots": trace.roots,
        "hooked": trace.hooked,
        "outside": sorted(trace.outside),
        "rank": trace.rank,
        "ranks": trace.ranks,
        "notes": trace.notes,
        "dropped": trace.dropped,
        "values": values,
        **columns,
    }


def _size(trace: Trace) -> int:
    """How many things a file of this trace holds."""
    return len(trace.values) + sum(len(getattr(trace, name)) * len(kind._fields) for name, kind in _ROWS.items())


def _columns(rows: list[Any], kind: Any, tick: Callable[..., None]) -> dict[str, list[Any]]:
    columns = {}
    for name in kind._fields:
        columns[name] = [_marked(getattr(row, name)) for row in rows]
        tick(len(rows))
    return columns


def _marked(x: Any) -> Any:
    """A setting of an op may be a number that JSON does not have; unlike a value's it may also be a text."""
    if isinstance(x, tuple):
        return [_marked(part) for part in x]
    known = _encode(x)
    return {"number": known} if isinstance(known, str) and not isinstance(x, str) else x


def _encode_value(row: Row) -> list[Any]:
    shape, dtype, device, numbers, statistics, note = row
    return [shape, dtype, device, _encode(numbers), _encode(statistics), note]


def _encode(x: Any) -> Any:
    if isinstance(x, list | tuple):
        return [_encode(part) for part in x]
    if isinstance(x, complex) or (isinstance(x, float) and not math.isfinite(x)):
        return str(x)  # JSON has neither
    return x


def decode(data: dict[str, Any]) -> Trace:
    """The trace that ``encode`` wrote."""
    tables = {name: kind for name, kind in _ROWS.items() if name not in _LATER or name in data}
    count = len(data["values"]) + sum(len(data[name][kind._fields[0]]) for name, kind in tables.items())
    with maybe(say("progress.reading", n="{n}", total="{total}"), count) as tick:
        rows: dict[str, Any] = {name: list(_decode_rows(data[name], kind, tick)) for name, kind in tables.items()}
        values = [_decode_value(row) for row in data["values"]]
        tick(len(values))
    more: dict[str, Any] = {name: data[name] for name in ("ops", "hooked", "notes", "dropped")}
    more |= {"owners": dict(data["owners"]), "outside": set(data.get("outside", ()))}
    more |= {name: data.get(name) for name in ("rank", "ranks")}
    more["edges"] = {(a, b): (c, d) for a, b, c, d in data["edges"]}
    more["roots"] = [[(node, output) for node, output in places] for places in data["roots"]]
    return Trace(values=values, **more, **rows)


def _decode_rows(columns: dict[str, list[Any]], kind: Any, tick: Callable[[], None]) -> Iterator[Any]:
    for row in zip(*(columns[name] for name in kind._fields), strict=True):
        yield kind(*map(_tuples, row))
        tick()


def _tuples(x: Any) -> Any:
    if isinstance(x, dict):
        return _decode(x["number"])
    return tuple(_tuples(part) for part in x) if isinstance(x, list) else x


def _decode_value(row: list[Any]) -> Row:
    shape, dtype, device, numbers, statistics, note = row
    counted = None if statistics is None else tuple(_decode(statistics))
    return (tuple(shape), dtype, device, _decode(numbers), counted, note)


def _decode(x: Any) -> Any:
    if isinstance(x, list):
        return [_decode(part) for part in x]
    if isinstance(x, str):
        return complex(x) if "j" in x else float(x)
    return x


@no_collection()
def load(path: str | Path) -> Trace:
    """The trace that ``Trace.save`` wrote to ``path``.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read: it is a folder, say.
        TypeError: ``path`` is no path.
        ValueError: the file is no trace, a damaged one, or one of a newer version; the message says which.
    """
    place = path_of(path)
    try:
        data = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(say("error.load.missing", path=path)) from None
    except OSError as error:
        raise type(error)(say("error.load.read", path=path, why=error.strerror)) from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(say("error.load.json", path=path, why=error)) from None
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("version"), int):
        raise ValueError(say("error.load.format", path=path))
    if data["version"] > VERSION:
        raise ValueError(say("error.load.newer", path=path, version=data["version"], known=VERSION))
    try:
        trace = decode(data)
        fault = next(_faults(trace), None)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        fault, trace = repr(error), None
    if trace is None or fault is not None:
        raise ValueError(say("error.load.broken", path=path, why=fault))
    return trace


def _faults(trace: Trace) -> Iterator[str]:
    """What points to nothing in ``trace``, or is nothing: a file that was cut or edited by hand."""
    yield from _of_passes(trace)
    yield from _of_nodes(trace)
    yield from _of_calls_and_hooks(trace)
    yield from _of_steps(trace)
    for index, (shape, _, _, numbers, statistics, note) in enumerate(trace.values):
        known = (numbers, statistics, note) != (None, None, None)
        if not (known and isinstance(note, str | None) and all(isinstance(length, int) for length in shape)):
            yield f"value {index}"


def _of_passes(trace: Trace) -> Iterator[str]:
    hooks = range(len(trace.hook_rows))
    if len(trace.hooked) != len(trace.roots) or not all(_known([tuple(there)], hooks) for there in trace.hooked):
        yield "hooks of passes"
    if not all(isinstance(number, int | None) for number in (trace.rank, trace.ranks)):
        yield "which rank it was"
    if not isinstance(trace.dropped, int):
        yield "how many passes were let go of"
    if not all(isinstance(text, str) for text in (*trace.ops, *trace.notes)):
        yield "ops or notes are not texts"


def _of_nodes(trace: Trace) -> Iterator[str]:
    nodes, values, passes = (range(len(getattr(trace, name))) for name in ("ops", "values", "roots"))
    for (start, _), (end, _) in trace.edges.items():
        if start not in nodes or end not in nodes:
            yield f"an edge from {start} to {end}"
    for row in trace.tensors:
        if row.pass_id not in passes or row.node not in nodes or not _known([row.data, row.grad], values):
            yield f"the tensor {row.name}"
    for saved in trace.saved:
        placed = saved.pass_id in passes and saved.node in nodes
        if not placed or saved.why not in MISSING or not _known([saved.value], values):
            yield f"what node {saved.node} saved"
    for scale in trace.scales:
        if scale.pass_id not in passes or not _known([scale.at, scale.others], nodes):
            yield f"the scale of pass {scale.pass_id}"
    if not all(node in nodes for node in trace.outside):
        yield "which nodes were not observed"


def _of_calls_and_hooks(trace: Trace) -> Iterator[str]:
    nodes, modules, calls, optimizers = (
        range(len(getattr(trace, name))) for name in ("ops", "modules", "calls", "optimizers")
    )
    for index, call in enumerate(trace.calls):
        if call.module not in modules or not (call.parent is None or call.parent in calls[:index]):
            yield f"call {call.number} of a module"
    if not all(node in nodes and call in calls for node, call in trace.owners.items()):
        yield "which module made a node"
    for hook in trace.hook_rows:
        holders = optimizers if hook.kind in STEP_HOOK_KINDS else modules
        owned = hook.module == -1 or hook.module in holders
        placed = hook.node in nodes or hook.kind in (*MODULE_HOOK_KINDS, *STEP_HOOK_KINDS)
        if hook.kind not in HOOK_KINDS or not owned or not placed:
            yield f"the hook {hook.name}"


def _of_steps(trace: Trace) -> Iterator[str]:
    nodes, values, passes, hooks, calls, optimizers = (
        range(len(getattr(trace, name))) for name in ("ops", "values", "roots", "hook_rows", "calls", "optimizers")
    )
    for index, step in enumerate(trace.rows):
        kept = step.hook is None or step.hook in hooks
        shown = _known([step.before, step.after, *(part[2] for part in step.parts)], values)
        # A forward that no backward has followed belongs to the pass that might have come.
        known = step.pass_id in passes or (step.pass_id == len(passes) and step.node == -1)
        placed = known and (step.node == -1 or step.node in nodes) and (step.call == -1 or step.call in calls)
        placed = placed and (step.optimizer == -1 or step.optimizer in optimizers)
        told = step.kind in KINDS and step.effect in EFFECTS and len(step.labels) == 2
        told = told and (step.place is None or len(step.place) == 2)
        if not (told and kept and shown and placed):
            yield f"step {index}"


def _known(indexes: Iterable[Any], values: range) -> bool:
    """Whether there is a value for each of ``indexes``: numbers, tuples of them, or None."""
    flat = (i for index in indexes for i in (index if isinstance(index, tuple) else (index,)))
    return all(i is None or i in values for i in flat)
