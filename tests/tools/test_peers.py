"""The comparison with other tools reports measurements and failures correctly."""

import doctest
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import hookviz as hv
from benchmarks import tables
from benchmarks.cases import Case
from benchmarks.peers import __main__ as command
from benchmarks.peers import dot, hook_visibility, measurement, runs, table
from benchmarks.peers.tools import PEERS, PLAIN, display_texts
from benchmarks.peers.workloads import WORKS
from benchmarks.tables import read_section, replace_section

SMALL_CASE = Case("small", torch.nn.Linear(3, 3), torch.ones(2, 3), 5, "linear")


def make_cell(**found: Any) -> runs.Cell:
    return {"date": "2026-01-02", "version": "1.0", **found}


@pytest.fixture
def results() -> table.Results:
    """Results of two workloads: every tool completes the first, and only hookviz completes the second."""
    timed_out = make_cell(failed={"stage": "capture", "why": "more than 60 s"}, memory=[4096.0])
    too_deep = make_cell(
        capture=[1.5, 1.4, 1.6], memory=[2048.0] * 3, failed={"stage": "picture", "why": "RecursionError: a | b\n" * 9}
    )
    complete = make_cell(capture=[2.0, 1.0, 3.0], memory=[4096.0] * 3, picture=[0.1, 0.2, 0.3], size=[1000, 1000, 1000])
    without_picture = {name: value for name, value in complete.items() if name != "picture"}
    plain_cell = make_cell(memory=[2048.0, 2048.0, 1024.0])
    mlp_cells = dict.fromkeys(PEERS, complete) | {"plain": plain_cell, "torchvista": without_picture}
    hook_cells = {name: make_cell(hooks=[dict.fromkeys(table.HOOK_COLUMNS, "")]) for name in PEERS}
    hook_cells["hookviz"]["hooks"] = [dict.fromkeys(table.HOOK_COLUMNS, "shown")]
    hook_cells["torchlens"]["hooks"][0]["spot_forward"] = "data"
    fan_cells = {"plain": make_cell(memory=[512.0]), "hookviz": complete, "torchlens": timed_out, "torchviz": too_deep}
    found: table.Results = json.loads(
        json.dumps({"mlp": mlp_cells, "fan": fan_cells, "hooks": hook_cells})
    )  # copies, so that no two cells are the same object
    return found


def table_row(results: table.Results, work: str, peer: str) -> list[str]:
    (found,) = (row for row in table.make_rows(results) if row[:2] == [WORKS[work]().name, PEERS[peer].name])
    return found[2:]


# -- the tables


def test_cell_shows_the_median_with_its_spread(results: table.Results) -> None:
    assert table_row(results, "mlp", "hookviz") == [
        "**2.00** (1.00 to 3.00)",
        "**200 ms** (100 ms to 300 ms)",
        "1.00 KB",  # all equal, so no spread is shown
        "2.00",
    ]


def test_memory_is_a_difference_if_the_plain_pass_needs_little(results: table.Results) -> None:
    assert table_row(results, "fan", "hookviz")[3] == "+3.5 MiB"


def test_failure_is_shown_in_the_column_of_its_stage(results: table.Results) -> None:
    assert table_row(results, "fan", "torchlens") == ["more than 60 s", "–", "–", "+3.5 MiB"]
    capture, picture, size, _ = table_row(results, "fan", "torchviz")
    assert (capture, size) == ("**1.50** (1.40 to 1.60)", "–")
    assert picture.startswith("RecursionError: a / b RecursionError") and picture.endswith(" …") and len(picture) < 100


def test_tool_that_draws_during_capture_has_no_separate_drawing_time(results: table.Results) -> None:
    assert table_row(results, "mlp", "torchvista")[1] == "with the capture"


def test_every_table_row_has_every_column(results: table.Results) -> None:
    lines = [line for line in table.make_full_tables(results).splitlines() if line.startswith("| ")]
    counts = [line.replace("\\|", "").count("|") for line in lines]
    assert set(counts[: 2 + len(PEERS) + 3]) == {len(table.HEAD) + 1}
    assert set(counts[2 + len(PEERS) + 3 :]) == {len(table.HOOK_COLUMNS) + 2}


def test_hook_columns_distinguish_shown_in_data_and_no(results: table.Results) -> None:
    assert table.hook_columns(results["hooks"]["hookviz"]) == ["shown"] * 5
    assert table.hook_columns(results["hooks"]["torchlens"]) == ["in its data", "no", "no", "no", "no"]
    failed = make_cell(failed={"stage": "hooks", "why": "crashes (SIGSEGV)"})
    assert table.hook_columns(failed) == ["crashes (SIGSEGV)", "–", "–", "–", "–"]


def test_summary_for_the_readme_has_the_medians(results: table.Results) -> None:
    head, _, first, second, *_ = table.make_summary(results).splitlines()
    assert head == "|  | sees of hooks | fan of 10,000 ops into one |"
    assert first == "| hookviz | 5 of 5 | 2.00, 200 ms, 1.00 KB |"
    assert second.startswith("| torchviz | 0 of 5 | 1.50, RecursionError: a / b")
    assert table.make_summary(results).splitlines()[4:6] == [
        "| TorchLens | 1 of 5 | more than 60 s |",
        "| TorchLens (part) | 0 of 5 | – |",  # not measured
    ]


def test_committed_pages_match_the_committed_results() -> None:
    results = command.load()
    assert set(results) == {*WORKS, "hooks"}
    assert read_section(
        (runs.ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8"), command.START
    ) == table.make_full_tables(results)
    assert read_section((runs.ROOT / "README.md").read_text(encoding="utf-8"), command.START) == table.make_summary(
        results
    )


@pytest.mark.parametrize("module", [table, tables])
def test_doctests_pass(module: ModuleType) -> None:
    found = doctest.testmod(module)
    assert found.attempted and not found.failed


def test_replace_section_writes_only_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- x -->\nold<!-- end -->\n<!-- y -->\nother<!-- end -->\n")
    replace_section(page, "<!-- y -->\n", "new\n")
    assert page.read_text() == "a\n<!-- x -->\nold<!-- end -->\n<!-- y -->\nnew\n<!-- end -->\n"
    with pytest.raises(ValueError, match=r"page\.md has no <!-- z --> with an <!-- end --> behind it"):
        replace_section(page, "<!-- z -->\n", "new\n")


# -- the processes


def run_code_instead(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Let the measuring process run ``code`` instead."""
    real = subprocess.Popen
    monkeypatch.setattr(runs.subprocess, "Popen", lambda _, **options: real([sys.executable, "-c", code], **options))


@pytest.mark.parametrize(
    ("code", "failed"),
    [
        ("import os; os.abort()", "crashes (SIGABRT)"),
        ("import time; time.sleep(60)", "more than 2 s"),
        ("raise SystemExit('no such work')", "ends with status 1: no such work"),
        ('print(\'{"failed": "RecursionError: too deep"}\')', "RecursionError: too deep"),
        ("import os; os._exit(3)", "ends with status 3: it said nothing"),
    ],
)
def test_measurements_before_a_failure_are_kept(code: str, failed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "TIMEOUT", 2)
    run_code_instead(
        monkeypatch, "print('<HTML>'); print('{\"memory\": 7}', flush=True); print(3, flush=True); " + code
    )
    assert runs.run_measurement("mlp", "hookviz", "capture") == {"memory": 7, "failed": failed}


def test_child_processes_of_a_tool_end_after_its_timeout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    marker = tmp_path / "there"
    child = f"import time, pathlib\nwhile True: pathlib.Path({str(marker)!r}).touch(); time.sleep(0.05)"
    monkeypatch.setattr(runs, "TIMEOUT", 2)
    run_code_instead(monkeypatch, f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])")
    runs.run_measurement("mlp", "hookviz", "capture")
    assert marker.exists()
    time.sleep(0.2)
    marker.unlink()
    time.sleep(0.3)
    assert not marker.exists()


def test_failed_stages_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []

    def answer(work: str, peer: str, stages: str) -> dict[str, Any]:
        requests.append((work, peer, stages))
        found: dict[str, Any] = {"memory": 1}
        if peer == "torchlens":
            return {**found, "failed": "more than 60 s"}
        return {**found, "capture": 2, **({"failed": "RecursionError"} if "picture" in stages else {})}

    monkeypatch.setattr(runs, "run_measurement", answer)
    monkeypatch.setattr(runs, "ROUNDS", 3)
    ((_, cells),) = runs.run_rounds(["mlp"], ["torchviz", "torchlens"])
    assert [peer for _, peer, _ in requests][:4] == ["plain", "torchviz", "torchlens", "plain"]
    assert [stages for _, peer, stages in requests if peer == "torchviz"] == ["capture,picture", "capture", "capture"]
    assert [stages for _, peer, stages in requests if peer == "torchlens"] == ["capture,picture"]
    assert cells["torchviz"]["capture"] == [2, 2, 2]
    assert cells["torchviz"]["failed"] == {"stage": "picture", "why": "RecursionError"}
    assert cells["torchlens"]["failed"] == {"stage": "capture", "why": "more than 60 s"}


def test_measurement_of_hookviz_in_a_fresh_process() -> None:
    found = runs.run_measurement("scalars", "hookviz", "capture,picture")
    assert set(found) == {"memory", "capture", "seconds", "plain", "picture", "size"}
    assert found["capture"] > 1 and found["capture"] == pytest.approx(found["seconds"] / found["plain"])
    assert found["size"] > 10_000 and found["picture"] > 0


@pytest.mark.parametrize(("slow_pass", "calls"), [(0.0, 1), (60.0, 1 + 3 * SMALL_CASE.times)])
def test_slow_pass_is_run_once_and_fast_one_repeatedly(
    slow_pass: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases: list[Case] = []
    peer = replace(PLAIN, capture=cases.append, picture=lambda _: ["three", "€"])
    monkeypatch.setattr(measurement, "SLOW_PASS", slow_pass)
    found = list(measurement.measure_stages(peer, SMALL_CASE, ["capture", "picture"]))
    assert len(cases) == calls
    assert [set(part) for part in found] == [{"memory"}, {"capture", "seconds", "plain"}, {"picture", "size"}]
    assert found[-1]["size"] == 5 + 3  # bytes
    assert len(list(measurement.measure_stages(peer, SMALL_CASE, ["capture"]))) == 2


# -- visibility of hooks


def test_hookviz_shows_all_hooks_in_order_with_their_gradients() -> None:
    assert hook_visibility.find_visible_hooks(PEERS["hookviz"]) == dict.fromkeys(table.HOOK_COLUMNS, "shown")


def test_plain_pass_shows_no_hooks() -> None:
    assert hook_visibility.find_visible_hooks(PLAIN) == dict.fromkeys(table.HOOK_COLUMNS, "")


def test_hooks_fire_in_the_expected_order() -> None:
    with hv.record() as trace:
        Case("hooks", hook_visibility.HookedModule(), torch.ones(1, 1, requires_grad=True)).root().backward()
    assert [step.hook.name for step in trace.firings if step.hook] == list(hook_visibility.NAMES)
    (fired,) = (step for step in trace.firings if step.hook and step.hook.name == "spot_tensor")
    before, _, after = fired.sentence.partition("→")
    assert hook_visibility.BEFORE in before and hook_visibility.AFTER in after


@pytest.mark.parametrize(
    ("text", "order"),
    [("spot_forward spot_tensor spot_backward", "shown"), ("spot_tensor spot_forward spot_backward", ""), ("", "")],
)
def test_names_in_the_wrong_order_do_not_count_as_order(text: str, order: str) -> None:
    found = hook_visibility.locate_names({"shown": text, "data": ""})
    assert found["order"] == order
    assert found["spot_tensor"] == ("shown" if text else "")


# -- the tools, and the stand-in for dot


def test_display_texts_are_the_values_of_the_mime_bundle() -> None:
    trace = PEERS["hookviz"].capture(SMALL_CASE)
    assert display_texts(trace) == [str(shown) for shown in trace._repr_mimebundle_().values()]


def test_last_node_of_every_workload_is_its_named_op() -> None:
    node_names = {"linear": "AddmmBackward0", "layer_norm": "NativeLayerNormBackward0"}
    for name in ("scalars", "mlp", "resnet", "chain"):
        case = WORKS[name]()
        out = case.run(case.input)
        assert out.grad_fn is not None
        assert out.grad_fn.name() == node_names.get(case.part, f"{case.part.capitalize()}Backward0"), name


@pytest.mark.filterwarnings("ignore:distutils Version classes")
def test_torchviz_is_drawn_by_hookviz() -> None:
    pytest.importorskip("torchviz")
    (shown, *_) = PEERS["torchviz"].picture(PEERS["torchviz"].capture(SMALL_CASE))
    assert shown.startswith("<svg") and "AddmmBackward0" in shown
    assert torch.equal(SMALL_CASE.run.weight.grad, torch.full((3, 3), 2.0))  # type: ignore[attr-defined]


def test_stand_in_for_dot_writes_svg_and_plain_output(tmp_path: Path) -> None:
    dot.install(tmp_path)
    (tmp_path / "in.dot").write_text("digraph { a -> b }")

    def call(engine: str, *arguments: str) -> str:
        done = subprocess.run([str(tmp_path / engine), *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    assert "<svg" in call("dot", "-Tsvg", str(tmp_path / "in.dot"))
    assert call("dot", "-Tplain", "-o", str(tmp_path / "out"), str(tmp_path / "in.dot")) == ""
    assert (tmp_path / "out").read_text().splitlines()[0].startswith("graph 1 ")
    (tmp_path / "placed.dot").write_text('digraph { a [pos="0,0"]; b [pos="720,0"]; a -> b }')
    positions = call("neato", "-n", "-Gsplines=line", "-Tplain", str(tmp_path / "placed.dot"))
    (a,) = re.findall(r"^node a (\S+) ", positions, re.MULTILINE)
    (b,) = re.findall(r"^node b (\S+) ", positions, re.MULTILINE)
    assert float(b) - float(a) == pytest.approx(10)


def test_stand_in_for_dot_is_first_on_the_path() -> None:
    with runs.environment_with_dot() as environment:
        folder = environment["PATH"].split(os.pathsep)[0]
        assert sorted(os.listdir(folder)) == ["dot", "neato"]


# -- the command


def test_command_accepts_names_of_workloads_and_tools(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[Any] = []

    def measure(works: list[str], peers: list[str]) -> list[Any]:
        calls.append((works, peers))
        return []

    monkeypatch.setattr(command, "run_rounds", measure)
    monkeypatch.setattr(command, "make_full_tables", lambda found: str(found))
    monkeypatch.setattr(command, "write_tables", lambda found: calls.append("written"))
    command.main(["mlp", "torchviz"])
    command.main([])
    assert calls == [(["mlp"], ["torchviz"]), ([*WORKS, "hooks"], list(PEERS)), "written"]
    with pytest.raises(SystemExit):
        command.main(["mlpp"])
    assert "'mlpp' is none of scalars, mlp" in capsys.readouterr().err


def test_partial_measurement_is_merged_into_the_saved_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, results: table.Results
) -> None:
    monkeypatch.setattr(command, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(command, "write_tables", lambda found: None)
    monkeypatch.setattr(command, "make_full_tables", lambda found: "")
    assert command.load() == {}
    command.save(results)
    new_cells = {"torchviz": make_cell(capture=[9.0])}
    monkeypatch.setattr(command, "run_rounds", lambda *_: [("mlp", new_cells)])
    command.main(["mlp", "torchviz", "--keep"])
    results["mlp"]["torchviz"] = new_cells["torchviz"]
    assert command.load() == results
