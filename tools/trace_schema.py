"""Make the JSON Schema of trace files from ``hookviz/storage/schema.py``, which checks files when they are loaded.

``python -m tools.trace_schema`` writes ``hookviz/storage/trace.schema.json``; a test checks that it is up to date.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from hookviz.storage import schema
from hookviz.storage.format import ROW_TYPES, VERSION
from hookviz.trace import HOOK_KINDS, KINDS, code_rows, missing_rows, rows, training_rows, unfired_rows
from tools.docstrings import read_field_docstrings

TARGET = Path(schema.__file__).parent / "trace.schema.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
ABOUT = """
A trace that hookviz.Trace.save has written. Most fields are tables: objects with one list for each column, all of the
same length. A column may be missing: each of its rows then has the default that its description names. An index counts
from 0 and means a row of a table or an entry of a list; null means none, as does -1 in early files. A sentence is a
pair: the key of a message, and its arguments. A number that JSON cannot write is a text: nan, inf, -inf or 1+2j.
hookviz.load also checks that the tables fit together, which this schema cannot express. It also reads files of version
1, which this schema does not describe.
"""
_COMMON = {
    "pass_id": "The number of the backward pass, counted from 0; a forward step has the number of the next pass.",
    "node": "A node: an index of `ops`.",
    "output": "The number of an output of the node.",
    "name": "The name that is shown.",
    "hook": "An index of `hook_rows`.",
    "call": "An index of `calls`.",
    "module": "An index of `modules`; of `optimizers` for the hook of an optimizer.",
    "file": "A path relative to the working folder or to its library, or a notebook cell such as In [4].",
    "line": "The number of a line, counted from 1.",
    "text": "A text of source code.",
    "kind": "What the row is.",
}
"""Descriptions of columns that mean the same in each table."""
_OTHER = {
    ("TensorRow", "leaf"): "Whether it is a leaf.",
    ("TensorRow", "retains_grad"): "Whether retain_grad was called on it.",
    ("TensorRow", "data"): "Its numbers: an index of `values`.",
    ("TensorRow", "grad"): "Its .grad: an index of `values`.",
    ("ScaleRow", "scale"): "The factor.",
    ("CallRow", "module"): "An index of `modules`.",
    ("HookRow", "mark"): "The line of its return statement, if it has exactly one.",
    ("UnfiredRow", "mark"): "The line of its return statement, if it has exactly one.",
    ("UnfiredRow", "flags"): "How a module hook was registered.",
    ("UnfiredRow", "module"): "The module that owns it, if it was called: an index of `modules`.",
    ("UnfiredRow", "evidence"): "(name, value) of what was seen of its owner.",
    ("ParameterRow", "shape"): "Its shape.",
    ("ParameterRow", "requires_grad"): "Whether it required grad.",
    ("SavedRow", "name"): "The name of torch's attribute without _saved_; or backward, for the place in the code of a "
    "custom Function's backward.",
    ("SavedRow", "value"): "The index of the value of a tensor, a list for several tensors, else null.",
    ("SavedRow", "why"): "Why there is no value: saved-tensor hooks would have to unpack it, it was changed in place "
    "or freed, it is large, there are too many, or it does not exist.",
    ("StepRow", "before"): "What the step began with: an index of `values`, or several.",
    ("StepRow", "after"): "What the step ended with: an index of `values`, or several.",
    ("TraceFile", "format"): "Marks a file of hookviz.",
    ("TraceFile", "version"): "The version of the format.",
    ("TraceFile", "ops"): "The nodes of the autograd graphs: the name of each one's op, such as MulBackward0.",
    ("TraceFile", "owners"): "(node, call): the module call that made a node.",
    ("TraceFile", "roots"): "For each pass, the (node, output) pairs at which it starts.",
    ("TraceFile", "hooked"): "For each pass, the hooks that were registered on its graph: indexes of `hook_rows`.",
    ("TraceFile", "remarks"): "What could not be observed, and why.",
    (
        "TraceFile",
        "pass_numbers",
    ): "The number of each pass among all that ran during the recording, counted from 1; empty in older files.",
    ("TraceFile", "dropped"): "How many earlier passes record(keep=...) has dropped.",
    (
        "TraceFile",
        "values",
    ): "(shape, dtype, device, numbers, statistics, note) of each measured tensor. The numbers are "
    "lists nested by the dimensions, and null for a large tensor; the statistics are (min, max, mean, norm, nan, inf, "
    "zero), and null for a small one.",
    ("TraceFile", "outside"): "The nodes at the border of the recording, which were not observed themselves.",
    ("TraceFile", "rank"): "The rank of the process among `ranks` processes of torch.distributed; null without it.",
    ("TraceFile", "ranks"): "The number of these processes.",
    ("TraceFile", "statistics"): "Which statistics were read of large tensors.",
    ("NumberText", "number"): "The number as text.",
}
"""(name of a class, name of a field) → a description, where the class has none that fits a file."""


def main() -> int:
    """Write ``trace.schema.json``."""
    TARGET.write_text(write_schema(), encoding="utf-8")
    return 0


def write_schema() -> str:
    """Write the schema as JSON."""
    return json.dumps(make_schema(), indent=1, ensure_ascii=False) + "\n"


def make_schema() -> dict[str, Any]:
    """Make the schema: that of the types, with the kinds of rows and a description of every field."""
    made = msgspec.json.schema(schema.TraceFile)
    definitions: dict[str, Any] = made["$defs"]
    for table, kinds in (("StepColumns", KINDS), ("HookColumns", HOOK_KINDS)):
        definitions[table]["properties"]["kind"]["items"] = {"enum": list(kinds)}
    row_of = {f"{row_type.__name__.removesuffix('Row')}Columns": row_type for row_type in ROW_TYPES.values()}
    for name, definition in definitions.items():
        row_type = row_of.get(name)
        if row_type is not None:
            definition["description"] = row_type.__doc__.partition("\n\n")[0]
        definition["description"] = _clean_up(definition["description"])
        _describe_fields(definition["properties"], name if row_type is None else row_type.__name__, row_type)
    tables = definitions["TraceFile"]["properties"]
    for name, row_type in ROW_TYPES.items():
        tables[name].setdefault("description", _clean_up(row_type.__doc__.partition("\n")[0]))
    return {
        "$schema": DIALECT,
        "title": f"hookviz trace, version {VERSION}",
        "description": _clean_up(ABOUT),
        **made,
    }


def _describe_fields(properties: dict[str, Any], class_name: str, row_type: Any) -> None:
    """Add descriptions to the fields of one class, and the defaults of missing columns."""
    docstrings: dict[tuple[str, str], str] = {}
    for module in (rows, code_rows, missing_rows, training_rows, unfired_rows, schema):
        docstrings |= read_field_docstrings(Path(str(module.__file__)))
    defaults = {} if row_type is None else row_type._field_defaults
    for name, field in properties.items():
        known = _OTHER.get((class_name, name)) or docstrings.get((class_name, name))
        if row_type is not None:
            known = known or _COMMON[name]
        if name in defaults:
            known = f"{known} If the column is missing: {json.dumps(defaults[name])}."
        if known:
            field["description"] = _clean_up(known)


def _clean_up(text: str) -> str:
    """Put a docstring on one line, with the quotes of Markdown."""
    return " ".join(text.replace("``", "`").split())


if __name__ == "__main__":
    sys.exit(main())
