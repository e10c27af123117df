"""What the right choice of each question says, run: the function of question ``01a`` is ``question_01a``."""

# ruff: noqa: ANN001, ANN202, ANN204, B023, E731

import functools
import warnings
from itertools import pairwise

import pytest
import torch
from torch import nn

from hookviz.course.transformer import SmallTransformer, as_row


def question_01a() -> None:
    a, b, d = (torch.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0))
    seen = []
    e = a * b * d
    e.register_hook(seen.append)
    e.backward()
    assert [grad.item() for grad in seen] == [1.0]


def question_01c() -> None:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    c = a * b
    (c * 4).backward()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert c.grad is None
    assert "not a leaf" in str(caught[0].message)


def question_01d() -> None:
    w = torch.tensor(1.0, requires_grad=True)
    for expected in (5.0, 10.0):
        (5 * w).backward()
        assert w.grad.item() == expected


def question_01e() -> None:
    assert torch.ones(2).is_leaf
    assert not (torch.ones(2, requires_grad=True) * 1).is_leaf
    assert not torch.ones(2, requires_grad=True).double().is_leaf


def question_02a() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    c = a * 3
    c.register_hook(lambda grad: str(grad) and None)
    (c * 4).backward()
    assert a.grad.item() == 12


def question_02b() -> None:
    a = torch.tensor(1.0, requires_grad=True)
    c = a * 1
    c.register_hook(lambda grad: grad + 2)
    c.register_hook(lambda grad: grad * 2)
    (c * 4).backward()
    assert a.grad.item() == 12


def question_02c() -> None:
    a, d = torch.tensor(2.0, requires_grad=True), torch.tensor(4.0, requires_grad=True)
    c = a * 3
    e = c + d
    for tensor in (c, e):
        tensor.retain_grad()

    def hook(grad):
        grad *= 100

    d.register_hook(hook)
    e.backward()
    assert (c.grad.item(), a.grad.item(), d.grad.item(), e.grad.item()) == (100, 300, 100, 1)


def question_02f() -> None:
    seen = []
    y = torch.tensor(1.0, requires_grad=True) * 2
    y.register_hook(lambda grad: seen.append(grad.item()))
    (y * 3 + y * 4).backward()
    assert seen == [7.0]


def question_03a() -> None:
    outer, inner = [], []
    net = nn.Sequential(nn.Linear(2, 2))
    net.register_forward_hook(lambda *given: outer.append(1) or None)
    net[0].register_forward_hook(lambda *given: inner.append(1) or None)
    assert net.forward(torch.ones(1, 2)).requires_grad
    assert (outer, inner) == ([], [1])


def question_03b() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    x = torch.ones(1, 2)
    before = net(x)
    net[0].register_forward_hook(lambda module, args, output: output.detach())
    after = net(x)
    after.sum().backward()
    assert torch.equal(before, after)
    assert net[0].weight.grad is None and net[1].weight.grad is not None


def question_03c() -> None:
    class Add(nn.Module):
        def forward(self, a, b, scale):
            return (a + b) * scale

    seen = []
    net = Add()
    net.register_forward_hook(lambda module, args, output: seen.append(args) or None)
    net(1, 2, scale=3)
    assert seen == [(1, 2)]


def question_03e() -> None:
    assert not hasattr(torch.relu, "register_forward_hook")

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            return torch.relu(self.layer(x))

    assert [type(module).__name__ for module in Net().modules()] == ["Net", "Linear"]


def question_04a() -> None:
    layer, seen = nn.Linear(2, 1), []
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_input) or None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        layer(torch.ones(1, 2)).sum().backward()
    assert seen == [(None,)] and len(caught) == 1
    assert layer.weight.grad is not None and layer.bias.grad is not None


def question_04b() -> None:
    layer = nn.Linear(2, 1)
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    whole = x.grad.clone()
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] / 2,))
    x.grad = None
    layer(x).sum().backward()
    assert torch.allclose(x.grad, whole / 2)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input, grad_output))
    with pytest.raises(RuntimeError):
        layer(x).sum().backward()


def question_04e() -> None:
    layer = nn.Linear(2, 2)
    layer(torch.ones(1, 2)).add_(1)
    layer.register_full_backward_hook(lambda *given: None)
    with pytest.raises(RuntimeError, match="modified inplace"):
        layer(torch.ones(1, 2, requires_grad=True)).add_(1)


def question_05b() -> None:
    net, outputs = nn.Linear(2, 2), []
    for _ in range(3):
        net.register_forward_hook(lambda module, args, output: outputs.append(output) or None)
        net(torch.ones(1, 2))
    assert len(outputs) == 6


def question_05c() -> None:
    functions = [lambda: name for name in ("a", "b", "c")]
    assert [function() for function in functions] == ["c", "c", "c"]


def question_05e() -> None:
    net = nn.Linear(2, 2)
    net.register_forward_hook(lambda *given: None)
    assert sorted(net.state_dict()) == ["bias", "weight"]
    other = nn.Linear(2, 2)
    other.load_state_dict(net.state_dict())
    assert len(other._forward_hooks) == 0


def question_06a() -> None:
    net = nn.Sequential(nn.Linear(2, 8), nn.ReLU(inplace=True))
    store = []
    net[0].register_forward_hook(lambda module, args, output: store.append(output) or None)
    with torch.no_grad():
        net(torch.randn(50, 2))
    assert store[0].min() >= 0


def question_06c() -> None:
    relu, store = nn.ReLU(), {}
    relu.register_forward_hook(lambda module, args, output: store.update(relu=output))
    for number in (1.0, 2.0, 3.0):
        relu(torch.tensor(number))
    assert store["relu"].item() == 3


def question_06f() -> None:
    output = nn.Linear(2, 2)(torch.ones(1, 2))
    assert output.clone().grad_fn is not None and output.detach().grad_fn is None


def question_07b() -> None:
    layer = nn.Linear(3, 2)
    with torch.no_grad():
        layer.bias[0] = -100.0
        layer.bias[1] = 100.0
    layer(torch.rand(20, 3)).relu().sum().backward()
    assert (layer.weight.grad[0] == 0).all() and (layer.weight.grad[1] != 0).all()


def question_07c() -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = torch.where(x > 0, x.log(), 0.0)
    y.sum().backward()
    assert y.tolist() == [0, 0]
    assert x.grad[0].isnan() and x.grad[1] == 1


def question_07d() -> None:
    w = torch.tensor(1.0, requires_grad=True)
    w.register_hook(lambda grad: grad.clamp(max=1))
    for _ in range(2):
        (5 * w).backward()
    assert w.grad.item() == 2


def question_08b() -> None:
    maps = torch.rand(2, 2, requires_grad=True)
    (8 * maps.mean()).backward()
    assert (maps.grad == 2).all()


def question_08c() -> None:
    net = nn.Linear(2, 1)
    with torch.no_grad():
        score = net(torch.ones(1, 2)).sum()
    with pytest.raises(RuntimeError, match="does not require grad"):
        score.backward()


def question_08e() -> None:
    maps = torch.rand(3, requires_grad=True)
    scores = nn.Linear(3, 2)(maps)
    cat = torch.autograd.grad(scores[0], maps, retain_graph=True)[0]
    dog = torch.autograd.grad(scores[1], maps)[0]
    assert not torch.equal(cat, dog)


def question_09a() -> None:
    held, left_out = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(held.parameters(), lr=0.1)
    before = left_out.weight.detach().clone()
    (held(torch.ones(1, 2)) + left_out(torch.ones(1, 2))).sum().backward()
    optimizer.step()
    assert torch.equal(left_out.weight, before) and left_out.weight.grad is not None


def question_09d() -> None:
    weight, changes = nn.Parameter(torch.ones(1)), []
    optimizer = torch.optim.SGD([weight], lr=0.5)
    before = []
    optimizer.register_step_pre_hook(lambda *given: before.append(weight.detach().clone()) or None)
    optimizer.register_step_post_hook(lambda *given: changes.append((weight.detach() - before[-1]).item()) or None)
    (weight * 2).sum().backward()
    optimizer.step()
    assert changes == [-1.0]


def question_10c() -> None:
    y = torch.tensor(1.0, requires_grad=True) * 3
    y.retain_grad()
    assert y.grad_fn is not None
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    (y * 2).backward()
    assert y.grad is not None and y.grad.item() == 2


def question_10d() -> None:
    w = torch.tensor(1.0, requires_grad=True)
    seen = []
    w.register_hook(lambda grad: seen.append(w.grad))
    (w * 2).backward()
    assert seen == [None] and w.grad.item() == 2


def question_10e() -> None:
    ran = []
    a, p, q = (torch.tensor(number, requires_grad=True) for number in (3.0, 5.0, 7.0))
    b = a * p
    c = a * q
    b.register_hook(lambda grad: ran.append("b"))
    c.register_hook(lambda grad: ran.append("c"))
    (b + c).backward()
    assert ran == ["c", "b"]


def question_11a() -> None:
    weight, given = nn.Parameter(torch.ones(1)), []
    weight.register_post_accumulate_grad_hook(given.append)
    (weight * 2).sum().backward()
    assert given[0] is weight and weight.grad.item() == 2


def question_11b() -> None:
    a, b = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    state = []
    torch.autograd.graph.register_multi_grad_hook((a, b), lambda grads: state.append((a.grad is None, b.grad is None)))
    (a * b).backward()
    assert sum(state[0]) == 1


def question_11d() -> None:
    packed = []
    x = torch.tensor(3.0, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.item()) or t, lambda t: t):
        (x * x).backward()
        x + 1
    assert packed == [3.0, 3.0]


# question_11e: It takes a compiler: tests/unit/test_compiled_regions.py looks at compiled networks.


def question_12b() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    c = x * 2
    c.register_hook(lambda grad: -grad)
    (c * 3).backward()
    assert x.grad.item() == -6


def question_12c() -> None:
    fired = []
    w = torch.tensor(2.0, requires_grad=True)
    w.register_hook(lambda grad: fired.append(1) or None)
    assert torch.func.grad(lambda w: w * w)(w).item() == 4 and fired == []


def question_13a() -> None:
    attention, fired = nn.MultiheadAttention(4, 2, batch_first=True), []
    attention.out_proj.register_forward_hook(lambda *given: fired.append(1) or None)
    x = torch.rand(1, 3, 4)
    attention(x, x, x)
    assert fired == []


def question_13c() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    a, b = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    kept = net[0](a).detach()
    with net[0].register_forward_hook(lambda module, args, output: kept):
        patched = net(b)
    assert torch.allclose(patched, net(a))


def question_14a() -> None:
    net = nn.BatchNorm1d(1)
    with torch.no_grad():
        net(torch.tensor([[9.0], [11.0]]))
    assert net.running_mean.item() == 1


def question_14b() -> None:
    generator = torch.Generator().manual_seed(0)
    known, new, truth = (torch.randn(size, generator=generator) for size in ((20, 20), (200, 20), (20, 1)))
    answers = known @ truth + 3 * torch.randn((20, 1), generator=generator)  # with noise, which can be learned by heart
    weights, training, validation = torch.zeros(20, 1), [], []
    for _ in range(500):
        error = known @ weights - answers
        weights = weights - 0.1 * known.T @ error / 20
        training.append(error.square().mean().item())
        validation.append((new @ weights - new @ truth).square().mean().item())
    best = validation.index(min(validation))
    assert 0 < best < 499 and validation[-1] > 1.1 * validation[best]
    assert all(later < earlier for earlier, later in pairwise(training))


def question_exam01() -> None:
    x = torch.tensor(5.0, requires_grad=True)
    (3 * x + x).backward()
    assert x.grad.item() == 4


def question_exam02() -> None:
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="scalar outputs"):
        (2 * x).backward()


def question_exam03() -> None:
    a = torch.ones(2, requires_grad=True)
    c = a * 3
    c.register_hook(torch.zeros_like)
    c.sum().backward()
    assert a.grad.tolist() == [0, 0]


def question_exam04() -> None:
    seen = []
    a = torch.tensor(1.0, requires_grad=True)
    c = a * 1
    c.register_hook(lambda grad: grad * 3)
    c.register_hook(lambda grad: seen.append(grad.item()))
    c.register_hook(lambda grad: grad - 1)
    (c * 2).backward()
    assert seen == [6] and a.grad.item() == 5


def question_exam06() -> None:
    net = nn.Identity()
    hook = lambda module, args, output: output + 1
    net.register_forward_hook(hook)
    net.register_forward_hook(hook)
    assert net(torch.tensor(5.0)).item() == 7


def question_exam07() -> None:
    net = nn.Identity()
    net.register_forward_pre_hook(lambda module, args, kwargs: args[0], with_kwargs=True)
    with pytest.raises(RuntimeError):
        net(torch.ones(1))


def question_exam09() -> None:
    shapes = []
    layer = nn.Linear(4, 2)
    layer.register_full_backward_hook(lambda m, gi, go: shapes.append((tuple(gi[0].shape), tuple(go[0].shape))) or None)
    layer(torch.ones(8, 4, requires_grad=True)).sum().backward()
    assert shapes == [((8, 4), (8, 2))]


def question_exam10() -> None:
    class Product(nn.Module):
        def forward(self, a, b, c):
            return (a * b) * c

    net, seen = Product(), []
    net.register_full_backward_hook(lambda m, gi, go: seen.append([g.item() for g in gi]) or None)
    net(*[torch.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0)]).backward()
    old = Product()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old.register_backward_hook(lambda m, gi, go: seen.append([g.item() for g in gi]) or None)
        old(*[torch.tensor(v, requires_grad=True) for v in (2.0, 3.0, 4.0)]).backward()
    assert seen == [[12, 8, 6], [4, 6]]


def question_exam11() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(RuntimeError), layer.register_forward_hook(lambda *given: None):
        layer(torch.ones(1, 3))
    assert not layer._forward_hooks


def question_exam12() -> None:
    late = [lambda: n for n in (1, 2)]
    early = [functools.partial(lambda n: n, n) for n in (1, 2)]
    assert [f() for f in late] == [2, 2] and [f() for f in early] == [1, 2]


def question_exam13() -> None:
    layer, store = nn.Linear(2, 2), []
    layer.register_forward_hook(lambda module, args, output: store.append(args[0]) or None)
    x = torch.ones(1, 2)
    layer(x).sum().backward()
    x += 1
    assert store[0].tolist() == [[2, 2]]


def question_exam14() -> None:
    net, store = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)), []
    x = torch.ones(1, 2)
    before = net(x)
    net[0].register_forward_hook(lambda m, args, output: store.append(output.detach().clone()) or None)
    after = net(x)
    after.sum().backward()
    assert torch.equal(before, after) and net[0].weight.grad is not None and torch.equal(store[0], net[0](x))


def question_exam15() -> None:
    assert 0.5**20 == 1 / 1_048_576


def question_exam16() -> None:
    x = torch.tensor([-0.0, 4.0], requires_grad=True)
    y = torch.where(x > 0, x.sqrt(), torch.zeros(2))
    y.sum().backward()
    assert y.isfinite().all() and x.grad[0].isnan() and x.grad[1] == 0.25


def question_exam17() -> None:
    grad = torch.rand(1, 8, 7, 7)
    assert grad.mean((2, 3)).shape == (1, 8)


def question_exam18() -> None:
    norm, seen = nn.BatchNorm1d(1), []
    norm.register_forward_hook(lambda module, args, output: seen.append(output.mean().item()) or None)
    x = torch.tensor([[9.0], [11.0]])
    norm.eval()(x)
    norm.train()(x)
    assert seen[0] > 9 and abs(seen[1]) < 1e-3


def question_exam19() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x.relu()
    z = y * 2
    y = None
    assert z.grad_fn.next_functions[0][0].name() == "ReluBackward0"
    z.backward()
    assert x.grad.item() == 2


def question_exam20() -> None:
    calls = []
    from torch.optim.optimizer import register_optimizer_step_post_hook

    handle = register_optimizer_step_post_hook(lambda *given: calls.append(1) or None)
    for _ in range(2):
        torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1).step()
    handle.remove()
    assert len(calls) == 2


def question_exam21() -> None:
    net, kept = SmallTransformer(width=8, seed=1), []
    row_a, row_b = as_row("abcdeab"), as_row("hgfedcb")
    with net.blocks[0].register_forward_hook(lambda module, args, output: kept.append(output) or None):
        scores_a = net(row_a)
    with net.blocks[0].register_forward_hook(lambda module, args, output: kept[0]):
        assert torch.equal(net(row_b), scores_a)
    assert not torch.equal(net(row_b), scores_a)


def question_exam22() -> None:
    heads, labels = nn.Identity(), torch.tensor([0, 1, 1])
    fetched = nn.functional.one_hot(labels, 2).float().expand(2, -1, -1)  # both heads fetch the right answer
    right = []
    for off in ([], [0], [1], [0, 1]):
        with heads.register_forward_hook(
            lambda module, args, output: output.index_fill(0, torch.tensor(off, dtype=torch.long), 0.0)
        ):
            right.append((heads(fetched).sum(0).argmax(1) == labels).float().mean().item())
    assert right[:3] == [1, 1, 1] and right[3] < 0.5
