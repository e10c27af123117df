"""Questions about what a hook or a node is about to do, with the answers and the reasons that a trace gives."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from hookviz.analysis.questions.answers import Numbers, are_near
from hookviz.support.messages import join, say
from hookviz.trace import FORWARD_HOOK_KINDS, HOOK_KINDS, STEP_HOOK_KINDS, Part, Step, Values
from hookviz.trace.sentences import format_hook_position, format_labelled_values, format_values, list_sent_gradients
from hookviz.trace.values import flatten_numbers, format_number

MOST = 100
"""Nobody answers more questions than this about one recording, and each is saved with the player."""

FEW = 4
"""No more numbers than this are asked for at once."""

_CHOICES, _REASONS, _BACK = 6, 5, 40
"""At most: hooks to choose from, wrong numbers that have a reason, steps looked back for those."""

_WORDED = {
    "forward_pre_hook": "ask.input",
    "forward_hook": "ask.output",
    "full_backward_pre_hook": "ask.grad_output",
    "full_backward_hook": "ask.grad_input",
    "backward_hook": "ask.grad_input",
    "node_post_hook": "ask.sent",
    "post_accumulate_hook": "ask.grad",
}
_EFFECTS = ("kept", "edited", "replaced")

Question = dict[str, Any]


def questions(steps: Sequence[Step], fired: Sequence[Step] | None = None) -> dict[int, Question]:
    """What to ask before each of ``steps`` that a hook takes: index of the step that waits for it → the question.

    A number is asked for, and which hook runs next, by turns. Where no hook runs at all, it is asked before each node
    what it sends on. ``fired`` are the steps that a hook takes, if somebody knows them already.
    A question, plain data, has its ``text`` and either an ``answer`` with ``reasons`` (pairs of a wrong answer and
    why), or ``choices``, the place of the ``right`` one, and a reason for each.

    >>> import torch, hookviz
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with x.register_hook(lambda grad: grad * 10), hookviz.record() as trace:
    ...     (x * x).backward()
    >>> [question] = questions(trace.steps).values()
    >>> question["text"], question["answer"]
    ('λ grad * 10 is about to run on x; the gradient is 6. What comes out?', '60')
    """
    fired = [step for step in steps if step.kind in HOOK_KINDS] if fired is None else fired
    if not fired:
        return _of_nodes(steps)
    asked: dict[int, Question] = {}
    for count, step in enumerate([step for step in fired if step.index][:MOST]):
        for way in (_which, _number, _effect) if count % 2 else (_number, _which, _effect):
            question = way(step, steps)
            if question is not None:
                asked[_before(step, steps) if way is _which else step.index] = question
                break
    return asked


def _before(step: Step, steps: Sequence[Step]) -> int:
    """Where to ask which hook is next: before the gradient arrives, which would tell."""
    index = step.index
    while index > 1 and _leads_to(steps[index - 1], step):
        index -= 1
    return index


def _leads_to(other: Step, step: Step) -> bool:
    here = (other.node >= 0 and other.node == step.node) or (other.row.call >= 0 and other.row.call == step.row.call)
    return here and other.pass_id == step.pass_id and other.row.hook is None


# What comes out


def _number(step: Step, steps: Sequence[Step]) -> Question | None:
    given, made = numbers(step.before), numbers(step.after)
    if step.kind in STEP_HOOK_KINDS or step.row.subject != "gradient" or given is None or made is None:
        return None
    reasons: list[list[str]] = []
    told: list[Numbers] = [made]
    for wrong, text in _mistakes(step, steps, given, made):
        if len(wrong) == len(made) and not any(are_near(wrong, other) for other in told) and len(reasons) < _REASONS:
            told.append(wrong)
            reasons.append([_written(wrong), text])
    return {"text": _about(step), "answer": _written(made), "reasons": reasons}


def _about(step: Step) -> str:
    """The question for a number, in the words of this kind of hook."""
    before = format_labelled_values(step.before, step.row.labels[0])
    key = _WORDED.get(step.kind, "ask.gradient")
    return say(key, hook=_hook(step), on=step.on, before=before)


def _mistakes(step: Step, steps: Sequence[Step], given: Numbers, made: Numbers) -> Iterator[tuple[Numbers, str]]:
    """Wrong answers that have a reason, and why they are wrong: the likeliest first."""
    forward = step.kind in FORWARD_HOOK_KINDS
    if step.effect == "kept" and None not in made:
        yield [None] * len(made), say("ask.none")
    key = "ask.before.value" if forward else "ask.before"
    yield given, say(key, value=format_values(step.before), hook=_hook(step))
    past = [other for other in steps[max(0, step.index - _BACK) : step.index] if other.pass_id == step.pass_id]
    yield from _out_of_date(step, past, given, made)
    for other in sorted(past, key=lambda other: (other.kind not in HOOK_KINDS, -other.index)):
        after = numbers(other.after)
        if after is not None and other.row.subject == "gradient":
            yield from ((after, text) for text in _told(other, step))


def _told(other: Step, step: Step) -> Iterator[str]:
    """What the value after ``other`` is, if that is worth telling to one who takes it for what ``step`` makes."""
    value = format_values(other.after)
    if other.kind in HOOK_KINDS:
        yield say("ask.made", value=value, hook=_hook(other), on=other.on, before=format_values(other.before))
    elif other.kind in ("call", "forward"):
        yield say(f"ask.value.{other.kind}", value=value, on=other.on)
    elif other.kind in ("seed", "arrive", "accumulate") and other.on != step.on:
        yield say("ask.elsewhere", value=value, on=other.on)


def _out_of_date(step: Step, past: list[Step], given: Numbers, made: Numbers) -> Iterator[tuple[Numbers, str]]:
    """What would come out if the hook before this one had not run, where a sum or a product tells it."""
    before = [other for other in past if other.kind in HOOK_KINDS and _where(other) == _where(step)]
    old = numbers(before[-1].before) if before else None
    if old is None or len(old) != len(given) or None in [*old, *given, *made]:
        return
    text = say("ask.old", hook=_hook(before[-1]), old=format_values(before[-1].before), now=format_values(step.before))
    three: list[tuple[float, float, float]] = list(zip(old, given, made, strict=True))  # type: ignore[arg-type]
    yield [a + (made - given) for a, given, made in three], text
    if all(given for _, given, _ in three):
        yield [a * (made / given) for a, given, made in three], text


def numbers(values: Values) -> Numbers | None:
    """The numbers of a gradient or of several, None for one that there is not; None where nobody could type them.

    >>> import torch
    >>> from hookviz.trace.values import Value
    >>> numbers((Value.of(torch.tensor([1.0, 2.0])), None))
    [1.0, 2.0, None]
    """
    found: Numbers = []
    for value in values if isinstance(values, tuple) else (values,):
        held = [None] if value is None else None if value.note is not None else value.tolist()
        if held is None:
            return None
        parts = list(flatten_numbers(held))
        if any(isinstance(part, complex) for part in parts):
            return None
        found += [part if part is None else float(part) for part in parts]  # type: ignore[arg-type]
    return found if 0 < len(found) <= FEW else None


def _written(answer: Numbers) -> str:
    return ", ".join(say("name.none") if part is None else format_number(part) for part in answer)


# Which hook is next


class _Choice(NamedTuple):
    """A hook on what it runs on, and the step that shows it: its next firing, else its last."""

    hook: int
    on: str
    step: Step | None


def _which(step: Step, steps: Sequence[Step]) -> Question | None:
    ran: dict[tuple[int, str], Step] = {}
    coming: dict[tuple[int, str], Step] = {}
    for index in step.trace.lookup.hook_steps(step.pass_id):
        hook = step.trace.rows[index].hook
        if hook is None or index >= len(steps):
            continue
        other = steps[index]
        if index < step.index:
            ran[hook, other.on] = other
        else:
            coming.setdefault((hook, other.on), other)
    if len(coming) < 2:
        return None  # whoever has watched so far knows which is left
    known: dict[tuple[int, str], Step | None] = {**coming, **dict(reversed(ran.items())), **_silent(step, ran, coming)}
    choices = [_Choice(*key, other) for key, other in list(known.items())[:_CHOICES]]
    right = choices[0]
    choices.sort(key=lambda choice: (choice.on, choice.hook))
    return {
        "text": say("ask.which"),
        "choices": _labels(step, choices),
        "right": choices.index(right),
        "reasons": ["" if choice is right else _why_not(choice, step) for choice in choices],
    }


def _silent(step: Step, *fired: Iterable[tuple[int, str]]) -> dict[tuple[int, str], None]:
    """Hooks that were there in the pass and did not run: as many as there are choices."""
    known = {hook for keys in fired for hook, _ in keys}
    there = (index for hooks in step.trace.hooked[step.pass_id :][:1] for index in hooks)  # none where only forward ran
    silent = islice((index for index in there if index not in known), _CHOICES)
    return {(index, step.trace.hook(index).on): None for index in silent}


def _labels(step: Step, choices: list[_Choice]) -> list[str]:
    """Hook and tensor; the kind as well where two would read alike."""
    hooks = [choice.step.hook if choice.step else step.trace.hook(choice.hook) for choice in choices]
    parts = [
        {
            "hook": f"{format_hook_position(hook.place)} {hook.label}",
            "on": choice.on,
            "kind": say(f"census.{hook.kind}"),
        }
        for hook, choice in zip(hooks, choices, strict=True)
        if hook is not None
    ]
    plain: list[str] = [say("ask.choice", hook=part["hook"], on=part["on"]) for part in parts]
    return plain if len(set(plain)) == len(plain) else [*(say("ask.choice.kind", **part) for part in parts)]


def _why_not(choice: _Choice, step: Step) -> str:
    other = choice.step
    if other is None:
        return say("ask.never")
    if other.index < step.index:
        return say("ask.ran", step=other.index + 1)
    return _why_later(other, step)


def _why_later(other: Step, step: Step) -> str:
    """Why ``other``, which is to come, is not there yet at ``step``."""
    if _where(other) == _where(step):
        return say("ask.later.order", on=step.on)
    if other.kind in FORWARD_HOOK_KINDS or other.kind == "full_backward_hook":
        return say(f"ask.later.{other.kind}", on=other.on)
    if other.node < 0 or other.kind in STEP_HOOK_KINDS:
        return say("ask.later")
    if step.node >= 0 and step.trace.ops[step.node] == "AccumulateGrad" and step.node != other.node:
        return say("ask.later.leaf", on=step.on)
    if not _is_ready(other, step):
        return say("ask.later.not_yet", on=other.on)
    return say("ask.later" if step.node in (other.node, -1) else "ask.later.sequence")


def _is_ready(other: Step, step: Step) -> bool:
    """Whether all that is sent to the node of ``other`` has been sent before ``step``."""
    between = step.trace.rows[step.index + 1 : other.index]
    computing = (row.node for row in between if row.kind == "compute")
    return all(end != other.node for _, _, end in step.trace.lookup.out_edges(computing))


# What becomes of the tensor


def _effect(step: Step, steps: Sequence[Step]) -> Question | None:
    if step.effect not in _EFFECTS or step.before == () == step.after:
        return None
    return {
        "text": say("ask.effect", hook=_hook(step), on=step.on),
        "choices": [say(f"ask.effect.{effect}") for effect in _EFFECTS],
        "right": _EFFECTS.index(step.effect),
        "reasons": ["" if effect == step.effect else say(f"ask.not.{effect}") for effect in _EFFECTS],
        "source": True,
    }


# What a node sends on


def _of_nodes(steps: Sequence[Step]) -> dict[int, Question]:
    found = ((step.index, _sent(step)) for step in steps if step.kind == "compute")
    return dict(islice(((index, question) for index, question in found if question is not None), MOST))


def _sent(step: Step) -> Question | None:
    """Which number goes where, if one number comes and one goes to each; where all ways are alike nothing is asked."""
    parts = list_sent_gradients(step)
    given, made = numbers(step.before), numbers(tuple(part.value for part in parts))
    if given is None or made is None or None in [*given, *made]:
        return None
    if len(given) != 1 or len(made) != len(parts):
        return None
    reasons: dict[str, str] = {_ways(parts, made): ""}
    for wrong, reason in _missent(given[0], made):
        reasons.setdefault(_ways(parts, wrong), reason)
    choices = sorted(reasons)
    if len(choices) < 2:
        return None
    right = choices.index(_ways(parts, made))
    text = say("ask.sends", on=step.on, before=format_values(step.before))
    return {"text": text, "choices": choices, "right": right, "reasons": [reasons[choice] for choice in choices]}


def _missent(given: Any, made: list[Any]) -> Iterator[tuple[Numbers, str]]:
    yield made[::-1], say("ask.sends.turned")
    yield [given] * len(made), say("ask.sends.given", value=format_number(given))
    if given:
        yield [sent / given for sent in made], say("ask.sends.seed", value=format_number(given))


def _ways(parts: Sequence[Part], sent: Numbers) -> str:
    pairs = zip(parts, sent, strict=True)
    return join("join.list", (say("sentence.send", value=_written([value]), on=part.source) for part, value in pairs))


def _hook(step: Step) -> str:
    return step.hook.label if step.hook else ""


def _where(step: Step) -> tuple[Any, ...]:
    """Hooks that run one after the other in the same place have this in common."""
    return step.pass_id, step.kind, step.node, step.output, step.row.call
