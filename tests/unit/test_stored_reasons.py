"""What a file says of its formulas: all that torch would say, in few rows, in no language, and asked of torch once."""

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


class WithoutTorch(hv.Trace):
    """A trace where torch cannot be imported."""

    verifier = None


def passed(root: torch.Tensor, **given: Any) -> hv.Trace:
    """A backward pass from ``root``, recorded."""
    with hv.record(**given) as trace:
        root.backward(torch.ones_like(root))
    return trace


def there_and_back(trace: hv.Trace) -> WithoutTorch:
    return decode_trace(json.loads(json.dumps(encode_trace(add_reasons(trace)), allow_nan=False)), WithoutTorch)


def every_reason(trace: hv.Trace) -> list[str]:
    return [repr(list(trace.why(step))) for step in range(len(trace.rows))]


@pytest.mark.parametrize("kind", KINDS_OF_TRACE)
def test_a_saved_trace_gives_the_reasons_that_torch_gives(kind: str) -> None:
    data = json.loads(saved(kind))
    asked = decode_trace(data | {"explained": []}, hv.Trace)
    assert any(row is not None for row in data["explained"])
    assert every_reason(decode_trace(data, WithoutTorch)) == every_reason(asked)


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
def test_each_kind_of_reason_comes_back(case: str) -> None:
    trace = passed(CASES[case]())
    assert every_reason(there_and_back(trace)) == every_reason(trace)


def test_a_formula_that_does_not_come_to_the_gradient_is_stored_as_such() -> None:
    trace = passed(leaf(2.0) * leaf(3.0))
    index = next(row for row in trace.rows if row.kind == "compute").after[0]
    trace.values[index] = (*trace.values[index][:3], 7.0, None, None)
    (reason, _) = there_and_back(trace).why(1)
    assert (reason.verdict, reason.note) == (
        "not explained",
        "grad × other does not give the recorded gradient.",
    )


def test_a_function_of_ones_own_is_told_by_its_place_in_the_trace() -> None:
    """The place is a path: it stands once in a file, where it can be left out."""

    class Tripled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 3

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            return grad * 3

    trace = passed(Tripled.apply(leaf(2.0)))
    text = json.dumps(encode_trace(add_reasons(trace)))
    assert text.count("test_stored_reasons.py") == 1
    assert every_reason(there_and_back(trace)) == every_reason(trace)


def test_a_file_without_reasons_is_explained_with_torch_and_says_so_without() -> None:
    data = json.loads(saved("graph"))
    for name in ("reasons", "explained"):
        del data[name]
    step = data["rows"]["kind"].index("compute")
    assert {reason.verdict for reason in decode_trace(data, hv.Trace).why(step)} == {"explained"}
    (reason, _) = bare = decode_trace(data, WithoutTorch).why(step)
    assert [reason.text for reason in bare] == ["grad × other", "grad × self"]
    assert (reason.verdict, reason.filled) == ("symbols only", "")
    assert reason.note.endswith("install PyTorch to check.")


def test_a_trace_that_has_its_reasons_is_saved_without_torch_as_it_was(tmp_path: Path) -> None:
    trace = decode_trace(json.loads(saved("formulas")), WithoutTorch)
    trace.save(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text(encoding="utf-8") == saved("formulas")


def test_a_trace_without_reasons_is_saved_without_torch_and_explained_later(tmp_path: Path) -> None:
    data = json.loads(saved("formulas")) | {"explained": [], "reasons": {}}
    decode_trace(data, WithoutTorch).save(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))["explained"] == []
    hv.load(tmp_path / "t.json").save(tmp_path / "t.json")
    assert (tmp_path / "t.json").read_text(encoding="utf-8") == saved("formulas")


def test_torch_is_not_asked_what_the_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = decode_trace(json.loads(saved("graph")), hv.Trace)

    def asked(self: hv.Trace) -> None:
        raise AssertionError("asked")

    monkeypatch.setattr(hv.Trace, "verifier", property(asked))
    assert len(every_reason(trace)) == len(trace.rows)
    assert add_reasons(trace) is trace


def test_the_reasons_of_a_file_are_written_in_no_language() -> None:
    for kind in KINDS_OF_TRACE:
        reasons = json.loads(saved(kind))["reasons"]
        notes = [note for row in reasons["notes"] for note in row]
        assert {key for key, _ in notes} <= set(load_texts())
        names = {name for _, arguments in notes for name, _ in arguments}
        assert names <= {"dims", "error"}  # numbers, and the name of a class


def test_thousands_of_gradients_share_few_rows() -> None:
    y = leaf(1.5)
    for _ in range(2_000):
        y = y * 1.0001
    trace = passed(y)
    with_them, without = (json.dumps(encode_trace(one)) for one in (add_reasons(trace), trace))
    assert len(add_reasons(trace).reasons) == 2  # of the chain, and of the leaf
    assert len(with_them) < 1.15 * len(without)


def test_of_what_looks_alike_one_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    y = leaf(1.5)
    for _ in range(300):
        y = y * 1.0001
    trace = passed(y)
    verifier, computed = trace.verifier, []
    assert verifier is not None
    check = verifier.check_sent
    monkeypatch.setattr(verifier, "check_sent", lambda *given: computed.append(1) or check(*given))
    assert len(add_reasons(trace).explained) == 602 and len(computed) == 1


def test_two_traces_side_by_side_keep_their_reasons() -> None:
    """Where one has a step and the other has none, the steps behind it move."""
    x = leaf(2.0)
    y = x * 3
    plain = passed(y * y, names={"x": x, "y": y}, keep=None)
    y = x * 3
    y.register_hook(lambda grad: grad * 10)
    hooked = passed(y * y, names={"x": x, "y": y}, keep=None)
    shown, asked = (
        one.diff(other).content() for one, other in ((there_and_back(plain), there_and_back(hooked)), (plain, hooked))
    )
    assert shown == asked
    assert "explained" in {row.verdict for row in add_reasons(hooked).reasons}


class Counting(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return function(*args, **kwargs or {})


def test_to_save_a_trace_disturbs_nothing(tmp_path: Path) -> None:
    trace = passed(leaf(2.0, 3.0).unsqueeze(0) @ leaf(1.0, 2.0).sin().unsqueeze(1))
    before = torch.get_rng_state()
    with Counting() as counting, torch.autocast("cpu"), torch.device("meta"):
        trace.save(tmp_path / "t.json")
    assert torch.equal(torch.get_rng_state(), before) and torch.is_grad_enabled()
    assert counting.calls == 0
    assert every_reason(hv.load(tmp_path / "t.json")) == every_reason(trace)
    assert trace.explained == []  # a recording may go on


def test_a_trace_is_the_same_whether_its_reasons_are_stored_or_not() -> None:
    trace = passed(leaf(2.0) * leaf(3.0))
    assert add_reasons(trace) == trace
