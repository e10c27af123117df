"""Notes of a trace as facts: what could not be observed, and why; said when it is shown. Some come with a warning."""

from typing import Any, NamedTuple

from hookviz.support.messages import N_, _
from hookviz.trace.columns import LongText

PART_NOTES = ("part",)
"""Notes that only a part of a model was recorded."""

STOP_NOTES = ("until.nan", "until.function", "profiled")
"""Notes that ``record(until=...)``, or a profiler, stopped the recording."""

VERBATIM = "verbatim"
"""The fact of a text that is shown as it is, such as the repr of a user's object."""

_TEXTS: dict[str, str] = {
    "compiled.elsewhere": N_(
        "A function compiled by torch.compile ran in a thread that this recording does not follow: "
        "calls and passes that began while it ran were not observed."
    ),
    "compiled.eager": N_(
        'record(compiled="eager") ran compiled code eagerly, so that you see its modules and hooks. The compiled '
        "program may leave some of these hooks out, and its numbers may differ in the last bits."
    ),
    "elsewhere": N_(
        "A backward pass ran in another thread than the recording, which follows its own: call record() in that thread."
    ),
    "elsewhere.calls": N_(
        "A module was called in another thread than the recording, which follows its own: call record() in that thread."
    ),
    "saved": N_(
        "Saved-tensor hooks are in use ({hook}). hookviz does not observe them: torch runs only the "
        "pair that was entered last, and an observing pair would take its place."
    ),
    "profiled": N_(
        "A profiler followed each Python call (torch.profiler with with_stack=True). So that its profile shows your "
        "program alone, hookviz recorded nothing from its start on. Record in one run, and profile in another."
    ),
    "uncalled.compiled": N_(
        "No call of {model} was seen: it may have run inside a compiled region, which hookviz cannot "
        'look into. record(compiled="eager") runs compiled code eagerly, and sees the calls in it.'
    ),
    "uncalled": N_(
        "{model} was not called inside record(). Call it as a function, such as {model}(x): calling only its forward() "
        "or what torch.jit or torch.fx made of it is not observed."
    ),
    "part": N_(
        "What was given to record() is a part of a model, {outer}. This trace holds its calls and, of each backward "
        "pass, the nodes that they made. Everything else ran unobserved, hooks included: gradients come in from nodes "
        "that are not shown, and go out to nodes marked as not recorded."
    ),
    "scaled": N_(
        "A GradScaler scaled losses: where a step gives a scale, its gradients are larger than those "
        "of the loss itself by that factor."
    ),
    "rank": N_(
        "This was recorded on rank {rank} of {ranks} (ranks count from 0). It does not show what the other ranks did."
    ),
    "every": N_(
        "record(every=...) recorded {recorded} of {begun} backward passes, one of every {every} from "
        "the first on; the others ran unobserved."
    ),
    "statistics.many": N_(
        "This recording holds more than {most} values: of tensors with more than 64 numbers, only "
        'the norm was read from then on. record(statistics="all") reads all statistics.'
    ),
    "statistics": N_(
        'For tensors with more than 64 numbers, record(statistics="norm") read only the norm, and '
        "whether NaN or Inf is among them. Minimum, maximum, mean and zeros are known only where the "
        "norm was not finite."
    ),
    "cuts": N_(
        "record(cuts=True) followed the ops of its thread, without PyTorch's fast path for transformers. It did not "
        "follow compiled or scripted code, hooks of a backward pass, other threads, Python and numpy."
    ),
    "cuts.many": N_(
        "record(cuts=True) met more ops, or a larger graph, than it follows: an op may cut off more parameters than "
        "the trace says."
    ),
    "until.nan": N_(
        'record(until="nan") stopped the recording after pass {number}: NaN or Inf was in {on}. What ran after it was '
        "not observed."
    ),
    "until.function": N_(
        "record(until=...) stopped the recording after pass {number}, because the function returned "
        "true. What ran after it was not observed."
    ),
    "until.error": N_("The function of record(until=...) raised {error}. The recording goes on."),
    "raised": N_("The recording ended with an exception, {error}. The trace holds what was recorded up to then."),
    "dropped": N_(
        "record(keep=...) kept the last {kept} passes and dropped the {dropped} before them, with their forward steps."
    ),
    "hooks": N_("There were more hooks than a trace holds: it does not show of {count} whether they fired."),
    "redacted.source": N_("The source of the hooks and the names of their files are left out of this page."),
    "redacted.values": N_(
        "The numbers are left out of this page: you see the shapes, the order of steps, and which "
        "hook changed a gradient, but not by how much. Findings about gradients need the numbers, so "
        "there are none."
    ),
    "redacted.notes": N_("Notes that may quote them are left out, too: {count}."),
    "redacted.value": N_("(left out)"),
    "redacted.unobserved": N_("Something here could not be observed; the reason is left out."),
    "value.more": N_("{count} more, not recorded one by one"),
    "value.computed": N_("not read: code of the program computes it"),
    "value.unknown": N_("not shown ({why})"),
    "value.hidden": N_("not shown ({kind} tensor)"),
    "trace.empty": N_(
        "Nothing was recorded: no backward pass ran. Call .backward() or torch.autograd.grad() in the with block "
        "of record(), or in the cell with %%hookviz."
    ),
    "trace.compiled": N_(
        "Compiled autograd (torch._dynamo.config.compiled_autograd) ran a pass, and hookviz does not look into it: "
        "torch would compile what observes along with the hooks. To see the pass, run it without compiled autograd."
    ),
    "trace.deep": N_(
        "The graph has more than {deepest} nodes in a row; the pass ran unobserved, because such a "
        "long chain can crash Python when it is freed. Record a part of it."
    ),
    "trace.trouble": N_("Part of this pass could not be observed ({error}). The pass itself ran unchanged."),
    "trace.trouble.call": N_("A call of {module} could not be observed ({error}). The call itself ran unchanged."),
    "trace.grows": N_(
        "This recording holds {steps} steps, about 1 KB each, and keeps growing. Keep only the last passes with "
        "record(keep=10), record one pass of many with record(every=100), give record() a part of the model, or end "
        "the with block earlier."
    ),
    "trouble.file.failed": N_("hookviz could not write {path} ({error}). The trace is still in your program."),
    "whatif.raised": N_("The function raised {error}"),
    "why.real": N_("Only the real part is taken, because the tensor is real."),
    "why.summed": N_("Summed over each broadcast dimension: {dims}."),
}
"""Fact → the sentence that says it."""


class Note(NamedTuple):
    """A fact that a trace holds.

    >>> Note.of("rank", rank=0, ranks=2).text
    'This was recorded on rank 0 of 2 (ranks count from 0). It does not show what the other ranks did.'
    """

    fact: str
    details: tuple[tuple[str, LongText], ...] = ()

    @classmethod
    def of(cls, fact: str, **details: Any) -> "Note":
        """Make a note of a fact and its details."""
        return cls(fact, tuple((name, str(value)) for name, value in details.items()))

    @classmethod
    def verbatim(cls, text: str) -> "Note":
        """Make a note that is shown as it is."""
        return cls(VERBATIM, (("text", text),))

    @property
    def text(self) -> str:
        """The sentence; a note of an unknown fact, from a newer hookviz, is shown as the fact and its details."""
        details = dict(self.details)
        if self.fact == VERBATIM:
            return details.get("text", "")
        try:
            return _(_TEXTS[self.fact]).format(**details)
        except KeyError:
            return f"{self.fact}: {dict(self.details)}"


class HookvizWarning(UserWarning):
    """Something could not be observed, or a recording grows without end; your program runs as it would have."""
