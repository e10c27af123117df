"""Judges the module with four kinds of hooks that learners write in lesson 10."""

from collections.abc import Callable
from typing import Any

from hookviz.course import engine, mistaken_engines
from hookviz.course.judges import Feedback, call_safely, check_callable
from hookviz.course.random_graphs import GRAPHS, REGISTER, recognise, run_module_program

_MODULE_MISTAKES = {
    "pre_lost": mistaken_engines.LosesForwardPreHooks,
    "forward_lost": mistaken_engines.LosesForwardHooks,
    "entrance_early": mistaken_engines.EntersEarly,
    "exit_early": mistaken_engines.ExitsEarly,
    "old_node": mistaken_engines.HasNoEntrance,
}
_CALLS = {"forward_pre": "hook(self, (x,))", "forward": "hook(self, (x,), output)"}


def judge_module(answer: Any) -> Feedback:
    """Compare the learner's module with torch's, on chains with random hooks of four kinds."""
    if fault := check_callable(answer):
        return fault
    found = ((_log_of_module(answer, seed), run_module_program(seed)) for seed in range(GRAPHS))
    different = next(((log, expected) for log, expected in found if log != expected), None)
    if different is None:
        return Feedback("right")
    if name := recognise(_log_of_module, answer, _MODULE_MISTAKES):
        return Feedback(name)
    seen: Feedback | None = call_safely(_explain_ends, answer)[0]  # a module may be anything
    if seen:
        return seen
    log, expected = different
    return Feedback("fails", log) if isinstance(log, str) else _explain_module(log, expected)


def _log_of_module(module_class: Any, seed: int) -> Any:
    """The log of a program with a module, or the error."""
    log, error = call_safely(run_module_program, seed, module_class)
    return error or log


def _explain_ends(answer: Any) -> Feedback | None:
    """Say whether ``at_the_exit`` and ``at_the_entrance`` are called as post-hooks of nodes, one after the other."""
    factor, x = engine.Value(2.0), engine.Value(3.0)
    module, error = call_safely(answer, lambda value: value * factor)
    if error:
        return None
    called: list[tuple[str, int]] = []
    in_forward: list[str] = []
    running = [True]

    def note(name: str) -> Callable[..., None]:
        def end(*given: Any) -> None:
            called.append((name, len(given)))
            in_forward.extend([name] * running[0])

        return end

    ends = ("at_the_exit", "at_the_entrance")
    for name in ends:
        setattr(module, name, note(name))
    output, error = call_safely(module, x)
    if in_forward:
        return Feedback("at_once", in_forward[0])
    running[0] = False
    if error or call_safely(engine.backward, output)[1]:
        return None
    for name, count in called:
        if count == 1:
            return Feedback("pre_hook" if name == "at_the_exit" else "entrance")
    names = [name for name, _ in called]
    if "at_the_exit" not in names:
        return Feedback("no_exit")
    if x.grad is None or factor.grad is None:
        return Feedback("cut")
    if "at_the_entrance" not in names:
        return Feedback("no_entrance")
    return None if names == list(ends) else Feedback("exchanged")


def _explain_module(log: list[Any], expected: list[Any]) -> Feedback:
    missing = [kind for kind in REGISTER if _count(log, kind) < _count(expected, kind)]
    if missing:
        return Feedback("missing", f"{missing[0]}_hooks")
    if [entry[:2] for entry in log[:-1]] != [entry[:2] for entry in expected[:-1]]:
        return Feedback("order")
    different, wanted = next((entry, right) for entry, right in zip(log, expected, strict=False) if entry != right)
    kind = different[0]
    if kind in _CALLS and (not different[2] or list(map(type, different[3])) != list(map(type, wanted[3]))):
        return Feedback("call", f"{kind}_hooks", _CALLS[kind])
    return Feedback("result") if kind == "numbers" else Feedback("given", f"{kind}_hooks")


def _count(log: list[Any], kind: str) -> int:
    return sum(entry[0] == kind for entry in log)
