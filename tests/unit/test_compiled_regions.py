"""What cannot be looked into says so: compiled regions, the fast path of transformers, and what is computed again."""

import subprocess
import sys
import threading
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import Doubled, Net, Waits, leaf, plain, silent, steps_of, told, written
from shown import shown_steps
from torch import nn
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from tests.waiting import PATIENCE

BACKENDS = ("eager", "aot_eager")


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("compiler")]


# -- compiled regions


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_module_is_one_call_that_says_so(backend: str) -> None:
    net, x = Net(), leaf(3.0)
    net.l1.register_forward_hook(silent("inside"))
    fast = torch.compile(net, backend=backend)
    with hv.record() as trace:
        for _ in range(2):  # the first call compiles: what the compiler tries out is not what happened
            fast(x).backward()
    assert [(kind, on) for kind, on, *_ in told(trace, "call", "compiled", "forward")] == [
        ("call", "fast"), ("compiled", "fast"), ("forward", "fast"),
        ("call", "fast (call 2)"), ("compiled", "fast (call 2)"), ("forward", "fast (call 2)"),
    ]  # fmt: skip
    assert (
        steps_of(trace, "compiled")[0].sentence
        == "fast is a compiled region: hookviz does not see what runs inside, hooks included."
    )
    assert len(trace.roots) == 2 and {row.kind for row in trace.modules} == {"OptimizedModule"}
    assert written(trace)["x"] == (4, 8)
    assert trace.notes == [] and x.grad.item() == 8


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_function_is_one_step_under_its_name(backend: str) -> None:
    net, x = Net(), leaf(3.0)

    def squeeze(x: torch.Tensor) -> torch.Tensor:
        return net(x).sin()

    fast = torch.compile(squeeze, backend=backend)
    with hv.record() as trace:
        fast(x).backward()
        net(x)
    compiled = steps_of(trace, "compiled")
    assert [step.sentence for step in compiled] == [
        "squeeze is a compiled region: hookviz does not see what runs inside, hooks included."
    ]
    assert [step.on for step in steps_of(trace, "call")] == ["net", "net.l1", "net.l2"]
    assert len(trace.roots) == 1


def test_a_module_compiled_in_place_and_its_own_hooks() -> None:
    net, x = Doubled(), leaf(3.0)
    net.compile(backend="eager")
    with hv.record() as trace:
        net(x)
    assert [(kind, on) for kind, on, *_ in told(trace, "call", "compiled", "forward")] == [
        ("call", "net"), ("compiled", "net"), ("forward", "net"),
    ]  # fmt: skip


def test_hooks_of_the_compiled_module_itself_are_seen() -> None:
    fast = torch.compile(Doubled(), backend="eager")
    fast.register_forward_hook(lambda module, args, output: output * 10)
    with hv.record() as trace:
        assert fast(leaf(3.0)).item() == 60
    assert [(plain(s.before), plain(s.after)) for s in trace.firings] == [(6, 60)]


def test_an_exception_in_a_compiled_region_ends_it() -> None:
    def breaks(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("inside")

    net, x = Doubled(), leaf(3.0)
    fast = torch.compile(breaks, backend="eager")
    with hv.record() as trace:
        with pytest.raises(ValueError, match="inside"):
            fast(x)
        net(x)
    assert [step.kind for step in trace.steps] == ["compiled", "call", "forward"]


def test_a_compiled_region_in_a_module_belongs_to_its_call() -> None:
    fast = torch.compile(torch.sin, backend="eager")

    class Uses(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return fast(x)

    net = Uses()
    with hv.record(net) as trace:
        net(leaf(3.0))
    assert [(s.kind, s.on) for s in trace.steps] == [("call", "net"), ("compiled", "net"), ("forward", "net")]
    assert steps_of(trace, "compiled")[0].sentence.startswith("sin is a compiled region")


def test_what_is_compiled_while_recording_stays_compiled() -> None:
    calls: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        calls.append(len(inputs))
        return graph.forward

    fast = torch.compile(torch.sin, backend=backend)
    with hv.record():
        fast(torch.ones(2))
    with hv.record():
        fast(torch.ones(2))
    assert calls == [1]
    assert "seen" not in torch._dynamo.eval_frame._maybe_set_eval_frame.__name__


def test_a_graph_of_the_users_is_a_module_like_any_other() -> None:
    net = torch.fx.symbolic_trace(Net())
    with hv.record() as trace:
        net(leaf(3.0)).backward()
    assert trace.steps[0].on == "net"


@pytest.mark.parametrize("make", [torch.jit.script, lambda net: torch.jit.trace(net, torch.tensor(3.0))])
def test_a_scripted_module_is_one_call(make: Any) -> None:
    net = make(Net())
    with hv.record(net) as trace:
        assert net(leaf(3.0)).item() == 12
    assert [s.kind for s in trace.steps] == ["call", "forward"] and trace.notes == []


def test_a_compiled_region_is_saved_and_played(tmp_path: Path) -> None:
    fast = torch.compile(torch.sin, backend="eager")
    with hv.record() as trace:
        fast(leaf(3.0)).backward()
    trace.save(tmp_path / "trace.json")
    frame = shown_steps(hv.load(tmp_path / "trace.json").player().content)[0]
    assert (frame["title"], frame["glyph"]) == ("a compiled region", "note")


# -- the fast path of transformers


def encoder() -> nn.Module:
    torch.manual_seed(0)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), 2).eval()


def test_what_the_fast_path_swallows_is_told() -> None:
    net, x = encoder(), torch.ones(1, 3, 4)
    with torch.no_grad():
        expected = net(x)
        with hv.record(net) as trace:
            assert torch.equal(net(x), expected)
    assert [s.on for s in steps_of(trace, "call")] == ["net", "net.layers.0", "net.layers.1"]
    assert [s.on for s in steps_of(trace, "fast_path")] == ["net.layers.0", "net.layers.1"]
    assert "its inner modules and their hooks did not run" in steps_of(trace, "fast_path")[0].sentence


def test_the_fast_path_is_switched_off_on_request_and_comes_back() -> None:
    net, x = encoder(), torch.ones(1, 3, 4)
    with torch.no_grad():
        fast = net(x)
        with hv.record(net, fastpath=False) as trace:
            slow = net(x)
    assert steps_of(trace, "fast_path") == [] and len(trace.calls) == 19
    assert torch.allclose(fast, slow, atol=1e-5)
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_switch_is_left_as_it_was_even_after_an_exception(enabled: bool) -> None:
    torch.backends.mha.set_fastpath_enabled(enabled)
    try:
        with pytest.raises(ZeroDivisionError), hv.record(fastpath=False):
            1 // torch.backends.mha.get_fastpath_enabled()
        assert torch.backends.mha.get_fastpath_enabled() is enabled
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_a_layer_that_takes_the_slow_path_says_nothing() -> None:
    net = encoder()
    with hv.record(net) as trace:
        net(torch.ones(1, 3, 4, requires_grad=True)).sum().backward()
    assert steps_of(trace, "fast_path") == []


# -- checkpointing


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_what_checkpointing_computes_again_is_marked(use_reentrant: bool) -> None:
    net, x = Net(), leaf(3.0)
    ran: list[str] = []
    net.l1.register_forward_hook(lambda module, args, output: ran.append("l1"))
    with hv.record(net) as trace:
        checkpoint(net, x, use_reentrant=use_reentrant).backward()
    assert [(trace.call(i), call.recomputed) for i, call in enumerate(trace.calls)] == [
        ("net", False),
        ("net.l1", False),
        ("net.l2", False),
        ("net (call 2)", True),
        ("net.l1 (call 2)", True),
        ("net.l2 (call 2)", True),
    ]
    assert len(ran) == len(trace.firings) == 2
    again = [s.sentence for s in steps_of(trace, "call") if "checkpointing recomputes it" in s.sentence]
    assert len(again) == 3
    assert written(trace)["x"] == (None, 4) and x.grad.item() == 4
    assert trace.notes == []


def test_where_checkpointing_has_enough_the_pass_goes_on() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Sigmoid(), torch.nn.Linear(1, 1))
    with hv.record(net) as trace:
        checkpoint(net, leaf([3.0]), use_reentrant=False).backward()
    assert steps_of(trace, "exception") == []
    [cut] = steps_of(trace, "cut_short")
    assert cut.sentence.startswith("net.2 (call 2) is cut short: checkpointing has recomputed all")
    assert trace.steps[-1].kind == "accumulate"
    assert [frame["glyph"] for frame in shown_steps(trace.content()) if frame["kind"] == "cut_short"] == ["module"]


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_gradients_in_a_checkpoint_are_seen(use_reentrant: bool) -> None:
    """Reentrant checkpointing runs a pass in the pass; the other kind fills in what the nodes had not saved."""
    net, x = Doubled(), leaf(3.0)
    net.weight.register_hook(lambda grad: grad * 100)
    with hv.record(net) as trace:
        checkpoint(net, x, use_reentrant=use_reentrant).backward()
    assert [(plain(s.before), plain(s.after)) for s in trace.firings] == [(3, 300)]
    assert len(trace.roots) == (2 if use_reentrant else 1)
    assert net.weight.grad.item() == 300


@pytest.mark.parametrize("use_reentrant", [True, False, None])
def test_a_module_that_a_hook_calls_is_not_computed_again(use_reentrant: bool | None) -> None:
    """Not even where it is called through checkpointing, for the first time."""
    net, x = Doubled(), leaf(3.0)

    def calls(grad: torch.Tensor) -> None:
        given = grad.detach().requires_grad_()
        if use_reentrant is None:
            net(given)
        else:
            checkpoint(net, given, use_reentrant=use_reentrant)

    x.register_hook(calls)
    with hv.record(net) as trace:
        (x * 2).backward()
    assert [call.recomputed for call in trace.calls] == [False]
    assert steps_of(trace, "call")[0].sentence == "net is called during backward, with 2."


# -- hooks of a kind that is not followed


def test_hooks_that_no_recording_follows_are_named() -> None:
    net = nn.Sequential(*(nn.Linear(1, 1) for _ in range(5)))
    optimizer = torch.optim.SGD(net.parameters())
    for layer in net:
        layer.register_state_dict_pre_hook(silent("saves"))
    net.register_load_state_dict_post_hook(silent("loads"))
    optimizer.register_state_dict_post_hook(silent("keeps"))
    handle = torch.nn.modules.module.register_module_parameter_registration_hook(silent("sees"))
    try:
        with hv.record(net) as trace:
            net.load_state_dict(net.state_dict())
            optimizer.step()
    finally:
        handle.remove()
    notes = [note for note in trace.notes if "not recorded" in note]
    for kind, on in (
        ("state_dict pre-hook", "net.0, net.1, net.2, …"),
        ("load_state_dict hook", "net"),
        ("state_dict hook", "optimizer"),
        ("parameter registration hook", "all modules"),
    ):
        assert any(f"({kind}, on {on})" in note for note in notes), (kind, notes)
    assert len(notes) == 4


def test_hooks_of_a_module_that_was_only_called_are_named_too() -> None:
    net = Net()
    net.l1.register_load_state_dict_pre_hook(silent("loads"))
    with hv.record() as trace:
        net(leaf(3.0))
    assert [note.partition(",")[0] for note in trace.notes] == [
        "Hooks of this kind are not recorded (load_state_dict pre-hook"
    ]


# -- recording changes nothing that is compiled


class Chain(nn.Module):
    """Calls its layers one by one; unlike those of ``Sequential``, its code is not torch's."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


def as_module(net: nn.Module, backend: Any) -> Any:
    return torch.compile(net, backend=backend)


def as_function(net: nn.Module, backend: Any) -> Any:
    return torch.compile(lambda x: net(x), backend=backend)


def in_place(net: nn.Module, backend: Any) -> Any:
    net.compile(backend=backend)
    return net


def nested(net: nn.Module, backend: Any) -> Any:
    return nn.Sequential(nn.Identity(), torch.compile(net, backend=backend))


def seen_of(net: nn.Module, make: Any, backend: Any, when: str, *, recorded: bool) -> list[Any]:
    """What a compiled module does before, in and after a recording: each time its output and the gradient."""
    torch._dynamo.reset()
    fast, seen = make(net, backend) if when != "inside" else None, []

    def once() -> None:
        x = torch.ones(2, requires_grad=True)
        y = fast(x)
        y.sum().backward()
        seen.append((y.tolist(), x.grad.tolist()))

    if when == "run before":
        once()
    with hv.record() if recorded else nullcontext():
        fast = make(net, backend) if fast is None else fast
        once()
        once()
    once()
    return seen


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("when", ["before", "run before", "inside"])
@pytest.mark.parametrize("make", [as_module, as_function, in_place, nested])
@pytest.mark.parametrize("around", [nn.Sequential, Chain])
def test_full_backward_hooks_in_a_compiled_region_run_as_ever(around: Any, make: Any, when: str, backend: str) -> None:
    def scene(*, recorded: bool) -> tuple[list[Any], int]:
        ran: list[int] = []
        last = nn.Tanh()
        last.register_full_backward_hook(lambda module, given, got: (ran.append(1), (given[0] * 2,))[1])
        return seen_of(around(nn.Tanh(), last), make, backend, when, recorded=recorded), len(ran)

    plainly, ran = scene(recorded=False)
    assert scene(recorded=True) == (plainly, ran)
    assert ran == len(plainly)


def counting(compiled: list[int]) -> Any:
    return lambda graph, inputs: (compiled.append(1), graph.forward)[1]


@pytest.mark.parametrize("when", ["before", "run before", "inside"])
@pytest.mark.parametrize("make", [as_module, as_function, in_place, nested])
def test_recording_compiles_nothing_again(make: Any, when: str) -> None:
    def scene(*, recorded: bool) -> tuple[list[Any], int]:
        compiled: list[int] = []
        net = Chain(nn.Tanh(), nn.Tanh())
        net.layers[0].register_forward_hook(lambda module, args, output: output * 2)
        return seen_of(net, make, counting(compiled), when, recorded=recorded), len(compiled)

    plainly = scene(recorded=False)
    assert scene(recorded=True) == plainly and plainly[1] == 1


@pytest.mark.parametrize("when", ["before", "run before", "inside"])
def test_a_module_compiled_in_place_gets_no_observers(when: str) -> None:
    def scene(*, recorded: bool) -> list[Any]:
        net = nn.Tanh()
        net.register_forward_hook(lambda module, args, output: output * 2)
        return seen_of(net, whole, "eager", when, recorded=recorded)

    def whole(net: nn.Module, backend: Any) -> Any:
        net.compile(backend=backend, fullgraph=True)
        return net

    assert scene(recorded=True) == scene(recorded=False)


@pytest.mark.parametrize("register", ["register_module_forward_hook", "register_module_forward_pre_hook"])
@pytest.mark.parametrize("make", [as_module, in_place, nested])
def test_hooks_of_all_modules_are_compiled_without_observers(make: Any, register: str) -> None:
    def scene(*, recorded: bool) -> tuple[list[Any], int]:
        compiled: list[int] = []
        return seen_of(nn.Tanh(), make, counting(compiled), "run before", recorded=recorded), len(compiled)

    handle = getattr(torch.nn.modules.module, register)(doubles)
    try:
        assert scene(recorded=True) == scene(recorded=False)
    finally:
        handle.remove()


def doubles(module: nn.Module, *given: Any) -> Any:
    """Doubles what a module returns, or where it has not run, what it is given."""
    return given[-1] * 2 if len(given) > 1 else (given[0][0] * 2,)


def test_hooks_of_all_modules_are_seen_again_behind_a_region() -> None:
    net = nn.Sequential(torch.compile(nn.Tanh(), backend="eager"), nn.Tanh())
    handle = torch.nn.modules.module.register_module_forward_hook(silent("everywhere"))
    try:
        with hv.record() as trace:
            net(torch.ones(2))
    finally:
        handle.remove()
    assert [step.on for step in trace.firings] == ["net.0", "net.1", "net"]


def test_a_tracer_of_torchs_leaves_the_recording_as_it_was() -> None:
    net = Net()
    fast = torch.compile(torch.sin, backend="aot_eager")
    with hv.record() as trace:
        torch.fx.symbolic_trace(net)
        fast(leaf(3.0))
        net(leaf(3.0))
    assert [step.on for step in steps_of(trace, "call")][-3:] == ["net", "net.l1", "net.l2"]


def test_the_compiler_may_be_loaded_first_while_recording() -> None:
    program = """
import sys, warnings
warnings.simplefilter("ignore")
import torch, hookviz as hv
call = torch.nn.Module.__call__
code = call.__code__
assert "torch._dynamo" not in sys.modules
with hv.record():
    assert call.__code__ is not code
    torch.compile(torch.nn.Tanh(), backend="eager")(torch.ones(2))
assert torch._dynamo.utils.unpatched_nn_module_call is torch.nn.Module.__call__ is call
assert call.__code__ is code
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_another_thread_does_while_compiled_code_runs_is_not_seen_and_that_is_said() -> None:
    net = Net()
    waits = Waits()
    fast = torch.compile(nn.Tanh(), backend=waits.backend)
    thread = threading.Thread(target=lambda: fast(torch.ones(2)))
    with hv.record() as trace:
        thread.start()
        assert waits.inside.wait(PATIENCE)
        net(leaf(2.0)).backward()
        waits.go_on.set()
        thread.join()
        net(leaf(3.0)).backward()
    assert len(trace.roots) == 1 and len(steps_of(trace, "call")) == 3
    assert trace.notes == [
        "A function compiled by torch.compile ran in a thread that this recording does not follow: "
        "calls and passes that began while it ran were not observed."
    ]


def test_a_region_that_ends_in_a_recording_and_began_before_it_hides_nothing() -> None:
    waits = Waits()
    fast = torch.compile(nn.Tanh(), backend=waits.backend)
    thread = threading.Thread(target=lambda: fast(torch.ones(2)))
    thread.start()
    assert waits.inside.wait(PATIENCE)
    with hv.record() as trace:
        waits.go_on.set()
        thread.join()
        Net()(leaf(2.0)).backward()
    assert len(trace.roots) == 1 and len(steps_of(trace, "call")) == 3 and trace.notes == []


def test_the_compiler_leaves_our_own_functions_alone_without_a_warning() -> None:
    net = nn.Sequential(nn.Tanh(), nn.Tanh())
    net[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 2,))
    run = torch.compile(net, backend="eager")

    def warned(watch: Any) -> list[str]:
        with warnings.catch_warnings(record=True, action="always") as caught, watch():
            run(torch.ones(2, requires_grad=True)).sum().backward()
        return [str(warning.message) for warning in caught]

    plain = warned(nullcontext)
    assert [warned(hv.record), warned(nullcontext)] == [plain, plain]
