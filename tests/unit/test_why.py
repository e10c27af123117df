"""``trace.why`` gives formulas with values if they yield the recorded gradient, else the reason why it cannot."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from scenes import leaf, scene

import hookviz as hv
from hookviz.analysis.formulas import derivatives
from hookviz.analysis.formulas.reasons import Reason
from hookviz.autograd.formulas.verifier import ROUNDING_FACTOR
from hookviz.autograd.tensor_statistics import measure
from tests.requirements import needs_saved_tensors

Tensor = torch.Tensor


def record_backward(root: Tensor, **options: Any) -> hv.Trace:
    """Record a backward pass from ``root``."""
    with hv.record(**options) as trace:
        root.backward(torch.ones_like(root))
    return trace


def all_reasons(trace: hv.Trace) -> list[Reason]:
    return [reason for step in range(len(trace.steps)) for reason in trace.why(step)]


def reasons(trace: hv.Trace, op: str) -> list[Reason]:
    """The reasons for all gradients that nodes of ``op`` sent."""
    steps = [step for step in trace.steps if step.kind == "compute" and trace._data.ops[step.node] == op]
    return [reason for step in steps for reason in trace.why(step.index)]


def reasons_at(trace: hv.Trace, kind: str, on: str) -> list[Reason]:
    """The reasons of the only step of ``kind`` on ``on``."""
    (step,) = [step for step in trace.steps if step.kind == kind and step.on == on]
    return list(trace.why(step.index))


# -- wording


@needs_saved_tensors
def test_the_reasons_of_the_shared_scene_have_formulas_and_values() -> None:
    tensors = scene()
    tensors.e.register_hook(lambda grad: grad * 2)
    trace = record_backward(tensors.e, names=tensors._asdict())
    to_c, to_d = reasons(trace, "MulBackward0")[:2]
    assert to_c.text == "grad × other = 2 × 4 = 8"
    assert to_c == reasons_at(trace, "arrive", "c")[0]
    assert (to_c.on, to_c.formula, to_c.filled, to_c.verdict, to_c.note) == (
        "c",
        "grad × other",
        "2 × 4",
        "explained",
        "",
    )
    assert to_c.value is not None and to_c.value.tolist() == 8
    assert to_c.source == "mul_tensor_backward(grad, other, self.scalar_type())"
    assert to_d.text == "grad × self = 2 × 6 = 12"


FORMULA_TEXTS: dict[str, Callable[[Tensor], Tensor]] = {
    "grad × exponent × self^(exponent − 1) = 1 × (-1) × 3^(-2) = -0.111111": lambda x: x**-1,
    "expand(grad, shape, dim) ÷ size(shape, dim) = expand(1, (2,), (0,)) ÷ 2 = [0.5, 0.5]": lambda x: torch.stack(
        [x, x]
    ).mean(0),
    "where(result ≤ 0, 0, grad) = where(0 ≤ 0, 0, 1) = 0": lambda x: (x - 4).relu(),
    "selfᵀ @ grad = [[3, 3]]ᵀ @ [[1]] = [[3], [3]]": lambda x: (
        torch.full((1, 2), 3.0) @ torch.stack([x, x]).unsqueeze(1)
    ),
    "0 = 0": lambda x: x.round(),
    "−grad = −1 = -1": lambda x: -x,
}


@needs_saved_tensors
@pytest.mark.parametrize("text", FORMULA_TEXTS)
def test_a_formula_is_shown_with_values(text: str) -> None:
    trace = record_backward(FORMULA_TEXTS[text](leaf(3.0)))
    assert text in [reason.text for reason in all_reasons(trace)]


@needs_saved_tensors
def test_a_formula_that_does_not_fit_on_a_line_has_no_values() -> None:
    x, y = (torch.rand(4, 4, requires_grad=True) for _ in range(2))
    (to_x, _) = reasons(record_backward(x * y), "MulBackward0")
    assert (to_x.verdict, to_x.filled) == ("explained", "")
    assert re.fullmatch(r"grad × other = \(4, 4\) norm [\d.]+", to_x.text)


@needs_saved_tensors
def test_the_reasons_are_a_table_and_other_steps_have_none() -> None:
    trace = record_backward(leaf(2.0) * leaf(3.0))
    assert "grad × other = 1 × 3 = 3" in repr(trace.why(1))
    assert '<th scope="col"' in trace.why(1)._repr_html_()
    assert list(trace.why(0)) == []
    assert "in which a node computes" in repr(trace.why(0))
    assert trace.why(-1) == trace.why(len(trace.steps) - 1)
    with pytest.raises(IndexError):
        trace.why(len(trace.steps))


# -- arriving and accumulated gradients


@needs_saved_tensors
def test_a_sum_is_explained_part_by_part() -> None:
    y = leaf(2.0) * 1
    with hv.record(names={"y": y}) as trace:
        torch.autograd.backward([y, y * 3 + y * 5])
    assert [(reason.text, reason.note) for reason in reasons_at(trace, "arrive", "y")] == [
        ("1", "the seed"),
        ("grad × other = 1 × 5 = 5", ""),
        ("grad × other = 1 × 3 = 3", ""),
        ("sum of 3 contributions = 1 + 5 + 3 = 9", ""),
    ]


def test_accumulating_is_explained_as_a_sum() -> None:
    x = leaf(2.0)
    x.register_hook(lambda grad: grad * -10)
    y = x * 3
    with hv.record() as trace:
        y.backward(retain_graph=True)
        y.backward()
    texts = [reason.text for step in trace.steps if step.kind == "accumulate" for reason in trace.why(step.index)]
    assert texts == ["grad = -30", ".grad + grad = (-30) + (-30) = -60"]


@needs_saved_tensors
def test_the_note_states_that_a_node_hook_changed_the_gradient() -> None:
    x = leaf(2.0)
    y = x * 3
    assert y.grad_fn is not None
    y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_inputs[0] * 7, *grad_inputs[1:]))
    trace = record_backward(y, names={"x": x, "y": y})
    (reason,) = reasons_at(trace, "arrive", "x")
    assert reason.verdict == "not explained"
    assert reason.note == "MulBackward0 (y) computed 3; then a hook of the node turned it into 21."
    assert reasons(trace, "MulBackward0")[0].text == "grad × other = 1 × 3 = 3"


# -- gradients that are not explained


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * 3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * 3


BACKWARD_LINE = Tripled.backward.__code__.co_firstlineno
NOT_EXPLAINED: dict[str, Callable[[Tensor], Tensor]] = {
    "hookviz has no formula for this input of ErfinvBackward0.": torch.erfinv,
    "PyTorch has a formula for this case, but hookviz cannot read it.": lambda x: F.gelu(x, approximate="tanh"),
    rf"A Function of your own: its backward is in your code, at \S*test_why\.py:{BACKWARD_LINE}\.": Tripled.apply,
}
"""Pattern of a note → a program."""


@pytest.mark.parametrize("note", NOT_EXPLAINED)
def test_an_input_without_a_formula_is_not_explained(note: str) -> None:
    with hv.record() as trace:
        NOT_EXPLAINED[note](leaf(0.5)).backward()
    reason = next(reason for reason in all_reasons(trace) if reason.verdict == "not explained")
    assert (reason.text, reason.formula, reason.filled) == ("not explained", "", "")
    assert re.fullmatch(note, reason.note)


@needs_saved_tensors
def test_an_untracked_edit_of_a_saved_tensor_is_detected() -> None:
    tensors = scene()
    tensors.c.register_hook(lambda grad: tensors.b.data.mul_(2) and None)
    trace = record_backward(tensors.e, names=tensors._asdict())
    found = reasons(trace, "MulBackward0")
    assert [reason.verdict for reason in found] == ["explained", "explained", "not explained", "explained"]
    assert (found[2].text, found[2].filled) == ("not explained", "")
    assert found[2].note == "grad × other does not give the recorded gradient."


@needs_saved_tensors
def test_only_rounding_differences_are_accepted() -> None:
    x, y = (torch.tensor(n, dtype=torch.bfloat16, requires_grad=True) for n in (1.0, 3.0))
    trace = record_backward(x * y)
    index = next(row for row in trace._data.rows if row.kind == "compute").after[0]
    for roundings, verdict in ((ROUNDING_FACTOR, "explained"), (ROUNDING_FACTOR + 1, "not explained")):
        number = 3 * (1 + roundings * torch.finfo(torch.bfloat16).eps)
        trace._data.values[index] = measure(torch.tensor(number, dtype=torch.bfloat16))
        assert trace.why(1)[0].verdict == verdict


# -- symbols only


LIMIT_NOTE = (
    "No values: hookviz keeps them only in graphs of at most 256 nodes, and at most 1,024 numbers in one recording."
)


def symbols_only(reason: Reason) -> tuple[str, str]:
    assert (reason.verdict, reason.filled) == ("symbols only", "")
    return reason.text, reason.note


@needs_saved_tensors
def test_large_tensors_are_explained_in_symbols_only() -> None:
    x = torch.rand(65, requires_grad=True)
    found = reasons(record_backward((x.sin() * 2).sum()), "SinBackward0")
    assert symbols_only(found[0]) == ("grad × cos(self)", "No values: there are more than 64 numbers.")


@needs_saved_tensors
def test_large_graphs_are_explained_in_symbols_only() -> None:
    y = leaf(1.0)
    for _ in range(256):
        y = y * 1.01
    trace = record_backward(y)
    assert {symbols_only(reason) for reason in reasons(trace, "MulBackward0")} == {("grad × other", LIMIT_NOTE)}
    assert not trace._data.saved


@needs_saved_tensors
@pytest.mark.parametrize("keep", [None, 3])
def test_a_recording_saves_at_most_the_stated_number_of_values(keep: int | None) -> None:
    with hv.record(keep=keep) as trace:
        for _ in range(20):
            (torch.rand(64, requires_grad=True) * 2).sin().sum().backward()
    sines = reasons(trace, "SinBackward0")
    assert sines[0].verdict == "explained"
    assert sines[-1].verdict == ("explained" if keep else "symbols only")


# -- dtypes and shapes


@needs_saved_tensors
def test_the_note_states_the_broadcast_dimensions() -> None:
    found = reasons(record_backward(torch.rand((), requires_grad=True) * torch.rand(2, 3)), "MulBackward0")
    assert (found[0].note, found[0].verdict) == ("Summed over each broadcast dimension: 0, 1.", "explained")


# -- the table of formulas


@needs_saved_tensors
def test_if_releases_of_torch_differ_the_formula_is_the_one_that_gives_the_gradient(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Up to 2.14 a number exactly at the limit of ``clamp`` gets the whole gradient, from 2.15 on none."""
    trace = record_backward(leaf(2.0).clamp(min=2.0))
    formulas = derivatives.find_formulas("ClampMinBackward0", 0)
    for known in (formulas, formulas[::-1]):
        monkeypatch.setattr("hookviz.analysis.formulas.reasons.find_formulas", lambda op, slot, known=known: known)
        assert trace.why(1)[0].verdict == "explained"
