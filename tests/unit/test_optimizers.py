"""The steps of optimizers and the hooks around them are followed, and nothing about an optimizer changes."""

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.optim.optimizer as torch_optimizer
from scenes import leaf, silent
from shown import shown_firings, shown_steps
from torch.optim import SGD, Optimizer

import hookviz as hv
from hookviz.recorder.optimizer_steps import MAX_COMPARED, ObservedStepHooks

STEPS = ("step_pre_hook", "optimizer_step", "step_post_hook")
Pair = tuple[torch.Tensor, Optimizer]


def pair() -> Pair:
    """A parameter with a gradient, and the optimizer that holds it."""
    w = leaf(2.0)
    w.grad = torch.tensor(10.0)
    return w, SGD([w], lr=0.1)


def told(trace: hv.Trace) -> list[tuple[Any, ...]]:
    """(kind, optimizer, hook, effect) of each step that is about an optimizer."""
    return [(s.kind, s.on, s.hook and s.hook.name, s.effect) for s in trace.steps if s.row.optimizer >= 0]


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    exits = torch.autograd.profiler.record_function.__exit__
    yield
    assert torch.autograd.profiler.record_function.__exit__ is exits
    assert "_optimizer_step_pre_hooks" not in vars(Optimizer)
    for kept in (torch_optimizer._global_optimizer_pre_hooks, torch_optimizer._global_optimizer_post_hooks):
        assert type(kept) is not ObservedStepHooks and len(kept) == 0


def clip(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    for group in optimizer.param_groups:
        torch.nn.utils.clip_grad_norm_(group["params"], 1.0)


# -- order


def test_hooks_run_in_the_order_of_torch_around_the_step() -> None:
    w, opt = pair()
    ran: list[str] = []

    def noting(name: str) -> Callable[..., None]:
        hook = silent(name)
        return lambda *given: (ran.append(name), hook())[1]

    handles = [
        opt.register_step_post_hook(noting("own post")),
        opt.register_step_pre_hook(noting("own pre")),
        torch_optimizer.register_optimizer_step_post_hook(noting("global post")),
        torch_optimizer.register_optimizer_step_pre_hook(noting("global pre")),
    ]
    with hv.record() as trace:
        opt.step()
    for handle in handles:
        handle.remove()
    assert ran == ["global pre", "own pre", "own post", "global post"]
    steps = [step for step in trace.steps if step.kind in STEPS]
    assert [s.kind for s in steps] == ["step_pre_hook"] * 2 + ["optimizer_step"] + ["step_post_hook"] * 2
    assert [s.hook and (s.hook.on, s.hook.kept_in.rpartition(".")[2]) for s in steps] == [
        ("all optimizers", "_global_optimizer_pre_hooks"),
        ("opt", "_optimizer_step_pre_hooks"),
        None,
        ("opt", "_optimizer_step_post_hooks"),
        ("all optimizers", "_global_optimizer_post_hooks"),
    ]
    assert w.item() == 1


def test_the_step_stands_between_the_passes() -> None:
    w, opt = pair()
    with hv.record() as trace:
        for _ in range(2):
            opt.zero_grad()
            (w * 3).backward()
            opt.step()
    assert [(s.kind, s.pass_id) for s in trace.steps if s.kind in ("seed", "optimizer_step")] == [
        ("seed", 0),
        ("optimizer_step", 0),
        ("seed", 1),
        ("optimizer_step", 1),
    ]


def test_a_pass_in_a_closure_stands_between_the_pre_hooks_and_the_step() -> None:
    w = leaf(2.0)
    opt = torch.optim.LBFGS([w], max_iter=1)
    opt.register_step_pre_hook(silent("pre"))

    def closure() -> torch.Tensor:
        loss = w * 3
        loss.backward()
        return loss

    with hv.record() as trace:
        opt.step(closure)
    kinds = [step.kind for step in trace.steps if step.kind in ("seed", *STEPS)]
    assert kinds[0] == "step_pre_hook" and kinds[-1] == "optimizer_step" and set(kinds[1:-1]) == {"seed"}


# -- what a hook did

EFFECTS: dict[str, tuple[Callable[..., Any], str]] = {
    "looks": (silent("looks"), "kept"),
    "clips": (clip, "edited"),
    "drops a gradient": (lambda opt, args, kwargs: opt.zero_grad(), "edited"),
    "writes through .data": (lambda opt, args, kwargs: clamp(opt), "edited"),
    "changes a rate": (lambda opt, args, kwargs: opt.param_groups[0].update(lr=0.5), "settings"),
    "writes a setting that is a tensor": (
        lambda opt, args, kwargs: opt.param_groups[0]["own"].fill_(1) > 1 or None,
        "settings",
    ),
    "replaces the arguments": (lambda opt, args, kwargs: (args, dict(kwargs)), "replaced"),
}


@pytest.mark.parametrize(("hook", "effect"), EFFECTS.values(), ids=EFFECTS)
def test_what_a_step_pre_hook_did_is_told(hook: Any, effect: str) -> None:
    _, opt = pair()
    opt.param_groups[0]["own"] = torch.zeros(1)
    opt.register_step_pre_hook(hook)
    with hv.record() as trace:
        opt.step()
    assert [step.effect for step in trace.firings] == [effect if effect != "settings" else "edited"]
    assert trace.firings[0].sentence.endswith(
        {
            "kept": "ran and changed no parameter, gradient or setting.",
            "settings": "changed the settings of the optimizer.",
            "edited": "edited the parameters or their gradients in place.",
            "replaced": "replaced the arguments of step().",
        }[effect]
    )


def clamp(opt: Optimizer) -> None:
    for group in opt.param_groups:
        for parameter in group["params"]:
            parameter.data.clamp_(-0.5, 0.5)


def test_of_many_numbers_nothing_is_claimed() -> None:
    w = torch.ones(MAX_COMPARED + 1, requires_grad=True)
    opt = SGD([w], lr=0.1)
    opt.register_step_post_hook(lambda opt, args, kwargs: clamp(opt))
    with hv.record() as trace:
        opt.step()
    assert [step.effect for step in trace.firings] == ["ran"]
    assert trace.firings[0].sentence.endswith("ran around the step of opt.")
    assert "  ran  " in repr(trace.firings)


def test_a_parameter_that_is_no_number_is_like_itself() -> None:
    w, opt = pair()
    w.data.fill_(float("nan"))
    opt.register_step_pre_hook(silent("looks"))
    with hv.record() as trace:
        opt.step()
    assert [step.effect for step in trace.firings] == ["kept"]


def test_a_post_hook_that_edits_a_parameter_is_told() -> None:
    w, opt = pair()

    def bound(*given: Any) -> None:
        with torch.no_grad():
            w.clamp_(-0.5, 0.5)

    opt.register_step_post_hook(bound)
    with hv.record() as trace:
        opt.step()
    assert told(trace)[1:] == [("step_post_hook", "opt", "bound", "edited")]
    assert w.item() == 0.5


def test_the_step_tells_its_optimizer_its_class_and_how_many_parameters() -> None:
    _, opt = pair()
    with hv.record() as trace:
        opt.step()
    assert trace.steps[0].sentence == "opt (SGD) takes its step; it holds 1 parameter(s)."


def test_an_optimizer_that_no_variable_holds_is_called_after_its_class() -> None:
    held = [pair()[1]]
    with hv.record() as trace:
        held[0].step()
    assert [step.on for step in trace.steps] == ["SGD"]


# -- hooks that change hooks


def test_a_hook_that_takes_itself_away_runs_once_as_without_recording() -> None:
    _, opt = pair()
    handle = opt.register_step_pre_hook(lambda *given: handle.remove())
    with hv.record() as trace:
        opt.step()
        opt.step()
    assert [kind for kind, *_ in told(trace)] == ["step_pre_hook", "optimizer_step", "optimizer_step"]


@pytest.mark.parametrize("watch", [hv.record, nullcontext])
def test_a_hook_that_removes_another_gets_pythons_own_error(watch: Any) -> None:
    _, opt = pair()
    opt.register_step_pre_hook(lambda *given: handle.remove())
    handle = opt.register_step_pre_hook(silent("second"))
    with watch(), pytest.raises(RuntimeError, match="OrderedDict mutated during iteration") as raised:
        opt.step()
    folder = str(Path(hv.__file__).parent)
    assert not [entry for entry in raised.traceback if str(entry.path).startswith(folder)]


def test_hooks_registered_while_recording_run_and_their_handles_last() -> None:
    _, opt = pair()
    with hv.record() as trace:
        handles = [
            torch_optimizer.register_optimizer_step_pre_hook(silent("pre")),
            torch_optimizer.register_optimizer_step_post_hook(silent("post")),
            opt.register_step_post_hook(silent("own")),
        ]
        opt.step()
    assert [name for _, _, name, _ in told(trace)] == ["pre", None, "own", "post"]
    for handle in handles:
        handle.remove()
    assert len(opt._optimizer_step_post_hooks) == 0


def test_a_global_hook_may_register_an_own_one_before_the_step() -> None:
    _, opt = pair()
    once = torch_optimizer.register_optimizer_step_pre_hook(
        lambda opt, *rest: opt.register_step_pre_hook(silent("new")) and None
    )
    with hv.record() as trace:
        opt.step()
    once.remove()
    assert [name for _, _, name, _ in told(trace)][1:] == ["new", None]


# -- exceptions


def boom(*given: Any) -> None:
    raise KeyError("x")


@pytest.mark.parametrize("kind", ["pre", "post"])
@pytest.mark.parametrize("hook", [boom, lambda: None], ids=["raises", "takes no arguments"])
def test_an_exception_in_a_step_hook_names_the_hook(kind: str, hook: Any) -> None:
    _, opt = pair()
    getattr(opt, f"register_step_{kind}_hook")(silent("first"))
    getattr(opt, f"register_step_{kind}_hook")(hook)
    with hv.record() as trace, pytest.raises((KeyError, TypeError)) as raised:
        opt.step()
    last = trace.steps[-1]
    assert last.kind == "exception" and last.on == "opt" and last.hook is not None
    assert last.hook.name == ("boom" if hook is boom else "lambda: None")
    assert not [entry for entry in raised.traceback if "hookviz/" in str(entry.path)]


def test_a_pre_hook_that_returns_what_torch_refuses_is_named() -> None:
    _, opt = pair()
    opt.register_step_pre_hook(lambda *given: 3)
    with hv.record() as trace, pytest.raises(RuntimeError, match="must return None or a tuple"):
        opt.step()
    assert trace.steps[-1].hook is not None and trace.steps[-1].hook.name == "lambda *given: 3"


def test_an_exception_in_the_step_names_the_optimizer() -> None:
    class Stuck(SGD):
        def step(self, closure: Any = None) -> Any:
            raise ArithmeticError("stuck")

    opt = Stuck([leaf(1.0)])
    with hv.record() as trace:
        for _ in range(2):  # the second exception may get the address of the first
            with pytest.raises(ArithmeticError):
                opt.step()
    assert [(s.kind, s.on, s.row.error, s.hook) for s in trace.steps] == [
        ("exception", "opt", "ArithmeticError: stuck", None)
    ] * 2


def test_an_exception_in_the_closure_is_told_once() -> None:
    _, opt = pair()

    class Breaks(torch.nn.Module):
        def forward(self) -> None:
            raise KeyError("deep")

    net = Breaks()
    with hv.record() as trace, pytest.raises(KeyError):
        opt.step(net)
    assert [(s.kind, s.on) for s in trace.steps] == [("call", "net"), ("exception", "net")]


# -- nothing changes


def test_an_optimizer_is_pickled_and_copied_as_ever() -> None:
    _, opt = pair()
    opt.register_step_pre_hook(clip)
    taken: list[Any] = []

    def take(*given: Any) -> None:
        taken.append((pickle.dumps(opt), repr(opt.state_dict()), sorted(vars(copy.deepcopy(opt)))))

    opt.register_step_post_hook(take)
    before, kept = opt._optimizer_step_pre_hooks, dict(vars(opt))
    opt.step()
    opt.param_groups[0]["params"][0].data.fill_(2.0)
    taken.append(None)
    with hv.record():
        assert opt._optimizer_step_pre_hooks is before
        opt.step()
    once, _, again = taken
    assert once[1:] == again[1:] and len(once[0]) == len(again[0])
    assert vars(opt) == kept and list(before.values()) == [clip]


def test_an_optimizer_made_while_recording_is_like_any_other() -> None:
    with hv.record() as trace:
        w, opt = pair()
        opt.register_step_pre_hook(clip)
        opt.step()
    assert type(opt._optimizer_step_pre_hooks).__name__ == "OrderedDict"
    assert [name for _, _, name, _ in told(trace)] == ["clip", None]
    assert w.item() == pytest.approx(1.9)


def test_a_scheduler_does_not_hide_the_step() -> None:
    _, opt = pair()
    scheduler = torch.optim.lr_scheduler.StepLR(opt, 1)
    with hv.record() as trace:
        opt.step()
        scheduler.step()
    assert [(kind, on) for kind, on, *_ in told(trace)] == [("optimizer_step", "opt")]


def test_a_recording_that_begins_inside_a_step_leaves_that_step_alone() -> None:
    _, opt = pair()
    held: list[Any] = []

    def open_one(*given: Any) -> None:
        held.append(hv.record())
        held.append(held[0].__enter__())

    handle = opt.register_step_pre_hook(open_one)
    after = opt.register_step_post_hook(silent("after"))
    opt.step()
    handle.remove()
    after.remove()
    opt.step()
    held[0].__exit__(None, None, None)
    assert [kind for kind, *_ in told(held[1])] == ["optimizer_step"]
    assert held[1].notes == []


def test_steps_are_saved_loaded_and_played(tmp_path: Path) -> None:
    w, opt = pair()
    opt.register_step_pre_hook(clip)
    with hv.record() as trace:
        (w * 3).backward()
        opt.step()
    trace.save(tmp_path / "trace.json")
    loaded = hv.load(tmp_path / "trace.json")
    assert loaded == trace
    titles = [frame["title"] for frame in shown_steps(loaded.content())[-2:]]
    assert titles == ["step pre-hook ① on opt", "opt takes a step"]
    assert shown_firings(loaded.content())[0]["change"] == ""
    assert "_optimizer_step_pre_hooks, first of 1" in shown_steps(loaded.content())[-2]["registration"]
