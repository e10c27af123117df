"""``trace.why`` gives formulas with values if they yield the recorded gradient, else the reason why it cannot."""

import ast
import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from scenes import leaf, scene
from torch.utils._python_dispatch import TorchDispatchMode

import hookviz as hv
from hookviz.analysis.formulas import derivatives
from hookviz.analysis.formulas.evaluation import Evaluator
from hookviz.analysis.formulas.reasons import Reason
from hookviz.autograd.formulas.functions import FUNCTIONS
from hookviz.autograd.formulas.verifier import ROUNDING_FACTOR
from hookviz.autograd.tensor_statistics import measure
from hookviz.recorder.passes.saved_tensors import MAX_SAVED_NUMBERS
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
    "grad × exponent × self^(exponent − 1) = 1 × 3 × 3² = 27": lambda x: x**3,
    "grad × exponent × self^(exponent − 1) = 1 × (-1) × 3^(-2) = -0.111111": lambda x: x**-1,
    "grad ÷ (2 × result) = 1 ÷ (2 × 1) = 0.5": lambda x: (x - 2).sqrt(),
    "−grad × result² = −6 × 0.333333² = -0.666667": lambda x: 6 / x,
    "expand(grad, shape) = expand(1, (2,)) = [1, 1]": lambda x: (x * torch.tensor([1.0, -2.0])).sum(),
    "expand(grad, shape, dim) ÷ size(shape, dim) = expand(1, (2,), (0,)) ÷ 2 = [0.5, 0.5]": lambda x: torch.stack(
        [x, x]
    ).mean(0),
    "where(result ≤ 0, 0, grad) = where(0 ≤ 0, 0, 1) = 0": lambda x: (x - 4).relu(),
    "selfᵀ @ grad = [[3, 3]]ᵀ @ [[1]] = [[3], [3]]": lambda x: (
        torch.full((1, 2), 3.0) @ torch.stack([x, x]).unsqueeze(1)
    ),
    "where(self ≥ min and self ≤ max, grad, 0) = where(3 ≥ 0 and 3 ≤ 4, 1, 0) = 1": lambda x: x.clamp(0, 4),
    "0 = 0": lambda x: x.round(),
    "−grad = −1 = -1": lambda x: -x,
    "grad = 1": lambda x: x + 1,
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
    "hookviz has no formula for this input of BinaryCrossEntropyBackward0.": lambda x: F.binary_cross_entropy(
        torch.tensor(0.5), x
    ),
    "PyTorch has a formula for this case, but hookviz cannot read it.": lambda x: F.gelu(x, approximate="tanh"),
    "hookviz has no formula for this input of CheckpointFunctionBackward.": lambda x: torch.utils.checkpoint.checkpoint(
        torch.sin, x, use_reentrant=True
    ),
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


def set_value(trace: hv.Trace, index: Any, number: Tensor) -> None:
    trace._data.values[index] = measure(number)


@needs_saved_tensors
@pytest.mark.parametrize("altered_value", ["saved", "before", "after"])
def test_an_altered_value_is_detected(altered_value: str) -> None:
    trace = record_backward(leaf(2.0) * leaf(3.0))
    saved = next(row.value for row in trace._data.saved if row.name == "other")
    step = next(row for row in trace._data.rows if row.kind == "compute")
    set_value(
        trace, {"saved": saved, "before": step.before, "after": step.after[0]}[altered_value], torch.tensor(3.0001)
    )
    reason = trace.why(1)[0]
    assert (reason.text, reason.filled, reason.verdict) == ("not explained", "", "not explained")
    assert reason.note == "grad × other does not give the recorded gradient."


@needs_saved_tensors
def test_an_untracked_edit_of_a_saved_tensor_is_detected() -> None:
    tensors = scene()
    tensors.c.register_hook(lambda grad: tensors.b.data.mul_(2) and None)
    trace = record_backward(tensors.e, names=tensors._asdict())
    assert [reason.verdict for reason in reasons(trace, "MulBackward0")] == ["explained"] * 2 + [
        "not explained",
        "explained",
    ]


@needs_saved_tensors
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_only_rounding_differences_are_accepted(dtype: torch.dtype) -> None:
    x, y = (torch.tensor(n, dtype=dtype, requires_grad=True) for n in (1.0, 3.0))
    trace = record_backward(x * y)
    index, eps = next(row for row in trace._data.rows if row.kind == "compute").after[0], torch.finfo(dtype).eps
    for roundings, verdict in (
        (0, "explained"),
        (ROUNDING_FACTOR, "explained"),
        (ROUNDING_FACTOR + 1, "not explained"),
    ):
        set_value(trace, index, torch.tensor(3 * (1 + roundings * eps), dtype=dtype))
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
    assert reasons(record_backward(torch.rand(64, requires_grad=True).sin()), "SinBackward0")[0].verdict == "explained"


@needs_saved_tensors
@pytest.mark.parametrize(("nodes", "verdict"), [(256, "explained"), (257, "symbols only")])
def test_large_graphs_are_explained_in_symbols_only(nodes: int, verdict: str) -> None:
    y = leaf(1.0)
    for _ in range(nodes - 1):
        y = y * 1.01
    trace = record_backward(y)
    found = reasons(trace, "MulBackward0")
    assert {reason.verdict for reason in found} == {verdict}
    assert bool(trace._data.saved) == (nodes == 256)
    if nodes > 256:
        assert symbols_only(found[0]) == ("grad × other", LIMIT_NOTE)


@needs_saved_tensors
def test_a_recording_saves_at_most_the_stated_number_of_values() -> None:
    def record_sines(**options: Any) -> tuple[hv.Trace, list[Reason]]:
        with hv.record(**options) as trace:
            for _ in range(20):
                (torch.rand(64, requires_grad=True) * 2).sin().sum().backward()
        return trace, reasons(trace, "SinBackward0")

    trace, sines = record_sines()
    named = {row.data for row in trace._data.tensors}
    values = {row.value for row in trace._data.saved if isinstance(row.value, int)} - named
    saved = sum(math.prod(trace._data.values[value][0]) for value in values) + len(trace._data.saved)
    assert MAX_SAVED_NUMBERS - 64 <= saved <= MAX_SAVED_NUMBERS
    assert sines[0].verdict == "explained" and symbols_only(sines[-1])[1] == LIMIT_NOTE
    assert {reason.verdict for reason in record_sines(keep=3)[1]} == {"explained"}


def test_in_a_large_graph_formulas_without_saved_values_are_explained() -> None:
    y = leaf(1.0)
    for _ in range(300):
        y = -y
    trace = record_backward(y + leaf(1.0))
    assert symbols_only(reasons(trace, "AddBackward0")[1])[0] == "grad if alpha = 1, else grad × alpha"
    assert {reason.text for reason in reasons(trace, "NegBackward0")} == {"−grad = −1 = -1", "−grad = −(-1) = 1"}


@needs_saved_tensors
def test_saved_tensor_hooks_are_not_called_for_formulas() -> None:
    def run(context: Any) -> tuple[int, Any]:
        calls = []
        x = leaf(2.0)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: calls.append(1) or t):
            y = x.sin() * x.exp() * x.unsqueeze(0)[torch.tensor([0])]
        with context as trace:
            y.backward()
        return len(calls), trace

    plain, _ = run(nullcontext())
    count, trace = run(hv.record())
    assert count == plain == 7
    assert symbols_only(reasons(trace, "SinBackward0")[0]) == (
        "grad × cos(self)",
        "No values: only a saved-tensor hook could unpack them, and hookviz does not call it.",
    )


WITHOUT_VALUES = {
    "the tensors that the node saved were changed in place or freed": {"why": "changed"},
    "this torch does not save the values that the formula needs": {"why": "none"},
    "could not be computed with these values (TypeError)": {"plain": "text"},
}
"""Why a formula has no values → what is saved."""


@needs_saved_tensors
@pytest.mark.parametrize("cause", WITHOUT_VALUES)
def test_a_formula_without_values_says_why(cause: str) -> None:
    trace = record_backward(leaf(2.0).sin())
    trace._data.saved[0] = trace._data.saved[0]._replace(**{"value": None, **WITHOUT_VALUES[cause]})
    reason = trace.why(1)[0]
    assert cause in reason.note and reason.filled == ""
    assert reason.verdict == ("symbols only" if reason.note.startswith("No values: ") else "not explained")


def test_a_formula_for_a_tensor_that_is_not_read_has_no_values() -> None:
    trace = record_backward(-leaf(2.0))
    set_value(trace, trace._data.rows[1].before, torch.eye(2).to_sparse())
    assert symbols_only(trace.why(1)[0])[1] == "No values: hookviz does not read the numbers of such a tensor."


# -- dtypes and shapes


def numbers(*parts: Any, dtype: torch.dtype | None = None) -> tuple[Tensor, ...]:
    return tuple(torch.tensor(part, dtype=dtype, requires_grad=True) for part in parts)


def combine(x: Tensor, y: Tensor) -> Tensor:
    return x * y + x / y + (x @ y.t()).sigmoid() + (x - y).softmax(0).sqrt()


EXPLAINED: dict[str, Callable[[], Tensor]] = {
    "float16": lambda: combine(*torch.rand(2, 3, 3).half().requires_grad_()),
    "bfloat16": lambda: combine(*torch.rand(2, 3, 3).bfloat16().requires_grad_()),
    "scalars": lambda: ((leaf(0.3) * 0.1 / 0.7).exp() ** 1.1).log().add(leaf(0.3), alpha=0.3),
    "scalars in float16": lambda: (numbers(0.3, dtype=torch.float16)[0] * 0.1 / 0.7).exp() ** 1.1,
    "complex": lambda: torch.mul(*numbers(1 + 2j, 3 - 1j)).exp(),
    "integer exponents": lambda: leaf(2.0, 3.0) ** torch.tensor([3, 0]),
    "NaN and Inf": lambda: leaf(math.nan, math.inf, 0.0, -1.0).square().log().relu(),
}


@needs_saved_tensors
@pytest.mark.parametrize("name", EXPLAINED)
def test_each_dtype_is_explained(name: str) -> None:
    torch.manual_seed(3)
    assert {reason.verdict for reason in all_reasons(record_backward(EXPLAINED[name]()))} == {"explained"}


@needs_saved_tensors
def test_formulas_for_complex_numbers_contain_the_conjugate() -> None:
    found = reasons(record_backward(torch.mul(*numbers(1 + 2j, 3 - 1j))), "MulBackward0")
    assert [reason.formula for reason in found] == ["grad × conj(other)", "grad × conj(self)"]
    (reason,) = reasons(record_backward(leaf(2.0) * torch.tensor(3 + 4j)), "MulBackward0")
    assert reason.text == "grad × conj(other) = (1+0i) × conj(3+4i) = 3"
    assert reason.note == "Only the real part is taken, because the tensor is real."


@needs_saved_tensors
@pytest.mark.parametrize(
    ("shapes", "notes"),
    [
        (((2, 3), (3,)), ["", "dimension: 0."]),
        (((2, 1), (1, 3)), ["dimension: 1.", "dimension: 0."]),
        (((), (2, 3)), ["dimension: 0, 1.", ""]),
    ],
)
def test_the_note_states_the_broadcast_dimensions(shapes: Any, notes: list[str]) -> None:
    x, y = (torch.rand(shape, requires_grad=True) for shape in shapes)
    found = reasons(record_backward(x * y), "MulBackward0")
    assert [reason.note.removeprefix("Summed over each broadcast ") for reason in found] == notes
    assert {reason.verdict for reason in found} == {"explained"}


# -- effects on the recording


def test_saving_values_keeps_no_tensor_alive_and_changes_no_version() -> None:
    x = leaf(2.0)
    middle = x.exp()
    y = middle * x
    versions = x._version, middle._version
    with hv.record() as trace:
        y.backward()
    assert (x._version, middle._version) == versions
    assert not any(isinstance(part, Tensor) for row in trace._data.saved for part in row)
    reference = torch._C._WeakTensorRef(middle)
    del middle, y
    assert reference.expired()


class CountingMode(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return function(*args, **kwargs or {})


def test_why_does_not_change_torchs_state_or_run_operators() -> None:
    x = leaf(2.0, 3.0)
    trace = record_backward(x.unsqueeze(0) @ x.sin().unsqueeze(1))
    before = torch.get_rng_state()
    with CountingMode() as counting_mode, torch.autocast("cpu"), torch.device("meta"):
        texts = [reason.text for reason in all_reasons(trace)]
    assert torch.equal(torch.get_rng_state(), before) and torch.is_grad_enabled()
    assert counting_mode.calls == 0
    assert texts == [reason.text for reason in all_reasons(trace)]


def record_loop(keep: int | None, steps: int) -> hv.Trace:
    weight = leaf(2.0)
    with hv.record(names={"weight": weight}, keep=keep) as trace:
        for number in range(steps):
            (weight.sin() * float(number) ** 2).backward()
    return trace


def test_dropped_passes_drop_their_saved_values() -> None:
    texts = [[reason.text for reason in all_reasons(trace)] for trace in (record_loop(2, 7), record_loop(None, 7))]
    assert len(texts[0]) * 7 == len(texts[1]) * 2 and texts[1][-len(texts[0]) :] == texts[0]
    assert len(record_loop(2, 20)._data.saved) == len(record_loop(2, 7)._data.saved)


# -- files, and machines without torch


def record_net() -> hv.Trace:
    """Record a layer, a shared tensor, an accumulated gradient, and a node without a formula."""
    torch.manual_seed(1)
    net, x = torch.nn.Linear(3, 2), leaf(0.1, 0.2, 0.3)
    with hv.record(net) as trace:
        for _ in range(2):
            (net(x.erfinv()).relu() * net(x)).sum().backward()
    return trace


def test_a_loaded_trace_has_the_same_reasons_as_the_recorded_one(tmp_path: Path) -> None:
    trace = record_net()
    trace.save(tmp_path / "t.json")
    assert all_reasons(hv.load(tmp_path / "t.json")) == all_reasons(trace)
    assert {reason.verdict for reason in all_reasons(trace)} >= {"explained", "not explained"}


@needs_saved_tensors
def test_without_torch_formulas_are_shown_in_symbols_and_say_that_values_need_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = record_net()
    explained = all_reasons(trace)
    monkeypatch.setattr("hookviz.analysis.formulas.reasons.load_verifier", lambda: None)
    for reason, with_values in zip(all_reasons(trace), explained, strict=True):
        assert reason.formula == with_values.formula
        if reason.verdict != "not explained":
            assert symbols_only(reason) == (reason.formula, "No values: they need PyTorch, which is not installed.")


# -- the table of formulas


@needs_saved_tensors
@pytest.mark.parametrize("reverse", [False, True])
def test_if_releases_of_torch_differ_the_formula_is_the_one_that_gives_the_gradient(
    reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to 2.14 a number exactly at the limit of ``clamp`` gets the whole gradient, from 2.15 on none."""
    formulas = derivatives.find_formulas("ClampMinBackward0", 0)
    known = formulas[::-1] if reverse else formulas
    monkeypatch.setattr("hookviz.analysis.formulas.reasons.find_formulas", lambda op, slot: known)
    [reason] = record_backward(leaf(2.0).clamp(min=2.0)).why(1)
    assert reason.verdict == "explained"
    assert reason.source in [formula.source for formula in formulas]


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "(1).real", "a[0]", "lambda: 1", "not a"],
)
def test_formulas_with_other_python_syntax_are_refused(text: str) -> None:
    with pytest.raises((TypeError, KeyError)):
        Evaluator({"a": 1}, FUNCTIONS).value(ast.parse(text, mode="eval").body)
