"""Prediction questions: at which steps they are asked, and the reasons given for wrong answers."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import Net, leaf, plain, recorded, scene, silent
from shown import overview, shown_steps

import hookviz as hv
from tests.unit.test_whatif import a_to_e

Question = dict[str, Any]


def questions_of(trace: hv.Trace) -> dict[int, Question]:
    """The questions of the player, by the index of their step."""
    frames = shown_steps(trace.content())
    return {index: frame["ask"] for index, frame in enumerate(frames) if "ask" in frame}


def only_question(trace: hv.Trace) -> Question:
    [question] = questions_of(trace).values()
    return question


def reason_for(question: Question, answer: str) -> str:
    """The reason stored for a wrong answer, "" for the right one."""
    if "choices" in question:
        reason: str = question["reasons"][question["choices"].index(answer)]
        return reason
    return dict(question["mistakes"])[answer]


def run_with_hook(hook: Callable[[torch.Tensor], Any], *values: float) -> hv.Trace:
    """Record a pass in which ``hook`` receives a gradient of ``values``."""
    x = leaf(*[1.0] * len(values))
    with x.register_hook(hook), hv.record(names={"x": x}) as trace:
        (x * torch.tensor(values if len(values) > 1 else values[0])).sum().backward()
    return trace


# -- the shared scene with its four hooks


def test_each_hook_of_the_shared_scene_has_a_question_with_the_answer_of_the_trace() -> None:
    trace = recorded()
    questions = questions_of(trace)
    assert {index: question["text"] for index, question in questions.items()} == {
        1: "λ grad * 2 is about to run on e; the gradient is 1. What comes out?",
        4: "Which hook runs next?",
        8: "c_hook is about to run on c; the gradient is 8. What comes out?",
        9: "print is about to run on c; the gradient is 10. What comes out?",
    }
    for index in (1, 8, 9):
        assert float(questions[index]["answer"]) == plain(trace.steps[index].after)
    assert questions[4]["choices"][questions[4]["right"]] == "① λ grad + 100 on d"


def test_the_reason_for_a_wrong_answer_names_its_origin() -> None:
    questions = questions_of(recorded())
    assert reason_for(questions[8], "8") == "8 is the gradient before c_hook."
    assert reason_for(questions[8], "112") == "112 is what λ grad + 100 on d makes of 12."
    assert reason_for(questions[8], "12") == "12 is the gradient of d."
    assert "10" not in dict(questions[8]["mistakes"])
    expected_reason = "That hook runs later: d is a leaf, so its hook runs as soon as its gradient is ready."
    for choice in ("① c_hook on c", "② print on c"):
        assert reason_for(questions[4], choice) == expected_reason
    assert reason_for(questions[4], "① λ grad * 2 on e") == "It has run already, at step 2."


def test_a_hook_that_never_fires_is_among_the_choices() -> None:
    leaves = {name: leaf(2.0) for name in ("a", "b", "c", "other")}
    for tensor in leaves.values():
        tensor.register_hook(silent("look"))
    with hv.record(names=leaves) as trace:
        (leaves["a"] * leaves["b"] * leaves["c"]).backward()
    [question] = [question for question in questions_of(trace).values() if "choices" in question]
    assert question["choices"] == [f"① look on {name}" for name in leaves]
    assert reason_for(question, "① look on other") == "That hook does not run in this pass."


def test_computing_with_the_old_gradient_is_recognised_as_a_mistake() -> None:
    tensors = scene()
    tensors.c.register_hook(lambda grad: grad + 1)
    tensors.c.register_hook(lambda grad: grad * 3)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    first, second = trace.firings
    reasons = dict(questions_of(trace)[second.index]["mistakes"])
    assert (plain(first.after), plain(second.after)) == (5, 15)
    assert reasons["12"] == reasons["14"] == "You used the old gradient, 4: λ grad + 1 has already changed it to 5."


# -- the order of hooks


def test_the_reason_states_that_the_newest_ready_node_runs_first() -> None:
    x = leaf(1.0)
    old, young = x.sin(), x.cos()
    total = torch.stack([old, young]).sum()
    for tensor in (total, old, young):
        tensor.register_hook(silent("h"))
    with hv.record(names={"x": x, "old": old, "young": young, "total": total}) as trace:
        total.backward()
    question = next(question for question in questions_of(trace).values() if "choices" in question)
    assert question["choices"][question["right"]] == "① h on young"
    assert reason_for(question, "① h on old").endswith("the node that the forward pass created last runs first.")


# -- kinds of values


@pytest.mark.parametrize(
    ("hook", "values", "answer"),
    [
        (lambda grad: grad / -0.0, (3.0,), "-inf"),
        (lambda grad: grad / 3, (1.0,), "0.333333"),
        (lambda grad: None, (1.0, 2.0, 3.0, 4.0), "1, 2, 3, 4"),
    ],
)
def test_small_values_are_asked_for_as_numbers(
    hook: Callable[[torch.Tensor], Any], values: tuple[float, ...], answer: str
) -> None:
    question = only_question(run_with_hook(hook, *values))
    assert question["answer"] == answer
    assert answer not in dict(question["mistakes"])


def double_in_place(grad: torch.Tensor) -> None:
    grad *= 2


def test_for_many_numbers_the_question_is_about_the_effect() -> None:
    question = only_question(run_with_hook(double_in_place, *range(1, 6)))
    assert question["choices"] == ["keeps it", "edits it in place", "replaces it"]
    assert question["right"] == 1
    assert question["reasons"] == ["It does not leave the value unchanged.", "", "It does not return another tensor."]


def test_inputs_and_outputs_of_modules_are_asked_for() -> None:
    net = Net()
    net.l1.register_forward_pre_hook(lambda module, args: (args[0] + 10,))
    net.l1.register_forward_hook(lambda module, args, output: output * 5)
    net.l2.register_forward_hook(lambda module, args, output: output - 1)
    with hv.record(net) as trace:
        net(torch.tensor(1.0))
    pre_question, order_question, last_question = questions_of(trace).values()
    assert (
        "net.l1 is called with 1. What does forward get in the end, input by input?" in pre_question["text"]
        and pre_question["answer"] == "11"
    )
    assert reason_for(pre_question, "1").startswith("1 is the value before λ")
    assert order_question["choices"][order_question["right"]].endswith("on net.l1")
    [reason] = [reason for reason in order_question["reasons"] if "later" in reason]
    assert reason == "That hook runs later: it waits for the output of net.l2."
    assert "net.l2 has computed 220. What comes out?" in last_question["text"] and last_question["answer"] == "219"
    assert reason_for(last_question, "110") == "110 is what λ output * 5 on net.l1 makes of 22."


def test_backward_hooks_of_modules_are_asked_about() -> None:
    net, x = Net(), leaf(1.0)
    net.l2.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 3,))
    net.l2.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] + 1,))
    net.l1.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 2,))
    with hv.record(net, names={"x": x}) as trace:
        net(x).backward()
    pre_question, order_question, last_question = questions_of(trace).values()
    assert "the gradient of its output is 1. What comes out?" in pre_question["text"] and pre_question["answer"] == "3"
    assert order_question["choices"][order_question["right"]].endswith("on net.l2")
    assert "That hook runs later: it waits for the gradients of the inputs of net.l1." in order_question["reasons"]
    assert "grad_input" in last_question["text"] and last_question["answer"] == "28"


# -- passes without hooks


def test_without_hooks_each_node_is_asked_about_and_wrong_gradients_get_reasons() -> None:
    tensors = scene()
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    at_e, at_c = questions_of(trace).values()
    assert at_e["text"] == "MulBackward0 (e) takes the gradient 1. What does it send on?"
    assert at_e["choices"] == ["1 to c, 1 to d", "4 to c, 6 to d", "6 to c, 4 to d"]
    assert (at_e["choices"][at_e["right"]], at_c["choices"][at_c["right"]]) == ("4 to c, 6 to d", "12 to a, 8 to b")
    assert reason_for(at_c, "8 to a, 12 to b") == "Those are the right numbers in the wrong order."
    assert reason_for(at_c, "4 to a, 4 to b").startswith("4 is the gradient that comes in.")
    assert reason_for(at_c, "3 to a, 2 to b") == "That would be right if the gradient 1 came in, but it is 4."
    assert reason_for(at_c, "12 to a, 8 to b") == ""


def test_a_node_with_only_one_possible_answer_is_not_asked_about() -> None:
    x = leaf(3.0)
    with hv.record() as trace:
        (x + x).backward()  # a gradient of 1 arrives, and 1 is sent to each input
    assert questions_of(trace) == {}


# -- a what-if: hooks that are off


def own_questions(experiment: hv.WhatIf, off: str) -> dict[int, list[Question]]:
    """The questions about the run without the hooks of these indices, such as "0,2", by the index of their step."""
    content = experiment.content()
    run = content["combinations"][off]
    questions = content["questions"]
    by_step = {
        int(step): [questions[key] for key in keys] for step, keys in overview(content, run)["questions"].items()
    }
    own = {step: [question for question in asked if question["run"] == run] for step, asked in by_step.items()}
    return {step: asked for step, asked in own.items() if asked}


def questions_without(*hooks: int) -> dict[int, list[Question]]:
    return own_questions(hv.whatif(a_to_e), ",".join(map(str, hooks)))


def test_a_switched_off_hook_is_asked_about_before_the_first_step_that_differs() -> None:
    [(step, [first, second])] = questions_without(0).items()
    assert step == 8, "the step of c_hook, which is missing"
    assert (first["text"], first["answer"]) == ("c_hook is off. What is a.grad now?", "24")
    assert (second["text"], second["answer"]) == ("c_hook is off. What is b.grad now?", "16")
    assert first["mistakes"][0] == ("30", "30 is a.grad with c_hook on.")
    assert reason_for(first, "16") == "16 is b.grad."
    assert reason_for(second, "20") == "20 is b.grad with c_hook on."
    assert "24" not in dict(first["mistakes"])
