"""What ``hookviz check`` says about each point of torch that hookviz relies on."""

from hookviz.support.messages import N_

USES: dict[str, str] = {
    "passes": N_("backward passes"),
    "node_hooks": N_("hooks on nodes"),
    "tensor_hooks": N_("hooks on tensors"),
    "calls": N_("module calls and forward hooks"),
    "full_hooks": N_("backward hooks of modules"),
    "multi_grad": N_("multi-grad hooks"),
    "optimizers": N_("optimizer steps"),
    "values": N_("reading tensors unnoticed"),
    "formulas": N_("saved tensors, for the formulas"),
    "saved_hooks": N_("saved-tensor hooks"),
    "compiled": N_("compiled code"),
    "checkpoint": N_("checkpointing"),
    "ranks": N_("DDP and FSDP"),
    "scaler": "GradScaler",
    "listing": N_("listing hooks on saving, loading and registration"),
    "cuts": N_("following ops, for record(cuts=True)"),
}
"""Use of a part of torch → its name."""

LOSSES: dict[str, str] = {
    "passes": N_(
        "Without it hookviz cannot tell which node runs in which pass: recordings of backward passes "
        "fail or miss steps."
    ),
    "node_hooks": N_("Without it hookviz cannot observe nodes and the hooks on them: recordings miss what they do."),
    "tensor_hooks": N_("Without it recordings and `hooks` miss hooks on tensors."),
    "calls": N_("Without it recordings miss calls of modules, or what their forward hooks do."),
    "full_hooks": N_("Without it recordings do not show which backward hook of a module did what."),
    "multi_grad": N_("Without it multi-grad hooks appear as hooks of PyTorch's own."),
    "optimizers": N_("Without it recordings miss optimizer steps and their hooks."),
    "values": N_("Without it hookviz may miss an edit, or your own tools may notice that hookviz reads tensors."),
    "formulas": N_(
        "Without it `Trace.why` has formulas but no values for them, and recordings do not name "
        "hooks on tensors that no variable holds any more."
    ),
    "saved_hooks": N_("Without it recordings do not name saved-tensor hooks."),
    "compiled": N_("Without it recordings do not tell compiled code from other code, and may disturb the compiler."),
    "checkpoint": N_("Without it recordings show recomputation by checkpointing as new calls."),
    "ranks": N_("Without it recordings miss the gradients that several ranks combine."),
    "scaler": N_("Without it recordings do not tell scaled gradients from others."),
    "listing": N_("Without it `hooks` misses hooks that run on saving, loading or registration."),
    "cuts": N_("Without it `record(cuts=True)` does not work."),
}
"""Use of a part of torch → what is lost without it."""

GAPS: dict[str, str] = {
    "unpack_hook": N_(
        "Formulas have no values, hooks on tensors that no variable holds any more have no names, "
        "and saved-tensor hooks around a forward pass before the recording are not noted: all three "
        "need PyTorch {since} or newer."
    ),
    "_top_saved_tensors_default_hooks": N_(
        "Saved-tensor hooks that were in force before a recording began are not noted: that needs "
        "PyTorch {since} or newer."
    ),
}
"""Name in a newer torch → what is lost in an older one."""

RELIANCES: dict[str, str] = {
    "hooks_know_their_node_and_pass": N_("A hook can ask which node and which pass it runs in."),
    "nodes_are_numbered_in_order": N_(
        "Nodes are numbered in the order in which they are created, and the nodes of leaves come last."
    ),
    "hooks_run_by_kind": N_(
        "Hooks run by kind: tensor hooks, then node pre-hooks, then node post-hooks; at a leaf also "
        "hooks after .grad is written."
    ),
    "a_node_shares_one_hook_dict": N_(
        "All post-hooks of a node are kept in one dict, and a registration can be given that dict."
    ),
    "hook_dicts_are_read_live": N_("The engine reads a tensor's hook dict in each pass, in the order of the dict."),
    "versions_count_edits": N_("A tensor's version counts in-place edits, but not edits through .data."),
    "the_engine_can_be_instrumented": N_(
        "The source of the function that runs the engine can be read and instrumented."
    ),
    "module_calls_can_be_instrumented": N_("Module.__call__ is a function whose source can be read and instrumented."),
    "listened_functions_can_be_instrumented": N_(
        "The source of the functions that report calls to hookviz can be read and instrumented."
    ),
    "forward_hooks_are_read_in_each_call": N_(
        "A module's forward hooks are read in each call, in the order of their dict, with their flags."
    ),
    "full_backward_hooks_are_found_behind_nodes": N_(
        "A module's full backward hooks can be found from the node of its output."
    ),
    "multi_grad_hooks_show_what_they_collect": N_("A multi-grad hook shows which gradients it has collected."),
    "step_hooks_are_called_by_the_step": N_("An optimizer's step calls its hooks itself."),
    "nodes_show_what_they_saved": N_("A node shows the tensors that it saved, and whether a hook unpacks them."),
    "a_node_knows_its_function": N_("The node of a Function shows the class that it belongs to."),
    "saved_tensor_hooks_are_seen": N_("Saved-tensor hooks that are in force can be seen."),
    "dispatch_modes_can_be_kept_out": N_("hookviz can hide its own computations from dispatch modes."),
    "compiled_functions_are_switched_to": N_(
        "Torch enters and leaves a compiled function through a call that hookviz can see."
    ),
    "checkpointing_is_recognised": N_("hookviz can recognise when checkpointing recomputes something."),
    "a_program_is_recorded_and_unchanged": N_(
        "A small program is recorded with all its hooks, and gets the same gradients as without recording."
    ),
}
"""Behaviour of torch → what hookviz relies on."""
