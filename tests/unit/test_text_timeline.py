"""``print(trace)`` is a timeline that one can read: a line per step, bounded, and nothing is cut without a word."""

import warnings
from typing import Any

import pytest
import torch
from scenes import recorded
from torch import nn

import hookviz as hv
from hookviz.analysis.text_timeline import MAX_PRINTED_STEPS
from tests.proof.mutants import KINDS_OF_TRACE


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")


def record_chain(passes: int, keep: int | None = None) -> hv.Trace:
    """Record passes of 5 steps each."""
    x = torch.tensor(2.0, requires_grad=True)
    with hv.record(keep=keep) as trace:
        for _ in range(passes):
            (x * 3).backward()
    return trace


def step_numbers(text: str) -> list[int]:
    """The numbers of the steps that a timeline lists."""
    starts = (line.split()[0] for line in text.splitlines() if line.startswith(" "))
    return [int(start) for start in starts if start.isdigit()]


def line_with(text: str, part: str) -> str:
    """The only line that contains ``part``."""
    (line,) = [line for line in text.splitlines() if part in line]
    return line


def test_print_shows_each_step_with_its_change_and_the_place_of_its_hook() -> None:
    trace = recorded()
    text = str(trace)
    assert step_numbers(text) == [step.index + 1 for step in trace.steps]
    line = line_with(text, "c_hook on c")
    hook = next(step.hook for step in trace.firings if step.hook is not None and step.hook.name == "c_hook")
    assert "tensor hook" in line and "8 → 10, replaced" in line and line.endswith(f"tests/scenes.py:{hook.line}")
    assert line_with(text, "Pass ") == "Pass 1 of 1: backward of e"


@pytest.mark.parametrize(
    ("passes", "keep", "headings"),
    [
        (2, None, {1: "Pass 1 of 2", 2: "Pass 2 of 2"}),
        (10, 2, {9: "Pass 9 (1 of 2 in this trace)", 10: "Pass 10 (2 of 2 in this trace)"}),
    ],
)
def test_passes_have_headings_and_numbers_also_if_earlier_ones_were_dropped(
    passes: int, keep: int | None, headings: dict[int, str]
) -> None:
    lines = str(record_chain(passes, keep)).splitlines()
    assert [line.partition(": ")[0] for line in lines if line.startswith("Pass")] == [*headings.values()]
    numbers = [int(line.split()[1]) for line in lines if line.startswith(" ")]
    assert numbers == sorted(numbers) and set(numbers) == set(headings)


def test_long_trace_is_printed_with_its_first_and_last_steps_and_how_to_get_all() -> None:
    trace = record_chain(100)
    count, half = len(trace.steps), MAX_PRINTED_STEPS // 2
    text = str(trace)
    assert count > MAX_PRINTED_STEPS
    assert step_numbers(text) == [*range(1, half + 1), *range(count - half + 1, count + 1)]
    assert f"… steps {half + 1} to {count - half} are left out ({count - MAX_PRINTED_STEPS})" in text.splitlines()
    assert f"print(trace.text()) lists all {count} steps" in text
    assert step_numbers(trace.text()) == list(range(1, count + 1))
    assert "left out" not in trace.text() and "print(trace.text" not in trace.text()


def test_chosen_steps_are_listed_once_in_order_with_the_gaps_between_them() -> None:
    text = record_chain(2).text([6, 1, 1, -1, 4])
    assert step_numbers(text) == [2, 5, 7, 8]
    assert [line for line in text.splitlines() if line.startswith("…")] == [
        "… step 1 is left out",
        "… steps 3 to 4 are left out (2)",
        "… step 6 is left out",
    ]


@pytest.mark.parametrize("name", KINDS_OF_TRACE)
def test_no_line_is_wider_than_asked_and_shortened_text_is_marked(name: str) -> None:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace = KINDS_OF_TRACE[name]()
    whole = trace.text(width=10_000)
    assert "marks text" not in whole
    for width in (72, 300):
        text = trace.text(width=width)
        assert max(map(len, text.splitlines())) <= width
        assert step_numbers(text) == step_numbers(whole) == list(range(1, len(trace.steps) + 1))
        is_shortened = "… marks text that was cut" in text
        assert is_shortened == any(
            "…" in line for line in text.splitlines() if line.startswith(" ") and "more)" not in line
        )


def test_empty_trace_and_a_forward_alone_are_printed_as_what_they_are() -> None:
    with hv.record() as empty:
        pass
    assert " ".join(str(empty).split()) == repr(empty)
    net = nn.Tanh()
    with hv.record(net) as trace:
        net(torch.ones(2))
    assert "No backward pass" in str(trace).splitlines() and step_numbers(str(trace)) == [1, 2]


def test_control_characters_of_names_do_not_reach_the_terminal() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    with hv.record(names={"x\x1b[31m\nred": x}) as trace:
        (x * 2).backward()
    assert all(character.isprintable() or character == "\n" for character in str(trace))
    assert len(step_numbers(str(trace))) == len(trace.steps)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"steps": [99]}, IndexError, "There is no step 99"),
        ({"width": 20}, ValueError, "width is a number of characters, at least 72, not 20"),
    ],
)
def test_wrong_argument_is_an_error_that_says_what_is_right(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        recorded().text(**arguments)
