"""Right and wrong answers to what lesson 05 asks."""

from contextlib import nullcontext
from functools import partial
from typing import Any

from tests.course.answers.common import changed, raises


def register_hooks(model: Any, hook: Any) -> list[Any]:
    return [layer.register_forward_hook(hook) for layer in model]


watches = partial(
    changed,
    """
from contextlib import contextmanager

@contextmanager
def watched(model, hook):
    handles = [layer.register_forward_hook(hook) for layer in model]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
""",
    "watched",
)
LET_GO = "for handle in handles:\n            handle.remove()"


GROUP = """
from contextlib import AbstractContextManager

shared = []

class HookGroup(AbstractContextManager):
    def __init__(self):
        self.handles = []

    def add(self, module, hook):
        self.handles.append(module.register_forward_hook(hook))

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()
"""
ADD = "self.handles.append(module.register_forward_hook(hook))"
REMOVE = "handle.remove()"
changed_group = partial(changed, GROUP, "HookGroup")
HookGroup = changed_group()


RIGHT: dict[str, Any] = {
    "05.1": 6,
    "05.2": 2,
    "05.3": 64,
    "05.4": "CADFEB",
    "05.5": 210,
    "05.6": lambda factor: lambda grad: grad * factor,
    "05.7": watches(),
    "05.8": HookGroup,
}
WRONG: dict[str, list[Any]] = {
    "05.1": [3, 9, 1, 0, 5],
    "05.2": [3, 0, 1, 5],
    "05.3": [24, 4, 12, 9, 1, 5],
    "05.4": ["ABC", "AADFEB", "CCDFEB", "CAAFEB", ["C", "A", "D", "D", "E", "B"], "c, a, d, f, f, b", "CADFEC"],
    "05.5": [20, 190, 400, 1000, 5],
    "05.6": [
        lambda factor: factor * 10,
        lambda factor: None,
        lambda factor: lambda grad: grad * 4,
        lambda factor: lambda grad: grad + factor,
        lambda factor: lambda grad: grad.mul_(factor),
        lambda factor: lambda grad: print(grad * factor),
        lambda factor: lambda grad: factor,
        raises,
    ],
    "05.7": [
        register_hooks,
        watches(("@contextmanager\n", "")),
        watches((LET_GO, "pass")),
        watches(("finally:", "except ValueError:\n        raise\n    else:")),
        watches(("in model]", "in [model, *model]]")),
        watches((LET_GO, "for layer in model:\n            layer._forward_hooks.clear()")),
        lambda model, hook: model[0].register_forward_hook(hook),
        lambda model, hook: nullcontext(),
        watches((LET_GO, f"{LET_GO}\n        raise OSError")),
    ],
    "05.8": [
        nullcontext,
        list,
        changed_group((ADD, "pass")),
        changed_group((ADD, f"if not self.handles:\n            {ADD}")),
        changed_group((REMOVE, "pass")),
        changed_group((REMOVE, f"if error[0] is None:\n                {REMOVE}")),
        changed_group((REMOVE, f"{REMOVE}\n        return True")),
        changed_group(
            (ADD, "module.register_forward_hook(hook)\n        self.handles.append(module._forward_hooks)"),
            (REMOVE, "handle.clear()"),
        ),
        changed_group(("self.handles = []", "self.handles = shared")),
        changed_group(("self, *error", "self")),
    ],
}
