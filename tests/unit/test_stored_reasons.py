"""Reasons stored in a file: as torch gives them, deduplicated, language-neutral, and computed once."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import leaf
from torch.utils._python_dispatch import TorchDispatchMode

import hookviz as hv
from hookviz.analysis.formulas.reason_table import add_reasons
from hookviz.storage.decoding import decode_trace
from hookviz.storage.files import encode_trace
from hookviz.support.messages import load_texts
from tests.proof.mutants import KINDS_OF_TRACE, saved
from tests.requirements import needs_saved_tensors


class WithoutTorch(hv.Trace):
    """A trace where torch cannot be imported."""

    verifier = None


def record_backward(root: torch.Tensor, **options: Any) -> hv.Trace:
    """Record a backward pass from ``root``."""
    with hv.record(**options) as trace:
        root.backward(torch.ones_like(root))
    return trace


def save_and_load(trace: hv.Trace) -> WithoutTorch:
    return decode_trace(json.loads(json.dumps(encode_trace(add_reasons(trace)), allow_nan=False)), WithoutTorch)


def reason_texts(trace: hv.Trace) -> list[str]:
    return [repr(list(trace.why(step))) for step in range(len(trace.rows))]


@pytest.mark.parametrize("kind", KINDS_OF_TRACE)
def test_stored_reasons_equal_those_computed_with_torch(kind: str) -> None:
    data = json.loads(saved(kind))
    with_torch = decode_trace(data | {"explained": []}, hv.Trace)
    assert any(row is not None for row in data["explained"])
    assert reason_texts(decode_trace(data, WithoutTorch)) == reason_texts(with_torch)


CASES: dict[str, Callable[[], torch.Tensor]] = {
    "what was broadcast": lambda: leaf(1.0, 2.0) * leaf(3.0),
    "complex numbers": lambda: leaf(2.0) * torch.tensor(3 + 4j),
    "a case of which the formula is silent": lambda: torch.nn.functional.gelu(leaf(1.0), approximate="tanh"),
    "an op without a formula": lambda: leaf(0.5).erfinv(),
    "a limit on which releases of torch differ": lambda: leaf(1.0, 3.0).clamp_min(1.0),
    "many numbers": lambda: torch.rand(65, requires_grad=True).sin(),
    "NaN and Inf": lambda: leaf(math.nan, math.inf, -1.0).log().relu(),
    "several contributions": lambda: (lambda x: x * x + x)(leaf(2.0)),
    "a concatenation": lambda: torch.cat([leaf(1.0, 2.0), leaf(3.0, 4.0)]),
}


@pytest.mark.parametrize("case", CASES)
def test_each_kind_of_reason_is_saved_and_loaded(case: str) -> None:
    trace = record_backward(CASES[case]())
    assert reason_texts(save_and_load(trace)) == reason_texts(trace)


@needs_saved_tensors
def test_the_verdict_not_explained_is_stored() -> None:
    trace = record_backward(leaf(2.0) * leaf(3.0))
    index = next(row for row in trace.rows if row.kind == "compute").after[0]
    trace.values[index] = (*trace.values[index][:3], 7.0, None, None)
    (reason, _) = save_and_load(trace).why(1)
    assert (reason.verdict, reason.note) == (
        "not explained",
        "grad × other does not give the recorded gradient.",
    )


def test_the_location_of_a_custom_function_is_stored_once() -> None:
    """The location is a path: a file contains it once, so that it can be redacted."""

    class Tripled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 3

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * 3

    trace = record_backward(Tripled.apply(leaf(2.0)))
    stored = encode_trace(add_reasons(trace))
    text = json.dumps({name: part for name, part in stored.items() if name != "sources"})
    assert text.count("test_stored_reasons.py") == 1
    assert reason_texts(save_and_load(trace)) == reason_texts(trace)


@needs_saved_tensors
def test_a_file_without_reasons_needs_torch_for_its_verdicts() -> None:
    data = json.loads(saved("graph"))
    for name in ("reasons", "explained"):
        del data[name]
    step = data["rows"]["kind"].index("compute")
    assert {reason.verdict for reason in decode_trace(data, hv.Trace).why(step)} == {"explained"}
    (reason, _) = symbolic_reasons = decode_trace(data, WithoutTorch).why(step)
    assert [reason.text for reason in symbolic_reasons] == ["grad × other", "grad × self"]
    assert (reason.verdict, reason.filled) == ("symbols only", "")
    assert reason.note.endswith("install PyTorch to check.")


def test_a_trace_with_reasons_is_saved_unchanged_without_torch(tmp_path: Path) -> None:
    trace = decode_trace(json.loads(saved("formulas")), WithoutTorch)
    trace.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text(encoding="utf-8") == saved("formulas")


def test_a_trace_without_reasons_saved_without_torch_gets_them_later(tmp_path: Path) -> None:
    data = json.loads(saved("formulas")) | {"explained": [], "reasons": {}}
    decode_trace(data, WithoutTorch).save(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["explained"] == []
    hv.load(tmp_path / "t.json").save(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text(encoding="utf-8") == saved("formulas")


def test_stored_reasons_are_not_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = decode_trace(json.loads(saved("graph")), hv.Trace)

    def fail_if_called(self: hv.Trace) -> None:
        raise AssertionError("called")

    monkeypatch.setattr(hv.Trace, "verifier", property(fail_if_called))
    assert len(reason_texts(trace)) == len(trace.rows)
    assert add_reasons(trace) is trace


def test_stored_reasons_are_message_keys_with_arguments() -> None:
    for kind in KINDS_OF_TRACE:
        reasons = json.loads(saved(kind))["reasons"]
        notes = [note for row in reasons["notes"] for note in row]
        assert {key for key, _ in notes} <= set(load_texts())
        names = {name for _, arguments in notes for name, _ in arguments}
        assert names <= {"dims", "error"}  # values: numbers, and the name of a class


def test_thousands_of_equal_reasons_share_few_rows() -> None:
    y = leaf(1.5)
    for _ in range(2_000):
        y = y * 1.0001
    trace = record_backward(y)
    with_reasons, without_reasons = (json.dumps(encode_trace(version)) for version in (add_reasons(trace), trace))
    assert len(add_reasons(trace).reasons) == 2  # one for the chain, one for the leaf
    assert len(with_reasons) < 1.15 * len(without_reasons)


def test_equal_reasons_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    y = leaf(1.5)
    for _ in range(300):
        y = y * 1.0001
    trace = record_backward(y)
    verifier, computed = trace.verifier, []
    assert verifier is not None
    check = verifier.check_sent
    monkeypatch.setattr(verifier, "check_sent", lambda *given: computed.append(1) or check(*given))
    assert len(add_reasons(trace).explained) == 602 and len(computed) == 1


def test_a_diff_of_loaded_traces_has_the_same_reasons() -> None:
    """A step that only one trace has shifts the following ones."""
    x = leaf(2.0)
    y = x * 3
    plain = record_backward(y * y, names={"x": x, "y": y}, keep=None)
    y = x * 3
    y.register_hook(lambda grad: grad * 10)
    hooked = record_backward(y * y, names={"x": x, "y": y}, keep=None)
    from_files, with_torch = (
        first.diff(second).content()
        for first, second in ((save_and_load(plain), save_and_load(hooked)), (plain, hooked))
    )
    assert from_files == with_torch
    assert "explained" in {row.verdict for row in add_reasons(hooked).reasons}


class CountingMode(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return function(*args, **kwargs or {})


def test_saving_does_not_change_torchs_state_or_run_operators(tmp_path: Path) -> None:
    trace = record_backward(leaf(2.0, 3.0).unsqueeze(0) @ leaf(1.0, 2.0).sin().unsqueeze(1))
    before = torch.get_rng_state()
    with CountingMode() as counting_mode, torch.autocast("cpu"), torch.device("meta"):
        trace.save(tmp_path / "t.json")
    assert torch.equal(torch.get_rng_state(), before) and torch.is_grad_enabled()
    assert counting_mode.calls == 0
    assert reason_texts(hv.load(tmp_path / "t.json")) == reason_texts(trace)
    assert trace.explained == []  # the recording may continue


def test_traces_with_and_without_stored_reasons_are_equal() -> None:
    trace = record_backward(leaf(2.0) * leaf(3.0))
    assert add_reasons(trace) == trace
