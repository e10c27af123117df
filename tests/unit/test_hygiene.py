"""``Trace.findings`` lists mistakes of a training loop besides the troubles of gradients, and says what it examined."""

import copy
import math
from typing import Any

import pytest
import torch
from scenes import leaf
from torch import nn
from torch.optim import SGD

import hookviz as hv
from hookviz.trace import NonfiniteRow, TraceData, UpdateRow
from hookviz.trace.redaction import redact


def small_net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def train(net: nn.Module, *factors: float, lr: float = 0.01, zero: bool = True, **options: Any) -> hv.Trace:
    """Record a step for each factor of the loss, or three steps."""
    optimizer = SGD(net.parameters(), lr=lr)
    with hv.record(net, **options) as trace:
        for factor in factors or (1.0, 1.0, 1.0):
            if zero:
                optimizer.zero_grad()
            (net(torch.ones(2, 4)) * factor).square().mean().backward()
            optimizer.step()
    return trace


def nan_in_frozen_weight(**options: Any) -> hv.Trace:
    net = small_net()
    net[0].requires_grad_(False)
    with torch.no_grad():
        net[0].weight[0, 0] = math.nan
    return train(net, **options)


# -- the list


def test_findings_are_ordered_by_severity_and_contain_the_troubles() -> None:
    trace = nan_in_frozen_weight(lr=0.0)
    assert [finding.severity for finding in trace.findings] == ["error", "warning", "remark"]
    assert [finding.kind for finding in trace.findings] == ["nan", "lr_zero", "frozen"]
    assert [finding.kind for finding in trace.findings.values] == ["nan"]


def test_every_finding_leads_to_its_step_in_the_player() -> None:
    trace = train(small_net(), zero=False)
    [finding] = trace.findings
    assert finding.step is not None and trace.steps[finding.step].kind == "accumulate"
    expected = f"Step {finding.step + 1}, warning, in 2 of 3 passes: {finding.sentence}"
    assert [(finding["text"], finding["step"]) for finding in trace.content()["findings"]] == [(expected, finding.step)]


def test_nan_that_stays_says_since_when() -> None:
    trace = train(small_net(), 1.0, math.nan, 1.0, 1.0)
    assert next(row for row in trace.findings if row.kind == "nan").when == "from pass 2 on"


def test_a_hook_that_is_too_late_in_each_round_is_one_finding() -> None:
    def look(grad: torch.Tensor) -> None:
        """Is never called."""

    with hv.record() as trace:
        for _ in range(3):
            x = leaf(1.0)
            hidden = x * 2
            hidden.sum().backward()
            hidden.register_hook(look)
    assert [(row.kind, len(row.hooks)) for row in trace.findings] == [("late", 3)]


# -- nothing is wrong


def test_an_empty_table_says_what_was_examined() -> None:
    assert str(train(small_net()).findings) == (
        "Nothing was found. Looked at: the gradients of each pass (3) for NaN, Inf, vanishing and exploding, those "
        "of its leaves for zeros; whether each hook (0) fired and each parameter of a called module that requires grad "
        "got a gradient, at least once; "
        "each optimizer step (3)."
    )


def test_an_empty_table_tells_of_the_hooks_of_a_model_whose_copy_was_trained() -> None:
    template = small_net()
    template[0].weight.register_hook(lambda grad: None)
    worker = copy.deepcopy(template)
    with hv.record(worker) as trace:
        worker(torch.ones(2, 4)).mean().backward()
    assert "Hooks that did not fire, on what the passes did not use: 1." in str(trace.findings)
    assert all("after copy.deepcopy()" in row.finding.advice for row in trace.hooks if row.finding is not None)


def test_troubles_do_not_call_gradients_healthy_if_there_are_other_findings_or_a_recorded_inf() -> None:
    assert str(train(small_net(), zero=False).findings.values) == "The only finding is not about this."
    trace = hv.Trace(TraceData(values=[((), "float32", "cpu", math.inf, None, None)]))
    assert "Recorded values with NaN or Inf: 1." in str(trace.findings)
    assert "Recorded values with NaN or Inf: 1." in str(trace.findings.values)


# -- the training loop


def test_unrecorded_passes_are_not_blamed() -> None:
    trace = train(small_net(), zero=False, every=2)
    assert len(trace.findings) == 0
    assert "Not looked at: the passes between the recorded ones" in str(trace.findings)


def test_a_parameter_of_a_module_that_is_not_called_is_a_remark() -> None:
    net = small_net()
    net.add_module("unused", nn.Linear(2, 2))
    net.forward = lambda x: nn.Sequential.forward(net[:3], x)  # type: ignore[method-assign]
    [finding] = train(net).findings
    assert (finding.kind, finding.severity) == ("unreached", "remark")
    assert "net.unused.weight and 1 more" in finding.sentence


@pytest.mark.parametrize("is_shared", [True, False])
def test_two_optimizers_that_change_one_parameter_after_a_pass_are_a_warning(is_shared: bool) -> None:
    trunk, head = nn.Linear(2, 2), nn.Linear(2, 1)
    first = SGD([*trunk.parameters(), *(head.parameters() if is_shared else ())], 0.1)
    second = SGD(head.parameters(), 0.1)
    with hv.record() as trace:
        for _ in range(2):
            first.zero_grad()
            second.zero_grad()
            head(trunk(torch.ones(3, 2))).square().mean().backward()
            first.step()
            second.step()
    found = [row for row in trace.findings if row.kind == "updated_twice"]
    assert [row.severity for row in found] == (["warning"] if is_shared else [])
    assert all("head.weight" in row.sentence and "after the same pass" in row.sentence for row in found)


# -- NaN in what a module holds


def test_nan_in_a_running_statistic_is_found() -> None:
    net = nn.Sequential(nn.BatchNorm1d(4).eval())
    net[0].running_var[2] = math.nan
    with hv.record(net) as trace:
        net(torch.ones(2, 4)).sum().backward()
    assert trace._data.nonfinite == [NonfiniteRow(0, 1, "running_var", "nan")]
    assert "net.0 (BatchNorm1d) returns NaN: its own net.0.running_var held NaN." in trace.findings[0].sentence


def test_a_healthy_run_reads_no_parameter_for_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.recorder.nonfinite_values._list_nonfinite", pytest.fail)
    assert len(train(small_net()).findings) == 0


# -- the rows


def test_dropped_passes_take_their_rows_along() -> None:
    data = nan_in_frozen_weight(keep=1)._data
    assert [data.rows[row.step].kind for row in data.updates] == ["optimizer_step"]
    assert all(row.call < len(data.calls) for row in data.nonfinite)


def test_redacted_rows_hold_no_numbers() -> None:
    trace = redact(nan_in_frozen_weight()._data, values=False)
    assert trace.nonfinite == [] and {row.rates for row in trace.updates} == {(None,)}
    assert trace.updates[0] == UpdateRow(22, (None,), (0, 1), False, taken_at=trace.updates[0].taken_at, held=4)
