"""Files of the first release: what was otherwise in them, and how they are read as files of today."""

from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct, field

from hookviz.storage.schema import (
    Calls,
    File,
    Hooks,
    Index,
    IndexOrNone,
    Modules,
    Name,
    Note,
    Part,
    Prose,
    Saved,
    Scales,
    Several,
    Shape,
    Statistics,
    Steps,
    Tensors,
)
from hookviz.storage.version_1_sentences import FORMER_SENTENCES
from hookviz.support.messages import match_text, table
from hookviz.trace.notes import VERBATIM
from hookviz.trace.rows import Effect

_NOTED = ("note.", "trace.", "value.", "redacted.", "whatif.raised")
"""How the keys of all sentences begin that a trace may hold."""
_LONGEST = 2_000
"""To find several names in a longer text might take very long, and none of our sentences is."""


class StepsVersion1(Struct):
    """Rows of steps, whose ``of``, ``place`` and ``error`` meant something else in each kind of step."""

    pass_id: list[Index]
    kind: list[Name]
    node: list[IndexOrNone]
    output: list[IndexOrNone]
    hook: list[Index | None]
    place: list[tuple[Index, Index] | None]
    """(place, number of hooks) of a hook; (rank, number of ranks) of a synchronised gradient."""
    before: list[Several]
    after: list[Several]
    effect: list[Effect | None]
    parts: list[tuple[Part, ...]]
    cause: list[Index | None]
    error: list[Prose | None]
    """What an exception said; a compiled region's name; a sentence that says why something was not observed."""
    of: list[Name | None]
    """``data``, ``settings`` or ``grad_output``: what a hook changed; ``backward``: a module is called in a pass;
    ``inf``: a GradScaler has found Inf or NaN; who has joined the gradients of several ranks."""
    call: list[IndexOrNone]
    optimizer: list[IndexOrNone]
    labels: list[tuple[tuple[Name, ...], tuple[Name, ...]]]


class FileVersion1(Struct):
    """A trace that the first release has saved. What has a default was missing before that release."""

    format: Literal["hookviz"]
    version: Literal[1]
    ops: list[Name]
    edges: list[tuple[Index, Index, Index, Index]]
    owners: list[tuple[Index, Index]]
    roots: list[list[tuple[Index, Index]]]
    hooked: list[list[Index]]
    notes: list[Prose]
    """Sentences."""
    dropped: Index
    values: list[tuple[Shape, Name, Name, Any, Statistics | None, Prose | None]]
    """(shape, dtype, device, numbers, statistics, sentence)."""
    tensors: Tensors
    hook_rows: Hooks
    modules: Modules
    optimizers: Modules
    calls: Calls
    rows: StepsVersion1
    saved: Saved = field(default_factory=Saved)
    scales: Scales = field(default_factory=Scales)
    outside: list[Index] = []
    rank: Index | None = None
    ranks: Index | None = None
    statistics: Literal["all", "norm"] = "all"


def upgraded(old: FileVersion1) -> File:
    """The same trace as a file of today."""
    same = {name: getattr(old, name) for name in FileVersion1.__struct_fields__}
    del same["notes"]
    values: list[Any] = [(*value[:-1], _note(value[-1])) for value in old.values]
    changed = {"version": 2, "values": values, "rows": _steps(old.rows), "remarks": [_told(text) for text in old.notes]}
    return File(**(same | changed))


def _steps(old: StepsVersion1) -> Steps:
    same = {name: getattr(old, name) for name in Steps.__struct_fields__ if name in StepsVersion1.__struct_fields__}
    kinds = list(zip(old.kind, old.of, old.place, old.error, strict=True))
    synchronised = [kind == "synchronise" for kind in old.kind]
    changed: dict[str, list[Any]] = {
        "place": [None if joined else place for joined, place in zip(synchronised, old.place, strict=True)],
        "subject": [of if of in ("data", "settings", "grad_output") else "gradient" for of in old.of],
        "in_backward": [of == "backward" for of in old.of],
        "found_inf": [of == "inf" for of in old.of],
        "synchroniser": [of if kind == "synchronise" else None for kind, of, _, _ in kinds],
        "ranks": [place[1] if kind == "synchronise" and place else None for kind, _, place, _ in kinds],
        "region": [error if kind == "compiled" else None for kind, _, _, error in kinds],
        "note": [_note(error) if kind == "unobserved" else None for kind, _, _, error in kinds],
        "error": [error if kind == "exception" else None for kind, _, _, error in kinds],
    }
    return Steps(**(same | changed))


def _note(sentence: str | None) -> Note | None:
    return None if sentence is None else _told(sentence)


@lru_cache(maxsize=1024)
def _told(sentence: str) -> Note:
    """A sentence by its key, if it is one of ours; else as it stands.

    >>> _told("This was recorded on rank 0 of 2 (ranks count from 0): what the others did is not in it.")
    ('note.rank', (('rank', '0'), ('ranks', '2')))
    >>> _told("Something else.")
    ('verbatim', (('text', 'Something else.'),))
    """
    texts = {**table(), **FORMER_SENTENCES}
    for key in texts if len(sentence) < _LONGEST else ():
        if key.startswith(_NOTED) and (parts := match_text(texts[key], sentence)) is not None:
            return key, tuple(parts.items())
    return VERBATIM, (("text", sentence),)
