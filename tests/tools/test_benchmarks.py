"""Each benchmark runs on a tiny case, and what its pages show is what was measured."""

import torch

from benchmarks import partial_recording
from benchmarks.cases import Case
from benchmarks.observation import record_norms, record_pass, run_with_empty_hooks
from benchmarks.peers import __main__ as peers
from benchmarks.peers import hook_visibility, measurement, runs, table
from benchmarks.peers.tools import PEERS
from benchmarks.peers.workloads import WORKS
from benchmarks.tables import read_section
from benchmarks.timing import ratios

SMALL_CASE = Case("small", torch.nn.Sequential(torch.nn.Linear(3, 3)), torch.ones(2, 3), 3, "linear")


def test_recording_is_compared_with_a_plain_pass() -> None:
    kinds = [run_with_empty_hooks, record_pass, record_norms, partial_recording.record_part("0")]
    found = ratios(SMALL_CASE, kinds, 2)
    assert [len(rounds) for rounds in found] == [2] * len(kinds) and min(map(min, found)) > 0


# -- the comparison with other tools


def test_a_tool_is_measured_stage_by_stage() -> None:
    found = list(measurement.measure_stages(PEERS["hookviz"], SMALL_CASE, ["capture", "picture"]))
    assert [set(part) for part in found] == [{"memory"}, {"capture", "seconds", "plain"}, {"picture", "size"}]
    assert hook_visibility.find_visible_hooks(PEERS["hookviz"]) == dict.fromkeys(table.HOOK_COLUMNS, "shown")


def test_committed_pages_match_the_committed_results() -> None:
    results = peers.load()
    assert set(results) == {*WORKS, "hooks"}
    for page, text in (("benchmarks/README.md", table.make_full_tables), ("site/promises.md", table.make_summary)):
        assert read_section((runs.ROOT / page).read_text(encoding="utf-8"), peers.START) == text(results)
