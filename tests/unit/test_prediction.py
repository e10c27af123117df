"""Questions before a hook runs: what is asked where, and the reasons that a trace gives for wrong answers."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import Net, SumNet, hook_everything, leaf, recorded, scene, silent
from shown import shown_steps

import hookviz as hv
from hookviz.analysis.questions.grading import are_near
from hookviz.analysis.questions.prediction import MAX_NUMBERS, MAX_QUESTIONS, Question, list_numbers, make_questions
from hookviz.trace import HOOK_KINDS
from hookviz.trace.values import Value


def asked(trace: hv.Trace) -> dict[int, Question]:
    return make_questions(trace.steps)


def the_question(trace: hv.Trace) -> Question:
    [question] = asked(trace).values()
    return question


def why(question: Question, answer: str) -> str:
    """The reason that is known for a wrong answer."""
    if "choices" in question:
        reason: str = question["reasons"][question["choices"].index(answer)]
        return reason
    return dict(question["reasons"])[answer]


def passed(hook: Callable[[torch.Tensor], Any], *at: float) -> hv.Trace:
    """A pass in which ``hook`` is given the numbers ``at``."""
    x = leaf(*[1.0] * len(at))
    with x.register_hook(hook), hv.record(names={"x": x}) as trace:
        (x * torch.tensor(at if len(at) > 1 else at[0])).sum().backward()
    return trace


# -- a to e with its four hooks


def test_each_hook_of_the_first_picture_has_its_question() -> None:
    texts = {index: question["text"] for index, question in asked(recorded()).items()}
    assert texts == {
        1: "λ grad * 2 is about to run on e; the gradient is 1. What comes out?",
        4: "Which hook runs next?",
        8: "c_hook is about to run on c; the gradient is 8. What comes out?",
        9: "print is about to run on c; the gradient is 10. What comes out?",
    }


def test_the_answers_are_those_of_the_trace() -> None:
    trace = recorded()
    found = asked(trace)
    for index in (1, 8, 9):
        assert [float(found[index]["answer"])] == list_numbers(trace.steps[index].after)
    assert found[4]["choices"][found[4]["right"]] == "① λ grad + 100 on d"


def test_a_wrong_number_is_told_what_it_is() -> None:
    question = asked(recorded())[8]
    assert why(question, "8") == "8 is the gradient before c_hook."
    assert why(question, "112") == "112 is what λ grad + 100 on d makes of 12."
    assert why(question, "12") == "12 is the gradient of d."
    assert "10" not in dict(question["reasons"])


def test_none_is_what_a_hook_returns_and_not_what_goes_on() -> None:
    question = asked(recorded())[9]  # print returns None
    assert question["answer"] == "10"
    assert why(question, "None") == "A hook that returns None leaves the value as it was. So which value goes on?"


def test_the_old_gradient_is_recognised() -> None:
    assert why(asked(recorded())[9], "8") == "You used the old gradient, 8: c_hook has already changed it to 10."


def test_what_a_sum_or_a_product_makes_of_the_old_gradient_is_recognised() -> None:
    tensors = scene()
    tensors.c.register_hook(lambda grad: grad + 1)
    tensors.c.register_hook(lambda grad: grad * 3)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    first, second = trace.firings
    known = dict(asked(trace)[second.index]["reasons"])
    assert [list_numbers(step.after) for step in (first, second)] == [[5.0], [15.0]]
    assert known["12"] == known["14"] == "You used the old gradient, 4: λ grad + 1 has already changed it to 5."


def test_a_hook_that_is_not_next_is_told_why() -> None:
    question = asked(recorded())[4]
    later = "That hook runs later: d is a leaf, so its hook runs as soon as its gradient is ready."
    assert why(question, "① c_hook on c") == why(question, "② print on c") == later
    assert why(question, "① λ grad * 2 on e") == "It has run already, at step 2."


def test_which_hook_is_next_is_asked_before_the_gradient_arrives_there() -> None:
    trace = recorded()
    assert (trace.steps[4].kind, trace.steps[4].on, trace.steps[5].on) == ("arrive", "d", "d")
    assert 4 in asked(trace) and 5 not in asked(trace)


def test_the_only_hook_left_is_not_asked_for() -> None:
    assert "choices" not in asked(recorded())[9]


# -- the order of hooks


def two(first: Callable[..., None], second: Callable[..., None]) -> Question:
    """The second question of a pass with a hook at its root, and two others put there by these functions."""
    tensors = scene()
    tensors.e.register_hook(silent("root"))
    first(tensors, silent("one"))
    second(tensors, silent("two"))
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    return list(asked(trace).values())[1]


def test_hooks_in_one_place_run_in_order() -> None:
    question = two(lambda t, hook: t.c.register_hook(hook), lambda t, hook: t.c.register_hook(hook))
    assert why(question, "② two on c") == "That hook runs later: the hooks of c run in the order of their numbers."


def test_a_hook_whose_gradient_is_not_there_runs_later() -> None:
    question = two(lambda t, hook: t.c.register_hook(hook), lambda t, hook: t.b.register_hook(hook))
    assert why(question, "① two on b") == "That hook runs later: its gradient has not arrived at b yet."


def test_a_hook_that_does_not_run_in_the_pass_is_no_answer() -> None:
    tensors = scene()
    for tensor in (tensors.e, tensors.c, tensors.d):
        tensor.register_hook(silent("hook"))
    tensors.a.register_hook(silent("never"))
    with hv.record(names=tensors._asdict()) as trace:
        torch.autograd.grad(tensors.e, (tensors.c, tensors.d))
    question = next(question for question in asked(trace).values() if "choices" in question)
    assert why(question, "① never on a") == "That hook does not run in this pass."


def test_of_two_nodes_that_are_ready_the_younger_runs_first() -> None:
    x = leaf(1.0)
    old, young = x.sin(), x.cos()
    total = torch.stack([old, young]).sum()
    for tensor in (total, old, young):
        tensor.register_hook(silent("h"))
    with hv.record(names={"x": x, "old": old, "young": young, "total": total}) as trace:
        total.backward()
    question = next(question for question in asked(trace).values() if "choices" in question)
    assert question["choices"][question["right"]] == "① h on young"
    assert why(question, "① h on old").endswith("the node that the forward pass created last runs first.")


def test_no_more_than_six_hooks_stand_to_choose_from_and_the_right_one_among_them() -> None:
    y = leaf(1.0)
    for _ in range(12):
        y = y.sin()
        y.register_hook(silent("h"))
    with hv.record() as trace:
        y.backward()
    choices = [question for question in asked(trace).values() if "choices" in question]
    assert len(choices) >= 5
    for question in choices:
        assert len(set(question["choices"])) == len(question["choices"]) == len(question["reasons"]) == 6
        assert [reason == "" for reason in question["reasons"]].index(True) == question["right"]


# -- values of every kind


@pytest.mark.parametrize(
    ("hook", "at", "answer"),
    [
        (lambda grad: grad * -0.0, (3.0,), "-0"),
        (lambda grad: grad * math.nan, (3.0,), "nan"),
        (lambda grad: grad / 0, (3.0,), "inf"),
        (lambda grad: grad / -0.0, (3.0,), "-inf"),
        (lambda grad: grad / 3, (1.0,), "0.333333"),
        (lambda grad: grad * 2, (1.0, 2.0, 4.0), "2, 4, 8"),
        (lambda grad: None, (1.0, 2.0, 3.0, 4.0), "1, 2, 3, 4"),
        (lambda grad: grad.mul_(10) and None, (1.5,), "15"),
    ],
)
def test_numbers_are_asked_for(hook: Callable[[torch.Tensor], Any], at: tuple[float, ...], answer: str) -> None:
    question = the_question(passed(hook, *at))
    assert question["answer"] == answer
    assert not [wrong for wrong, _ in question["reasons"] if wrong == answer]


def test_an_edit_in_place_has_the_numbers_from_before_as_a_mistake() -> None:
    question = the_question(passed(lambda grad: grad.mul_(10) and None, 1.5))
    assert why(question, "1.5").startswith("1.5 is the gradient before λ")


def test_of_many_numbers_it_is_asked_what_the_hook_does() -> None:
    question = the_question(passed(lambda grad: grad * 2, *range(1, MAX_NUMBERS + 2)))
    assert question["choices"] == ["keeps it", "edits it in place", "replaces it"]
    assert (question["right"], question["source"]) == (2, True)
    assert question["reasons"] == [
        "It does not leave the value unchanged.", "It does not write into the tensor that it receives.", "",
    ]  # fmt: skip


@pytest.mark.parametrize(("hook", "right"), [(lambda grad: None, 0), (lambda grad: grad.mul_(2) and None, 1)])
def test_a_hook_on_many_numbers_keeps_or_edits(hook: Callable[[torch.Tensor], Any], right: int) -> None:
    trace = passed(hook if right == 0 else _doubling, *range(1, MAX_NUMBERS + 2))
    assert the_question(trace)["right"] == right


def _doubling(grad: torch.Tensor) -> None:
    grad *= 2


def test_none_is_an_answer_where_a_module_is_given_none() -> None:
    net = Net()
    net.l1.register_full_backward_hook(silent("look"))
    with pytest.warns(UserWarning, match="Full backward hook is firing"), hv.record(net) as trace:
        net(torch.tensor(1.0)).backward()
    question = the_question(trace)
    assert question["answer"] == "None"
    assert question["text"].startswith(
        "look is about to run on net.l1; grad_input, the gradient sent to its inputs, is None."
    )


def test_what_a_module_makes_is_asked_for() -> None:
    net = Net()
    net.l1.register_forward_pre_hook(lambda module, args: (args[0] + 10,))
    net.l1.register_forward_hook(lambda module, args, output: output * 5)
    net.l2.register_forward_hook(lambda module, args, output: output - 1)
    with hv.record(net) as trace:
        net(torch.tensor(1.0))
    into, which, last = asked(trace).values()
    assert (
        "net.l1 is called with 1. What does forward get in the end, input by input?" in into["text"]
        and into["answer"] == "11"
    )
    assert why(into, "1").startswith("1 is the value before λ")
    assert which["choices"][which["right"]].endswith("on net.l1")
    [later] = [reason for reason in which["reasons"] if "later" in reason]
    assert later == "That hook runs later: it waits for the output of net.l2."
    assert "net.l2 has computed 220. What comes out?" in last["text"] and last["answer"] == "219"
    assert why(last, "110") == "110 is what λ output * 5 on net.l1 makes of 22."
    assert why(last, "22") == "22 is the output of net.l1."
    assert why(last, "1") == "1 is the input of net.l1."


def test_backward_hooks_of_modules_are_asked_about() -> None:
    net, x = Net(), leaf(1.0)
    net.l2.register_full_backward_pre_hook(lambda module, grads: (grads[0] * 3,))
    net.l2.register_full_backward_hook(lambda module, into, out: (into[0] + 1,))
    net.l1.register_full_backward_hook(lambda module, into, out: (into[0] * 2,))
    with hv.record(net, names={"x": x}) as trace:
        net(x).backward()
    pre, which, last = asked(trace).values()
    assert "the gradient of its output is 1. What comes out?" in pre["text"] and pre["answer"] == "3"
    assert which["choices"][which["right"]].endswith("on net.l2")
    assert "That hook runs later: it waits for the gradients of the inputs of net.l1." in which["reasons"]
    assert "grad_input" in last["text"] and last["answer"] == "28"


def test_hooks_around_the_grad_of_a_leaf_are_asked_about_in_its_words() -> None:
    x = leaf(2.0)
    x.register_post_accumulate_grad_hook(silent("look"))
    with hv.record(names={"x": x}) as trace:
        (x * 3).backward()
    assert the_question(trace)["text"] == "look is about to run on x; x.grad is 3. What is it afterwards?"


def test_a_module_with_several_inputs_shows_them_by_name() -> None:
    net = SumNet()
    net.register_forward_pre_hook(lambda module, args: (args[0] + 1, args[1]))
    with hv.record(net) as trace:
        net(leaf(1.0), leaf(2.0), c=leaf(3.0))
    question = the_question(trace)
    assert "is called with a=1, b=2, c=3." in question["text"] and question["answer"] == "2, 2, 3"


# -- where no hook runs


def without_hooks(seed: float | None = None) -> hv.Trace:
    tensors = scene()
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(None if seed is None else torch.tensor(seed))
    return trace


def test_where_no_hook_runs_it_is_asked_what_each_node_sends_on() -> None:
    at_e, at_c = asked(without_hooks()).values()
    assert at_e["text"] == "MulBackward0 (e) takes the gradient 1. What does it send on?"
    assert at_e["choices"] == ["1 to c, 1 to d", "4 to c, 6 to d", "6 to c, 4 to d"]
    assert (at_e["choices"][at_e["right"]], at_c["choices"][at_c["right"]]) == ("4 to c, 6 to d", "12 to a, 8 to b")


def test_a_wrong_way_to_send_is_told_what_it_is() -> None:
    _, at_c = asked(without_hooks()).values()
    assert why(at_c, "8 to a, 12 to b") == "Those are the right numbers in the wrong order."
    assert why(at_c, "4 to a, 4 to b").startswith("4 is the gradient that comes in.")
    assert why(at_c, "3 to a, 2 to b") == "That would be right if the gradient 1 came in, but it is 4."
    assert why(at_c, "12 to a, 8 to b") == ""


def test_what_a_node_sends_is_asked_at_the_step_in_which_it_computes() -> None:
    trace = without_hooks(0.0)
    assert [trace.steps[index].kind for index in asked(trace)] == ["compute"] * len(asked(trace))
    frames = shown_steps(without_hooks().player().content)
    assert [index for index, frame in enumerate(frames) if "ask" in frame] == [1, 5]


def test_a_node_that_leaves_no_choice_is_not_asked_about() -> None:
    x = leaf(3.0)
    with hv.record() as trace:
        (x + x).backward()  # 1 comes, and 1 goes each way
    assert asked(trace) == {}
    with hv.record() as several:
        (leaf(1.0, 2.0) * 2).sum().backward()
    assert asked(several) == {}
    assert make_questions([]) == {}


def test_no_more_nodes_are_asked_about_than_somebody_answers() -> None:
    y = leaf(1.0)
    for _ in range(MAX_QUESTIONS + 20):
        y = y * 1.01
    with hv.record() as trace:
        y.backward()
    assert len(asked(trace)) == MAX_QUESTIONS


def test_complex_numbers_are_not_asked_for() -> None:
    x = torch.tensor(1 + 2j, requires_grad=True)
    with x.register_hook(lambda grad: grad * 2), hv.record() as trace:
        (x * x).abs().backward()
    assert "answer" not in the_question(trace)


def test_no_more_questions_are_made_than_somebody_answers() -> None:
    x = leaf(1.0)
    for _ in range(MAX_QUESTIONS + 20):
        x.register_hook(silent("h"))
    with hv.record() as trace:
        (x * 2).backward()
    assert len(asked(trace)) <= MAX_QUESTIONS


def test_two_answers_are_alike_within_a_thousandth() -> None:
    assert are_near([1.0, None, math.nan], [1.0005, None, math.nan])
    assert not are_near([1.004], [1.002]) and not are_near([None], [0.0]) and are_near([0.0], [-0.0])


def test_numbers_that_nobody_can_type_are_none() -> None:
    assert list_numbers(Value.of(torch.ones(5))) is None
    assert list_numbers(()) is None
    assert list_numbers(Value.of(torch.ones(2).to_sparse())) is None
    assert list_numbers(None) == [None]


# -- in the player


def test_questions_stand_in_the_frames_as_plain_data() -> None:
    frames = shown_steps(recorded().player().content)
    assert [index for index, frame in enumerate(frames) if "ask" in frame] == [1, 4, 8, 9]
    assert len(json.dumps([frame["ask"] for frame in frames if "ask" in frame])) <= 5_000


def test_an_answer_stands_in_nothing_that_the_player_shows_before_its_step() -> None:
    frames = shown_steps(recorded().player().content)
    for index in (1, 8, 9):
        known = {frames[index]["ask"]["answer"]}
        shown = [text for frame in frames[:index] for text in frame["texts"].values()]
        assert index == 9 or not known & set(shown)


def test_every_question_has_its_right_answer_and_no_other() -> None:
    tensors = scene()
    hook_everything(tensors)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward(retain_graph=True)
        tensors.e.backward()
    for index, question in asked(trace).items():
        following = next(step for step in trace.steps[index:] if step.kind in HOOK_KINDS)
        if "choices" in question:
            assert following.hook is not None
            assert question["choices"][question["right"]].endswith(f"{following.hook.label} on {following.on}")
        else:
            assert question["answer"] == f"{list_numbers(following.after)[0]:g}"  # type: ignore[index]
