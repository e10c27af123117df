"""What PyTorch gives each kind of hook and what it takes back: why it refused a hook or what one returned."""

import re
from typing import NamedTuple

from hookviz.support.messages import N_, _, pluralize
from hookviz.support.source_code import read_place
from hookviz.trace import Hook
from hookviz.trace.hook_facts import HOOK_FACTS, name_of_kind

_REFUSALS = re.compile(
    r"has changed the (size|type) of value|expected Variable, but hook returned|hooks? returned an invalid number of"
    r"|hooks should return None|where no input requires gradient|must return None or a tuple of \(new_args"
)
"""What torch raises if it cannot use what a hook returned."""
_WRONG_COUNT = re.compile(r"TypeError: \S*?([\w<>]+)\(\) (takes|missing) .*positional argument")
"""What Python raises if a function is called with more or fewer arguments than it takes."""


class Contract(NamedTuple):
    """What a kind of hook may return, and what to do to keep to it."""

    cause: str
    advice: str


_TUPLE = N_("Return a tuple with an item for each gradient, such as (grads[0] * 2,), or None.")
CONTRACTS = {
    "tensor_hook": Contract(
        N_("What a tensor hook returns takes the place of the gradient."),
        N_("Return a tensor of the same size, type and device as the gradient, or None."),
    ),
    "post_accumulate_hook": Contract(
        N_("A post-accumulate hook runs after .grad was written, and cannot replace anything by a returned value."),
        N_("Change param.grad in the hook, and return nothing."),
    ),
    "full_backward_hook": Contract(
        N_(
            "What a full backward hook returns takes the place of grad_input, a tuple: a tensor in its place is taken "
            "apart along its first dimension."
        ),
        _TUPLE,
    ),
    "full_backward_pre_hook": Contract(
        N_(
            "What a full backward pre-hook returns takes the place of grad_output, a tuple: a tensor in its place is "
            "taken apart along its first dimension."
        ),
        _TUPLE,
    ),
    "forward_pre_hook": Contract(
        N_("A forward pre-hook that was registered with with_kwargs=True returns all inputs, or None."),
        N_("Return (args, kwargs): the tuple of positional inputs, and the dict of the others."),
    ),
}
"""Kind of a hook → what is said if torch cannot use what it returned."""
_NO_INPUT = Contract(
    N_("No input of {on} requires grad: there is no gradient that {hook} could replace."),
    N_("Return None, or use a full_backward_pre_hook, which may replace grad_output."),
)


def explain_refusal(hook: Hook, error: str, raised_at: str | None) -> Contract | None:
    """Explain an exception that PyTorch raised about a hook, not the hook itself; None if it is another one."""
    if _is_raised_in(hook, raised_at):
        return None
    counted = _WRONG_COUNT.match(error)
    if counted is not None:
        return (
            describe_parameters(hook.kind, hook.label)
            if counted[1] == ("<lambda>" if hook.source_.is_lambda else hook.name.rpartition(".")[2])
            else None
        )
    if not _REFUSALS.search(error):
        return None
    contract = _NO_INPUT if "no input requires gradient" in error else CONTRACTS.get(hook.kind)
    if contract is None:
        return None
    names = {"hook": hook.label, "on": hook.on}
    counted = re.search(r"got (\d+), but expected (\d+)", error)
    if counted is not None:
        text = _("{hook} returned {got}, and PyTorch expects {expected}: a tensor counts as its rows.")
        names |= {
            "got": pluralize(int(counted[1]), _("{count} item"), _("{count} items")),
            "expected": pluralize(int(counted[2]), _("{count} gradient"), _("{count} gradients")),
        }
        return Contract(text.format(**names), _(_TUPLE))
    return Contract(_(contract.cause).format(**names), _(contract.advice).format(**names))


def _is_raised_in(hook: Hook, raised_at: str | None) -> bool:
    """Whether a line is one of the function of the hook, and not that of the pass or the call."""
    place = read_place(raised_at)
    if place is None or hook.line is None or hook.file != place.file or hook.source_.is_lambda:
        return False
    return hook.line <= place.line < hook.line + len((hook.source or "").splitlines())


def describe_parameters(kind: str, label: str) -> Contract | None:
    """Say with what PyTorch calls a kind of hook; None if it is no hook of a pass."""
    facts = HOOK_FACTS.get(kind)
    if facts is None:
        return None
    parameters, more = (f"({', '.join(names)})" for names in (facts.parameters, facts.with_kwargs))
    names = {"kind": name_of_kind(kind), "parameters": parameters, "more": more, "hook": label}
    text = _("PyTorch calls a {kind} with {parameters}.")
    if facts.with_kwargs:
        text = _("PyTorch calls a {kind} with {parameters}; with {more} if it was registered with with_kwargs=True.")
    return Contract(text.format(**names), _("Give {hook} these parameters.").format(**names))
