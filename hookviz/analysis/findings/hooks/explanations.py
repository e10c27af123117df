"""What is said of a hook that did not fire, or fired surprisingly: for each cause its kind, why, and what to do."""

from typing import NamedTuple

from hookviz.support.messages import N_


class Explanation(NamedTuple):
    """What is said of a cause."""

    kind: str
    """The kind of cause, as ``Finding.kind`` names it."""
    sentence: str
    """Why the hook did not fire."""
    advice: str
    is_intended: bool = False
    """Whether who writes it usually means it."""
    is_unrelated: bool = False
    """Whether it says that what ran has nothing to do with the hook. If the hook is older than the recording, this is
    as it should be: a notebook keeps the models and tensors of its earlier cells."""


EXPLANATIONS: dict[str, Explanation] = {
    # registered after what it waits for
    "after_call": Explanation(
        "late",
        N_("{hook} was registered after the last call of {on} (step {step})."),
        N_("Register it before you call the model."),
    ),
    "after_call.backward": Explanation(
        "late",
        N_(
            "{hook} was registered after the call of {on} (step {step}): PyTorch puts full backward hooks "
            "into the graph while the module runs."
        ),
        N_("Register it before you call the model."),
    ),
    "after_pass": Explanation(
        "late",
        N_("{hook} was registered after the last backward pass that uses {on} had begun."),
        N_("Register it before you call backward()."),
    ),
    "after_step": Explanation(
        "late", N_("{hook} was registered after the last step of {on}."), N_("Register it before the step.")
    ),
    "after_graph": Explanation(
        "late",
        N_(
            "{hook} was registered after the graph was made that uses the parameters of {on}: that was before"
            " the recording began."
        ),
        N_("Register it before you call the model."),
    ),
    # removed before it could be called
    "removed": Explanation(
        "removed",
        N_("{hook} was removed ({where}) before anything could call it."),
        N_("Remove the hook after the forward and backward pass that it is meant for."),
    ),
    # its module was never called
    "not_called": Explanation(
        "not_called",
        N_("{on} was never called, although {caller} around it was: the forward of {caller} did not call it."),
        N_("Check the forward of {caller}; if it has branches, record an input that takes the other one."),
    ),
    "never_called": Explanation(
        "not_called",
        N_("Neither {on} nor a module around it was called in the recording."),
        N_(
            "Call the model that has the hook, as a function, while it is recorded: model(x), not "
            "model.forward(x). A copy of it (copy.deepcopy) has only the hooks that were there when it was copied."
        ),
        is_unrelated=True,
    ),
    "nothing_called": Explanation(
        "not_called",
        N_("No module was called in the recording."),
        N_("Call a module inside record()."),
        is_unrelated=True,
    ),
    "owner_not_called": Explanation(
        "not_called",
        N_("{module} was never called, and {on} does not belong to the graph."),
        N_(
            "Check why {module} is not called. A copy of a model (copy.deepcopy) has none of the hooks of its "
            "tensors: register them on the copy."
        ),
    ),
    # its module is a container, which has no forward
    "no_forward": Explanation(
        "no_forward",
        N_("{on} is a {class}: it has no forward of its own, so nothing ever calls it."),
        N_("Register the hook on the modules inside it, or on the module that holds it."),
    ),
    # its module worked without being called
    "bypassed": Explanation(
        "bypassed",
        N_(
            "{on} was never called, although a parameter of it belongs to the graph: something else used its "
            "parameters, such as {code}.forward(...), a function, or a compiled copy of the model. This runs no"
            " hooks."
        ),
        N_("Write {code}(...) where {on} is used."),
    ),
    "bypassed.inner": Explanation(
        "bypassed",
        N_(
            "{on} was never called, although {inner} inside it was: its parts ran without {on} itself, as "
            "{code}.forward(...) or a loop over its children does. This runs no hooks of {on}."
        ),
        N_("Write {code}(...) instead, or register the hook on an inner module."),
    ),
    "attention": Explanation(
        "bypassed",
        N_(
            "{caller} is a MultiheadAttention: it uses the parameters of {on} in a function and never calls the module."
        ),
        N_(
            "Register the hook on {caller}, which returns a tuple (the output, the weights); for the gradients of a "
            "parameter of {on}, a tensor hook on that parameter."
        ),
    ),
    "fast_path": Explanation(
        "bypassed",
        N_(
            "{layer} took PyTorch's fast path for transformers, which runs as one kernel and calls no module inside it."
        ),
        N_("Call torch.backends.mha.set_fastpath_enabled(False) before the model runs."),
    ),
    # another object was used in place of the one that has the hook
    "not_called.other": Explanation(
        "substituted",
        N_("{on} was not called. While {caller} ran, {other} was, which {caller} does not hold (step {step})."),
        N_("Look for where the forward of {caller} refers to {other} instead of its own modules."),
    ),
    "traced": Explanation(
        "substituted",
        N_("{on} was never called: {user} ran in its place, which {maker} made of its code and which lacks its hooks."),
        N_("Run the original model."),
    ),
    "copied": Explanation(
        "substituted",
        N_("{on} was not called: {copy}, a deep copy of it, was (step {step}), and {hook} fired there."),
        N_("If you mean the copy, register the hook on it."),
        is_intended=True,
    ),
    "copied.object": Explanation(
        "substituted",
        N_(
            "{on} was not called: {copy}, a deep copy of it, was (step {step}). A copy of {hook} fired there, "
            "with a copy of the object that it belongs to: the original object saw nothing."
        ),
        N_("Register the hook on the copy, after it was made."),
    ),
    "discarded": Explanation(
        "substituted",
        N_(
            "What {hook} was registered on was gone before anything used it: {on} was replaced or taken out of its "
            "model, or nothing kept the model itself."
        ),
        N_("Register the hook after the model has its final modules and parameters."),
    ),
    "stray": Explanation(
        "substituted",
        N_("No module that ran holds {on}, and no pass used it."),
        N_(
            "If a module has a parameter in its place, register the hook on that one: after copy.deepcopy(), "
            "load_state_dict(assign=True) or tying."
        ),
        is_unrelated=True,
    ),
    "detour": Explanation(
        "substituted",
        N_("No pass used {on}: it was made from {base}, and a view or a copy has a gradient of its own."),
        N_("Register the hook on the tensor that {root} is computed from, or use {on} from there on."),
        is_unrelated=True,
    ),
    "parametrized": Explanation(
        "substituted",
        N_(
            "{on} is computed anew for each forward, or each time the attribute is read: the tensor that {hook} was "
            "registered on is not one that the passes used."
        ),
        N_("Register the hook on the parameter that it is computed from: {parameter}."),
    ),
    "substituted": Explanation(
        "substituted",
        N_("No gradient can reach {on}, although {module} belongs to the graph."),
        N_(
            "Look at where {module} uses it. Under functional_call, register the hook on the tensor that you "
            "pass; with weight_norm, on the parameter that it computes from."
        ),
    ),
    # its module ran without recording a graph
    "no_grad": Explanation(
        "no_graph",
        N_(
            "{on} ran while PyTorch recorded no graph, as in torch.no_grad() or inference_mode(): no gradient can come "
            "back to it."
        ),
        N_("Call the model outside of no_grad() and inference_mode()."),
        is_intended=True,
    ),
    "checkpoint": Explanation(
        "no_graph",
        N_(
            "{on} ran in a reentrant checkpoint, and the backward pass never recomputed it: none of the "
            "inputs of the checkpoint requires grad, or no gradient came to its output."
        ),
        N_(
            "Use checkpoint(..., use_reentrant=False), or give the checkpoint an input that requires grad; and use its "
            "output for the loss."
        ),
    ),
    # its module returned something in which torch looks for no tensors
    "returned": Explanation(
        "returned",
        N_(
            "{on} returned a {type}: PyTorch looks for tensors only in a tensor or a tuple of tensors, and "
            "puts no backward hooks into the graph otherwise."
        ),
        N_("Return a tensor or a tuple, or register a tensor hook on the output."),
    ),
    # nothing there required grad
    "frozen": Explanation(
        "frozen",
        N_("{on} did not require grad (requires_grad=False)."),
        N_("Unfreeze it before the forward: {code}.requires_grad_()."),
    ),
    "frozen_at_call": Explanation(
        "frozen",
        N_(
            "{on} did not require grad when {module} was called, only later: the graph of the passes was made"
            " without it."
        ),
        N_("Unfreeze it before you call {module}, or call {module} again after that."),
    ),
    "no_gradient.frozen": Explanation(
        "frozen",
        N_("What {on} returned does not require grad: neither its inputs nor its parameters do."),
        N_("Unfreeze a parameter (requires_grad_()), or give it an input that requires grad."),
    ),
    # the graph of the pass does not contain what it is on
    "outside": Explanation(
        "not_in_graph",
        N_("Nothing that {on} computed belongs to the graph of {root}."),
        N_("Remove the cut, unless it is there to stop gradients."),
    ),
    "not_in_graph": Explanation(
        "not_in_graph",
        N_("No gradient can reach {on}: it does not belong to the graph of {root}."),
        N_("Remove the cut, unless it is there to stop gradients."),
        is_unrelated=True,
    ),
    "not_in_graph.view": Explanation(
        "not_in_graph",
        N_(
            "No gradient can reach {on} as it was when {hook} was registered: a view or a copy, made by {op}, which "
            "does not belong to the graph of {root}."
        ),
        N_(
            "If {on} is edited in place after that, register the hook after the edit; else look whether {on} is used "
            "for {root}."
        ),
        is_unrelated=True,
    ),
    "dropped": Explanation(
        "not_in_graph",
        N_("No pass used {on}: when the next one began, {on} was gone, and all that was computed from it."),
        N_("Register the hook on a tensor that {root} is computed from."),
        is_unrelated=True,
    ),
    "no_gradient.cut": Explanation(
        "not_in_graph",
        N_(
            "What {on} returned does not require grad, although an input or a parameter of it does: its "
            "forward does not use that one, or cuts the graph, as detach(), no_grad() or an op without a gradient do."
        ),
        N_("Look in the forward of {on} for what cuts the graph."),
    ),
    # no backward pass
    "no_pass": Explanation(
        "no_pass",
        N_("No backward pass ran in the recording."),
        N_("Call backward() inside record()."),
        is_unrelated=True,
    ),
    # no step of its optimizer
    "no_step": Explanation(
        "no_step", N_("{on} took no step in the recording."), N_("Call its step() inside record()."), is_unrelated=True
    ),
    "no_step.other": Explanation(
        "no_step",
        N_("The {class} that {hook} is on took no step. These did: {others}, for the first time at step {step}."),
        N_("Register the hook on the optimizer whose step() is called. If that was made anew, register it after that."),
        is_unrelated=True,
    ),
    "scaler": Explanation(
        "no_step",
        N_("The GradScaler skipped every step of {on}, because gradients contained Inf or NaN (step {step})."),
        N_("Find where Inf or NaN begins: trace.findings.values."),
    ),
    # the pass computed only other gradients
    "partial": Explanation(
        "partial",
        N_(
            "The backward pass computed only the gradients that were asked for (autograd.grad, or "
            "backward(inputs=...)), and the path to them does not pass through {on}."
        ),
        N_("Call backward() without inputs, or ask for a gradient that lies behind {on}, too."),
    ),
    "partial.grad": Explanation(
        "partial",
        N_("torch.autograd.grad returns gradients, never writes {on}.grad, and calls no {kind}."),
        N_("Call backward() instead of autograd.grad, or register a tensor hook: {code}.register_hook(...)."),
    ),
    # an exception came first
    "raised": Explanation("raised", N_("An exception came first (step {step})."), N_("Fix the exception first.")),
    # open: it may have fired where the recording does not look
    "before": Explanation(
        "unobserved",
        N_(
            "No call of {on} was recorded, and its parameters belong to a graph that was partly made before "
            "the recording began. What ran before was not observed: {hook} may have fired then, and a "
            "backward hook that was registered after the call of {on} is not in the graph."
        ),
        N_("Move the forward into record(), and register the hook before it."),
    ),
    "elsewhere": Explanation(
        "unobserved",
        N_(
            "No recorded step shows {hook}. Modules were called or a backward pass ran in a thread that this "
            "recording does not follow, and {hook} may have fired there."
        ),
        N_("Call record() in that thread, or give it the model: record(model)."),
    ),
    "limited": Explanation(
        "unobserved",
        N_(
            "Only a part of what ran was recorded (record(every=...), or a part of a model), and {hook} did "
            "not fire in that part."
        ),
        N_("Record all passes and modules."),
    ),
    "unobserved": Explanation(
        "unobserved",
        N_(
            "No recorded step shows {hook}. A part of what ran could not be observed, as the notes of the "
            "trace say, and {hook} may have fired there."
        ),
        N_("Look at the notes of the trace: print(trace.notes)."),
    ),
    "unseen": Explanation(
        "unobserved",
        N_(
            "hookviz found {hook} on the graph of no pass: no variable of the code around record() holds its "
            "tensor, or another tensor has the same name."
        ),
        N_('Give the tensor a name of its own: hookviz.record(names={{"h": tensor}}).'),
        is_unrelated=True,
    ),
    # open: all was observed, and nothing explains it
    "unknown": Explanation(
        "unknown",
        N_("{on} was used while {hook} was registered, and no step shows {hook}: what happened is not known."),
        N_("Look at hv.hooks({code})."),
    ),
    "unknown.tensor": Explanation(
        "unknown",
        N_(
            "{on} belonged to the graph of a pass while {hook} was registered, and no step shows {hook}: why "
            "is not known. If {on} was changed in place after that, the hook stays with its earlier value."
        ),
        N_("Look at the last step before {on}."),
    ),
    # its code was compiled, or transformed by torch.func
    "compiled.before": Explanation(
        "late",
        N_(
            "{on} is inside {region}, which PyTorch compiled (step {step}) before {hook} was registered, and not again "
            "after that: PyTorch looks for the hooks of the modules inside only when it compiles."
        ),
        N_(
            "Register the hook before the first call, or call torch.compiler.reset() after you have registered it. To "
            'see the hooks of compiled code, record it with record(compiled="eager").'
        ),
    ),
    "transformed": Explanation(
        "substituted",
        N_(
            "{on} was used in a transform of torch.func, such as grad, vmap or jvp. It computes with tensors that "
            "stand for those that it is given, in a graph of its own, where PyTorch calls no backward hook of {on}."
        ),
        N_("Register a tensor hook in the function that is transformed, or use {on} outside of the transform."),
        is_intended=True,
    ),
    "compiled": Explanation(
        "unobserved",
        N_(
            "No call of {on} was observed, and compiled code ran, in which hookviz cannot look: it may have "
            "called {on}, with {hook} or without."
        ),
        N_(
            'Record it with record(compiled="eager"), which runs compiled code eagerly and sees the hooks in it. '
            "PyTorch itself may leave out a hook that was registered after the first compiled call."
        ),
    ),
    # it fired, but before the gradients
    "early": Explanation(
        "early",
        N_(
            "{hook} fired before the gradients of {on} were computed, without any grad_input: PyTorch watches the "
            "tensors among the positional inputs of {on}, and none of them requires grad."
        ),
        N_(
            "Use a full_backward_pre_hook or a hook on a parameter; or pass {on} a tensor that requires grad by "
            "position."
        ),
    ),
    "before_closure": Explanation(
        "early",
        N_(
            "{hook} fired before the gradients of the step were computed: {on}.step was given a closure, "
            "which runs the forward and backward pass."
        ),
        N_(
            "Do what {hook} does between the backward pass and the step: at the end of the closure, or in "
            "Lightning in on_before_optimizer_step or configure_gradient_clipping."
        ),
    ),
    # it fired a second time
    "again": Explanation(
        "again",
        N_("{hook} fired again during the backward pass: checkpointing runs the forward of {on} a second time."),
        N_(
            "Ignore the second call, for example while torch.is_grad_enabled() and a backward pass runs; or "
            "leave {on} out of the checkpoint."
        ),
    ),
    # it fired after it was removed
    "kept": Explanation(
        "kept",
        N_(
            "{hook} fired after it had been removed ({where}): the graph of a call keeps the backward hooks that {on} "
            "had when it was called."
        ),
        N_("Remove it after the backward pass, or before the call."),
    ),
    # it fired, and what it returned has no effect
    "ignored": Explanation(
        "ignored",
        N_("{hook} returns a value, and PyTorch drops what a multi-grad hook returns."),
        N_("Register a tensor hook on each tensor to change its gradient."),
    ),
    # it fired without a gradient
    "partly": Explanation(
        "undefined",
        N_("{hook} was called with None in place of {missing} of its gradients: none came to those tensors."),
        N_("Check for None in the hook, or leave out the tensors that get no gradient."),
    ),
    "undefined": Explanation(
        "undefined",
        N_("{hook} was called with None: no gradient came back to {on}."),
        N_("Find the node behind {on} that sends None; check for None in the hook."),
    ),
    "undefined.grad": Explanation(
        "undefined",
        N_(
            "{hook} ran although this pass wrote nothing to {on}.grad: no gradient arrived at {on}, and "
            "PyTorch calls post-accumulate hooks all the same."
        ),
        N_("Check in the hook whether .grad is None."),
    ),
}
"""Cause → what is said of it."""
