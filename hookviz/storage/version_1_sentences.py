"""Sentences that files of the first release hold and that read differently today, by their key."""

from collections.abc import Mapping

FORMER_SENTENCES: Mapping[str, str] = {
    "redacted.values": (
        "The numbers are left out of this page: you see the shapes, the order of steps, and which hook "
        "changed a gradient, but not by how much; what is wrong with a gradient cannot be said."
    ),
    "redacted.unobserved": "Something here could not be observed; why is left out.",
    "note.compiled.elsewhere": (
        "A function that torch.compile has made ran in a thread that this recording does not follow: calls "
        "and passes that began meanwhile were not observed."
    ),
    "note.saved": (
        "Saved-tensor hooks are in use ({hook}). They are not observed: torch runs one pair only, the last "
        "that was put in force, and one that looks would take its place."
    ),
    "note.saved.disabled": "Saved-tensor hooks are disabled here ({message}), so that there are none to observe.",
    "note.unfollowed": (
        "There are hooks of a kind that is not recorded ({kind}, on {on}): whether they ran is not told "
        "here, and hv.hooks() lists them."
    ),
    "note.uncalled.compiled": (
        "No call of {model} was seen: it may have run inside a compiled region, of which nothing is seen. "
        "Record what torch.compile returned, or the model itself, uncompiled."
    ),
    "note.uncalled": (
        "{model} was not called inside record(). Call it as a function, such as {model}(x): its forward() "
        "alone runs no hooks, and is not seen."
    ),
    "note.only": (
        "Recorded are the modules that record(only=...) chose ({patterns}: {chosen} of {all}), and of each "
        "backward pass the nodes that they made. All else ran unobserved, with its hooks: a gradient comes "
        "in without what made it, and goes out to what is marked as not recorded."
    ),
    "note.only.nodes": (
        "Of the {nodes} nodes of the last backward pass {seen} were observed, as record(only=...) asked for."
    ),
    "note.scaled": (
        "A GradScaler scaled losses: where a step says by how much, its gradients are that many times "
        "larger than those of the loss itself."
    ),
    "note.rank": (
        "This was recorded on rank {rank} of {ranks} (ranks count from 0): what the others did is not in it."
    ),
    "note.every": (
        "Of {begun} backward passes {recorded} were recorded, one of every {every} from the first on, as "
        "record(every=...) asked for; the others ran unobserved."
    ),
    "note.statistics": (
        "Of tensors with more than 64 numbers only the norm was read, and whether NaN or Inf is among them,"
        ' as record(statistics="norm") asked for: minimum, maximum, mean and zeros are known only where it '
        "was not finite."
    ),
    "note.dropped": (
        "Of the passes, the last {kept} are kept, as record(keep=...) asked for; the {dropped} before them "
        "were let go of, with their forward steps."
    ),
    "trace.trouble": "Part of this pass could not be observed ({error}). The pass itself ran as it would have.",
    "trace.trouble.call": ("A call of {module} could not be observed ({error}). The call itself ran as it would have."),
    "trace.unseen": (
        "{hook} was added while {on} ran, and nobody told of it: it was not observed, and the output of "
        "{on} may be its work."
    ),
    "trace.deep": (
        "The graph has more than {deepest} nodes in a row; the pass ran unobserved, because holding each "
        "node of so long a chain can crash Python when it is freed. Record a part of it."
    ),
    "value.more": "{count} more, not taken apart",
}
