"""What happened in a step, in plain English, made when it is shown."""

from collections.abc import Iterator

from hookviz.support.messages import join, say
from hookviz.trace.rows import HOOK_KINDS, MODULE_HOOK_KINDS, STEP_HOOK_KINDS
from hookviz.trace.steps import Part, Step, step_of
from hookviz.trace.values import Value, Values

SEVERAL = 8
"""Of more gradients than this a line tells the first."""
CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"


def numeral(place: int) -> str:
    """The numeral of the hook in ``place``, counted from 0.

    >>> numeral(0), numeral(20)
    ('①', '(21)')
    """
    return CIRCLED[place] if place < len(CIRCLED) else f"({place + 1})"


def brief(values: Values, room: int = 24) -> str:
    """A gradient, or several, on one line."""
    if isinstance(values, Value):
        return values.text(room)
    if values is None:
        return say("name.none")
    more = [say("many.more", count=f"{len(values) - SEVERAL:,}")] if len(values) > SEVERAL else []
    return say("value.tuple", items=join("join.list", [*(brief(value, room) for value in values[:SEVERAL]), *more]))


def labelled(values: Values, labels: tuple[str, ...]) -> str:
    """What a module is given or returns, each thing under its name: ``x=[1, 2], mask=None``.

    Several gradients have no names: they stay in brackets.
    """
    if len(labels) < 2 or not isinstance(values, tuple):
        return brief(values)
    pairs = zip(labels, values, strict=False)
    return join("join.list", (say("value.labelled", label=label, value=brief(value)) for label, value in pairs))


def _tuple(values: Values, text: str) -> str:
    return text if isinstance(values, tuple) and len(values) > 1 else say("value.single", item=text)


def sends(step: Step) -> list[Part]:
    """For a step in which a node computes: where each of its gradients goes, and what it is."""
    after = step.after if isinstance(step.after, tuple) else (step.after,)
    edges = ((step.trace.edges.get((step.node, slot)), value) for slot, value in enumerate(after))
    return [Part(step.trace.name(*place), value) for place, value in edges if place is not None and value is not None]


def title(step: Step) -> str:
    """What kind of step this is, and where."""
    place = numeral(step.hook.place) if step.hook else ""
    return say(f"kind.{step.kind}", on=step.on, place=place)


def sentence(step: Step) -> str:
    """The step in one sentence, and in another by how much its gradient is scaled."""
    return join("join.sentences", [_told(step), *_scaled(step)])


def _scaled(step: Step) -> Iterator[str]:
    """What a GradScaler has to do with the gradient of a step."""
    if step.kind == "compute":
        scales = (row.scale for row in step.scales if step.node in row.at)
        yield from (say("sentence.scaling", scale=grouped(scale)) for scale in scales)
    if step.scale is not None:
        yield say("sentence.scaled", scale=grouped(step.scale))


def grouped(scale: float) -> str:
    """A large number as a person writes it.

    >>> grouped(65536.0), grouped(0.5)
    ('65,536', '0.5')
    """
    return f"{scale:,.10g}"


def _told(step: Step) -> str:
    unseen = say("name.unseen" if step.kind in _MEASURED else "name.none")
    seen = zip((step.before, step.after), step.row.labels, strict=True)
    before, after = (unseen if values is None else labelled(values, labels) for values, labels in seen)
    if step.kind in ("full_backward_pre_hook", "full_backward_hook"):  # what these are given is always a tuple
        before, after = (_tuple(values, text) for values, text in ((step.before, before), (step.after, after)))
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
    return _OTHERS.get(step.kind, _plain)(step, parts)


_MEASURED = ("arrive", "accumulate", "aliased", "unknown_hook")
"""Kinds in which a missing value means that nobody looked, not that torch passed None."""


def _plain(step: Step, parts: dict[str, str | None]) -> str:
    return say(f"sentence.{step.kind}", **parts)


def _arrive(step: Step, parts: dict[str, str | None]) -> str:
    if len(step.parts) < 2:
        return say("sentence.arrive", **parts)
    total = join("join.sum", (brief(part.value) for part in step.parts))
    return say("sentence.arrive.sum", count=len(step.parts), sum=total, **parts)


def _added(step: Step, parts: dict[str, str | None]) -> str:
    return say(f"sentence.{step.kind}" + ("" if step.before is None else ".added"), **parts)


def _compute(step: Step, parts: dict[str, str | None]) -> str:
    ways = sends(step)
    told = [say("sentence.send", value=brief(part.value), on=part.source) for part in ways[:SEVERAL]]
    more = [say("many.more", count=f"{len(ways) - SEVERAL:,}")] if len(ways) > SEVERAL else []
    sent = join("join.list", told + more)
    return say("sentence.compute" if sent else "sentence.compute.nothing", sends=sent, **parts)


def _returned(step: Step, parts: dict[str, str | None]) -> str:
    return say("sentence.returned" if step.after is not None else "sentence.returned.nothing", **parts)


def _aliased(step: Step, parts: dict[str, str | None]) -> str:
    if step.row.cause is None:
        return say("sentence.aliased", **parts)
    cause = step_of(step.trace, step.row.cause)
    hook = cause.hook.label if cause.hook else ""
    return say("sentence.aliased.cause", hook=hook, other=cause.on, step=cause.index + 1, **parts)


def _exception(step: Step, parts: dict[str, str | None]) -> str:
    if step.hook is not None:
        return say("sentence.exception.hook", **parts)
    return say("sentence.exception.node" if step.on else "sentence.exception", **parts)


def _call(step: Step, parts: dict[str, str | None]) -> str:
    again = step.row.call >= 0 and step.trace.calls[step.row.call].recomputed
    during = ".recomputed" if again else ".backward" if step.row.in_backward else ""
    return say(f"sentence.call{during}", **parts)


def _unobserved(step: Step, _: dict[str, str | None]) -> str:
    return "" if step.row.note is None else step.row.note.text


def _stepped(step: Step, parts: dict[str, str | None]) -> str:
    kind = step.trace.optimizers[step.row.optimizer].kind if step.row.optimizer >= 0 else ""
    return say("sentence.optimizer_step", kind=kind, **parts)


def _unscale(step: Step, parts: dict[str, str | None]) -> str:
    return say(f"sentence.unscale{'.inf' if step.row.found_inf else ''}", **parts)


def _synchronise(step: Step, parts: dict[str, str | None]) -> str:
    how = "" if step.row.synchroniser in (None, "ddp") else f".{step.row.synchroniser}"
    return say(f"sentence.synchronise{how}", ranks=step.row.ranks, **parts)


_OTHERS = {
    "synchronise": _synchronise,
    "unscale": _unscale,
    "optimizer_step": _stepped,
    "call": _call,
    "arrive": _arrive,
    "retain_grad": _added,
    "accumulate": _added,
    "compute": _compute,
    "returned": _returned,
    "aliased": _aliased,
    "exception": _exception,
    "unobserved": _unobserved,
}


def firing(step: Step) -> tuple[str, ...]:
    """A row of the table of hooks that fired."""
    hook = step.hook
    assert hook is not None  # a firing has its hook
    effect = "" if step.effect is None else say(f"effect.{step.effect}")
    count = say("table.count", step=step.index + 1, steps=len(step.trace.rows))
    return (count, hook.label, step.on, brief(step.before), brief(step.after), effect, hook.where)
