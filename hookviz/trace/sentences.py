"""The title and sentence of a step, and how gradients are written as text."""

from collections.abc import Iterator

from hookviz.support.messages import N_, _, join_list, join_sentences
from hookviz.trace.changes import describe_change
from hookviz.trace.hook_facts import HOOK_FACTS, HOOK_KINDS, MODULE_HOOK_KINDS, STEP_HOOK_KINDS, name_of_kind
from hookviz.trace.hooks import name_of_effect
from hookviz.trace.named_tables import NamedTables
from hookviz.trace.step_texts import SENTENCES, TITLES
from hookviz.trace.steps import Part, Step, make_step
from hookviz.trace.update_texts import describe_gradient_edits, list_gradient_edits
from hookviz.trace.values import Value, Values, as_tuple

_MANY_MORE = N_("… {count} more")


MAX_LISTED = 8
"""A line lists at most this many gradients."""
CIRCLED_NUMBERS = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"


def format_hook_position(position: int) -> str:
    """Write the position of a hook, counted from 0, as a circled number from ①.

    >>> format_hook_position(0), format_hook_position(20)
    ('①', '(21)')
    """
    return CIRCLED_NUMBERS[position] if position < len(CIRCLED_NUMBERS) else f"({position + 1})"


def format_values(values: Values, room: int = 24) -> str:
    """Write a gradient, or several, on one line."""
    if isinstance(values, Value):
        return values.text(room)
    if values is None:
        return "None"
    items = [format_values(value, room) for value in values[:MAX_LISTED]]
    if len(values) > MAX_LISTED:
        items.append(_(_MANY_MORE).format(count=f"{len(values) - MAX_LISTED:,}"))
    return f"({', '.join(items)})"


def format_labelled_values(values: Values, labels: tuple[str, ...]) -> str:
    """Write the inputs or outputs of a module with their names: ``x=[1, 2], mask=None``.

    Values without names, such as several gradients, are written as a tuple.
    """
    if len(labels) < 2 or not isinstance(values, tuple):
        return format_values(values)
    pairs = ((label, format_values(value)) for label, value in zip(name_tensors(labels), values, strict=False))
    return ", ".join((f"{label}={value}" for label, value in pairs))


def name_tensors(labels: tuple[str, ...]) -> list[str]:
    """Name each tensor of a multi-grad hook that has no name by its number.

    >>> name_tensors(("x", ""))
    ['x', 'tensor 2']
    """
    return [label or _("tensor {number}").format(number=number) for number, label in enumerate(labels, 1)]


def _format_listed(values: Values, text: str) -> str:
    """Write ``text``, the text of ``values``, as a tuple also if there is only one value."""
    return text if isinstance(values, tuple) and len(values) > 1 else f"({text},)"


def list_sent_gradients(step: Step) -> list[Part]:
    """Return the gradients that a node sent in a ``compute`` step; ``Part.source`` names the receiving node here."""
    after = as_tuple(step.after)
    ends = ((step.trace.edges.get((step.row.own_node, slot)), value) for slot, value in enumerate(after))
    return [Part(step.trace.name(*end), value) for end, value in ends if end is not None and value is not None]


def make_title(step: Step) -> str:
    """Make the title of a step: its kind, and what it is about."""
    position = format_hook_position(step.hook.place) if step.hook else ""
    if step.kind in HOOK_FACTS:
        return _("{kind} {place} on {on}").format(kind=name_of_kind(step.kind), place=position, on=step.on)
    return _(TITLES[step.kind]).format(on=step.on)


def make_sentence(step: Step) -> str:
    """Make the sentence of a step, followed by sentences about its pass and the scale of its gradient."""
    about_hook = (*_say_change(step), *_say_aside(step), *_say_registration(step))
    return join_sentences([say_step(step), *about_hook, *_say_pass(step), *_say_scales(step)])


def list_remarks(step: Step) -> list[str]:
    """List what is remarkable about a step in which a hook ran, beside what the hook did to its argument."""
    return [*_say_aside(step), *_say_registration(step), *_say_scales(step)]


def _say_change(step: Step) -> Iterator[str]:
    """Say what a hook did to a gradient, or to the only input or output that it changed."""
    if step.kind not in HOOK_KINDS or step.row.effect not in ("edited", "replaced"):
        return
    before, after = as_tuple(step.before), as_tuple(step.after)
    pairs = list(zip(before, after, strict=True)) if len(before) == len(after) else []
    changed = [pair for pair in pairs if pair[0] != pair[1]] or pairs
    old, new = changed[0] if len(changed) == 1 else (None, None)
    text = describe_change(old, new) if isinstance(old, Value) and isinstance(new, Value) else ""
    if text:
        yield text


def _say_aside(step: Step) -> Iterator[str]:
    """Say what a hook did beside what it was given."""
    if step.row.drew:
        yield _("It drew random numbers: what draws after it gets others than without it.")
    if step.row.parameters:
        yield _("It changed {names} of its module.").format(names=join_list(list(step.row.parameters)))


def _say_registration(step: Step) -> Iterator[str]:
    """Say which module hook registered a hook, if one did."""
    key = None if step.row.hook is None else step.trace.hook_rows[step.row.hook].registered_by
    index = None if key is None else step.trace.lookup.module_hooks.get(key)
    if index is not None:
        hook = step.trace.hook(index)
        yield _("{hook} on {on} registered it.").format(hook=hook.label, on=hook.on)


def _say_pass(step: Step) -> Iterator[str]:
    """Say the number of a pass where it begins, if the trace lacks passes before or between its own."""
    if step.kind == "seed" and step.trace.lacks_passes:
        yield _("This is pass {number} of the recording.").format(number=format_pass_number(step.trace, step.pass_id))


def format_pass_number(trace: NamedTables, pass_id: int) -> str:
    """Write the number of a pass with a comma after each group of three digits.

    >>> format_pass_number(NamedTables(dropped=1203), 0)
    '1,204'
    """
    return f"{trace.pass_number(pass_id):,}"


def _say_scales(step: Step) -> Iterator[str]:
    """Say how a GradScaler scaled the gradient of a step."""
    if step.kind == "compute":
        scales = (row.scale for row in step.scales if step.node in row.at)
        yield from (
            _("A GradScaler multiplies the loss here: the gradients below are scaled by {scale}.").format(
                scale=format_scale(scale)
            )
            for scale in scales
        )
    if step.scale is not None:
        yield _("Scaled by {scale}.").format(scale=format_scale(step.scale))


def format_step_number(trace: NamedTables, step: int | None) -> str:
    """Write the number of a step and how many there are, for a table; empty for None."""
    return "" if step is None else _("{step} of {steps}").format(step=step + 1, steps=len(trace.rows))


def format_scale(scale: float) -> str:
    """Write a scale with a comma after each group of three digits.

    >>> format_scale(65536.0), format_scale(0.5)
    ('65,536', '0.5')
    """
    return f"{scale:,.10g}"


def say_step(step: Step) -> str:
    """Say what happened in a step."""
    before, after = _format_before_and_after(step)
    parts: dict[str, str | None] = {"on": step.on, "before": before, "after": after}
    if step.kind == "exception":
        parts["error"] = step.row.error
    if step.hook is not None:
        parts["hook"] = step.hook.label
    if step.kind in HOOK_KINDS:
        return _(_choose_hook_sentence(step)).format(**parts)
    return _SENTENCES.get(step.kind, _say_plain)(step, parts)


def _format_before_and_after(step: Step) -> tuple[str, str]:
    missing = _("not seen") if step.kind in _KINDS_WITH_VALUES else "None"
    labels_before, labels_after = step.row.labels
    before = missing if step.before is None else format_labelled_values(step.before, labels_before)
    after = missing if step.after is None else format_labelled_values(step.after, labels_after)
    if step.kind in ("full_backward_pre_hook", "full_backward_hook"):  # torch passes a tuple to these in any case
        return _format_listed(step.before, before), _format_listed(step.after, after)
    return before, after


def _choose_hook_sentence(step: Step) -> str:
    """Choose the sentence for a step in which a hook ran."""
    subject = step.row.subject
    if step.kind in STEP_HOOK_KINDS:
        return SENTENCES[f"step_hook.{'settings' if subject == 'settings' else step.effect}"]
    if step.kind == "forward_pre_hook" and step.before == () == step.after:
        return N_("{hook} on {on} ran. It was given no inputs.")
    if step.before == () == step.after:  # a post-hook of an AccumulateGrad, which has no outputs
        return N_("{hook} on {on} ran. This node sends nothing that a hook could change.")
    if subject == "grad_output":
        return N_(
            "{hook} on {on} edited grad_output in place: {before} → {after}. Other parts of the graph "
            "share this gradient."
        )
    if step.kind == "post_accumulate_hook" and subject == "gradient":
        return SENTENCES[f"grad.{step.effect}"]
    has_own_sentence = step.kind in MODULE_HOOK_KINDS or (
        step.kind == "multi_grad_hook" and step.row.labels[0] and step.effect != "replaced"
    )
    if has_own_sentence:
        return SENTENCES[f"{step.kind}.{step.effect}"]
    return SENTENCES[f"{'data' if subject == 'data' else 'hook'}.{step.effect}"]


_KINDS_WITH_VALUES = ("arrive", "accumulate", "aliased", "unknown_hook")
"""Kinds of step in which a missing value was not recorded; in other kinds torch passed None."""


def _say_plain(step: Step, parts: dict[str, str | None]) -> str:
    """Say a sentence that does not depend on details of the step."""
    return _(SENTENCES[step.kind]).format(**parts)


def _say_arrive(step: Step, parts: dict[str, str | None]) -> str:
    if len(step.parts) < 2:
        return _("The gradient {after} arrives at {on}.").format(**parts)
    total = " + ".join(format_values(part.value) for part in step.parts)
    return _("{count} contributions arrive at {on}: {sum} = {after}.").format(count=len(step.parts), sum=total, **parts)


def _say_storing(step: Step, parts: dict[str, str | None]) -> str:
    """Say that a gradient was written to ``.grad`` or added to it."""
    return _(SENTENCES[step.kind if step.before is None else f"{step.kind}.added"]).format(**parts)


def _say_compute(step: Step, parts: dict[str, str | None]) -> str:
    sent = list_sent_gradients(step)
    items = [_("{value} to {on}").format(value=format_values(part.value), on=part.source) for part in sent[:MAX_LISTED]]
    if len(sent) > MAX_LISTED:
        items.append(_(_MANY_MORE).format(count=f"{len(sent) - MAX_LISTED:,}"))
    sends = ", ".join(items)
    return (
        _("{on} takes the gradient {before} and sends {sends}.")
        if sends
        else _("{on} takes the gradient {before} and sends nothing on.")
    ).format(sends=sends, **parts)


def _say_returned(step: Step, parts: dict[str, str | None]) -> str:
    return (
        _("torch.autograd.grad returns {after} as the gradient of {on}.")
        if step.after is not None
        else _("torch.autograd.grad returns None for {on}: no gradient reached it.")
    ).format(**parts)


def _say_aliased(step: Step, parts: dict[str, str | None]) -> str:
    assert step.row.cause is not None
    cause = make_step(step.trace, step.row.cause)
    hook = cause.hook.label if cause.hook else ""
    following = step.trace.rows[step.index + 1 : step.index + 2]
    is_part = any(row.kind == "arrive" and len(row.parts) > 1 for row in following)
    return (
        _(
            "No hook of {on} ran, yet the first part of its gradient changed from {before} to {after} while it waited "
            "for the others: {hook} on {other} edited its gradient in place (step {step}), and both share one storage."
        )
        if is_part
        else _(
            "No hook of {on} ran, yet its gradient changed from {before} to {after}: {hook} on {other} "
            "edited its gradient in place (step {step}), and both gradients share one storage."
        )
    ).format(hook=hook, other=cause.on, step=cause.index + 1, **parts)


def _say_exception(step: Step, parts: dict[str, str | None]) -> str:
    parts = {**parts, "error": (parts["error"] or "").rstrip(".")}  # many messages are sentences
    if step.hook is not None:
        return _("{hook} on {on} raised {error}: the pass ends here.").format(**parts)
    if step.on:
        return _("{on} raised {error}: the pass ends here.").format(**parts)
    is_last = step.trace.has_raised and step.index == len(step.trace.rows) - 1
    return (_("{error} ended the recording.") if is_last else _("{error} ended the pass.")).format(**parts)


def _say_call(step: Step, parts: dict[str, str | None]) -> str:
    text = SENTENCES["call.recomputed" if step.trace.calls[step.row.own_call].recomputed else "call"]
    return join_sentences([_(text).format(**parts), *_say_cut(step)])


def _say_cut(step: Step) -> Iterator[str]:
    """Say from which calls the input of a call was cut off, unless the call around it was given the same."""
    calls = step.trace.calls
    row = calls[step.row.own_call]
    outer = () if row.parent is None else calls[row.parent].cut_from
    sources = [step.trace.call(call) for call in row.cut_from if call not in outer]
    if sources:
        text = _("The graph was cut after {sources}: no gradient goes back there from here.")
        yield text.format(sources=join_list(sources))


def _say_unobserved(step: Step, _parts: dict[str, str | None]) -> str:
    return "" if step.row.note is None else step.row.note.text


def _say_optimizer_step(step: Step, parts: dict[str, str | None]) -> str:
    optimizer = step.row.optimizer
    kind = "" if optimizer is None else step.trace.optimizers[optimizer].kind
    parameters = describe_parameters(parts["after"] or "")
    # An optimizer without a name is called by its kind.
    on = kind if step.on == kind else _("{on} ({kind})").format(on=step.on, kind=kind)
    around = step.trace.lookup.steps_around_updates.get(step.index)
    hook = None if around is None else make_step(step.trace, around)
    if hook is None or hook.hook is None:
        text = _("{on} takes its step; it holds {parameters}.").format(on=on, parameters=parameters)
    else:
        text = _("{hook} on {owner} lets {on} take its step; it holds {parameters}.")
        text = text.format(hook=hook.hook.label, owner=hook.on, on=on, parameters=parameters)
    edits = describe_gradient_edits(list_gradient_edits(step.trace, step.index))
    return join_sentences([text, *([edits] if edits else [])])


def describe_parameters(count: str) -> str:
    """Say how many parameters an optimizer holds.

    >>> describe_parameters("1"), describe_parameters("4")
    ('1 parameter', '4 parameters')
    """
    return _("1 parameter") if count == "1" else _("{count} parameters").format(count=count)


def _say_unscale(step: Step, parts: dict[str, str | None]) -> str:
    if step.row.found_inf:
        return _(
            "The GradScaler divides the gradients of {on} by {before}, and finds Inf or NaN among them: it will "
            "skip the step."
        ).format(**parts)
    return _("The GradScaler divides the gradients of {on} by {before}: from here on they are not scaled.").format(
        **parts
    )


def _say_synchronise(step: Step, parts: dict[str, str | None]) -> str:
    return _(SENTENCES[f"synchronise.{step.row.synchroniser or 'ddp'}"]).format(ranks=step.row.ranks, **parts)


def _say_compiled(step: Step, _parts: dict[str, str | None]) -> str:
    keys = [step.kind, *([] if step.row.built is None else [f"compiled.{step.row.built}"])]
    return " ".join(_(SENTENCES[key]).format(region=step.row.region) for key in keys)


_SENTENCES = {
    "synchronise": _say_synchronise,
    "unscale": _say_unscale,
    "optimizer_step": _say_optimizer_step,
    "call": _say_call,
    "arrive": _say_arrive,
    "retain_grad": _say_storing,
    "accumulate": _say_storing,
    "compute": _say_compute,
    "returned": _say_returned,
    "aliased": _say_aliased,
    "exception": _say_exception,
    "compiled": _say_compiled,
    "unobserved": _say_unobserved,
}


def list_step_columns(step: Step) -> dict[str, str]:
    """Return the names and texts of the columns of a step in the table of steps."""
    number = {_("pass"): format_pass_number(step.trace, step.pass_id)} if step.trace.lacks_passes else {}
    columns = {**number, _("step"): format_step_number(step.trace, step.index), _("what"): make_title(step)}
    before = "" if step.before is None else format_values(step.before)
    after = "" if step.after is None else format_values(step.after)
    return {**columns, _("before"): before, _("after"): after, _("effect"): name_of_effect(step.effect)}


def format_firing(step: Step) -> tuple[str, ...]:
    """Return the cells of a step in the table of hook firings."""
    hook = step.hook
    assert hook is not None  # steps of hook kinds have a hook
    count = format_step_number(step.trace, step.index)
    number = (format_pass_number(step.trace, step.pass_id),) if step.trace.lacks_passes else ()
    changes = format_values(step.before), format_values(step.after), name_of_effect(step.effect)
    return (*number, count, hook.label, step.on, *changes, hook.where)
