"""Files that nobody wrote: each is refused in a sentence or works in every view, and costs no more than it may."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from .mutants import KINDS_OF_TRACE, MEGABYTES, blank_pictures, kind_of, limited, peak, saved, tried, undamaged

MUTANTS = int(os.environ.get("HOOKVIZ_MUTANTS", 300))
"""Set it to a larger number for a longer search."""
PART, DRAWN = 0.12, 150
"""So large a part of the views that take long is looked at, and one file in so many has its pictures laid out."""


def test_each_file_is_refused_in_a_sentence_or_works_in_every_view(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for kind in KINDS_OF_TRACE:
        undamaged(kind)
    before = peak()
    for seed in range(MUTANTS):
        with limited(), nullcontext() if seed % DRAWN == 0 else blank_pictures():
            counts[tried(seed, tmp_path, PART)] += 1
    assert counts["refused"] >= 0.4 * MUTANTS and counts["worked"] >= 0.2 * MUTANTS
    assert peak() - before < MEGABYTES


def test_every_kind_of_trace_is_damaged() -> None:
    assert {kind_of(seed) for seed in range(60)} == set(KINDS_OF_TRACE)
    assert all(len(saved(kind)) < 50_000 for kind in KINDS_OF_TRACE)
