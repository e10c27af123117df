"""The JSON Schema of trace files, for other programs: ``python -m hookviz schema`` prints it."""

from typing import Any

import msgspec

from hookviz.storage.format import VERSION
from hookviz.storage.schema import trace_file_type

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def make_schema() -> dict[str, Any]:
    """Describe the types, ranges and sizes of everything in a trace file, in the words of JSON Schema.

    How the tables refer to each other, which ``hookviz.load`` checks, too, is beyond a schema.

    >>> sorted(make_schema()["$defs"]["TraceFile"]["properties"])[:3]
    ['calls', 'clips', 'cut_rows']
    """
    return {"$schema": DIALECT, "title": f"hookviz trace, version {VERSION}", **msgspec.json.schema(trace_file_type())}
