"""Version 1 of the format, written by the first release: its schema, and the conversion to the current version."""

from functools import cache, lru_cache
from typing import Any, Literal

from msgspec import Struct, field

from hookviz.storage.schema import (
    CallColumns,
    FileNote,
    FilePart,
    FileStatistics,
    HookColumns,
    Index,
    Indexes,
    IndexOrNone,
    LongText,
    ModuleColumns,
    Name,
    SavedColumns,
    ScaleColumns,
    Shape,
    StepColumns,
    TensorColumns,
    TraceFile,
)
from hookviz.storage.version_1_sentences import FORMER_SENTENCES
from hookviz.support.messages import load_texts, match_text
from hookviz.trace.notes import VERBATIM
from hookviz.trace.rows import Effect

_SENTENCE_PREFIXES = ("note.", "trace.", "value.", "redacted.", "whatif.raised")
"""Prefixes of the keys of all sentences that a trace can hold."""
_MAX_SENTENCE_LENGTH = 2_000
"""In characters. No sentence of hookviz is longer, and matching several arguments in a long text can be very slow."""


class StepColumnsVersion1(Struct):
    """The columns of steps in version 1; ``of``, ``place`` and ``error`` depend on the kind of step."""

    pass_id: list[Index]
    kind: list[Name]
    node: list[IndexOrNone]
    output: list[IndexOrNone]
    hook: list[Index | None]
    place: list[tuple[Index, Index] | None]
    """(position, number of hooks) if a hook ran; (rank, number of ranks) if a gradient was synchronised."""
    before: list[Indexes]
    after: list[Indexes]
    effect: list[Effect | None]
    parts: list[tuple[FilePart, ...]]
    cause: list[Index | None]
    error: list[LongText | None]
    """The message of an exception, the name of a compiled region, or a sentence about what was not observed."""
    of: list[Name | None]
    """``data``, ``settings`` or ``grad_output`` if a hook changed that; ``backward`` if a module was called during a
    pass; ``inf`` if a GradScaler found Inf or NaN; the synchroniser if gradients of several ranks were combined."""
    call: list[IndexOrNone]
    optimizer: list[IndexOrNone]
    labels: list[tuple[tuple[Name, ...], tuple[Name, ...]]]


class TraceFileVersion1(Struct):
    """A trace file of version 1. Files written before the first release lack the fields that have a default."""

    format: Literal["hookviz"]
    version: Literal[1]
    ops: list[Name]
    edges: list[tuple[Index, Index, Index, Index]]
    owners: list[tuple[Index, Index]]
    roots: list[list[tuple[Index, Index]]]
    hooked: list[list[Index]]
    notes: list[LongText]
    """Sentences in English."""
    dropped: Index
    values: list[tuple[Shape, Name, Name, Any, FileStatistics | None, LongText | None]]
    """(shape, dtype, device, numbers, statistics, sentence)."""
    tensors: TensorColumns
    hook_rows: HookColumns
    modules: ModuleColumns
    optimizers: ModuleColumns
    calls: CallColumns
    rows: StepColumnsVersion1
    saved: SavedColumns = field(default_factory=SavedColumns)
    scales: ScaleColumns = field(default_factory=ScaleColumns)
    outside: list[Index] = []
    rank: Index | None = None
    ranks: Index | None = None
    statistics: Literal["all", "norm"] = "all"


def upgrade_file(old: TraceFileVersion1) -> TraceFile:
    """Convert a file of version 1 to the current version."""
    unchanged = {name: getattr(old, name) for name in TraceFileVersion1.__struct_fields__}
    del unchanged["notes"]
    values: list[Any] = [(*value[:-1], _upgrade_note(value[-1])) for value in old.values]
    changed = {
        "version": 2,
        "values": values,
        "rows": _upgrade_steps(old.rows),
        "remarks": [_identify_sentence(text) for text in old.notes],
    }
    return TraceFile(**(unchanged | changed))


def _upgrade_steps(old: StepColumnsVersion1) -> StepColumns:
    unchanged = {
        name: getattr(old, name)
        for name in StepColumns.__struct_fields__
        if name in StepColumnsVersion1.__struct_fields__
    }
    kinds = list(zip(old.kind, old.of, old.place, old.error, strict=True))
    is_synchronised = [kind == "synchronise" for kind in old.kind]
    changed: dict[str, list[Any]] = {
        "place": [None if flag else place for flag, place in zip(is_synchronised, old.place, strict=True)],
        "subject": [of if of in ("data", "settings", "grad_output") else "gradient" for of in old.of],
        "in_backward": [of == "backward" for of in old.of],
        "found_inf": [of == "inf" for of in old.of],
        "synchroniser": [of if kind == "synchronise" else None for kind, of, _, _ in kinds],
        "ranks": [place[1] if kind == "synchronise" and place else None for kind, _, place, _ in kinds],
        "region": [error if kind == "compiled" else None for kind, _, _, error in kinds],
        "note": [_upgrade_note(error) if kind == "unobserved" else None for kind, _, _, error in kinds],
        "error": [error if kind == "exception" else None for kind, _, _, error in kinds],
    }
    return StepColumns(**(unchanged | changed))


def _upgrade_note(sentence: str | None) -> FileNote | None:
    return None if sentence is None else _identify_sentence(sentence)


@lru_cache(maxsize=1024)
def _identify_sentence(sentence: str) -> FileNote:
    """Find the key and the arguments of a sentence; any other text gets the key ``VERBATIM``.

    >>> _identify_sentence("This was recorded on rank 0 of 2 (ranks count from 0): what the others did is not in it.")
    ('note.rank', (('rank', '0'), ('ranks', '2')))
    >>> _identify_sentence("Something else.")
    ('verbatim', (('text', 'Something else.'),))
    """
    for key, template in _sentence_templates() if len(sentence) < _MAX_SENTENCE_LENGTH else ():
        if (parts := match_text(template, sentence)) is not None:
            return key, tuple(parts.items())
    return VERBATIM, (("text", sentence),)


@cache
def _sentence_templates() -> list[tuple[str, str]]:
    """List (key, template) of the sentences that a file of version 1 can hold, as that version worded them."""
    texts = {**load_texts("en"), **FORMER_SENTENCES}
    return [(key, text) for key, text in texts.items() if key.startswith(_SENTENCE_PREFIXES)]
