"""The steps of module calls, written into a trace."""

from collections.abc import Sequence
from typing import Any

from hookviz.autograd.torch_internals import StopRecomputation
from hookviz.recorder.argument_probe import ArgumentProbe
from hookviz.recorder.exception_tracker import exception_text
from hookviz.recorder.hook_observer import Hook, HookDictObserver
from hookviz.recorder.module_hooks import ModuleHooksObserver
from hookviz.recorder.module_registry import ModuleRegistry
from hookviz.recorder.pytree import PytreeLeaf
from hookviz.recorder.session import Session
from hookviz.support.source_code import describe
from hookviz.trace import Note, StepRow


class CallLog:
    """Writes what happens in module calls as steps: values by their numbers, hooks by their rows."""

    def __init__(self, session: Session, modules: ModuleRegistry, probe: ArgumentProbe) -> None:
        self.session, self.trace, self.modules, self.probe = session, session.trace, modules, probe

    def step(
        self,
        kind: str,
        call: int,
        before: Sequence[PytreeLeaf] | None = None,
        after: Sequence[PytreeLeaf] | None = None,
        **more: Any,
    ) -> None:
        """Add a step; a forward belongs to the pass that will come next."""
        labels = (_leaf_labels(before), _leaf_labels(after))
        values = {"before": _value_numbers(before), "after": _value_numbers(after), "labels": labels}
        self.trace.rows.append(StepRow(len(self.trace.roots), kind, call=call, **values, **more))

    def hook(self, stage: HookDictObserver, entry: tuple[Any, Hook], call: int) -> int:
        """The number of a module's forward hook in the trace."""
        shared = isinstance(stage, ModuleHooksObserver) and stage.shared
        return self.modules.hook(stage.kind, self.trace.calls[call].module, entry[0], entry[1], shared=shared)

    def is_new(self, error: BaseException) -> bool:
        """Whether no step names ``error`` yet; from now on one does."""
        return self.session.exceptions.is_new(error)

    def exception(self, call: int, error: BaseException, hook: int | None) -> None:
        """``error`` came up in a call, in ``hook`` if it is known; checkpointing ends calls by one that it catches."""
        kind = "cut_short" if isinstance(error, StopRecomputation) else "exception"
        self.step(kind, call, hook=hook, error=exception_text(error))

    def unobserved(self, call: int, hooks: Sequence[Hook]) -> None:
        """Hooks have run that were added without a sign: what each of them did is unknown."""
        on = self.trace.call(call)
        for hook in hooks:
            self.step("unobserved", call, note=Note.of("trace.unseen", hook=describe(hook)[0], on=on))


def _leaf_labels(leaves: Sequence[PytreeLeaf] | None) -> tuple[str, ...]:
    return tuple([leaf.label for leaf in leaves]) if leaves else ()


def _value_numbers(leaves: Sequence[PytreeLeaf] | None) -> Any:
    if leaves is None:
        return None
    return leaves[0].value if len(leaves) == 1 else tuple(leaf.value for leaf in leaves)
