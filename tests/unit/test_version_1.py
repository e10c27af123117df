"""Files of the first release are loaded with every kind of step, give the expected texts, and can be played."""

import json
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import hookviz as hv
from hookviz.storage.decoding import decode_trace
from hookviz.storage.files import encode_trace
from hookviz.storage.version_1_sentences import FORMER_SENTENCES
from hookviz.support.messages import load_texts
from hookviz.trace import KINDS, Note

FOLDER = Path(__file__).parents[1] / "data" / "version_1"
"""Traces saved by the first release, and their expected sentences, notes and tables today."""
NAMES = sorted(path.stem for path in FOLDER.glob("*.json") if not path.stem.endswith(".told"))


def test_the_files_cover_every_kind_of_step_that_needs_no_special_machine() -> None:
    kinds = {row.kind for name in NAMES for row in hv.load(FOLDER / f"{name}.json").rows}
    assert len(NAMES) == 13
    assert set(KINDS) - kinds <= {
        "multi_grad_hook", "node_pre_hook", "node_post_hook", "full_backward_pre_hook", "backward_hook",
        "step_pre_hook", "aliased", "unknown_hook", "cut_short", "fast_path", "forward_hook",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_the_first_release_has_the_expected_texts(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # a wide terminal: each row on one line
    trace = hv.load(FOLDER / f"{name}.json")
    expected: dict[str, Any] = json.loads((FOLDER / f"{name}.told.json").read_text(encoding="utf-8"))
    assert trace.notes == expected["notes"]
    assert repr(trace) == expected["repr"]
    assert repr(trace.firings) == expected["firings"]
    assert repr(trace.troubles) == expected["troubles"]
    assert [[step.kind, step.on, step.sentence, step.effect] for step in trace.steps] == expected["steps"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_the_first_release_is_played_and_saved_in_the_current_format(name: str, tmp_path: Path) -> None:
    trace = hv.load(FOLDER / f"{name}.json")
    trace.to_html(tmp_path / "page.html")
    assert "hv-state" in (tmp_path / "page.html").read_text(encoding="utf-8")
    trace.save(tmp_path / "today.json")
    assert json.loads((tmp_path / "today.json").read_text(encoding="utf-8"))["version"] == 2
    assert encode_trace(hv.load(tmp_path / "today.json")) == encode_trace(trace)


def test_stored_sentences_become_message_keys_and_unknown_ones_are_kept() -> None:
    notes = hv.load(FOLDER / "ranks.json").remarks
    assert notes == [Note.of("note.rank", rank=0, ranks=2), Note.verbatim("A note that no message stands for.")]


@pytest.mark.parametrize("key", FORMER_SENTENCES)
def test_a_former_sentence_is_read_as_the_current_message(key: str) -> None:
    template, current = FORMER_SENTENCES[key], load_texts()[key]
    parts = {name: f"<{name}>" for _, name, _, _ in Formatter().parse(current) if name}
    assert template != current
    file = json.loads((FOLDER / "a_to_e.json").read_text(encoding="utf-8"))
    (note,) = decode_trace(file | {"notes": [template.format_map(parts)]}, hv.Trace).remarks
    assert (note.key, dict(note.arguments)) == (key, parts)


def test_a_field_shared_by_several_kinds_is_split_into_separate_fields() -> None:
    ranks, scaler = (hv.load(FOLDER / f"{name}.json").rows for name in ("ranks", "scaler"))
    synchronisers = [(row.synchroniser, row.ranks, row.place) for row in ranks if row.kind == "synchronise"]
    assert synchronisers == [("ddp", 2, None), ("hook", 2, None), ("fsdp", 2, None), ("factor", 2, None)]
    assert [row.found_inf for row in scaler if row.kind == "unscale"] == [False, True]
    (region,) = (row.region for row in hv.load(FOLDER / "compiled.json").rows if row.kind == "compiled")
    (error,) = (row.error for row in hv.load(FOLDER / "exception.json").rows if row.kind == "exception")
    assert region is not None and error == "ValueError: a hook's own words"
    (unobserved,) = (row.note for row in ranks if row.kind == "unobserved")
    assert unobserved == Note.of("trace.trouble", error="KeyError: 1")
    calls = [row for row in hv.load(FOLDER / "checkpoint.json").rows if row.kind == "call"]
    assert [row.in_backward for row in calls] == [False, True]
    step_hooks = [row for row in hv.load(FOLDER / "modules.json").rows if row.kind == "step_post_hook"]
    assert [row.subject for row in step_hooks] == ["settings", "settings"]
