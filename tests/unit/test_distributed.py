"""Traces of DDP and FSDP: each stores its rank, and shows local and synchronised gradients."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from shown import shown_steps

import hookviz as hv
from hookviz.storage.files import decode_trace
from tests.ranks import MODELS
from tests.waiting import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RankResults = list[dict[str, Any]]

needs_fully_shard = pytest.mark.skipif("fsdp2" not in MODELS, reason="fully_shard runs without a GPU from PyTorch 2.8")


@pytest.fixture(scope="module")
def rank_results(tmp_path_factory: pytest.TempPathFactory) -> RankResults:
    """Run two ranks and return their results; a deadlock ends in a timeout."""
    folder = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-W", "ignore", "-m", "tests.ranks"]
    processes = []
    for rank in range(2):
        with (folder / f"{rank}.log").open("w") as log:
            processes.append(subprocess.Popen([*command, str(rank), str(folder)], stdout=log, stderr=log, cwd=ROOT))
    try:
        exit_codes = [process.wait(timeout=2 * PATIENCE) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert exit_codes == [0, 0], [(folder / f"{rank}.log").read_text() for rank in range(2)]
    return [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


def sentences(result: dict[str, Any], kind: str, pass_id: int = 0) -> dict[str, str]:
    return {
        on: sentence for step_kind, on, number, sentence in result["steps"] if (step_kind, number) == (kind, pass_id)
    }


def test_recording_does_not_change_distributed_training_and_finds_no_cut(rank_results: RankResults) -> None:
    """What FSDP gathers for a call belongs to the graph, and not the shard of it that the module holds."""
    for result in rank_results:
        for run in (f"{name}{suffix}" for name in MODELS for suffix in ("", " accumulated")):
            assert (run, result[run]["same"], result[run]["faults"]) == (run, True, "")
            findings = hv.Trace(decode_trace(result[run]["file"])).findings.parameters
            assert [finding.sentence for finding in findings if finding.kind == "cut"] == []


def test_a_trace_stores_its_rank_and_notes_it(rank_results: RankResults) -> None:
    for rank, result in enumerate(rank_results):
        note = f"This was recorded on rank {rank} of 2 (ranks count from 0). It does not show what the other ranks did."
        assert note in result["ddp"]["notes"]
        trace = hv.Trace(decode_trace(result["ddp"]["file"]))
        assert (trace.rank, trace.ranks) == (rank, 2)
    frame = next(frame for frame in shown_steps(trace.content()) if frame["kind"] == "synchronise")
    assert frame["before"] != frame["after"] and frame["title"].endswith(" is synchronised")


@pytest.mark.parametrize("run", ["ddp", "bucket views", "part of inner module"])
def test_ddp_steps_show_local_and_averaged_gradients(rank_results: RankResults, run: str) -> None:
    sentences_by_rank = [
        next(s for on, s in sentences(result[run], "synchronise").items() if on.endswith("2.weight"))
        for result in rank_results
    ]
    assert sentences_by_rank[0].endswith(" over 2 ranks: local [[0.305051, 0]] → synchronised [[0.866094, 0]].")
    assert sentences_by_rank[1].endswith(" over 2 ranks: local [[1.42714, 0]] → synchronised [[0.866094, 0]].")
    assert all(sentence.startswith("DDP combined the gradient of ") for sentence in sentences_by_rank)
    count = 2 if run == "part of inner module" else 4
    assert all(len(sentences(result[run], "synchronise")) == count for result in rank_results)


def test_an_accumulated_bucket_view_is_not_read_during_the_pass(rank_results: RankResults) -> None:
    """A gloo thread writes to DDP's buckets while the pass still runs."""
    for result in rank_results:
        added = sentences(result["bucket views accumulated"], "accumulate", 1)
        assert added and all(sentence.endswith("→ not seen.") for sentence in added.values())
        assert len(sentences(result["bucket views accumulated"], "synchronise", 1)) == 4
        added = sentences(result["ddp accumulated"], "accumulate", 1)
        assert added and not any("not seen" in sentence for sentence in added.values())


@needs_fully_shard
def test_fsdp_steps_show_the_shard_that_the_rank_keeps(rank_results: RankResults) -> None:
    rank0_sentence, rank1_sentence = (
        sentences(result["fsdp2"], "synchronise")["model.2.weight"] for result in rank_results
    )
    after = "0.866094" if torch.__version__ >= "2.9" else "1.73219"  # gloo adds up before
    assert rank0_sentence == (
        "FSDP combined the gradient of model.2.weight over 2 ranks, and this rank keeps its shard: "
        f"local [[0.305051, 0]] → synchronised [[{after}, 0]]."
    )
    assert "local [[1.42714, 0]] → synchronised []" in rank1_sentence


@needs_fully_shard
def test_gathered_fsdp_parameters_belong_to_their_modules_and_show_their_shapes(rank_results: RankResults) -> None:
    """FSDP frees their memory between forward and backward, so there are no numbers to read."""
    trace = hv.Trace(decode_trace(rank_results[0]["fsdp2"]["file"]))
    parameters = {
        row.name: (trace._data.call(trace._data.owners[row.node]), str(trace._data.value(row.data)))
        for row in trace._data.tensors
    }
    assert parameters["model.2.weight"][0] == "model.2" and parameters["model.0.bias"][0] == "model.0"
    assert all("(" in shown and "Error" not in shown for _, shown in parameters.values())
    assert "RuntimeError" not in trace.player().content["svgs"][0]


def test_the_flat_parameter_of_the_older_fsdp_is_sharded(rank_results: RankResults) -> None:
    (sentence,) = sentences(rank_results[0]["fsdp1"], "synchronise").values()
    assert "FSDP combined the gradient of " in sentence and "_flat_param over 2 ranks, and this rank keeps" in sentence
    assert "local (9,) norm 3.016 → synchronised (5,) norm " in sentence or "local [" in sentence


def test_no_sync_leaves_gradients_local(rank_results: RankResults) -> None:
    for result in rank_results:
        assert sentences(result["no_sync"], "accumulate") and not sentences(result["no_sync"], "synchronise")
