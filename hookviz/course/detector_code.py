"""What the code of a detector may not use: recordings, weak references, lists of objects, private names."""

from collections.abc import Iterator
from dis import Instruction, get_instructions
from types import CodeType, FunctionType, ModuleType
from typing import Any

_FORBIDDEN_MODULES = {"gc", "hookviz", "inspect", "weakref"}
_ALLOWED_PACKAGE = "hookviz.course"
"""Has ``make_twin``, and the tools that a student kept from the lessons."""
_DRAWS_FAULTS = "hookviz.course.fault_draw"
_OPENS_OBJECTS = {"__closure__", "__code__", "__dict__", "__globals__"}


def find_forbidden_name(detector: Any) -> str | None:
    """Return a name that a detector, or a function that it calls, may not use; None if there is none.

    It looks at the code alone: what gets around it, the lecturer's question finds.

    >>> find_forbidden_name(lambda patient: patient.net.stage1._forward_hooks)
    '_forward_hooks'
    >>> find_forbidden_name(lambda patient: patient.net.stage1.register_forward_hook(print)) is None
    True
    """
    for function in _list_functions(detector):
        for instruction in _instructions(function.__code__):
            if _is_forbidden(instruction, function.__globals__):
                return str(instruction.argval)
    return None


def _list_functions(detector: Any) -> list[FunctionType]:
    """List a detector and the functions of its own notebook or file that it uses."""
    found: list[FunctionType] = []
    pending = [detector]
    while pending:
        function = pending.pop()
        if not isinstance(function, FunctionType) or function in found:
            continue
        if found and function.__globals__ is not found[0].__globals__:
            continue
        found.append(function)
        names = [step.argval for step in _instructions(function.__code__) if step.opname == "LOAD_GLOBAL"]
        pending += [function.__globals__.get(name) for name in names]
    return found


def _instructions(code: CodeType) -> Iterator[Instruction]:
    """The instructions of some code and of the functions inside it."""
    yield from get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)


def _is_forbidden(instruction: Instruction, space: dict[str, Any]) -> bool:
    name = str(instruction.argval)
    if instruction.opname == "LOAD_GLOBAL":
        return _is_forbidden_module(_module_of(space.get(name)))
    if instruction.opname == "IMPORT_NAME":
        return _is_forbidden_module(name)
    is_private = name.startswith("_") and not name.endswith("__")
    return instruction.opname in {"LOAD_ATTR", "LOAD_METHOD"} and (is_private or name in _OPENS_OBJECTS)


def _module_of(value: Any) -> str:
    """The name of a module, or of the one that a function, a class or an object comes from."""
    if isinstance(value, ModuleType):
        return value.__name__
    return str(getattr(value, "__module__", ""))


def _is_forbidden_module(name: str) -> bool:
    if name == _ALLOWED_PACKAGE or name.startswith(f"{_ALLOWED_PACKAGE}."):
        return name == _DRAWS_FAULTS
    return name.split(".")[0] in _FORBIDDEN_MODULES
