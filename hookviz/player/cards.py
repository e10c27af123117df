"""The cards of a step: the gradients or values that it begins and ends with, each as one number with a bar."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hookviz.player.payload import Amount, Card, CardRole
from hookviz.support.messages import N_, _
from hookviz.trace import HOOK_KINDS, STEP_HOOK_KINDS, Step, Values
from hookviz.trace.sentences import list_sent_gradients, name_tensors
from hookviz.trace.values import Value, format_number

MAX_AMOUNTS = 4
"""The most tensors of a card; the numbers behind the cards have all of them."""
MAX_LIST = 20
"""A list of numbers with up to this many characters is shown as it is; of a longer one, its norm."""
MAX_GRADIENTS = 24
"""The most gradients of a step whose numbers the panel lists."""

_WITHOUT_CARDS = ("exception", "cut_short", "compiled", "fast_path", "unobserved", "optimizer_step")
_NOTES = ("aliased", "unknown_hook")
_ONE_CARD = {
    "call": N_("called with"),
    "forward": N_("returns"),
    "seed": N_("the gradient it starts with"),
    "arrive": N_("the gradient"),
    "retain_grad": N_("stored in .grad"),
    "accumulate": ".grad",
    "returned": N_("returned"),
}
"""Kind of step that has a card for the value after it alone, unless it has a value before it → the label."""
_ARGUMENTS = {
    "full_backward_hook": (N_("grad_input before"), N_("grad_input after")),
    "full_backward_pre_hook": (N_("grad_output before"), N_("grad_output after")),
}
"""Kind of hook whose argument has a name of its own → the labels of its cards."""


class Named(NamedTuple):
    """A tensor of a step, or the text of what is no tensor."""

    name: str
    """Its name, or where the gradient comes from or goes to; empty for the only one."""
    value: Values


def make_cards(step: Step) -> list[Card]:
    """Make the cards of ``step``: up to two side by side, and one for what else a hook was given."""
    before, after, extra = _list_tensors(step)
    first, second = _label_cards(step)
    cards = [_make_card("before", first, before), _make_card("after", second, after)]
    return [card for card in (*cards, _make_card("extra", "grad_output", extra)) if card["amounts"]]


def list_gradients(step: Step) -> list[Named]:
    """List the gradients that a step gets from several places, sends, or gives to a hook beside its argument."""
    if step.kind == "multi_grad_hook" and isinstance(step.after, tuple):
        return [*map(Named, name_tensors(step.row.labels[1]), step.after)]
    if step.kind == "compute":
        return [Named(_("to {on}").format(on=part.source), part.value) for part in list_sent_gradients(step)]
    if step.kind == "full_backward_hook":
        return [Named("grad_output", part.value) for part in step.parts]
    if len(step.parts) < 2:
        return []
    return [
        Named(_("from {on}").format(on=part.source) if part.source else _("the seed"), part.value)
        for part in step.parts
    ]


def read_card_values(step: Step) -> tuple[Values | str, Values | str]:
    """Return the values before and after a step; an empty text for those that are not shown."""
    if step.kind in _WITHOUT_CARDS or step.before == () == step.after:
        return "", ""
    if step.kind == "compute":
        return step.before, ""
    has_before = step.before is not None or step.kind in (*HOOK_KINDS, *_NOTES)
    return step.before if has_before else "", step.after


def _list_tensors(step: Step) -> tuple[list[Named], list[Named], list[Named]]:
    """List the tensors of the cards: before, after, and what else a hook was given."""
    before, after = read_card_values(step)
    first, second = (
        _name_values(values, labels) for values, labels in zip((before, after), step.row.labels, strict=True)
    )
    gradients = list_gradients(step)
    if step.kind == "compute":
        return first, gradients, []
    if step.kind == "arrive" and gradients:
        return gradients, second, []
    if step.kind in HOOK_KINDS and step.kind not in STEP_HOOK_KINDS:
        first, second = _without_missing(first, second)
    return first, second, [Named("", one.value) for one in gradients if step.kind == "full_backward_hook"]


def _name_values(values: Values | str, labels: Sequence[str]) -> list[Named]:
    if not isinstance(values, tuple):
        return [] if values == "" else [Named("", values)]  # type: ignore[arg-type]
    if len(values) == 1:
        return [Named("", values[0])]
    names = (
        name_tensors(tuple(labels)) if len(labels) == len(values) else [f"[{index}]" for index in range(len(values))]
    )
    return [*map(Named, names, values)]


def _without_missing(before: list[Named], after: list[Named]) -> tuple[list[Named], list[Named]]:
    """Leave out what is None before and after a hook, such as the gradients of inputs that need none."""
    if len(before) != len(after) or (len(before) == 1 and before[0].value is not None):
        return before, after
    kept = [pair for pair in zip(before, after, strict=True) if pair[0].value is not None or pair[1].value is not None]
    if len(kept) == 1:
        kept = [(one._replace(name=""), other._replace(name="")) for one, other in kept]
    return [one for one, _ignored in kept], [other for _ignored, other in kept]


def _label_cards(step: Step) -> tuple[str, str]:
    if step.kind in _ARGUMENTS and step.row.subject != "grad_output":
        first, second = _ARGUMENTS[step.kind]
        return _(first), _(second)
    if step.kind == "compute":
        return _("takes"), _("sends")
    if step.kind == "arrive" and len(step.parts) > 1:
        return _("arrive"), _("their sum")
    has_before = step.before is not None or step.kind in HOOK_KINDS
    return _("before"), _("after") if has_before else _(_ONE_CARD.get(step.kind, N_("after")))


def _make_card(role: CardRole, label: str, tensors: Iterable[Named]) -> Card:
    amounts = [_make_amount(*one) for one in tensors]
    more = len(amounts) - MAX_AMOUNTS
    if more > 1:
        text = _("… {count} more").format(count=f"{more:,}")
        amounts = [*amounts[:MAX_AMOUNTS], _write_amount("", text)]
    return {"role": role, "label": label, "amounts": amounts}


def _write_amount(name: str, value: str, note: str = "", norm: float = math.nan) -> Amount:
    return {"name": name, "value": value, "size": norm if math.isfinite(norm) else None, "note": note}


def _make_amount(name: str, value: Values) -> Amount:
    """Make the amount of a tensor: its only number, a short list of its numbers, or its norm."""
    if not isinstance(value, Value):
        return _write_amount(name, str(value))
    if value.note is not None:
        return _write_amount(name, str(value.shape), value.note)
    norm = format_number(value.norm, 4)
    line = value.line() or ""
    if line and len(line) <= MAX_LIST:
        return _write_amount(name, line, _("norm {norm}").format(norm=norm) if "[" in line else "", value.norm)
    counts = [f"{count} {kind}" for count, kind in ((value.nan, "NaN"), (value.inf, "Inf")) if count]
    return _write_amount(name, norm, " · ".join([_("norm of {shape}").format(shape=value.shape), *counts]), value.norm)
