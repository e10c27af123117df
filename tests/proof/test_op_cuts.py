"""``record(cuts=True)`` names the line that cuts a parameter off, blames no other, and changes no value."""

import inspect
import re
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from torch import nn

import hookviz as hv
from hookviz.trace import GRAD_MODES
from tests.missing import missing_gradients
from tests.proof.compare import same
from tests.proof.cut_programs import PROGRAMS, Outcome, Program, Recorder
from tests.proof.nets import NetProgram, net_strategy, run_net
from tests.proof.test_programs import EVERY_RUN

pytestmark = [
    pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad:UserWarning"),
    pytest.mark.filterwarnings("ignore:Converting a tensor"),
]
record_cuts: Recorder = partial(hv.record, cuts=True)


def run(program: Program, record: Recorder) -> Outcome:
    torch.manual_seed(0)
    return program.run(record)


def marked_lines(program: Program, mark: str = "# cut") -> list[int]:
    lines, first = inspect.getsourcelines(program.code)
    return [first + number for number, line in enumerate(lines) if line.rstrip().endswith(mark)]


def lines_in(sentence: str) -> list[int]:
    return [int(number) for number in re.findall(r"cut_programs\.py, line (\d+), ", sentence)]


@pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])
def test_the_marked_lines_are_named_and_no_others_and_no_value_changes(program: Program) -> None:
    _, plain = run(program, lambda *_: nullcontext())
    trace, followed = run(program, record_cuts)
    assert len(followed) == len(plain) > 0
    assert all(torch.equal(value, before) for value, before in zip(followed, plain, strict=True))
    assert trace is not None
    lines = marked_lines(program)
    rows = {name: row for row in missing_gradients(trace) for name in row.parameters}
    named = [name for expected in program.parameters for name in rows if name.endswith(expected)]
    assert len(named) == len(program.parameters) and bool(rows) == bool(named)
    for name in named:
        assert rows[name].place == program.place
        if program.place not in GRAD_MODES or len(lines) > 1:  # of a call without a graph its line says it
            assert lines_in(rows[name].sentence) == lines
        causes = marked_lines(program, "# off") or lines  # the line that switches the graph off, or the only cut
        assert rows[name].line == (causes[0] if len(causes) == 1 else None) or not causes
    assert {row.line for row in trace._data.cut_rows} == set(lines)
    assert not [note for note in trace.notes if "could not be observed" in note]


SWITCHED_OFF = ("part_runs_in_no_grad", "part_runs_in_inference_mode", "reentrant_checkpoint_of_a_plain_input")


@pytest.mark.parametrize("program", [one for one in PROGRAMS if one.name in SWITCHED_OFF], ids=lambda one: one.place)
def test_graph_that_is_switched_off_is_known_without_following_ops(program: Program) -> None:
    trace, _ = run(program, hv.record)
    assert trace is not None
    rows = [row for row in missing_gradients(trace) if row.parameters[0] == "first.weight"]
    assert [row.place for row in rows] == [program.place]


def train_encoder(record: Recorder) -> Outcome:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
    net = nn.TransformerEncoder(layer, 2)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    losses = []
    with record(net) as trace:
        for _ in range(3):
            optimizer.zero_grad()
            loss = net(torch.randn(2, 5, 16)).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
            optimizer.step()
            losses.append(loss.detach())
    return trace, [*losses, *net.parameters(), torch.get_rng_state()]


def test_training_of_a_transformer_stays_bit_for_bit() -> None:
    _, plain = train_encoder(lambda *_: nullcontext())
    trace, followed = train_encoder(record_cuts)
    assert all(torch.equal(value, before) for value, before in zip(followed, plain, strict=True))
    assert trace is not None and list(missing_gradients(trace)) == []


def without_locations(report: Any) -> Any:
    """Leave out where warnings point to, and the frames of tracebacks: a mode of torch changes these."""
    if isinstance(report, dict):
        kept = {key: value for key, value in report.items() if key not in ("warnings", "frames")}
        return {key: without_locations(value) for key, value in kept.items()}
    return [without_locations(item) for item in report] if isinstance(report, list) else report


@settings(EVERY_RUN, max_examples=40)
@given(net_strategy())
def test_random_networks_stay_bit_for_bit(program: NetProgram) -> None:
    plain, followed = run_net(program), run_net(program, record_cuts)
    same(without_locations(plain), without_locations(followed), program)


def test_encoder_in_eval_mode_leaves_the_fast_path_and_the_trace_says_so() -> None:
    layer: Any = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    with torch.no_grad(), hv.record(layer) as plain:
        fast = layer(x)
    with torch.no_grad(), hv.record(layer, cuts=True) as followed:
        slow = layer(x)
    assert [step.kind for step in plain.steps].count("fast_path") == 1
    assert [step.kind for step in followed.steps].count("fast_path") == 0
    assert torch.allclose(fast, slow, atol=1e-6)
    assert any("fast path" in note for note in followed.notes)
    assert not any("fast path" in note for note in plain.notes)
