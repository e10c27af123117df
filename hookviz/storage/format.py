"""The format of a file: its version, its tables and its limits."""

from typing import Any, TypeVar

from hookviz.trace import CallRow, HookRow, ModuleRow, ReasonRow, SavedRow, ScaleRow, StepRow, TensorRow, TraceData

Kind = TypeVar("Kind", bound=TraceData)
"""The class of trace that a file is read as."""

FORMAT, VERSION = "hookviz", 2
"""Version 1, of the first release, is read as well: see ``hookviz.storage.version_1``."""

LONGEST_NAME, LONGEST_TEXT = 10_000, 1_000_000
"""Characters of a name, which is repeated wherever the thing is shown, and of a source text, an error or a note."""
LARGEST = 2**29
"""Bytes: no larger file is read. It takes some ten times as much memory, and then the views of it."""

ROWS: dict[str, Any] = {
    "tensors": TensorRow,
    "saved": SavedRow,
    "scales": ScaleRow,
    "hook_rows": HookRow,
    "modules": ModuleRow,
    "optimizers": ModuleRow,
    "calls": CallRow,
    "rows": StepRow,
    "reasons": ReasonRow,
}
"""Each table of a file, and what its rows are in a trace."""
