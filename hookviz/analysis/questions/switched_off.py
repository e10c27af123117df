"""Questions about a run with some hooks switched off: what is a.grad now?"""

from collections.abc import Iterator, Mapping, Sequence

from hookviz.analysis.questions.grading import Numbers, are_near
from hookviz.analysis.questions.prediction import Question, choose_mistakes, format_numbers, list_numbers
from hookviz.support.messages import N_, _, join_list
from hookviz.trace import Step
from hookviz.trace.sentences import format_values
from hookviz.trace.values import rows_of

MAX_QUESTIONS_OFF = 2
"""The number of questions about a combination of hooks: there may be 32 combinations."""

_MAX_MISTAKES = 3
_WRITES = ("accumulate", "post_accumulate_hook")
"""Kinds of step after which a leaf has a new ``.grad``."""


def ask_about_switched_off(
    steps: Sequence[Step], with_hooks: Sequence[Step], labels: Sequence[str]
) -> dict[int, list[Question]]:
    """Make the questions about a run without the hooks ``labels``: index of a step → the questions before it.

    They are asked before the first step that differs from the run with all hooks on, ``with_hooks``: later steps would
    give the answers away. The steps of both runs must be aligned.

    >>> import torch, hookviz
    >>> from hookviz.analysis.alignment import align
    >>> from hookviz.api.trace import data_of
    >>> def run():
    ...     x = torch.tensor(3.0, requires_grad=True)
    ...     x.register_hook(lambda grad: grad * 10)
    ...     (x * x).backward()
    >>> experiment = hookviz.whatif(run)
    >>> on, off = align([data_of(trace) for trace in experiment.traces.values()])
    >>> [[question]] = ask_about_switched_off(off.steps, on.steps, ["the hook"]).values()
    >>> question["text"], question["answer"], question["reasons"][0]
    ('the hook is off. What is x.grad now?', '6', ['60', '60 is x.grad with the hook on.'])
    """
    first = next(
        (step.index for step, other in zip(steps, with_hooks, strict=True) if _content(step) != _content(other)), None
    )
    if first is None:
        return {}
    off, on = (_last_writes(run, steps[first].pass_id) for run in (steps, with_hooks))
    asked = [_ask(off, on, name, labels) for name in sorted(off) if name in on]
    questions = [question for question in asked if question is not None][:MAX_QUESTIONS_OFF]
    return {max(first, 1): questions} if questions else {}


def _content(step: Step) -> str:
    """A text of what a step shows, in which NaN equals NaN."""
    return repr((step.kind, rows_of(step.before), rows_of(step.after)))


def _last_writes(steps: Sequence[Step], pass_id: int) -> dict[str, Step]:
    """Name of a leaf → the last step of a pass that writes its ``.grad``."""
    return {step.on: step for step in steps if step.kind in _WRITES and step.pass_id == pass_id and step.after != ()}


def _ask(off: Mapping[str, Step], on: Mapping[str, Step], name: str, labels: Sequence[str]) -> Question | None:
    """Ask for the gradient of the leaf ``name``; None if it is the same as with all hooks on, or cannot be typed."""
    answer, before = list_numbers(off[name].after), list_numbers(on[name].after)
    if answer is None or before is None or (len(answer) == len(before) and are_near(answer, before)):
        return None
    reasons = choose_mistakes(answer, _list_mistakes(off, on, name, labels), _MAX_MISTAKES)
    one, many = _("{hooks} is off. What is {on}.grad now?"), _("{hooks} are off. What is {on}.grad now?")
    text = (one if len(labels) == 1 else many).format(hooks=join_list(labels), on=name)
    return {"text": text, "answer": format_numbers(answer), "reasons": reasons}


def _list_mistakes(
    off: Mapping[str, Step], on: Mapping[str, Step], name: str, labels: Sequence[str]
) -> Iterator[tuple[Numbers, str]]:
    """Wrong answers with the reason why they are wrong: this gradient with the hooks on, then those of other leaves."""
    for run, leaves in ((on, [name]), (off, sorted(off)), (on, sorted(on))):
        for leaf in leaves:
            numbers = list_numbers(run[leaf].after)
            if numbers is not None:
                text = N_("{value} is {on}.grad with {hooks} on.") if run is on else N_("{value} is {on}.grad.")
                yield numbers, _(text).format(value=format_values(run[leaf].after), on=leaf, hooks=join_list(labels))
