"""Why a hook did not fire and what to do, for each cause."""

from hookviz.support.messages import N_

SENTENCES: dict[str, str] = {
    "removed": N_("{hook} was removed ({where}) before anything could call it."),
    "elsewhere": N_(
        "No recorded step shows {hook}. Modules were called or a backward pass ran in a thread that "
        "this recording does not follow, and {hook} may have fired there."
    ),
    "after_call": N_("{hook} was registered after the last call of {on} (step {step})."),
    "after_call.backward": N_(
        "{hook} was registered after the call of {on} (step {step}): PyTorch puts full backward "
        "hooks into the graph while the module runs."
    ),
    "after_pass": N_("{hook} was registered after the last backward pass had begun (step {step})."),
    "no_pass": N_("No backward pass ran in the recording."),
    "no_forward": N_("{on} is a {class}: it has no forward of its own, so nothing ever calls it."),
    "compiled": N_(
        "No call of {on} was observed, and compiled code ran, in which hookviz cannot look: it may have "
        "called {on}, with {hook} or without."
    ),
    "unobserved": N_(
        "No recorded step shows {hook}. A part of what ran could not be observed, as the notes of the "
        "trace say, and {hook} may have fired there."
    ),
    "fast_path": N_(
        "{layer} took PyTorch's fast path for transformers, which runs as one kernel and calls no module inside it."
    ),
    "attention": N_(
        "{caller} is a MultiheadAttention: it uses the parameters of {on} in a function and never calls the module."
    ),
    "bypassed": N_(
        "{on} was never called, although a parameter of it belongs to the graph: something else used its "
        "parameters, such as {on}.forward(...), a function, or a compiled copy of the model. This runs no hooks."
    ),
    "bypassed.inner": N_(
        "{on} was never called, although {inner} inside it was: the code calls {on}.forward(...) "
        "directly, or calls the inner modules one by one, or another module does. None of these runs "
        "the hooks of {on}."
    ),
    "not_called": N_(
        "{on} was never called, although {caller} around it was: the forward of {caller} did not call it."
    ),
    "not_called.other": N_(
        "{on} was not called. While {caller} ran, {other} was, which {caller} does not hold (step {step})."
    ),
    "scripted": N_(
        "{on} was never called: {user} ran its code, a {class}, which torch.jit made, and which does not "
        "have the hooks of the original."
    ),
    "never_called": N_("Neither {on} nor a module around it was called in the recording."),
    "before": N_(
        "No call of {on} was recorded, and its parameters belong to a graph that was partly made "
        "before the recording began. hookviz does not observe what ran before, and a hook that was "
        "registered after the call of {on} is not in the graph."
    ),
    "nothing_called": N_("No module was called in the recording."),
    "substituted": N_("No gradient can reach {on}, although {module} belongs to the graph."),
    "discarded": N_(
        "{on} no longer existed when the next pass began: what has {hook} was replaced, or taken out of the model."
    ),
    "raised.caller": N_("An exception ended the call of {caller} before it called {on} (step {step})."),
    "unseen": N_(
        "hookviz found {hook} on the graph of no pass: no variable of the code around record() holds "
        "its tensor, or another tensor has the same name."
    ),
    "raised": N_("An exception ended the call of {on} before {hook} could run (step {step})."),
    "raised.backward": N_("An exception ended the backward pass (step {step}) before {hook} could run."),
    "no_grad": N_("{on} ran in torch.no_grad(): PyTorch recorded no graph, so no gradient can come back to it."),
    "inference": N_("{on} ran in torch.inference_mode(): PyTorch recorded no graph, and calls forward hooks only."),
    "checkpoint": N_(
        "{on} ran in a reentrant checkpoint, and the backward pass never recomputed it: none of the "
        "inputs of the checkpoint requires grad."
    ),
    "returned": N_(
        "{on} returned a {type}: PyTorch looks for tensors only in a tensor or a tuple of tensors, "
        "and puts no backward hooks into the graph otherwise."
    ),
    "no_gradient.frozen": N_("What {on} returned does not require grad: neither its inputs nor its parameters do."),
    "no_gradient.cut": N_(
        "What {on} returned does not require grad, although an input or a parameter of it does: its "
        "forward cuts the graph (detach, no_grad, .data, numpy, or an op without a gradient)."
    ),
    "outside": N_(
        "Nothing that {on} computed belongs to the graph of {root}. What happens to its output on the "
        "way was not observed."
    ),
    "outside.cut": N_("Nothing that {on} computed belongs to the graph of {root}."),
    "partial": N_(
        "The backward pass computed only the gradients that were asked for (autograd.grad, or "
        "backward(inputs=...)), and the path to them does not pass through {on}."
    ),
    "partial.grad": N_(
        "torch.autograd.grad returns gradients, never writes {on}.grad, and calls no post-accumulate hook."
    ),
    "weight_norm": N_(
        "weight_norm computes {weight} anew for each forward: the tensor that {hook} was registered "
        "on is not the one that the forward used."
    ),
    "frozen": N_("{on} did not require grad (requires_grad=False)."),
    "frozen_at_call": N_(
        "{on} did not require grad when {module} was called, only later: the graph of the passes was made without it."
    ),
    "stray": N_("No module that ran holds {on}: the pass used other parameters."),
    "detour": N_(
        "{on} was made from a tensor of the graph of {root} ({op}), but {on} itself is not in that "
        "graph: a view or a copy has a gradient of its own."
    ),
    "owner_not_called": N_("{module} was never called, and {on} does not belong to the graph."),
    "not_in_graph": N_(
        "No gradient can reach {on}: it does not belong to the graph of {root}. What happens to {on} "
        "on the way was not observed."
    ),
    "not_in_graph.cut": N_("No gradient can reach {on}: it does not belong to the graph of {root}."),
    "partly": N_(
        "{hook} was called with None in place of {missing} of its gradients: those tensors do not belong to the graph."
    ),
    "scaler": N_("The GradScaler skipped every step of {on}, because gradients contained Inf or NaN (step {step})."),
    "no_step": N_("{on} took no step in the recording."),
    "after_step": N_("{hook} was registered after the last step of {on}."),
    "limited": N_(
        "Only a part of what ran was recorded (record(every=...), or a part of a model), and {hook} "
        "did not fire in that part."
    ),
    "unknown.forward": N_(
        "{on} was called while {hook} was registered, and no step shows {hook}: what happened is not known."
    ),
    "unknown.backward": N_(
        "{on} was called with a graph while {hook} was registered, and a backward pass had it in its "
        "graph. No step shows that a gradient arrived at its output: why is not known."
    ),
    "unknown.tensor": N_(
        "{on} belonged to the graph of a pass while {hook} was registered, and no step shows {hook}: "
        "why is not known. If {on} was changed in place after that, the hook stays with its earlier value."
    ),
    "unknown.step": N_(
        "{on} took a step while {hook} was registered, and no step shows {hook}: what happened is not known."
    ),
    "early": N_(
        "{hook} fired before the gradients of {on} were computed, with grad_input=(None,): no input "
        "of {on} requires grad."
    ),
    "again": N_("{hook} fired again during the backward pass: checkpointing runs the forward of {on} a second time."),
    "undefined": N_("{hook} was called with None: no gradient came along this output of its node."),
    "undefined.module": N_(
        "{hook} was called with None in place of every gradient of what {on} returned (grad_output): "
        "none came back to {on}."
    ),
    "undefined.grad": N_(
        "{hook} ran although this pass wrote nothing to {on}.grad: no gradient arrived at {on}, and "
        "PyTorch calls post-accumulate hooks all the same."
    ),
    "before_closure": N_(
        "{hook} fired before the gradients of the step were computed: {on}.step was given a closure, "
        "which runs the forward and backward pass."
    ),
    "early.keywords": N_(
        "{hook} fired before the gradients of {on} were computed, with grad_input=(): the inputs of "
        "{on} were passed by keyword, and PyTorch watches positional inputs only."
    ),
}
"""Cause → why the hook did not fire."""

ADVICE: dict[str, str] = {
    "removed": N_("Remove the hook after the forward and backward pass that it is meant for."),
    "elsewhere": N_("Call record() in that thread, or give it the model: record(model)."),
    "after_call": N_("Register it before you call the model."),
    "after_call.backward": N_("Register it before you call the model."),
    "after_pass": N_("Register it before you call backward()."),
    "no_pass": N_("Call backward() inside record()."),
    "no_forward": N_("Register the hook on the modules inside it, or on the module that holds it."),
    "compiled": N_("Register the hook before torch.compile, or run the model uncompiled while you look for the fault."),
    "fast_path": N_("Call torch.backends.mha.set_fastpath_enabled(False) before the model runs."),
    "attention": N_("Register the hook on {caller}, or a tensor hook on a parameter of {on}."),
    "bypassed": N_("Write {on}(...) where {on} is used."),
    "bypassed.inner": N_("Write {on}(...) instead, or register the hook on an inner module."),
    "not_called.other": N_("Look for where the forward of {caller} refers to {other} instead of its own modules."),
    "scripted": N_("Run the original model, or register the hook before torch.jit.script or torch.jit.trace."),
    "not_called": N_("Check the forward of {caller}; if it has branches, record an input that takes the other one."),
    "never_called": N_(
        "Call the model that has the hook, as a function and inside record(): model(x), not "
        "model.forward(x). A copy of it (copy.deepcopy) has only the hooks that were there when it "
        "was copied. A forward that ran before record() is not observed."
    ),
    "before": N_("Move the forward into record(), and register the hook before it."),
    "nothing_called": N_("Call a module inside record()."),
    "substituted": N_(
        "Look at where {module} uses it. Under functional_call, register the hook on the tensor that you pass; with "
        "weight_norm, on the parameter that it computes from."
    ),
    "discarded": N_("Register the hook after the model has its final modules and parameters."),
    "raised.caller": N_("Fix the exception first."),
    "unseen": N_('Give the tensor a name of its own: hookviz.record(names={{"h": tensor}}).'),
    "raised": N_("Fix the exception first."),
    "raised.backward": N_("Fix the exception first."),
    "no_grad": N_("Call the model outside of no_grad()."),
    "inference": N_("Call the model outside of inference_mode()."),
    "checkpoint": N_("Use checkpoint(..., use_reentrant=False), or give the checkpoint an input that requires grad."),
    "returned": N_("Return a tensor or a tuple, or register a tensor hook on the output."),
    "no_gradient.frozen": N_("Unfreeze a parameter (requires_grad_()), or give it an input that requires grad."),
    "no_gradient.cut": N_("Remove the cut from the forward of {on}."),
    "outside": N_("To see the line where the graph is cut, record with record(cuts=True), or run with --cuts."),
    "outside.cut": N_("Remove the cut, unless it is there to stop gradients."),
    "partial": N_("Call backward() without inputs, or name {on} among them."),
    "partial.grad": N_("Call backward() instead of autograd.grad, or register a tensor hook: {on}.register_hook(...)."),
    "weight_norm": N_("Register the hook on {parameter}."),
    "frozen": N_("Unfreeze it before the forward: {on}.requires_grad_()."),
    "frozen_at_call": N_("Unfreeze it before you call {module}, or call {module} again after that."),
    "unobserved": N_("Look at the notes of the trace: print(trace.notes)."),
    "stray": N_(
        "Register the hook on the parameter that the module holds now, after load_state_dict(assign=True) or tying."
    ),
    "detour": N_("Register the hook on the tensor that {root} is computed from, or use {on} from there on."),
    "owner_not_called": N_("Check why {module} is not called."),
    "not_in_graph": N_("To see the line where the graph is cut, record with record(cuts=True), or run with --cuts."),
    "not_in_graph.cut": N_("Remove the cut, unless it is there to stop gradients."),
    "partly": N_("Check for None in the hook, or leave out the tensors that the loss does not use."),
    "scaler": N_("Find where Inf or NaN begins: trace.findings.values."),
    "no_step": N_("Call its step() inside record()."),
    "after_step": N_("Register it before the step."),
    "limited": N_("Record all passes and modules."),
    "unknown.forward": N_("Look at hv.hooks({on})."),
    "unknown.backward": N_("Look at the step where {on} was called, and at what uses its output."),
    "unknown.tensor": N_("Look at the last step before {on}."),
    "unknown.step": N_("Look at hv.hooks({on})."),
    "early": N_("Use a full_backward_pre_hook or a hook on a parameter; or give {on} an input that requires grad."),
    "again": N_(
        "Ignore the second call, for example while torch.is_grad_enabled() and a backward pass runs; "
        "or leave {on} out of the checkpoint."
    ),
    "undefined": N_("Check for None in the hook."),
    "undefined.module": N_("Find the node behind {on} that sends None; check for None in the hook."),
    "undefined.grad": N_("Check in the hook whether .grad is None."),
    "before_closure": N_(
        "Do what {hook} does between the backward pass and the step: at the end of the closure, or "
        "in Lightning in on_before_optimizer_step or configure_gradient_clipping."
    ),
    "early.keywords": N_("Pass the inputs of {on} by position."),
}
"""Cause → what to do."""
