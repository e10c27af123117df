"""What ``--json`` prints: the types of the reports, in the words of the API, and the JSON Schema of each.

Steps and passes are counted from 0, as in Python; lines of code from 1.
"""

from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import Meta

from hookviz.storage.schema import DIALECT
from hookviz.trace.rows import StepKind

Severity = Literal["error", "warning", "remark"]
Number = Annotated[
    float | str, Meta(description="A number; as a text, one that JSON cannot write: nan, inf, -inf, 1+2j.")
]
Notes = Annotated[list[str], Meta(description="What the recording could not observe, in sentences.")]
File = Annotated[str | None, Meta(description="Relative to the folder where the program ran; null if unknown.")]
Line = Annotated[int | None, Meta(description="Counted from 1; null if unknown.")]


class HookRecord(TypedDict):
    """A hook, and where its function is defined."""

    name: Annotated[str, Meta(description="The name of its function; the text of a lambda.")]
    on: Annotated[str, Meta(description="The tensor, node, module or optimizer that has the hook.")]
    kind: Annotated[str, Meta(description="How it was registered, such as tensor_hook or forward_hook.")]
    file: File
    line: Line


class FindingRecord(TypedDict):
    """One cause, with everything that follows from it."""

    severity: Annotated[Severity, Meta(description="error: broken. warning: harm to a part. remark: perhaps intended.")]
    kind: Annotated[str, Meta(description="What is wrong, such as nan, cut or bypassed.")]
    about: Literal["hook", "parameter", "value", "training", "program"]
    sentence: Annotated[str, Meta(description="What is so.")]
    cause: Annotated[str, Meta(description="Why it is so; empty if the sentence says that, or if it is not known.")]
    advice: Annotated[str, Meta(description="What to do; empty if the other sentences say that.")]
    certainty: Annotated[
        Literal["proven", "likely", "open"],
        Meta(description="Whether the recording proves the cause, makes it likely, or leaves it open."),
    ]
    file: File
    line: Line
    line_role: Annotated[
        str, Meta(description="What that line does: NaN begins there, it cuts the graph, registered the hook, …")
    ]
    step: Annotated[int | None, Meta(description="The step that shows it, counted from 0; null if none does.")]
    passes: Annotated[list[int], Meta(description="Where it holds, counted from 0; empty if it is about the whole.")]
    when: Annotated[str, Meta(description="The same in words; empty if the recording has a single pass.")]
    hooks: Annotated[list[HookRecord], Meta(description="The hooks that it is about, or that follow from it.")]
    parameters: Annotated[list[str], Meta(description="The parameters that it is about, or that follow from it.")]


class FindingsReport(TypedDict):
    """What is wrong in a trace, the worst first: ``hookviz findings --json``."""

    notes: Notes
    findings: list[FindingRecord]
    caption: Annotated[str, Meta(description="Without a finding: what was looked at, and what was not; else empty.")]


class CountedHookRecord(HookRecord):
    """A hook, how often it fired, and why it did not."""

    fired: Annotated[int, Meta(description="How often it fired in the passes of the trace.")]
    passes: Annotated[list[int], Meta(description="How often it fired in each of them.")]
    finding: Annotated[
        FindingRecord | None, Meta(description="Why it did not fire, or what is surprising about its firings.")
    ]


class HooksReport(TypedDict):
    """Every hook that fired or was registered: ``hookviz hooks --json``."""

    notes: Notes
    hooks: list[CountedHookRecord]
    caption: Annotated[str, Meta(description="Without a hook: where hookviz looked; else empty.")]


Count = Annotated[int | None, Meta(description="How many numbers; null if they were not counted.")]
StepRecord = TypedDict(
    "StepRecord",
    {
        "step": Annotated[int, Meta(description="Counted from 0.")],
        "pass": Annotated[int, Meta(description="Counted from 0.")],
        "kind": Annotated[StepKind, Meta(description="What happened.")],
        "on": Annotated[str | None, Meta(description="The tensor, node, module call or optimizer.")],
        "op": Annotated[str | None, Meta(description="The autograd node, such as MulBackward0.")],
        "module": Annotated[str | None, Meta(description="The path of the module.")],
        "call": Annotated[int | None, Meta(description="Which call of the module, counted from 1.")],
        "hook": Annotated[str | None, Meta(description="The name of the hook.")],
        "effect": Annotated[str | None, Meta(description="What the hook did: kept, edited, replaced or ran.")],
        "file": File,
        "line": Line,
        "tensors": Annotated[int, Meta(description="How many tensors shape, dtype and statistics describe.")],
        "shape": Annotated[list[int] | None, Meta(description="Null for several tensors.")],
        "dtype": str | None,
        "norm_before": Annotated[Number | None, Meta(description="The 2-norm of what the step began with.")],
        "norm_after": Annotated[Number | None, Meta(description="The 2-norm of what the step ended with.")],
        "min": Number | None,
        "max": Number | None,
        "mean": Number | None,
        "nan": Count,
        "inf": Count,
        "zero": Count,
    },
)


class StepsReport(TypedDict):
    """The steps of a trace, as ``trace.to_records()`` has them: ``hookviz text --json``."""

    notes: Notes
    steps: list[StepRecord]


class ValueRecord(TypedDict):
    """A gradient."""

    shape: list[int]
    dtype: str
    norm: Annotated[Number | None, Meta(description="The 2-norm; null if the numbers are not known.")]
    text: Annotated[str, Meta(description="As the table shows it.")]


class DifferenceRecord(TypedDict):
    """A gradient that differs between two traces."""

    on: Annotated[str, Meta(description="The tensor or node that has the gradient.")]
    kind: Annotated[str, Meta(description="The kind of the step that holds the gradient.")]
    before: Annotated[ValueRecord | None, Meta(description="In the first trace; null if it has none.")]
    after: Annotated[ValueRecord | None, Meta(description="In the second trace; null if it has none.")]
    amount: Annotated[Number | None, Meta(description="The largest absolute difference, or that of the norms.")]
    steps: Annotated[
        list[int | None], Meta(description="The step in the first and in the second trace, counted from 0.")
    ]


class FirstRecord(TypedDict):
    """The first firing that differs."""

    trace: Annotated[Literal["this", "other"], Meta(description="The trace that has it: the first or the second.")]
    step: Annotated[int, Meta(description="Counted from 0.")]
    hook: str | None
    on: str


class DiffReport(TypedDict):
    """The gradients that differ between two traces: ``hookviz diff --json``."""

    sentence: Annotated[str, Meta(description="A summary, which counts steps from 1.")]
    first: FirstRecord | None
    differences: list[DifferenceRecord]


class StaticFindingRecord(TypedDict):
    """What one rule finds in a model or a hook, without running it."""

    severity: Annotated[
        Severity, Meta(description="error: broken. warning: a known mistake. remark: perhaps intended.")
    ]
    kind: Annotated[str, Meta(description="The rule, such as late_binding.")]
    on: Annotated[str, Meta(description="The module, parameter or function that it is about.")]
    sentence: Annotated[str, Meta(description="What was found, and what to do.")]


class DoctorReport(TypedDict):
    """Known mistakes in a model or a hook function, the worst first: ``hookviz doctor --json``."""

    findings: list[StaticFindingRecord]
    caption: Annotated[str, Meta(description="What was checked, and what only a recorded pass can show.")]


class UseRecord(TypedDict):
    """A part of PyTorch that hookviz uses."""

    use: str
    points: Annotated[int, Meta(description="How many points were compared.")]
    mismatches: Annotated[list[str], Meta(description="What differs, and what is lost by it.")]
    gaps: Annotated[list[str], Meta(description="What only a newer PyTorch has.")]


class CheckReport(TypedDict):
    """The installed PyTorch compared with what hookviz relies on: ``hookviz check --json``."""

    torch: Annotated[str, Meta(description="The installed release.")]
    python: str
    hookviz: str
    tested: Annotated[list[str], Meta(description="The first and the last release that hookviz was tested with.")]
    uses: list[UseRecord]


REPORTS: dict[str, Any] = {
    "findings": FindingsReport,
    "hooks": HooksReport,
    "text": StepsReport,
    "diff": DiffReport,
    "doctor": DoctorReport,
    "check": CheckReport,
}
"""Command → the type of what it prints with ``--json``."""


def make_report_schema(command: str) -> dict[str, Any]:
    """Describe what a command prints with ``--json``, in the words of JSON Schema.

    >>> sorted(make_report_schema("hooks")["$defs"]["HooksReport"]["properties"])
    ['caption', 'hooks', 'notes']
    """
    return {"$schema": DIALECT, "title": f"hookviz {command} --json", **msgspec.json.schema(REPORTS[command])}
