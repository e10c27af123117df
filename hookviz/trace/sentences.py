"""What happened in a step, in plain English, made when it is shown."""

from collections.abc import Iterator

from hookviz.support.messages import join, say
from hookviz.trace.rows import HOOK_KINDS, MODULE_HOOK_KINDS, STEP_HOOK_KINDS
from hookviz.trace.steps import Part, Step, make_step
from hookviz.trace.values import Value, Values

MAX_LISTED = 8
"""Of more gradients than this a line tells the first."""
CIRCLED_NUMBERS = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"


def format_hook_position(place: int) -> str:
    """The numeral of the hook in ``place``, counted from 0.

    >>> numeral(0), numeral(20)
    ('①', '(21)')
    """
    return CIRCLED_NUMBERS[place] if place < len(CIRCLED_NUMBERS) else f"({place + 1})"


def format_values(values: Values, room: int = 24) -> str:
    """A gradient, or several, on one line."""
    if isinstance(values, Value):
        return values.text(room)
    if values is None:
        return say("name.none")
    more = [say("many.more", count=f"{len(values) - MAX_LISTED:,}")] if len(values) > MAX_LISTED else []
    return say(
        "value.tuple", items=join("join.list", [*(format_values(value, room) for value in values[:MAX_LISTED]), *more])
    )


def format_labelled_values(values: Values, labels: tuple[str, ...]) -> str:
    """What a module is given or returns, each thing under its name: ``x=[1, 2], mask=None``.

    Several gradients have no names: they stay in brackets.
    """
    if len(labels) < 2 or not isinstance(values, tuple):
        return format_values(values)
    pairs = zip(labels, values, strict=False)
    return join("join.list", (say("value.labelled", label=label, value=format_values(value)) for label, value in pairs))


def _format_as_tuple(values: Values, text: str) -> str:
    return text if isinstance(values, tuple) and len(values) > 1 else say("value.single", item=text)


def list_sent_gradients(step: Step) -> list[Part]:
    """For a step in which a node computes: where each of its gradients goes, and what it is."""
    after = step.after if isinstance(step.after, tuple) else (step.after,)
    edges = ((step.trace.edges.get((step.node, slot)), value) for slot, value in enumerate(after))
    return [Part(step.trace.name(*place), value) for place, value in edges if place is not None and value is not None]


def make_title(step: Step) -> str:
    """What kind of step this is, and where."""
    place = format_hook_position(step.hook.place) if step.hook else ""
    return say(f"kind.{step.kind}", on=step.on, place=place)


def make_sentence(step: Step) -> str:
    """The step in one sentence, and in another by how much its gradient is scaled."""
    return join("join.sentences", [_say_step(step), *_say_scales(step)])


def _say_scales(step: Step) -> Iterator[str]:
    """What a GradScaler has to do with the gradient of a step."""
    if step.kind == "compute":
        scales = (row.scale for row in step.scales if step.node in row.at)
        yield from (say("sentence.scaling", scale=format_scale(scale)) for scale in scales)
    if step.scale is not None:
        yield say("sentence.scaled", scale=format_scale(step.scale))


def format_scale(scale: float) -> str:
    """A large number as a person writes it.

    >>> grouped(65536.0), grouped(0.5)
    ('65,536', '0.5')
    """
    return f"{scale:,.10g}"


def _say_step(step: Step) -> str:
    unseen = say("name.unseen" if step.kind in _KINDS_WITH_VALUES else "name.none")
    seen = zip((step.before, step.after), step.row.labels, strict=True)
    before, after = (unseen if values is None else format_labelled_values(values, labels) for values, labels in seen)
    if step.kind in ("full_backward_pre_hook", "full_backward_hook"):  # what these are given is always a tuple
        before, after = (
            _format_as_tuple(values, text) for values, text in ((step.before, before), (step.after, after))
        )
    parts = {"on": step.on, "before": before, "after": after, "error": step.row.error, "region": step.row.region}
    if step.hook is not None:
        parts["hook"] = step.hook.label
    if step.kind in HOOK_KINDS:
        if step.kind in STEP_HOOK_KINDS:
            what = "settings" if step.row.subject == "settings" else step.effect
            return say(f"sentence.step_hook.{what}", **parts)
        if step.before == () == step.after:  # the post-hooks of an AccumulateGrad
            return say("sentence.hook.nothing", **parts)
        of = step.kind if step.kind in MODULE_HOOK_KINDS else "data" if step.row.subject == "data" else "hook"
        if step.row.subject == "grad_output":
            return say("sentence.full_backward_hook.grad_output", **parts)
        if step.kind == "post_accumulate_hook" and step.row.subject == "gradient":
            return say(f"sentence.grad.{step.effect}", **parts)
        if step.kind == "multi_grad_hook" and step.row.labels[0] and step.effect != "replaced":
            of = step.kind
        return say(f"sentence.{of}.{step.effect}", **parts)
    return _SENTENCES.get(step.kind, _say_plain)(step, parts)


_KINDS_WITH_VALUES = ("arrive", "accumulate", "aliased", "unknown_hook")
"""Kinds in which a missing value means that nobody looked, not that torch passed None."""


def _say_plain(step: Step, parts: dict[str, str | None]) -> str:
    return say(f"sentence.{step.kind}", **parts)


def _say_arrive(step: Step, parts: dict[str, str | None]) -> str:
    if len(step.parts) < 2:
        return say("sentence.arrive", **parts)
    total = join("join.sum", (format_values(part.value) for part in step.parts))
    return say("sentence.arrive.sum", count=len(step.parts), sum=total, **parts)


def _say_added(step: Step, parts: dict[str, str | None]) -> str:
    return say(f"sentence.{step.kind}" + ("" if step.before is None else ".added"), **parts)


def _say_compute(step: Step, parts: dict[str, str | None]) -> str:
    ways = list_sent_gradients(step)
    told = [say("sentence.send", value=format_values(part.value), on=part.source) for part in ways[:MAX_LISTED]]
    more = [say("many.more", count=f"{len(ways) - MAX_LISTED:,}")] if len(ways) > MAX_LISTED else []
    sent = join("join.list", told + more)
    return say("sentence.compute" if sent else "sentence.compute.nothing", sends=sent, **parts)


def _say_returned(step: Step, parts: dict[str, str | None]) -> str:
    return say("sentence.returned" if step.after is not None else "sentence.returned.nothing", **parts)


def _say_aliased(step: Step, parts: dict[str, str | None]) -> str:
    if step.row.cause is None:
        return say("sentence.aliased", **parts)
    cause = make_step(step.trace, step.row.cause)
    hook = cause.hook.label if cause.hook else ""
    return say("sentence.aliased.cause", hook=hook, other=cause.on, step=cause.index + 1, **parts)


def _say_exception(step: Step, parts: dict[str, str | None]) -> str:
    if step.hook is not None:
        return say("sentence.exception.hook", **parts)
    return say("sentence.exception.node" if step.on else "sentence.exception", **parts)


def _say_call(step: Step, parts: dict[str, str | None]) -> str:
    again = step.row.call >= 0 and step.trace.calls[step.row.call].recomputed
    during = ".recomputed" if again else ".backward" if step.row.in_backward else ""
    return say(f"sentence.call{during}", **parts)


def _say_unobserved(step: Step, _: dict[str, str | None]) -> str:
    return "" if step.row.note is None else step.row.note.text


def _say_optimizer_step(step: Step, parts: dict[str, str | None]) -> str:
    kind = step.trace.optimizers[step.row.optimizer].kind if step.row.optimizer >= 0 else ""
    return say("sentence.optimizer_step", kind=kind, **parts)


def _say_unscale(step: Step, parts: dict[str, str | None]) -> str:
    return say(f"sentence.unscale{'.inf' if step.row.found_inf else ''}", **parts)


def _say_synchronise(step: Step, parts: dict[str, str | None]) -> str:
    how = "" if step.row.synchroniser in (None, "ddp") else f".{step.row.synchroniser}"
    return say(f"sentence.synchronise{how}", ranks=step.row.ranks, **parts)


_SENTENCES = {
    "synchronise": _say_synchronise,
    "unscale": _say_unscale,
    "optimizer_step": _say_optimizer_step,
    "call": _say_call,
    "arrive": _say_arrive,
    "retain_grad": _say_added,
    "accumulate": _say_added,
    "compute": _say_compute,
    "returned": _say_returned,
    "aliased": _say_aliased,
    "exception": _say_exception,
    "unobserved": _say_unobserved,
}


def format_firing(step: Step) -> tuple[str, ...]:
    """A row of the table of hooks that fired."""
    hook = step.hook
    assert hook is not None  # a firing has its hook
    effect = "" if step.effect is None else say(f"effect.{step.effect}")
    count = say("table.count", step=step.index + 1, steps=len(step.trace.rows))
    return (count, hook.label, step.on, format_values(step.before), format_values(step.after), effect, hook.where)
