"""A page without the source of hooks, or without numbers, holds none: searched for in all that is packed into it."""

import base64
import json
import math
import os
import re
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.__main__ import main
from hookviz.player import trace_content
from hookviz.player.html_page import page
from hookviz.trace import Note, StepRow
from hookviz.trace.redaction import redact

NUMBERS = ["1.28125", "1.71875", "2.84375", "3.46875", "3.15625"]
IN_MESSAGES = ["9.6875"]
IN_SOURCE = ["0.59375", "5.0625", "marker_in_source", "return grad", "o * ", "lambda module", "test_redaction"]
SECRET = "/somebody/secret"


def marked_hook(grad: torch.Tensor) -> torch.Tensor:
    marker_in_source = 0.59375
    return grad * marker_in_source


def fails(grad: torch.Tensor) -> None:
    raise ValueError(f"{SECRET} {float(IN_MESSAGES[0])}")


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    """A pass with hooks of several kinds, values that nobody else has, an exception, and notes that quote."""
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
    trace.remarks.append(Note.verbatim(f"A note of lambda grad: grad + 5.0625 in {SECRET}, 1.71875."))
    return trace


def unpacked(html: str) -> str:
    """The page, and behind it all that is packed into it, however deep."""
    text, seen = html, set()
    while found := set(re.findall(r"[A-Za-z0-9+/]{60,}={0,2}", text)) - seen:
        seen |= found
        text += "".join(map(_unpacked, found))
    return text


def _unpacked(part: str) -> str:
    try:
        return json.dumps(json.loads(zlib.decompress(base64.b64decode(part))), ensure_ascii=False)
    except (ValueError, zlib.error):
        return ""


def held(text: str, what: list[str]) -> list[str]:
    return [marker for marker in what if marker in text]


@pytest.fixture(params=[trace_content.MAX_UNSPLIT_STEPS, 10], ids=["small", "large"])
def long(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_content, "MAX_UNSPLIT_STEPS", request.param)


def test_a_page_holds_source_and_numbers_but_no_path_of_the_machine(trace: hv.Trace, long: None) -> None:
    text = unpacked(page(trace))
    assert held(text, [*NUMBERS, *IN_MESSAGES, *IN_SOURCE]) == [*NUMBERS, *IN_MESSAGES, *IN_SOURCE]
    assert held(text, [os.getcwd(), str(Path.home()), os.path.dirname(torch.__file__)]) == []


@pytest.mark.parametrize(
    "left_out", [{"source": False}, {"values": False}, {"source": False, "values": False}], ids=str
)
def test_what_is_left_out_is_nowhere_in_the_page(left_out: dict[str, bool], trace: hv.Trace, long: None) -> None:
    text = unpacked(page(trace, **left_out))
    assert held(text, [SECRET, *IN_MESSAGES]) == []
    if "source" in left_out:
        assert held(text, IN_SOURCE) == []
        assert "The source of the hooks and the names of their files are left out of this page." in text
    if "values" in left_out:
        in_source = [] if "source" in left_out else ["1.28125"]
        assert held(text, NUMBERS) == in_source
        assert "The numbers are left out of this page" in text
    assert "Notes that may quote them are left out, too: 1." in text
    assert held(text, ["marked_hook", "ValueError", "net.0"]) == ["marked_hook", "ValueError", "net.0"]


def test_the_steps_and_what_hooks_did_stay(trace: hv.Trace) -> None:
    before = repr(trace.rows), list(trace.values), list(trace.notes)
    quiet = redact(trace, source=False, values=False)
    assert [step.kind for step in quiet.steps] == [step.kind for step in trace.steps]
    assert [step.effect for step in quiet.firings] == [step.effect for step in trace.firings]
    assert quiet.firings[1].sentence == "marked_hook on x replaced the gradient: (left out) → (left out)."
    assert quiet.firings[2].hook is not None and quiet.firings[2].hook.label == "λ"
    assert [row[:3] for row in quiet.values] == [row[:3] for row in trace.values]
    assert "fails on " in quiet.steps[-1].sentence and "ValueError" in quiet.steps[-1].sentence
    assert (repr(trace.rows), trace.values, trace.notes) == before
    assert redact(trace) is trace


def test_a_page_without_numbers_does_not_say_that_nothing_is_wrong(trace: hv.Trace) -> None:
    text = unpacked(page(trace, values=False))
    assert "Nothing was found that is wrong" not in text and "Without the numbers, hookviz cannot check" in text


def test_whether_a_formula_comes_to_the_numbers_is_left_out_with_them(trace: hv.Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "t.json")
    loaded = hv.load(tmp_path / "t.json")
    assert "explained" in {row.verdict for row in loaded.reasons}
    told = []
    for known in (trace, loaded):
        quiet = redact(known, values=False)
        assert isinstance(quiet, hv.Trace)
        assert {row.verdict for row in quiet.reasons} <= {"symbols only"}
        found = [reason for step in range(len(quiet.rows)) for reason in quiet.why(step) if reason.note != "the seed"]
        told.append([(reason.text, reason.source, reason.verdict, reason.note) for reason in found])
        assert {verdict for _, _, verdict, _ in told[-1]} == {"symbols only"}
        assert {note for _, _, _, note in told[-1]} == {"No values: the numbers are left out of this page."}
    assert told[0] == told[1]


@pytest.mark.parametrize("where", ["file", "standard output"])
def test_the_command_line_leaves_out_as_much(where: str, trace: hv.Trace, tmp_path: Path, capfdbinary: Any) -> None:
    saved, target = tmp_path / "pass.json", tmp_path / "pass.html"
    trace.save(saved)
    output = "-" if where == "standard output" else str(target)
    assert main(["page", str(saved), "-o", output, "--no-source", "--no-values"]) == 0
    html = capfdbinary.readouterr().out.decode() if output == "-" else target.read_text(encoding="utf-8")
    assert held(unpacked(html), [*NUMBERS, *IN_MESSAGES, "marker_in_source", SECRET]) == []


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 3


def test_without_source_nothing_says_where_a_function_has_its_backward() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    with hv.record() as trace:
        Tripled.apply(x).backward()
    assert "its backward is in your code, at" in unpacked(page(trace))
    text = unpacked(page(trace, source=False))
    assert "the file and line of its backward are left out of this page" in text
    assert held(text, ["test_redaction"]) == []


@pytest.mark.parametrize("name", ["source", "values"])
def test_what_to_leave_out_is_said_by_true_or_false(name: str, trace: hv.Trace, tmp_path: Path) -> None:
    settings: Any = {name: "no"}
    with pytest.raises(TypeError, match=f"{name} is either True or False; this is a str"):
        trace.to_html(tmp_path / "page.html", **settings)
    assert not any(tmp_path.iterdir())


def test_why_a_pass_was_not_observed_may_quote_and_is_left_out() -> None:
    trace = hv.Trace(rows=[StepRow(0, "unobserved", note=Note.of("trace.trouble", error=f"ValueError: {SECRET}"))])
    (step,) = redact(trace, source=False).steps
    assert step.sentence and SECRET not in step.sentence


def test_a_lambda_in_a_partial_keeps_its_brackets() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    x.register_hook(partial(lambda k, grad: grad * k, 2))
    x.register_hook(partial(partial(lambda j, k, grad: grad * (j + k), 2), 3))
    with hv.record() as trace:
        (x * x).backward()
    quiet = redact(trace, source=False)
    assert [row.name for row in quiet.hook_rows] == ["partial(lambda)"] * 2


def test_without_numbers_a_scaler_does_not_say_that_it_found_inf() -> None:
    w = torch.tensor(3.0, requires_grad=True)
    sgd, scaler = torch.optim.SGD([w], lr=0.1), torch.amp.GradScaler("cpu")
    with hv.record() as trace:
        scaler.scale(w * math.inf).backward()
        scaler.unscale_(sgd)
    assert "finds Inf or NaN among them" in trace.steps[-1].sentence
    assert redact(trace, values=False).steps[-1].sentence == (
        "The GradScaler divides the gradients of sgd by (left out): from here on they are not scaled."
    )
