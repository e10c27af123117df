"""What is special about the two kinds of forward hooks: what torch calls them with, and what their first call tells.

Those on the graph of a pass have their classes in ``hookviz.recorder.passes.hook_kinds``.
"""

from typing import TYPE_CHECKING, Any

from hookviz.recorder.modules.pytree import PytreeLeaf, labelled_arguments, labelled_leaves

if TYPE_CHECKING:
    from hookviz.recorder.modules.module_call import ModuleCall


class ForwardPreHooks:
    """Hooks in front of a module's forward: torch calls them with the module, its arguments, and perhaps keywords."""

    def measure(self, call: "ModuleCall", given: tuple[Any, ...]) -> list[PytreeLeaf]:
        """Measure what a hook may change."""
        positional = call.log.probe.measure(labelled_arguments(call.module, given[1], {}), again=True)
        keywords = labelled_arguments(call.module, (), given[2] if len(given) > 2 else {})
        leaves = call.log.probe.measure(keywords, again=True)
        return [*positional, *(leaf._replace(by_keyword=True) for leaf in leaves)]

    def enter(self, call: "ModuleCall", given: tuple[Any, ...], now: list[PytreeLeaf]) -> None:
        """Record what happened before the first hook of a dict is called."""


class ForwardHooks:
    """Hooks behind a module's forward: torch calls them with the module, its arguments, and what it returned."""

    def measure(self, call: "ModuleCall", given: tuple[Any, ...]) -> list[PytreeLeaf]:
        """Measure the output."""
        return call.log.probe.measure(labelled_leaves("output", given[-1]), again=True)

    def enter(self, call: "ModuleCall", given: tuple[Any, ...], now: list[PytreeLeaf]) -> None:
        """Record that the forward has returned, unless torch is here because of an exception."""
        if call.is_failing:
            return
        call.finish_hooks(now)  # a last global hook without an observer after it: the module's own hooks come next
        if not call.forward_logged:
            call.log.outputs.note(call.index, labelled_leaves("output", given[-1]))
            call.log_forward(now)


FORWARD_HOOKS: dict[str, ForwardPreHooks | ForwardHooks] = {
    "forward_pre_hook": ForwardPreHooks(),
    "forward_hook": ForwardHooks(),
}
"""Kind of hook → what is special about it."""
