"""The format of trace files: version, tables and limits."""

from typing import Any, TypeVar

from hookviz.trace import (
    CallRow,
    CutRow,
    HookRow,
    LineRow,
    MissingRow,
    ModuleRow,
    NonfiniteRow,
    ParameterRow,
    SavedRow,
    ScaleRow,
    SourceRow,
    StepRow,
    TensorRow,
    TraceData,
    UnfiredRow,
    UpdateRow,
)

TraceT = TypeVar("TraceT", bound=TraceData)
"""The class that a file is read into."""

FORMAT, VERSION = "hookviz", 1

MAX_NAME_LENGTH, MAX_TEXT_LENGTH = 10_000, 1_000_000
"""In characters. Names have the lower limit because a player repeats them; texts are source texts, errors and notes."""
MAX_FILE_SIZE = 2**29
"""In bytes. Reading a file takes about ten times its size in memory, and the views of the trace take more."""

ROW_TYPES: dict[str, Any] = {
    "tensors": TensorRow,
    "saved": SavedRow,
    "scales": ScaleRow,
    "hook_rows": HookRow,
    "modules": ModuleRow,
    "optimizers": ModuleRow,
    "calls": CallRow,
    "rows": StepRow,
    "sources": SourceRow,
    "lines": LineRow,
    "unfired_rows": UnfiredRow,
    "missing_rows": MissingRow,
    "cut_rows": CutRow,
    "parameters": ParameterRow,
    "nonfinite": NonfiniteRow,
    "updates": UpdateRow,
}
"""Table of a file → the type of its rows in a trace."""
