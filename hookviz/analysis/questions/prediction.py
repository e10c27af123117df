"""Make questions about what a hook or a node is about to do, with the answers that the trace holds."""

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from hookviz.analysis.questions.grading import Numbers, are_near
from hookviz.support.messages import N_, _, join_list
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, STEP_HOOK_KINDS, Hook, Part, Step, Values
from hookviz.trace.hook_facts import name_of_kind
from hookviz.trace.sentences import format_hook_position, format_labelled_values, format_values, list_sent_gradients
from hookviz.trace.values import as_tuple, flatten_numbers, format_number

_RUNS_LATER = N_("That hook runs later.")

_OTHER_VALUES = {
    "call": N_("{value} is the input of {on}."),
    "forward": N_("{value} is the output of {on}."),
}

_LATER_HOOKS = {
    "forward_pre_hook": N_("That hook runs later: it waits for the call of {on}."),
    "forward_hook": N_("That hook runs later: it waits for the output of {on}."),
    "full_backward_hook": N_("That hook runs later: it waits for the gradients of the inputs of {on}."),
}

_EFFECT_CHOICES = {
    "kept": N_("keeps it"),
    "edited": N_("edits it in place"),
    "replaced": N_("replaces it"),
}

_WRONG_EFFECTS = {
    "kept": N_("It does not leave the value unchanged."),
    "edited": N_("It does not write into the tensor that it receives."),
    "replaced": N_("It does not return another tensor."),
}


MAX_QUESTIONS = 100
"""The number of questions per trace: nobody answers more of them, and each takes space in the player."""

MAX_NUMBERS = 4
"""A question asks for at most this many numbers."""

_MAX_CHOICES, _MAX_MISTAKES, _MAX_STEPS_BACK = 6, 5, 40
"""Per question: hooks to choose from, wrong answers with a reason, and steps before it that are searched for those."""

_NUMBER_QUESTIONS = {
    "forward_pre_hook": N_(
        "{hook} is about to run; {on} is called with {before}. What does forward get in the end, input by input?"
    ),
    "forward_hook": N_("{hook} is about to run; {on} has computed {before}. What comes out?"),
    "full_backward_pre_hook": N_(
        "{hook} is about to run on {on}; the gradient of its output is {before}. What comes out?"
    ),
    **dict.fromkeys(
        ("full_backward_hook", "backward_hook"),
        N_("{hook} is about to run on {on}; grad_input, the gradient sent to its inputs, is {before}. What comes out?"),
    ),
    "node_post_hook": N_("{hook} is about to run on {on}, which has computed {before}. What does the node send on?"),
    "post_accumulate_hook": N_("{hook} is about to run on {on}; {on}.grad is {before}. What is it afterwards?"),
}
"""Kind of hook → the question for the numbers that come out; other kinds have a question about the gradient."""
_EFFECTS = ("kept", "edited", "replaced")

Question = dict[str, Any]
"""Plain data: a ``text`` and either an ``answer`` with ``reasons`` (pairs of a wrong answer and why it is wrong), or
``choices`` with the index of the ``right`` one and a reason for each choice."""


def make_questions(steps: Sequence[Step], fired: Sequence[Step] | None = None) -> dict[int, Question]:
    """Make the questions about ``steps``: index of the step before which a question is asked → the question.

    The questions alternate between the numbers that come out of a hook, and the hook that runs next. If no hook runs at
    all, there is a question before each node about the gradients that it sends. ``fired`` can pass the steps of hooks
    if the caller has them already.

    >>> import torch, hookviz
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 10), hookviz.record() as trace:
    ...     (x * x).backward()
    >>> [question] = make_questions(trace.steps).values()
    >>> question["text"], question["answer"]
    ('λ grad * 10 is about to run on x; the gradient is 6. What comes out?', '60')
    """
    fired = [step for step in steps if step.kind in HOOK_KINDS] if fired is None else fired
    if not fired:
        return _ask_about_nodes(steps)
    by_step: dict[int, Question] = {}
    for count, step in enumerate([step for step in fired if step.index][:MAX_QUESTIONS]):
        first_two = (_ask_next_hook, _ask_number) if count % 2 else (_ask_number, _ask_next_hook)
        for ask in (*first_two, _ask_effect):
            question = ask(step, steps)
            if question is not None:
                by_step[_find_question_step(step, steps) if ask is _ask_next_hook else step.index] = question
                break
    return by_step


def _find_question_step(step: Step, steps: Sequence[Step]) -> int:
    """The step before which to ask which hook is next: before its gradient arrives, which would give it away."""
    index = step.index
    while index > 1 and _leads_to(steps[index - 1], step):
        index -= 1
    return index


def _leads_to(other: Step, step: Step) -> bool:
    """Whether ``other``, which is not a hook, concerns the same node or module call as ``step``."""
    same_node = other.node is not None and other.node == step.node
    same_call = other.row.call is not None and other.row.call == step.row.call
    return (same_node or same_call) and other.pass_id == step.pass_id and other.row.hook is None


# The numbers that come out of a hook


def _ask_number(step: Step, steps: Sequence[Step]) -> Question | None:
    """Ask for the numbers that come out of a hook on gradients; None if they cannot be typed."""
    inputs, outputs = list_numbers(step.before), list_numbers(step.after)
    if step.kind in STEP_HOOK_KINDS or step.row.subject != "gradient" or inputs is None or outputs is None:
        return None
    reasons = choose_mistakes(outputs, _list_mistakes(step, steps, inputs, outputs), _MAX_MISTAKES)
    return {"text": _write_question(step), "answer": format_numbers(outputs), "reasons": reasons}


def choose_mistakes(answer: Numbers, mistakes: Iterable[tuple[Numbers, str]], most: int) -> list[list[str]]:
    """Return (numbers, reason) of the first ``most`` mistakes that differ from the answer and from each other."""
    reasons: list[list[str]] = []
    known: list[Numbers] = [answer]
    for wrong, reason in mistakes:
        is_new = len(wrong) == len(answer) and not any(are_near(wrong, other) for other in known)
        if is_new and len(reasons) < most:
            known.append(wrong)
            reasons.append([format_numbers(wrong), reason])
    return reasons


def _write_question(step: Step) -> str:
    """The text of a question for numbers, in the words of this kind of hook."""
    before = format_labelled_values(step.before, step.row.labels[0])
    text = _NUMBER_QUESTIONS.get(
        step.kind, N_("{hook} is about to run on {on}; the gradient is {before}. What comes out?")
    )
    return _(text).format(hook=_label_hook(step), on=step.on, before=before)


def _list_mistakes(
    step: Step, steps: Sequence[Step], inputs: Numbers, outputs: Numbers
) -> Iterator[tuple[Numbers, str]]:
    """Wrong answers with the reason why they are wrong, the likeliest first."""
    is_forward = step.kind in FORWARD_HOOK_KINDS
    if step.effect == "kept" and None not in outputs:
        yield [None] * len(outputs), _("A hook that returns None leaves the value as it was. So which value goes on?")
    text = N_("{value} is the value before {hook}.") if is_forward else N_("{value} is the gradient before {hook}.")
    yield inputs, _(text).format(value=format_values(step.before), hook=_label_hook(step))
    previous = steps[max(0, step.index - _MAX_STEPS_BACK) : step.index]
    past = [other for other in previous if other.pass_id == step.pass_id]
    yield from _list_stale_results(step, past, inputs, outputs)
    for other in sorted(past, key=lambda other: (other.kind not in HOOK_KINDS, -other.index)):
        after = list_numbers(other.after)
        if after is not None and other.row.subject == "gradient":
            yield from ((after, text) for text in _explain_value(other, step))


def _explain_value(other: Step, step: Step) -> Iterator[str]:
    """Say what the value after ``other`` really is, for somebody who takes it for the result of ``step``."""
    value = format_values(other.after)
    if other.kind in HOOK_KINDS:
        yield _("{value} is what {hook} on {on} makes of {before}.").format(
            value=value, hook=_label_hook(other), on=other.on, before=format_values(other.before)
        )
    elif other.kind in ("call", "forward"):
        yield _(_OTHER_VALUES[other.kind]).format(value=value, on=other.on)
    elif other.kind in ("seed", "arrive", "accumulate") and other.on != step.on:
        yield _("{value} is the gradient of {on}.").format(value=value, on=other.on)


def _list_stale_results(
    step: Step, past: list[Step], inputs: Numbers, outputs: Numbers
) -> Iterator[tuple[Numbers, str]]:
    """The results if the hook before this one had not run, assuming that the hook adds or multiplies."""
    before = [other for other in past if other.kind in HOOK_KINDS and _hook_target(other) == _hook_target(step)]
    old = list_numbers(before[-1].before) if before else None
    if old is None or len(old) != len(inputs) or None in [*old, *inputs, *outputs]:
        return
    text = _("You used the old gradient, {old}: {hook} has already changed it to {now}.").format(
        hook=_label_hook(before[-1]), old=format_values(before[-1].before), now=format_values(step.before)
    )
    triples: list[tuple[float, float, float]] = list(zip(old, inputs, outputs, strict=True))  # type: ignore[arg-type]
    yield [a + (y - x) for a, x, y in triples], text
    if all(x for _ignored, x, _ignored in triples):
        yield [a * (y / x) for a, x, y in triples], text


def list_numbers(values: Values) -> Numbers | None:
    """The numbers of gradients in one list, None for a missing gradient; no list if nobody could type it.

    >>> import torch
    >>> from hookviz.trace.values import Value
    >>> list_numbers((Value.of(torch.tensor([1.0, 2.0])), None))
    [1.0, 2.0, None]
    """
    numbers: Numbers = []
    for value in as_tuple(values):
        nested = [None] if value is None else None if value.note is not None else value.tolist()
        if nested is None:
            return None
        elements = list(flatten_numbers(nested))
        if any(isinstance(x, complex) for x in elements):
            return None
        numbers += [x if x is None else float(x) for x in elements]  # type: ignore[arg-type]
    return numbers if 0 < len(numbers) <= MAX_NUMBERS else None


def format_numbers(answer: Numbers) -> str:
    """Write numbers as a person would type them.

    >>> format_numbers([1.0, None])
    '1, None'
    """
    return ", ".join("None" if x is None else format_number(x) for x in answer)


# The hook that runs next


class _Choice(NamedTuple):
    """A hook, its target, and its next firing in the pass, or else its last; None if it does not run."""

    on: str
    hook: Hook
    step: Step | None


def _ask_next_hook(step: Step, steps: Sequence[Step]) -> Question | None:
    """Ask which hook runs next; None if fewer than two hooks are left in the pass."""
    ran: dict[tuple[int, str], Step] = {}
    coming: dict[tuple[int, str], Step] = {}
    for index in step.trace.lookup.steps_with_hooks(step.pass_id):
        hook = step.trace.rows[index].hook
        if hook is None or index >= len(steps):
            continue
        other = steps[index]
        if index < step.index:
            ran[hook, other.on] = other
        else:
            coming.setdefault((hook, other.on), other)
    if len(coming) < 2:
        return None  # a single hook that is left would be obvious
    firings = {**coming, **dict(reversed(ran.items()))}
    choices = [_Choice(on, other.hook, other) for (_hook, on), other in firings.items() if other.hook is not None]
    choices += _list_silent_hooks(step, {hook for hook, _on in firings})
    del choices[_MAX_CHOICES:]
    right = choices[0]
    choices.sort(key=lambda choice: (choice.on, choice.hook.place, choice.hook.label))
    return {
        "text": _("Which hook runs next?"),
        "choices": _label_choices(choices),
        "right": choices.index(right),
        "reasons": ["" if choice is right else _explain_wrong_choice(choice, step) for choice in choices],
    }


def _list_silent_hooks(step: Step, ran: Container[int]) -> Iterator[_Choice]:
    """Yield hooks that were registered and do not run in the pass: on its graph, or anywhere else."""
    trace = step.trace
    for hooks in trace.hooked[step.pass_id :][:1]:  # empty if only the forward ran
        for hook in (trace.hook(index) for index in hooks if index not in ran):
            yield _Choice(hook.on, hook, None)
    known = trace.lookup.unfired_rows_of_hooks.values()
    for index, row in enumerate(trace.unfired_rows):
        is_there = (row.since or 0) <= step.index and (row.until is None or step.index < row.until)
        if is_there and row.on and not row.library and index not in known:
            yield _Choice(row.on, trace.hook_of_row(row, row.on), None)


def _label_choices(choices: Sequence[_Choice]) -> list[str]:
    """A label for each choice: hook and target, and the kind of the hook if two labels would be equal."""
    fields = [
        {
            "hook": f"{format_hook_position(choice.hook.place)} {choice.hook.label}",
            "on": choice.on,
            "kind": name_of_kind(choice.hook.kind),
        }
        for choice in choices
    ]
    labels: list[str] = [_("{hook} on {on}").format(hook=field["hook"], on=field["on"]) for field in fields]
    return (
        labels
        if len(set(labels)) == len(labels)
        else [*(_("{hook} on {on} ({kind})").format(**field) for field in fields)]
    )


def _explain_wrong_choice(choice: _Choice, step: Step) -> str:
    """Say why a hook is not the next one at ``step``."""
    other = choice.step
    if other is None:
        return _("That hook does not run in this pass.")
    if other.index < step.index:
        return _("It has run already, at step {step}.").format(step=other.index + 1)
    return _explain_later(other, step)


def _explain_later(other: Step, step: Step) -> str:
    """Say why ``other``, a later firing, does not run before ``step``."""
    if _hook_target(other) == _hook_target(step):
        return _("That hook runs later: the hooks of {on} run in the order of their numbers.").format(on=step.on)
    if other.kind in FORWARD_HOOK_KINDS or other.kind == "full_backward_hook":
        return _(_LATER_HOOKS[other.kind]).format(on=other.on)
    if other.node is None or other.kind in STEP_HOOK_KINDS:
        return _(_RUNS_LATER)
    if step.node is not None and step.trace.ops[step.node] == "AccumulateGrad" and step.node != other.node:
        return _("That hook runs later: {on} is a leaf, so its hook runs as soon as its gradient is ready.").format(
            on=step.on
        )
    if not _is_ready(other, step):
        return _("That hook runs later: its gradient has not arrived at {on} yet.").format(on=other.on)
    return (
        _(_RUNS_LATER)
        if step.node in (other.node, None)
        else _(
            "That hook runs later: among the nodes that are ready, the node that the forward pass "
            "created last runs first."
        )
    )


def _is_ready(other: Step, step: Step) -> bool:
    """Whether all gradients for the node of ``other`` are sent before ``step``."""
    between = step.trace.rows[step.index + 1 : other.index]
    computing = (row.own_node for row in between if row.kind == "compute")
    return all(end != other.node for _ignored, _ignored, end in step.trace.lookup.out_edges(computing))


# What a hook does with the tensor


def _ask_effect(step: Step, steps: Sequence[Step]) -> Question | None:
    """Ask whether a hook keeps, edits or replaces the values it is given; None if it has another effect."""
    if step.effect not in _EFFECTS or step.before == () == step.after:
        return None
    return {
        "text": _("{hook} is about to run on {on}. What does it do with the value that it receives?").format(
            hook=_label_hook(step), on=step.on
        ),
        "choices": [_(_EFFECT_CHOICES[effect]) for effect in _EFFECTS],
        "right": _EFFECTS.index(step.effect),
        "reasons": ["" if effect == step.effect else _(_WRONG_EFFECTS[effect]) for effect in _EFFECTS],
        "source": True,
    }


# The gradients that a node sends


def _ask_about_nodes(steps: Sequence[Step]) -> dict[int, Question]:
    """The questions for a trace in which no hook runs: index of the step in which a node computes → the question."""
    asked = ((step.index, _ask_what_node_sends(step)) for step in steps if step.kind == "compute")
    return dict(islice(((index, question) for index, question in asked if question is not None), MAX_QUESTIONS))


def _ask_what_node_sends(step: Step) -> Question | None:
    """Ask which number a node sends where; None unless one number arrives, one goes to each target, and they differ."""
    parts = list_sent_gradients(step)
    inputs, outputs = list_numbers(step.before), list_numbers(tuple(part.value for part in parts))
    if inputs is None or outputs is None or None in [*inputs, *outputs]:
        return None
    if len(inputs) != 1 or len(outputs) != len(parts):
        return None
    reasons: dict[str, str] = {_format_sent(parts, outputs): ""}
    for wrong, reason in _list_sending_mistakes(inputs[0], outputs):
        reasons.setdefault(_format_sent(parts, wrong), reason)
    choices = sorted(reasons)
    if len(choices) < 2:
        return None
    right = choices.index(_format_sent(parts, outputs))
    text = _("{on} takes the gradient {before}. What does it send on?").format(
        on=step.on, before=format_values(step.before)
    )
    return {"text": text, "choices": choices, "right": right, "reasons": [reasons[choice] for choice in choices]}


def _list_sending_mistakes(gradient: Any, outputs: list[Any]) -> Iterator[tuple[Numbers, str]]:
    """Wrong numbers that a node could send, with the reason why they are wrong."""
    yield outputs[::-1], _("Those are the right numbers in the wrong order.")
    text = _("{value} is the gradient that comes in. The node computes a new one from it and sends that on.")
    yield [gradient] * len(outputs), text.format(value=format_number(gradient))
    if gradient:
        text = _("That would be right if the gradient 1 came in, but it is {value}.")
        yield [output / gradient for output in outputs], text.format(value=format_number(gradient))


def _format_sent(parts: Sequence[Part], sent: Numbers) -> str:
    """The text of a choice: each number and its target."""
    values = (format_numbers([value]) for value in sent)
    pairs = zip(parts, values, strict=True)
    return join_list((_("{value} to {on}").format(value=value, on=part.source) for part, value in pairs))


def _label_hook(step: Step) -> str:
    return step.hook.label if step.hook else ""


def _hook_target(step: Step) -> tuple[Any, ...]:
    """A key that is equal for hooks that run one after the other on the same target."""
    return step.pass_id, step.kind, step.node, step.output, step.row.call
