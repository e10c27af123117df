"""What the static checks say, for each kind of finding."""

from hookviz.support.messages import N_

KIND_NAMES: dict[str, str] = {
    "frozen_parameter": N_("frozen parameter"),
    "frozen_module": N_("frozen module"),
    "no_forward": N_("never called"),
    "bypassed": N_("never called"),
    "legacy": N_("legacy hook"),
    "repeated": N_("registered twice"),
    "late_binding": N_("late binding"),
    "tied": N_("tied parameter"),
    "compiled": N_("compiled module"),
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
    "mixed_returns": N_("returned value"),
    "keeps_graph": N_("kept output"),
    "keeps_gradient": N_("kept gradient"),
    "keeps_memory": N_("shared memory"),
}
"""Kind of a finding → its name in the table."""

SENTENCES: dict[str, str] = {
    "frozen_parameter": N_(
        "{on} is frozen (requires_grad=False), so {hook} cannot fire. Call {on}.requires_grad_(), or remove the hook."
    ),
    "frozen_module": N_(
        "All parameters in {on} are frozen, so {hook} fires only if an input of {on} requires grad. "
        "If none does, it never fires."
    ),
    "legacy": N_(
        "{hook} was registered with register_backward_hook, which is deprecated and sees only one "
        "node of the graph of the module. Use register_full_backward_hook."
    ),
    "repeated": N_(
        "{hook} is registered {count} times on {on}, so it runs {count} times. Call remove() on the "
        "handle before you register it again (after running a cell again, for example)."
    ),
    "late_binding": N_(
        "{count} hooks {hook} read the loop variable {name} when they run, so all of them see the "
        "same value, now {value}. Bind the value when the function is made: add the parameter "
        "{name}={name}, or use functools.partial."
    ),
    "tied": N_(
        "{names} is one parameter: {hook} fires once in a pass, with the sum of the gradients from all its uses."
    ),
    "compiled": N_(
        "{on} is compiled by torch.compile, and {count} hooks are on modules in it. A hook that was "
        "registered after the first call may not run."
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
        "(after c = a + b, those of a and b do), and would change, too. Return a new tensor instead, "
        "as in: return {name} * 2"
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
    "returns_tuple": N_(
        "The lambda returns {code}, and backward() raises an error: a tensor hook returns a tensor "
        "or None. Write a function that does these things and returns nothing."
    ),
    "replaces_output": N_(
        "{code} is returned, and what a forward hook returns replaces the output of its module. If "
        "this is not intended, write a function that returns nothing."
    ),
    "cuts_graph": N_(
        "{code} is returned, and what a forward hook returns replaces the output of its module: no "
        "gradient flows through it any more. If the value should only be kept, store it and return "
        "nothing."
    ),
    "mixed_returns": N_(
        "{on} returns a value on some paths through it and nothing on others, where the value stays "
        "as it was. If this is not intended, return a value on every path."
    ),
    "keeps_graph": N_(
        "The hook keeps {code} itself. This may keep the whole graph of the pass in memory, and a "
        "later in-place operation may change the kept value. Keep {code}.detach().clone(), unless "
        "you need gradients through it."
    ),
    "keeps_gradient": N_(
        "The hook keeps {code} itself, not a copy. A later in-place edit, such as that of another "
        "hook, may change the kept value. Keep {code}.clone()."
    ),
    "keeps_memory": N_(
        "The hook keeps {code}, which may use the memory of the original (on the CPU, detach() and "
        "cpu() copy nothing). A later in-place operation, such as nn.ReLU(inplace=True), may change "
        "the kept value. Add .clone()."
    ),
}
"""Kind of a finding → its sentence."""
