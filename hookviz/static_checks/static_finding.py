"""``StaticFinding``: one row of what ``doctor`` finds, and what is said of each kind.

What to do is said in the words of a recording's findings.
"""

from dataclasses import dataclass
from typing import Any

from hookviz.analysis.findings.finding import name_of_severity
from hookviz.analysis.findings.hooks.edits_in_place import RETURN_NEW
from hookviz.analysis.findings.hooks.explanations import EXPLANATIONS
from hookviz.analysis.findings.hooks.hook_contracts import CONTRACTS
from hookviz.analysis.findings.hooks.hook_inputs import USE_FULL_HOOK
from hookviz.analysis.findings.hooks.hook_moments import BIND_VALUE
from hookviz.analysis.findings.hooks.registrations import REGISTER_ONCE
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.table import ShownRow
from hookviz.trace.traversal import write_access

KIND_NAMES: dict[str, str] = {
    "frozen_parameter": N_("frozen parameter"),
    "frozen_module": N_("frozen module"),
    "no_forward": N_("never called"),
    "bypassed": N_("never called"),
    "legacy": N_("legacy hook"),
    "repeated": N_("registered twice"),
    "late_binding": N_("late binding"),
    "wrapped": N_("edit in place"),
    "parameters": N_("wrong parameters"),
    "tuple_item": N_("item of a tuple"),
    "edits.gradient": N_("edit in place"),
    "edits.grad_output": N_("edit in place"),
    "edits.input": N_("edit in place"),
    "edits.output": N_("edit in place"),
    "returns_tuple": N_("returned value"),
    "replaces_output": N_("returned value"),
    "cuts_graph": N_("cut graph"),
    "keeps_graph": N_("kept output"),
}
"""Kind of a finding → its name in the table."""

SENTENCES: dict[str, str] = {
    "frozen_parameter": N_("{on} is frozen (requires_grad=False), so {hook} cannot fire."),
    "frozen_module": N_(
        "All parameters in {on} are frozen, so {hook} fires only if an input of {on} requires grad. "
        "If none does, it never fires."
    ),
    "legacy": N_(
        "{hook} was registered with register_backward_hook, which is deprecated and sees only one "
        "node of the graph of the module."
    ),
    "repeated": N_("{hook} is registered {count} times on {on}, so it runs {count} times."),
    "late_binding": N_(
        "{count} hooks {hook} read the loop variable {name} when they run, so all of them see the "
        "same value, now {value}."
    ),
    "wrapped": N_(
        "{hook} is a full backward hook: if a gradient flows through {on}, PyTorch wraps what {on} is given and "
        "returns, and does not let {editor} edit it in place. Set inplace=False, or use a tensor hook."
    ),
    "parameters": N_(
        "No hook can be called as {on}{signature}. A tensor hook takes (grad); a forward pre-hook "
        "(module, args); a forward hook (module, args, output); a full backward hook (module, "
        "grad_input, grad_output)."
    ),
    "tuple_item": N_("{code} raises TypeError: {name} is a tuple. Build a new tuple and return it."),
    "edits.gradient": N_(
        "{code} edits the gradient in place. Gradients of other tensors may use the same memory "
        "(after c = a + b, those of a and b do), and would change, too."
    ),
    "edits.grad_output": N_(
        "{code} edits grad_output in place. Other gradients may use the same memory and would "
        "change, too. Return a new value from a full backward pre-hook instead."
    ),
    "edits.input": N_(
        "{code} edits an input of the module in place. This changes the tensor of the caller, and "
        "may break the backward pass. Return new inputs from a forward pre-hook instead."
    ),
    "edits.output": N_(
        "{code} edits the output of the module in place. If the module saved it for its backward "
        "pass, backward() raises an error. Return a new tensor instead."
    ),
    "returns_tuple": N_("The lambda returns {code}, and backward() raises an error."),
    "replaces_output": N_(
        "{code} is returned, and what a forward hook returns replaces the output of its module. If "
        "this is not intended, write a function that returns nothing."
    ),
    "cuts_graph": N_(
        "{code} is returned, and what a forward hook returns replaces the output of its module: no "
        "gradient flows through it any more. If the value should only be kept, store it and return "
        "nothing."
    ),
    "keeps_graph": N_(
        "The hook keeps {code} itself. This may keep the whole graph of the pass in memory, and a "
        "later in-place operation may change the kept value. Keep {code}.detach().clone(), unless "
        "you need gradients through it."
    ),
}
"""Kind of a finding → its sentence."""

ADVICE: dict[str, str] = {
    "frozen_parameter": EXPLANATIONS["frozen"].advice,
    "legacy": USE_FULL_HOOK,
    "repeated": REGISTER_ONCE,
    "late_binding": BIND_VALUE,
    "edits.gradient": RETURN_NEW,
    "returns_tuple": CONTRACTS["tensor_hook"].advice,
}
"""Kind of a finding → what to do, if a finding of a recording says the same."""


@dataclass(frozen=True, repr=False)
class StaticFinding(ShownRow):
    """What one rule finds in a model or a hook function, without running it.

    - ``error``: certainly broken, such as a hook on a module that is never called.
    - ``warning``: a known mistake, such as an edit of a gradient in place.
    - ``remark``: worth knowing, and perhaps intended.
    """

    on: str
    """The name of the module, parameter or function that it is about."""
    severity: str
    """``error``, ``warning`` or ``remark``."""
    kind: str
    """A short name of the rule, such as ``late_binding``."""
    sentence: str
    """What was found, and what to do."""

    def _columns(self) -> dict[str, str]:
        columns = {_("severity"): name_of_severity(self.severity), _("on"): self.on}
        return {**columns, _("problem"): _(KIND_NAMES[self.kind]), _("finding"): self.sentence}


def make_finding(kind: str, severity: str, on: str, **parts: Any) -> StaticFinding:
    """Make a finding with the sentence of its kind; ``parts`` fill its placeholders besides ``on``."""
    texts = [SENTENCES[kind], *([ADVICE[kind]] if kind in ADVICE else [])]
    names = {"on": on, "code": write_access(on), "hook": on, **parts}
    return StaticFinding(on, severity, kind, join_sentences([_(text).format(**names) for text in texts]))


def make_finding_of_cause(cause: str, on: str, **names: str) -> StaticFinding:
    """Make the finding of a hook that can never fire, with the words that a recording has for the same cause."""
    said = EXPLANATIONS[cause]
    sentences = [_(text).format(on=on, **names) for text in (said.sentence, said.advice)]
    never = _("{hook} on {on} never fires.").format(on=on, **names)
    return StaticFinding(on, "error", said.kind, join_sentences([never, *sentences]))
