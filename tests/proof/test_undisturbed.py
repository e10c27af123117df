"""Programs that notice when their own code runs: recorded, they do what they do alone."""

import re
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.func import functional_call, grad, vmap
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.profiler import profile
from torch.utils._pytree import tree_map

import hookviz as hv

Recorder = Callable[[], AbstractContextManager[Any]]
Outcome = tuple[list[str], list[torch.Tensor]]
"""What ran, and the numbers that came out."""


class Item(nn.Module):
    """Uses one part of what it is given, and a random number."""

    def __init__(self, part: Callable[[Any], Any]) -> None:
        super().__init__()
        self.weight, self.part = nn.Parameter(torch.ones(2)), part

    def forward(self, batch: Any) -> torch.Tensor:
        return self.part(batch) * self.weight * torch.rand(2)  # type: ignore[no-any-return]


def use(record: Recorder, batch: Any, part: Callable[[Any], Any], ran: list[str]) -> Outcome:
    torch.manual_seed(0)
    net = Item(part)
    net.register_forward_hook(lambda _module, _inputs, _output: None)
    with record():
        net(batch).sum().backward()
    assert net.weight.grad is not None
    return ran, [net.weight.grad]


def lazy_dict(record: Recorder) -> Outcome:
    ran: list[str] = []

    class Lazy(dict[str, Any]):
        """Loads a field when it is asked for; ``items`` loads all of them."""

        def __getitem__(self, key: str) -> torch.Tensor:
            ran.append(key)
            return torch.rand(2)

        def items(self) -> Any:
            return [(key, self[key]) for key in self]

    return use(record, Lazy(image=None, audio=None), lambda batch: batch["image"], ran)


def hidden_grad(record: Recorder) -> Outcome:
    ran, real = [], torch.Tensor.grad

    class Counted(nn.Parameter):
        """A parameter that notes who reads its gradient."""

        @property
        def grad(self) -> Any:
            ran.append("grad")
            return real.__get__(self)  # type: ignore[attr-defined]

        @grad.setter
        def grad(self, value: Any) -> None:
            real.__set__(self, value)  # type: ignore[attr-defined]

    layer = nn.Linear(2, 1)
    layer.weight = Counted(torch.ones(1, 2))
    with record():
        for _ in range(2):
            layer(torch.ones(2)).sum().backward()
    return list(ran), [real.__get__(layer.weight)]  # type: ignore[attr-defined]


def counted_hooks(record: Recorder) -> Outcome:
    weight, calls = nn.Parameter(torch.ones(2)), list[int]()

    def scale_in_the_last(grad: torch.Tensor) -> torch.Tensor:
        calls.append(len(weight._backward_hooks or ()))
        return grad * 10 if len(calls) == calls[-1] else grad

    for _ in range(2):
        weight.register_hook(scale_in_the_last)
    with record():
        (weight * 2).sum().backward()
    assert weight.grad is not None
    return [str(count) for count in calls], [weight.grad]


def exported(record: Recorder) -> Outcome:
    ran: list[str] = []
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net[0].register_forward_hook(lambda _module, _inputs, output: output * 2)
    with record():
        program = torch.export.export(net, (torch.ones(1, 2),), strict=True)
        net(torch.ones(1, 2)).sum().backward()
    ran += [str(node.target) for node in program.graph.nodes]
    return ran, []


def symbolic_sizes(record: Recorder) -> Outcome:
    symbols = ShapeEnv()
    mode = FakeTensorMode(shape_env=symbols, allow_non_fake_inputs=True)
    x = mode.from_tensor(torch.randn(5, 3))
    with record(), mode:
        y = nn.Linear(3, 4)(x)
        y.sum().backward()
    return [str(guard.expr) for guard in symbols.guards], []


class Wrapper(torch.Tensor):
    """A tensor that notes each op on it, as one with numbers of its own does, in a file or in another format."""

    ran: list[str] = []  # noqa: RUF012 - emptied by each program

    @staticmethod
    def __new__(cls: type["Wrapper"], numbers: torch.Tensor, requires_grad: bool = False, **how: Any) -> "Wrapper":
        return torch.Tensor._make_wrapper_subclass(  # type: ignore[attr-defined,no-any-return]
            cls, numbers.size(), strides=numbers.stride(), dtype=numbers.dtype, requires_grad=requires_grad, **how
        )

    def __init__(self, numbers: torch.Tensor, requires_grad: bool = False, **how: Any) -> None:
        self.numbers, self.how = numbers, how

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.ran.append(func.__name__)
        how = next(one.how for one in args if isinstance(one, Wrapper)) if isinstance(args[0], Wrapper) else {}
        plain = tree_map(lambda one: one.numbers if isinstance(one, Wrapper) else one, (args, kwargs or {}))
        result = func(*plain[0], **plain[1])
        return tree_map(lambda one: Wrapper(one, **how) if isinstance(one, torch.Tensor) else one, result)


def wrapped(record: Recorder, size: int, **how: Any) -> Outcome:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(size, 3), nn.Tanh(), nn.Linear(3, 1))
    net[0].weight = nn.Parameter(Wrapper(net[0].weight.detach().clone(), **how))
    x = Wrapper(torch.ones(4, size), requires_grad=True, **how)
    net[0].weight.register_hook(lambda grad: grad * 2)
    net[1].register_full_backward_hook(lambda _module, _grad_input, _grad_output: None)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    optimizer.register_step_pre_hook(lambda *_: None)
    Wrapper.ran.clear()
    with record():
        for _ in range(2):
            optimizer.zero_grad()
            loss = net(x).exp().sum()
            loss.retain_grad()
            loss.backward()
            optimizer.step()
        torch.autograd.grad((x * x).sum(), x)
    ran = list(Wrapper.ran)
    return ran, [parameter.grad.numbers for parameter in net.parameters()]  # type: ignore[union-attr]


def small_wrapper(record: Recorder) -> Outcome:
    return wrapped(record, 2)


def large_wrapper_with_strides(record: Recorder) -> Outcome:
    return wrapped(record, 40, dispatch_sizes_strides_policy="strides", dispatch_device=True)


def module_with_properties(record: Recorder) -> Outcome:
    """Train past a frozen batch norm that computes what torch keeps as plain attributes."""
    ran: list[str] = []

    class Frozen(nn.BatchNorm1d):
        @property
        def training(self) -> bool:  # type: ignore[override]
            ran.append("training")
            return False

        @training.setter
        def training(self, mode: bool) -> None:
            pass

    class Claiming(nn.Linear):
        @property
        def __class__(self) -> Any:
            ran.append("class")
            return nn.Linear

    class Options:
        @property
        def __class__(self) -> Any:
            ran.append("class of a variable")
            return dict

    torch.manual_seed(0)
    net, options = nn.Sequential(Claiming(2, 2), Frozen(2)), Options()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with record():
        for _step in range(2):
            net(torch.ones(3, 2)).sum().backward()
            optimizer.step()
    del options
    return ran, [parameter.detach() for parameter in net.parameters()]


def tensors_without_graph(record: Recorder) -> Outcome:
    """Pass a tensor whose class has code for comparing, hashing and each function from module to module."""
    ran: list[str] = []

    class Loud(torch.Tensor):
        def __eq__(self, other: object) -> Any:
            ran.append("eq")
            return self is other

        def __hash__(self) -> int:
            ran.append("hash")
            return 0

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            ran.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    torch.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Flatten(0)), torch.ones(3, 2).as_subclass(Loud)
    with torch.inference_mode(), record():
        y = net(net(x).reshape(3, 2))
    return ran, [y.as_subclass(torch.Tensor)]


PROGRAMS = (
    lazy_dict, module_with_properties, hidden_grad, counted_hooks, exported,
    symbolic_sizes, small_wrapper, large_wrapper_with_strides, tensors_without_graph,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_of_the_program_runs_because_it_is_recorded(program: Callable[[Recorder], Outcome]) -> None:
    traces: list[hv.Trace] = []

    class Kept:
        def __enter__(self) -> None:
            self.recorder = hv.record()
            traces.append(self.recorder.__enter__())

        def __exit__(self, *error: Any) -> None:
            self.recorder.__exit__(*error)

    ran, numbers = program(nullcontext)
    ran_recorded, numbers_recorded = program(Kept)  # type: ignore[arg-type]
    assert ran_recorded == ran
    assert all(torch.equal(one, other) for one, other in zip(numbers_recorded, numbers, strict=True))
    assert traces[0].notes == [] and len(traces[0].steps) > 2


# -- compiled autograd


def graphs_of_compiled_passes(record: Recorder) -> Outcome:
    torch.manual_seed(0)
    net, graphs, fired = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), list[int](), list[str]()
    net[1].register_full_backward_hook(lambda _module, _grad_input, _grad_output: fired.append("module"))

    def keep(graph: Any, _inputs: Any) -> Any:
        graphs.append(len(graph.graph.nodes))
        return graph

    with record():
        net[0].weight.register_hook(lambda _grad: fired.append("tensor"))
        for _ in range(3):
            loss = net(torch.ones(2, 3)).sum()
            with torch._dynamo.compiled_autograd._enable(torch.compile(backend=keep)):
                loss.backward()
    torch._dynamo.reset()  # to compile anew the next time
    assert net[0].weight.grad is not None
    return [*fired, *map(str, graphs)], [net[0].weight.grad]


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning", "ignore:The .grad attribute:UserWarning")
def test_compiled_passes_are_compiled_as_alone_and_said_not_to_be_observed() -> None:
    plain = graphs_of_compiled_passes(nullcontext)
    block = hv.record()
    recorded = graphs_of_compiled_passes(lambda: block)
    assert recorded[0] == plain[0] and torch.equal(recorded[1][0], plain[1][0])


@pytest.mark.slow
@pytest.mark.usefixtures("compiler")
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_a_hook_of_a_compiled_pass_is_not_said_to_be_silent() -> None:
    net = nn.Linear(3, 1)
    with hv.record() as trace:
        net.weight.register_hook(lambda _grad: None)
        loss = net(torch.ones(2, 3)).sum()
        with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
            loss.backward()
    assert [finding.severity for finding in trace.findings] == ["remark"] and trace.findings[0].kind == "unobserved"
    assert [str(note) for note in trace.notes if "Compiled autograd" in str(note)] == [str(trace.notes[0])]


# -- profilers


def profile_of_a_step(record: Recorder) -> "Counter[str]":
    """Profile a training step with all Python calls; count the events by name, without addresses and numbers."""
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    net[0].register_forward_hook(lambda _module, _inputs, _output: None)
    net[0].weight.register_hook(lambda _grad: None)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    with record(), profile(with_stack=True) as profiler:
        net(torch.ones(2, 3)).sum().backward()
        optimizer.step()
    return count_events(profiler)


def count_events(profiler: Any) -> "Counter[str]":
    return Counter(re.sub(r"0x\w+|_\d+$", "", event.name) for event in profiler.events() or ())


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")
@pytest.mark.parametrize("record", [hv.record, lambda: hv.record(cuts=True)])
def test_a_profile_of_python_calls_is_that_of_the_program_alone(record: Recorder) -> None:
    _filled_caches, plain, recorded = (profile_of_a_step(one) for one in (nullcontext, nullcontext, record))
    assert recorded == plain and plain["nn.Module: Linear"] == 2


def hooked_layer() -> nn.Module:
    layer = nn.Linear(3, 2)
    layer.register_forward_hook(lambda _module, _inputs, output: output * 2)
    return layer


def run(layer: nn.Module) -> None:
    layer(torch.ones(2, 3)).sum().backward()


def count_passes(trace: hv.Trace) -> int:
    return sum(step.kind == "seed" for step in trace.steps)


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")
def test_a_recording_ends_when_a_profiler_of_python_calls_starts() -> None:
    layer, profiler = hooked_layer(), profile(with_stack=True)
    with hv.record() as trace:
        run(layer)
        profiler.start()
        layer.weight.register_hook(lambda grad: grad)
        run(layer)
        profiler.stop()
        run(layer)
    assert count_passes(trace) == 1 and len(trace.firings) == 1
    assert [note for note in trace.notes if "recorded nothing from its start on" in note]
    assert not trace.findings
    with hv.record() as later:
        run(layer)
    assert count_passes(later) == 1 and not later.notes


# -- torch.func


def per_sample_gradients(net: nn.Module) -> None:
    def loss(parameters: dict[str, torch.Tensor], sample: torch.Tensor) -> torch.Tensor:
        return functional_call(net, parameters, (sample[None],)).sum()

    weights = {name: parameter.detach() for name, parameter in net.named_parameters()}
    gradients = vmap(grad(loss), (None, 0))(weights, torch.ones(5, 3))
    for name, parameter in net.named_parameters():
        parameter.grad = gradients[name].mean(0)


def mapped(net: nn.Module) -> None:
    vmap(net)(torch.ones(5, 3)).sum().backward()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize(("step", "is_given"), [(per_sample_gradients, True), (mapped, True), (mapped, False)])
def test_a_module_in_a_transform_of_torch_func_is_not_said_to_cut(
    step: Callable[[nn.Module], None], is_given: bool
) -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net[0].weight.register_hook(lambda _grad: None)
    if step is not per_sample_gradients:  # torch itself refuses it there
        net[0].register_full_backward_hook(lambda _module, _grad_input, _grad_output: None)
    with hv.record(net) if is_given else hv.record() as trace:
        for _ in range(2):
            optimizer.zero_grad()
            step(net)
            optimizer.step()
    found = trace.findings
    assert [(finding.severity, finding.certainty) for finding in found] == [("remark", "proven")]
    assert "torch.func" in found[0].cause and "cut" not in found[0].cause
