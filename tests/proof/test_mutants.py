"""Damaged files are refused with a message or work in every view, within limits of time and memory."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from .mutants import KINDS_OF_TRACE, MEGABYTES, peak_megabytes, quick_layouts, time_limit, try_mutant, undamaged

MUTANTS = int(os.environ.get("HOOKVIZ_MUTANTS", 120))
"""The number of files; set it higher for a longer search."""
VIEW_SHARE, LAYOUT_INTERVAL = 0.12, 60
"""The share of slow views that are tried, and the interval of files whose pictures are laid out."""


def test_each_damaged_file_is_refused_with_a_message_or_works_in_every_view(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for kind in KINDS_OF_TRACE:
        undamaged(kind)
    before = peak_megabytes()
    for seed in range(MUTANTS):
        with time_limit(), nullcontext() if seed % LAYOUT_INTERVAL == 0 else quick_layouts():
            counts[try_mutant(seed, tmp_path, VIEW_SHARE)] += 1
    assert counts["refused"] >= 0.4 * MUTANTS and counts["worked"] >= 0.2 * MUTANTS
    assert peak_megabytes() - before < MEGABYTES
