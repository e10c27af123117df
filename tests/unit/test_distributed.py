"""One rank of DDP and of FSDP: the trace knows which, and tells the local gradient from the one that all share."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import leaf
from shown import shown_notes, shown_steps

import hookviz as hv
from hookviz.storage.decoding import decode_trace
from hookviz.storage.files import encode_trace
from tests.ranks import MODELS
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
Told = list[dict[str, Any]]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What each of two processes recorded; a deadlock would end in a timeout."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-W", "ignore", "-m", "tests.ranks"]
    both = []
    for rank in range(2):
        with (folder / f"{rank}.log").open("w") as log:
            both.append(subprocess.Popen([*command, str(rank), str(folder)], stdout=log, stderr=log, cwd=ROOT))
    try:
        ended = [process.wait(timeout=2 * PATIENCE) for process in both]
    finally:
        for process in both:
            process.kill()
            process.wait()
    assert ended == [0, 0], [(folder / f"{rank}.log").read_text() for rank in range(2)]
    return [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


def sentences(told: dict[str, Any], kind: str, pass_id: int = 0) -> dict[str, str]:
    return {on: sentence for found, on, number, sentence in told["steps"] if (found, number) == (kind, pass_id)}


RUNS = [f"{name}{more}" for name in MODELS for more in ("", " accumulated")]


@pytest.mark.parametrize("run", RUNS)
def test_nothing_of_the_run_changes(ranks: Told, run: str) -> None:
    assert [told[run]["same"] for told in ranks] == [True, True]
    assert [told[run]["faults"] for told in ranks] == ["", ""]


@pytest.mark.parametrize("run", [*RUNS, "apart", "inside", "part"])
def test_a_trace_knows_its_rank_and_says_so(ranks: Told, run: str) -> None:
    for rank, told in enumerate(ranks):
        assert told[run]["rank"] == [rank, 2]
        note = f"This was recorded on rank {rank} of 2 (ranks count from 0). It does not show what the other ranks did."
        assert note in told[run]["notes"]
        trace = decode_trace(told[run]["file"], hv.Trace)
        assert (trace.rank, trace.ranks) == (rank, 2)
        assert json.loads(json.dumps(encode_trace(trace))) == told[run]["file"]


def test_the_player_shows_the_rank_and_both_gradients(ranks: Told) -> None:
    player = decode_trace(ranks[1]["ddp"]["file"], hv.Trace).player()
    assert any("rank 1 of 2" in note for note in shown_notes(player.content))
    frame = next(frame for frame in shown_steps(player.content) if frame["kind"] == "synchronise")
    assert frame["before"] != frame["after"] and frame["title"].endswith(" is synchronised")


@pytest.mark.parametrize("run", ["ddp", "views", "inside", "part"])
def test_ddp_averages_what_is_local(ranks: Told, run: str) -> None:
    found = [
        next(s for on, s in sentences(told[run], "synchronise").items() if on.endswith("2.weight")) for told in ranks
    ]
    assert found[0].endswith(" over 2 ranks: local [[0.305051, 0]] → synchronised [[0.866094, 0]].")
    assert found[1].endswith(" over 2 ranks: local [[1.42714, 0]] → synchronised [[0.866094, 0]].")
    assert all(sentence.startswith("DDP averaged the gradient of ") for sentence in found)
    count = 2 if run == "part" else 4
    assert all(len(sentences(told[run], "synchronise")) == count for told in ranks)


@pytest.mark.parametrize("run", ["ddp", "views", "again", "fsdp", "flat"])
def test_what_is_written_is_told_before_what_it_becomes(ranks: Told, run: str) -> None:
    steps = [(kind, on) for kind, on, *_ in ranks[0][run]["steps"] if "[" not in on and on.startswith("model.")]
    kinds = [kind for kind, _ in steps if kind in ("accumulate", "synchronise")]
    first = kinds.index("synchronise")
    assert set(kinds[:first]) == {"accumulate"} and kinds.count("synchronise") == kinds.count("accumulate")


def test_a_gradient_on_top_of_another_is_not_read_while_torch_writes_to_it(ranks: Told) -> None:
    """DDP's buckets are joined by a thread of gloo's while the pass still runs."""
    for told in ranks:
        added = sentences(told["views accumulated"], "accumulate", 1)
        assert added and all(sentence.endswith("→ not seen.") for sentence in added.values())
        assert len(sentences(told["views accumulated"], "synchronise", 1)) == 4
        added = sentences(told["ddp accumulated"], "accumulate", 1)
        assert added and not any("not seen" in sentence for sentence in added.values())


def test_a_communication_hook_of_ones_own_is_not_called_an_average(ranks: Told) -> None:
    (found,) = (s for on, s in sentences(ranks[0]["hook"], "synchronise").items() if on.endswith("2.weight"))
    assert "DDP's communication hook combined the gradients of " in found
    assert found.endswith(" from 2 ranks: local [[0.305051, 0]] → synchronised [[1.73219, 0]].")


def test_a_pass_inside_the_pass_is_joined_with_it(ranks: Told) -> None:
    steps = ranks[0]["again"]["steps"]
    assert {number for kind, _, number, _ in steps if kind == "accumulate"} == {0, 1, 2, 3}
    joined = [number for kind, _, number, _ in steps if kind == "synchronise"]
    assert len(joined) == 8 and steps[-1][0] in ("synchronise", "optimizer_step")


def test_of_a_sharded_gradient_the_rank_keeps_its_part(ranks: Told) -> None:
    ours, theirs = (sentences(told["fsdp"], "synchronise")["model.2.weight"] for told in ranks)
    assert ours == (
        "FSDP averaged the gradient of model.2.weight over 2 ranks, and this rank keeps its shard: "
        "local [[0.305051, 0]] → synchronised [[0.866094, 0]]."
    )
    assert "local [[1.42714, 0]] → synchronised []" in theirs


def test_the_gathered_parameters_of_fsdp_have_names(ranks: Told) -> None:
    assert set(sentences(ranks[0]["fsdp"], "accumulate")) == {
        f"model.{layer}.{name}" for layer in (0, 2) for name in ("weight", "bias")
    }


def test_the_gathered_parameters_of_fsdp_stand_in_their_modules_and_show_their_shapes(ranks: Told) -> None:
    """Between forward and backward their memory is let go of: there are no numbers to read."""
    trace = decode_trace(ranks[0]["fsdp"]["file"], hv.Trace)
    held = {row.name: (trace.call(trace.owners[row.node]), str(trace.value(row.data))) for row in trace.tensors}
    assert held["model.2.weight"][0] == "model.2" and held["model.0.bias"][0] == "model.0"
    assert all("(" in shown and "Error" not in shown for _, shown in held.values())
    assert "RuntimeError" not in trace.player().content["svgs"][0]


def test_the_flat_parameter_of_the_older_fsdp_is_cut(ranks: Told) -> None:
    (found,) = sentences(ranks[0]["flat"], "synchronise").values()
    assert "FSDP averaged the gradient of " in found and "_flat_param over 2 ranks, and this rank keeps" in found
    assert "local (9,) norm 3.016 → synchronised (5,) norm " in found or "local [" in found


def test_without_synchronising_a_gradient_stays_local(ranks: Told) -> None:
    for told in ranks:
        assert sentences(told["apart"], "accumulate") and not sentences(told["apart"], "synchronise")


def test_alone_there_is_no_rank() -> None:
    with hv.record() as trace:
        (leaf(2.0) * 3).backward()
    assert (trace.rank, trace.ranks, trace.notes) == (None, None, [])
    assert not torch.distributed.is_initialized()


def test_a_file_of_before_has_no_rank_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    with hv.record() as trace:
        (leaf(2.0) * 3).backward()
    data = encode_trace(trace)
    (tmp_path / "bad.json").write_text(json.dumps(data | {"rank": "first"}))
    with pytest.raises(ValueError, match="rank: expected a whole number or null, got a text"):
        hv.load(tmp_path / "bad.json")
    del data["rank"], data["ranks"]
    assert decode_trace(data, hv.Trace) == trace
