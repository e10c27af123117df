"""What a trace lists shows itself: a table in Jupyter and printed, a line for one row, also in a list."""

from collections.abc import Sequence

import torch

import hookviz as hv
from hookviz.trace.steps import MAX_SHOWN_STEPS


def record(factor: float) -> hv.Trace:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
    for parameter in net.parameters():
        torch.nn.init.ones_(parameter)
    net[0].weight.register_hook(lambda grad: grad * factor)
    net.register_full_backward_hook(print)
    with hv.record(net) as trace:
        net.forward(torch.ones(1, 2, requires_grad=True)).sum().backward()
    return trace


def double(grad: torch.Tensor) -> None:
    grad.mul_(2)


def list_tables() -> dict[str, Sequence[object]]:
    trace = record(2)
    x = torch.tensor(3.0, requires_grad=True)
    x.register_hook(double)
    return {
        "steps": trace.steps,
        "slice of steps": trace.steps[2:4],
        "firings": trace.firings,
        "findings": trace.findings,
        "hooks of a trace": trace.hooks,
        "registered hooks": hv.hooks(x),
        "doctor": hv.doctor(double),
        "differences": trace.diff(record(3))[:],
        "reasons": trace.why(next(step.index for step in trace.steps if step.kind == "compute")),
    }


def test_a_list_is_a_table_and_each_of_its_rows_a_line() -> None:
    for name, table in list_tables().items():
        assert len(table) > 0, name
        for shown in (table, table[:1], table[0]):
            assert shown._repr_html_().startswith("<table"), name  # type: ignore[attr-defined]
        for text in (repr(table), repr(list(table)), repr(table[:0])):
            assert " at 0x" not in text and "_statistics" not in text, name
        assert all("\n" not in repr(row) and len(repr(row)) > 10 for row in table), name


def test_a_step_is_its_sentence_and_a_value_its_numbers() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    with x.register_hook(lambda grad: grad * 10), hv.record() as trace:
        (x * x).backward()
    assert repr([*trace.firings]) == "[Step 4: λ grad * 10 on x replaced the gradient: 6 → 60.]"
    assert repr(trace.firings[0].after) == "Value () float32 cpu: 60"
    assert " ".join(repr(trace.steps[3:4]).splitlines()[1].split()) == "4 of 5 tensor hook ① on x 6 60 replaced"


def test_of_many_steps_the_first_and_the_last_are_shown() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    with hv.record() as trace:
        for _ in range(60):
            (x * x).backward()
    lines = repr(trace.steps).splitlines()
    assert len(lines) == 1 + MAX_SHOWN_STEPS + 1
    assert lines[-1].startswith(f"{len(trace.steps) - MAX_SHOWN_STEPS} steps between these are left out")
    assert len(trace.steps[10:20][2:]) == 8 and trace.steps[10:20][2] == trace.steps[12]
