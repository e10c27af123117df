"""What a trace keeps of hooks that did not fire and of missing gradients: files, redaction, limits, words."""

import json
import sys
from pathlib import Path

import pytest
import torch
from scenes import count_calls
from torch import nn

import hookviz as hv
from hookviz.recorder.followers import hook_ledger, parameter_ledger, unfired_hooks
from hookviz.trace.redaction import redact
from tests.missing import missing_gradients
from tests.reasons import reasons


def never(*_: object) -> None:
    """A hook that does not fire."""


class Cut(nn.Module):
    """Two layers, with a cut between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(2, 2), nn.Linear(2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).detach())  # type: ignore[no-any-return]


def cut_trace() -> hv.Trace:
    net = Cut()
    net.first.register_full_backward_hook(never)
    net.first.weight.register_hook(never)
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
    return trace


def test_a_loaded_trace_says_the_same(tmp_path: Path) -> None:
    trace = cut_trace()
    trace.save(tmp_path / "cut.json")
    loaded = hv.load(tmp_path / "cut.json")
    assert loaded._data.unfired_rows == trace._data.unfired_rows != []
    assert list(reasons(loaded)) == list(reasons(trace))
    assert list(missing_gradients(loaded)) == list(missing_gradients(trace))
    assert list(loaded.findings) == list(trace.findings)


@pytest.mark.parametrize(
    ("table", "column", "cell"),
    [("unfired_rows", "called", -1), ("unfired_rows", "module", 99), ("missing_rows", "module", 99)],
)
def test_a_damaged_table_is_refused(table: str, column: str, cell: object, tmp_path: Path) -> None:
    cut_trace().save(tmp_path / "cut.json")
    data = json.loads((tmp_path / "cut.json").read_text())
    data[table][column][0] = cell
    (tmp_path / "cut.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=table):
        hv.load(tmp_path / "cut.json")


def test_redaction_of_the_source_leaves_no_place_of_a_hook() -> None:
    net = nn.Linear(2, 2)
    with hv.record(net) as trace:
        net.register_forward_hook(never).remove()
        net.register_forward_hook(lambda *_: None)
        net(torch.ones(1, 2))
        net.register_forward_hook(lambda *_: None)
    assert {row.removed_at is None for row in trace._data.unfired_rows} == {True, False}
    assert all(row.registered_at for row in trace._data.unfired_rows)
    rows = redact(trace._data, source=False).unfired_rows  # type: ignore[attr-defined]
    assert {(row.file, row.line, row.text) for row in rows} == {(None, None, None)}
    assert {(row.removed_at, row.registered_at) for row in rows} == {(None, None)}
    assert {row.name for row in rows} == {"never", "lambda"}


def test_a_hook_that_came_too_late_names_the_line_that_registered_it() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    with hv.record() as trace:
        (a * a).backward()
        line = sys._getframe().f_lineno + 1
        a.register_hook(never)
    (finding,) = trace.findings
    assert (finding.kind, finding.line, finding.line_role) == ("late", line, "registered")


def test_a_recording_of_a_part_says_that_it_did_not_look_at_the_rest() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Flatten(), nn.Linear(2, 1))
    with hv.record(net[0]) as trace:
        net(torch.ones(1, 2)).sum().backward()
    assert "Not looked at: the other parts of the model" in str(trace.findings)


def test_many_hooks_are_limited_and_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfired_hooks, "MAX_HOOKS", 3)
    net = nn.Linear(2, 2)
    for _ in range(5):
        net.register_full_backward_hook(never)
    with hv.record(net) as trace, torch.no_grad():
        net(torch.ones(1, 2))
    assert len(reasons(trace)) == 3
    assert any("it does not show of 2 whether they fired" in note for note in trace.notes)


def test_removals_that_are_not_remembered_are_counted_in_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_ledger, "MAX_ENTRIES", 3)
    net = nn.Linear(2, 2)
    with hv.record(net) as trace:
        for _ in range(5):
            net.register_forward_hook(never).remove()
        net(torch.ones(1, 2))
    assert len(reasons(trace)) == 3
    assert any("it does not show of 2 whether they fired" in note for note in trace.notes)


def test_four_times_the_silent_modules_cost_four_times_as_much() -> None:
    def count(size: int) -> int:
        net = nn.ModuleDict({f"layer{number}": nn.Linear(1, 1) for number in range(size)})
        for layer in net.values():
            layer.register_forward_hook(never)
            layer.register_full_backward_hook(never)
        x = torch.ones(1, requires_grad=True)

        def run() -> None:
            with hv.record(net) as trace:
                (x * 2).backward()
            assert len(reasons(trace)) == 2 * size

        return count_calls(run)

    count(10)
    assert count(160) < 4.4 * count(40)


def test_many_parameters_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parameter_ledger, "MAX_PARAMETERS", 1)
    assert len(cut_trace()._data.missing_rows) == 1


def test_modules_of_more_hooks_than_a_recording_remembers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hook_ledger, "MAX_ENTRIES", 3)
    used = nn.Linear(1, 1)
    unused = [nn.Identity() for _ in range(4)]
    with hv.record() as trace:
        for module in (used, used, used):
            used(torch.ones(1)).backward()
            module.register_forward_hook(never)
        for module in unused:
            module.register_forward_hook(never)
    assert [row.cause for row in reasons(trace) if row.on != "used"] == ["never_called"] * 2
    assert len([note for note in trace._data.remarks if note.fact == "hooks"]) == 1


def test_removed_hook_is_a_warning_if_it_was_registered_in_the_recording() -> None:
    net = nn.Linear(1, 1)
    older = net.register_forward_hook(never)
    with hv.record(net) as trace:
        older.remove()
        net.register_forward_hook(never).remove()
        net(torch.ones(1)).backward()
    assert [row.cause for row in reasons(trace)] == ["removed"] * 2
    assert sorted(finding.severity for finding in trace.findings) == ["remark", "warning"]


def test_older_hooks_that_have_nothing_to_do_with_the_pass_are_no_findings() -> None:
    unrelated = torch.ones(1, requires_grad=True) * 2
    unrelated.register_hook(never)
    idle = nn.Linear(1, 1)
    idle.weight.register_hook(never)
    idle.bias.register_hook(never)
    idle.bias.requires_grad_(False)
    x = torch.ones(1, requires_grad=True)
    with hv.record() as trace:
        (x * 2).backward()
    assert {row.on for row in reasons(trace)} == {"unrelated", "idle.weight", "idle.bias"}
    assert list(trace.findings) == []
