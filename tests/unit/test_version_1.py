"""Files of the first release: each kind of step in them is read, told as that release told it, and played."""

import json
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import hookviz as hv
from hookviz.analysis.formulas.reason_table import add_reasons
from hookviz.storage.decoding import decode_trace
from hookviz.storage.files import encode_trace
from hookviz.storage.version_1_sentences import FORMER_SENTENCES
from hookviz.support.messages import load_texts
from hookviz.trace import KINDS, Note

FOLDER = Path(__file__).parents[1] / "data" / "version_1"
"""Traces that the first release saved, and their sentences, notes and tables in the words of today."""
NAMES = sorted(path.stem for path in FOLDER.glob("*.json") if not path.stem.endswith(".told"))


def test_there_are_files_of_every_kind_of_step_that_needs_no_special_machine() -> None:
    kinds = {row.kind for name in NAMES for row in hv.load(FOLDER / f"{name}.json").rows}
    assert len(NAMES) == 13
    assert set(KINDS) - kinds <= {
        "multi_grad_hook", "node_pre_hook", "node_post_hook", "full_backward_pre_hook", "backward_hook",
        "step_pre_hook", "aliased", "unknown_hook", "cut_short", "fast_path", "forward_hook",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_it_is_told_as_the_first_release_told_it(name: str) -> None:
    trace = hv.load(FOLDER / f"{name}.json")
    told: dict[str, Any] = json.loads((FOLDER / f"{name}.told.json").read_text(encoding="utf-8"))
    assert trace.notes == told["notes"]
    assert repr(trace) == told["repr"]
    assert repr(trace.firings) == told["firings"]
    assert repr(trace.troubles) == told["troubles"]
    assert [[step.kind, step.on, step.sentence, step.effect] for step in trace.steps] == told["steps"]


@pytest.mark.parametrize("name", NAMES)
def test_it_plays_and_is_saved_as_a_file_of_today(name: str, tmp_path: Path) -> None:
    trace = hv.load(FOLDER / f"{name}.json")
    trace.to_html(tmp_path / "page.html")
    assert "hv-state" in (tmp_path / "page.html").read_text(encoding="utf-8")
    trace.save(tmp_path / "today.json")
    assert json.loads((tmp_path / "today.json").read_text(encoding="utf-8"))["version"] == 2
    assert encode_trace(hv.load(tmp_path / "today.json")) == encode_trace(add_reasons(trace))


def test_its_sentences_become_keys_and_arguments_and_what_is_none_of_ours_stays() -> None:
    notes = hv.load(FOLDER / "ranks.json").remarks
    assert notes == [Note.of("note.rank", rank=0, ranks=2), Note.verbatim("A note that no message stands for.")]


@pytest.mark.parametrize("key", FORMER_SENTENCES)
def test_a_former_sentence_is_read_as_the_message_of_today(key: str) -> None:
    template, today = FORMER_SENTENCES[key], load_texts()[key]
    parts = {name: f"<{name}>" for _, name, _, _ in Formatter().parse(today) if name}
    assert template != today
    file = json.loads((FOLDER / "a_to_e.json").read_text(encoding="utf-8"))
    (note,) = decode_trace(file | {"notes": [template.format_map(parts)]}, hv.Trace).remarks
    assert (note.key, dict(note.arguments)) == (key, parts)


def test_what_one_field_held_for_several_kinds_of_step_is_told_apart() -> None:
    ranks, scaler = (hv.load(FOLDER / f"{name}.json").rows for name in ("ranks", "scaler"))
    joined = [(row.synchroniser, row.ranks, row.place) for row in ranks if row.kind == "synchronise"]
    assert joined == [("ddp", 2, None), ("hook", 2, None), ("fsdp", 2, None), ("factor", 2, None)]
    assert [row.found_inf for row in scaler if row.kind == "unscale"] == [False, True]
    (region,) = (row.region for row in hv.load(FOLDER / "compiled.json").rows if row.kind == "compiled")
    (error,) = (row.error for row in hv.load(FOLDER / "exception.json").rows if row.kind == "exception")
    assert region is not None and error == "ValueError: a hook's own words"
    (unobserved,) = (row.note for row in ranks if row.kind == "unobserved")
    assert unobserved == Note.of("trace.trouble", error="KeyError: 1")
    again = [row for row in hv.load(FOLDER / "checkpoint.json").rows if row.kind == "call"]
    assert [row.in_backward for row in again] == [False, True]
    tuned = [row for row in hv.load(FOLDER / "modules.json").rows if row.kind == "step_post_hook"]
    assert [row.subject for row in tuned] == ["settings", "settings"]
