"""A page without hook sources or without numbers contains none, not even in its compressed parts."""

import base64
import json
import os
import re
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.player import trace_content
from hookviz.player.html_page import page
from hookviz.trace import Note, StepRow, TraceData
from hookviz.trace.redaction import redact

NUMBERS = ["1.28125", "1.71875", "2.84375", "3.46875", "3.15625"]
NUMBERS_IN_MESSAGES = ["9.6875"]
SOURCE_MARKERS = ["0.59375", "5.0625", "marker_in_source", "return grad", "o * ", "lambda module", "test_redaction"]
SECRET_PATH = "/somebody/secret"


def marked_hook(grad: torch.Tensor) -> torch.Tensor:
    marker_in_source = 0.59375
    return grad * marker_in_source


def fails(grad: torch.Tensor) -> None:
    raise ValueError(f"{SECRET_PATH} {float(NUMBERS_IN_MESSAGES[0])}")


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    """A pass with hooks of several kinds, unmistakable values, an exception, and notes that quote them."""
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
    net[0].register_forward_hook(lambda module, args, o: o * 1.28125)
    x = torch.tensor([[1.71875, 2.84375, 3.46875]], requires_grad=True)
    x.register_hook(marked_hook)
    x.register_hook(lambda grad: grad + 5.0625)
    broken = torch.tensor(1.0, requires_grad=True) * 2
    broken.register_hook(fails)
    with hv.record(net) as trace:
        (net(x) ** 3.15625).sum().backward()
        with pytest.raises(ValueError, match="secret"):
            broken.backward()
    trace._data.remarks.append(Note.verbatim(f"A note of lambda grad: grad + 5.0625 in {SECRET_PATH}, 1.71875."))
    return trace


def page_and_unpacked_parts(html: str) -> str:
    """The page, followed by all its compressed parts, unpacked recursively."""
    text, done = html, set()
    while found := set(re.findall(r"[A-Za-z0-9+/]{60,}={0,2}", text)) - done:
        done |= found
        text += "".join(map(unpack_part, found))
    return text


def unpack_part(part: str) -> str:
    try:
        return json.dumps(json.loads(zlib.decompress(base64.b64decode(part))), ensure_ascii=False)
    except (ValueError, zlib.error):
        return ""


def markers_in(text: str, markers: list[str]) -> list[str]:
    return [marker for marker in markers if marker in text]


@pytest.fixture(params=[trace_content.MAX_UNSPLIT_STEPS, 10], ids=["small", "large"])
def small_or_large(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_content, "MAX_UNSPLIT_STEPS", request.param)


def test_a_page_contains_source_and_numbers_but_no_local_path(trace: hv.Trace, small_or_large: None) -> None:
    text = page_and_unpacked_parts(page(trace._data))
    shown = [*NUMBERS, *NUMBERS_IN_MESSAGES, *SOURCE_MARKERS]
    assert markers_in(text, shown) == shown
    assert markers_in(text, [os.getcwd(), str(Path.home()), os.path.dirname(torch.__file__)]) == []


@pytest.mark.parametrize(
    "left_out", [{"source": False}, {"values": False}, {"source": False, "values": False}], ids=str
)
def test_redacted_content_is_nowhere_in_the_page(
    left_out: dict[str, bool], trace: hv.Trace, small_or_large: None
) -> None:
    text = page_and_unpacked_parts(page(trace._data, **left_out))
    assert markers_in(text, [SECRET_PATH, *NUMBERS_IN_MESSAGES]) == []
    if "source" in left_out:
        assert markers_in(text, SOURCE_MARKERS) == []
        assert "The source of the hooks and the names of their files are left out of this page." in text
    if "values" in left_out:
        in_source = [] if "source" in left_out else ["1.28125"]
        assert markers_in(text, NUMBERS) == in_source
        assert "The numbers are left out of this page" in text
        assert "Nothing was found that is wrong" not in text and "Without the numbers, hookviz cannot check" in text
    assert "Notes that may quote them are left out, too: 1." in text
    assert markers_in(text, ["marked_hook", "ValueError", "net.0"]) == ["marked_hook", "ValueError", "net.0"]


def test_redaction_keeps_steps_and_effects(trace: hv.Trace) -> None:
    before = repr(trace._data.rows), list(trace._data.values), list(trace.notes)
    redacted = redact(trace._data, source=False, values=False)
    assert [step.kind for step in redacted.steps] == [step.kind for step in trace.steps]
    assert [step.effect for step in redacted.firings] == [step.effect for step in trace.firings]
    assert redacted.firings[1].sentence == "marked_hook on x replaced the gradient: (left out) → (left out)."
    assert redacted.firings[2].hook is not None and redacted.firings[2].hook.label == "λ"
    assert [row[:3] for row in redacted.values] == [row[:3] for row in trace._data.values]
    assert "fails on " in redacted.steps[-1].sentence and "ValueError" in redacted.steps[-1].sentence
    assert (repr(trace._data.rows), trace._data.values, trace.notes) == before
    assert redact(trace._data) is trace._data


def test_formulas_are_shown_in_symbols_where_numbers_are_redacted(trace: hv.Trace) -> None:
    redacted = hv.Trace(redact(trace._data, values=False))
    reasons = [reason for step in range(len(redacted._data.rows)) for reason in redacted.why(step)]
    found = {(reason.verdict, reason.note) for reason in reasons if reason.note != "the seed"}
    assert found == {("symbols only", "No values: the numbers are left out of this page.")}


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 3


def test_the_location_of_a_custom_backward_is_redacted_with_the_source() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    with hv.record() as trace:
        Tripled.apply(x).backward()
    assert "its backward is in your code, at" in page_and_unpacked_parts(page(trace._data))
    text = page_and_unpacked_parts(page(trace._data, source=False))
    assert "the file and line of its backward are left out of this page" in text
    assert markers_in(text, ["test_redaction"]) == []


def test_errors_that_ended_a_pass_or_the_recording_stay_without_their_messages() -> None:
    with suppress(ValueError), hv.record() as raised:
        raise ValueError("secret")
    kept = redact(raised._data, source=False)
    assert kept.has_raised and not any("secret" in note for note in kept.notes)
    note = Note.of("trace.trouble", error=f"ValueError: {SECRET_PATH}")
    (step,) = redact(TraceData(rows=[StepRow(0, "unobserved", note=note)]), source=False).steps
    assert step.sentence and SECRET_PATH not in step.sentence
