"""What is said of a hook that fired in a way that one may not expect."""

from hookviz.analysis.findings.hooks.explanation import Explanation
from hookviz.support.messages import N_

SURPRISE_EXPLANATIONS: dict[str, Explanation] = {
    # it fired, but before the gradients
    "early": Explanation(
        "early",
        N_(
            "{hook} fired before the gradients of {on} were computed, with grad_input=(None,): no input of "
            "{on} requires grad."
        ),
        N_("Use a full_backward_pre_hook or a hook on a parameter; or give {on} an input that requires grad."),
    ),
    "early.keywords": Explanation(
        "early",
        N_(
            "{hook} fired before the gradients of {on} were computed, with grad_input=(): the inputs of {on} "
            "were passed by keyword, and PyTorch watches positional inputs only."
        ),
        N_("Pass the inputs of {on} by position."),
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
        N_("{hook} returns a value, and PyTorch drops what a multi-grad hook returns: the gradients are as they were."),
        N_("Register a tensor hook on each tensor to change its gradient."),
    ),
    # it fired without a gradient
    "partly": Explanation(
        "undefined",
        N_(
            "{hook} was called with None in place of {missing} of its gradients: those tensors do not belong "
            "to the graph."
        ),
        N_("Check for None in the hook, or leave out the tensors that the loss does not use."),
    ),
    "undefined": Explanation(
        "undefined",
        N_("{hook} was called with None: no gradient came along this output of its node."),
        N_("Check for None in the hook."),
    ),
    "undefined.module": Explanation(
        "undefined",
        N_(
            "{hook} was called with None in place of every gradient of what {on} returned (grad_output): none"
            " came back to {on}."
        ),
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
