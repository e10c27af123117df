"""What a step is called and what it says, for each kind of step."""

from hookviz.support.messages import N_

TITLES: dict[str, str] = {
    "call": N_("{on} is called"),
    "forward": N_("the forward of {on}"),
    "optimizer_step": N_("{on} takes a step"),
    "unscale": N_("the gradients of {on} are unscaled"),
    "rescale": N_("the scale changes"),
    "seed": N_("the seed at\xa0{on}"),
    "arrive": N_("arrival at\xa0{on}"),
    "retain_grad": N_("retain_grad on {on}"),
    "compute": N_("{on} computes"),
    "accumulate": N_("{on}.grad is written"),
    "synchronise": N_("the gradient of {on} is synchronised"),
    "returned": N_("the gradient of {on} is returned"),
    "aliased": N_("{on} changes without a hook"),
    "unknown_hook": N_("an unknown hook on {on}"),
    "exception": N_("an exception"),
    "compiled": N_("a compiled region"),
    "cut_short": N_("{on} is cut short"),
    "fast_path": N_("the fast path ran {on}"),
    "unobserved": N_("an unobserved pass"),
}
"""Kind of a step in which no hook ran → its title."""

SENTENCES: dict[str, str] = {
    "call": N_("{on} is called with {after}."),
    "call.recomputed": N_("{on} is called again, during backward, with {after}: checkpointing recomputes it."),
    "forward": N_("The forward of {on} returns {after}."),
    "forward_pre_hook.kept": N_("{hook} on {on} looked at the inputs and left them unchanged: {after}."),
    "forward_pre_hook.edited": N_("{hook} on {on} edited the inputs in place: {before} → {after}."),
    "forward_pre_hook.replaced": N_("{hook} on {on} replaced the inputs: {before} → {after}."),
    "forward_hook.kept": N_("{hook} on {on} looked at the output and left it unchanged: {after}."),
    "forward_hook.edited": N_("{hook} on {on} edited the output in place: {before} → {after}."),
    "forward_hook.replaced": N_("{hook} on {on} replaced the output: {before} → {after}."),
    "full_backward_pre_hook.kept": N_("{hook} on {on} looked at grad_output and left it unchanged: {after}."),
    "full_backward_pre_hook.edited": N_("{hook} on {on} edited grad_output in place: {before} → {after}."),
    "full_backward_pre_hook.replaced": N_("{hook} on {on} replaced grad_output: {before} → {after}."),
    "full_backward_hook.kept": N_("{hook} on {on} looked at grad_input and left it unchanged: {after}."),
    "full_backward_hook.edited": N_("{hook} on {on} edited grad_input in place: {before} → {after}."),
    "full_backward_hook.replaced": N_("{hook} on {on} replaced grad_input: {before} → {after}."),
    "backward_hook.kept": N_(
        "{hook} on {on} looked at what the node of its first output sends and left it unchanged: {after}."
    ),
    "backward_hook.edited": N_(
        "{hook} on {on} edited in place what the node of its first output sends: {before} → {after}."
    ),
    "backward_hook.replaced": N_(
        "{hook} on {on} replaced what the node of its first output sends: {before} → {after}."
    ),
    "step_hook.kept": N_("{hook} on {on} ran and changed no parameter, gradient or setting."),
    "step_hook.ran": N_("{hook} ran at the step of {on}."),
    "step_hook.settings": N_("{hook} on {on} changed the settings of the optimizer."),
    "step_hook.edited": N_("{hook} on {on} edited the parameters or their gradients in place."),
    "step_hook.replaced": N_("{hook} on {on} replaced the arguments of step()."),
    "rescale": N_("The scale of the GradScaler goes from {before} to {after}."),
    "seed": N_("Backward starts at {on} with the gradient {after}."),
    "hook.kept": N_("{hook} on {on} looked at the gradient and left it unchanged: {after}."),
    "hook.edited": N_("{hook} on {on} edited the gradient in place: {before} → {after}."),
    "hook.replaced": N_("{hook} on {on} replaced the gradient: {before} → {after}."),
    "multi_grad_hook.kept": N_("{hook} received the gradients of its tensors: {after}."),
    "multi_grad_hook.edited": N_(
        "{hook} received the gradients of its tensors and edited them in place: {before} → {after}."
    ),
    "retain_grad": N_("{on} keeps its gradient: {on}.grad = {after}."),
    "retain_grad.added": N_(
        "{on} adds its gradient to the gradient that it kept before: {on}.grad goes from {before} to {after}."
    ),
    "accumulate": N_("{on}.grad is written: {after}."),
    "accumulate.added": N_("The gradient is added to {on}.grad: {before} → {after}."),
    "synchronise.ddp": N_(
        "DDP combined the gradient of {on} over {ranks} ranks: local {before} → synchronised {after}."
    ),
    "synchronise.fsdp": N_(
        "FSDP combined the gradient of {on} over {ranks} ranks, and this rank keeps its shard: local {before} → "
        "synchronised {after}."
    ),
    "unknown_hook": N_(
        "An unknown hook changed the gradient of {on} from {before} to {after}. It was registered "
        "before recording, on a tensor that has since been freed or changed in place."
    ),
    "grad.kept": N_("{hook} looked at {on}.grad after it was written and left it unchanged: {after}."),
    "grad.edited": N_("{hook} edited {on}.grad in place after it was written: {before} → {after}."),
    "grad.replaced": N_("{hook} replaced {on}.grad after it was written: {before} → {after}."),
    "data.kept": N_("{hook} looked at {on} after its gradient was written and changed nothing: .grad = {after}."),
    "data.edited": N_("{hook} edited {on} itself: {before} → {after}."),
    "data.replaced": N_("{hook} replaced {on}: {before} → {after}."),
    "compiled": N_("{region} is a compiled region: hookviz does not see what runs inside, hooks included."),
    "compiled.whole": N_(
        "PyTorch compiled it in this call, as one graph, with the hooks that the modules inside had then."
    ),
    "compiled.parts": N_(
        "PyTorch compiled it in this call, in parts, with the hooks that the modules inside had then."
    ),
    "compiled.nothing": N_(
        "PyTorch ran what it had compiled before, and may leave out hooks that the modules inside got after that."
    ),
    "cut_short": N_("{on} is cut short: checkpointing has recomputed all that backward needs, and skips the rest."),
    "fast_path": N_(
        "PyTorch's fast path ran {on} as one kernel: its inner modules and their hooks did not run. "
        "torch.backends.mha.set_fastpath_enabled(False) switches it off."
    ),
}
"""Kind of a step, with what its hook did if one ran → its sentence."""
