"""Writes the steps of module calls into a trace."""

from collections.abc import Sequence
from typing import Any

from hookviz.autograd.torch_internals import StopRecomputation
from hookviz.recorder.exception_tracker import describe_exception, exception_text
from hookviz.recorder.hook_observer import Hook, HookDictObserver
from hookviz.recorder.modules.argument_probe import ArgumentProbe
from hookviz.recorder.modules.module_hooks import ModuleHooksObserver
from hookviz.recorder.modules.module_outputs import ModuleOutputs
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.recorder.modules.pytree import PytreeLeaf
from hookviz.recorder.pass_sampler import is_outermost
from hookviz.recorder.session import Session
from hookviz.recorder.torch.compiled_regions import is_restoring_saved_tensors
from hookviz.support.source_code import describe_function
from hookviz.trace import Note, StepKind, StepRow


class CallLog:
    """Writes the events of module calls as steps, which refer to values and hooks by number."""

    def __init__(self, session: Session, modules: ModuleRegistry, probe: ArgumentProbe, outputs: ModuleOutputs) -> None:
        self.session, self.trace, self.modules, self.probe = session, session.trace, modules, probe
        self.outputs = outputs

    def add_step(
        self,
        kind: StepKind,
        call: int | None,
        before: Sequence[PytreeLeaf] | None = None,
        after: Sequence[PytreeLeaf] | None = None,
        **more: Any,
    ) -> None:
        """Add a step. A forward step belongs to the next pass, unless the running one needs it again."""
        labels = (_leaf_labels(before), _leaf_labels(after))
        values = {"before": _value_numbers(before), "after": _value_numbers(after), "labels": labels}
        self.trace.rows.append(StepRow(self._find_pass(), kind, call=call, **values, **more))

    def _find_pass(self) -> int:
        running = None if is_outermost() or not is_restoring_saved_tensors() else self.session.passes.current()
        return len(self.trace.roots) if running is None else running.number

    def hook_number(self, dict_observer: HookDictObserver, entry: tuple[Any, Hook], call: int) -> int:
        """Return the number of a module's forward hook in the trace."""
        shared = isinstance(dict_observer, ModuleHooksObserver) and dict_observer.shared
        return self.modules.hook_number(
            dict_observer.kind, self.trace.calls[call].module, entry[0], entry[1], shared=shared
        )

    def is_new(self, error: BaseException) -> bool:
        """Return whether no step names ``error`` yet, and mark it as named."""
        return self.session.exceptions.is_new(error)

    def add_exception(self, call: int, error: BaseException, hook: int | None) -> None:
        """Add a step for ``error``, which was raised in a call, in ``hook`` if that is known.

        Checkpointing ends calls early with an exception that it catches; such a step has the kind "cut_short".
        """
        if isinstance(error, StopRecomputation):
            self.add_step("cut_short", call, hook=hook, error=exception_text(error))
        else:
            self.add_step("exception", call, hook=hook, **describe_exception(error))

    def add_unobserved(self, call: int, hooks: Sequence[Hook]) -> None:
        """Add a step for each of ``hooks``: they ran without being observed, so their effects are unknown."""
        on = self.trace.plain_call(call)
        for hook in hooks:
            self.add_step("unobserved", call, note=Note.of("trace.unseen", hook=describe_function(hook)[0], on=on))


def _leaf_labels(leaves: Sequence[PytreeLeaf] | None) -> tuple[str, ...]:
    return tuple([leaf.label for leaf in leaves]) if leaves else ()


def _value_numbers(leaves: Sequence[PytreeLeaf] | None) -> Any:
    if leaves is None:
        return None
    return leaves[0].value if len(leaves) == 1 else tuple(leaf.value for leaf in leaves)
