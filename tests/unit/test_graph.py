"""Reading the autograd graph: each node once, in the order of the engine, with a stable number and variable names."""

import gc
import sys
import threading
import weakref
from typing import Any

import pytest
import torch
from scenes import accumulator, leaf, scene

from hookviz import Trace
from hookviz.autograd import graph, variable_names
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.node_numbering import NodeNumbers
from hookviz.support.printable import describe_type
from tests.requirements import needs_saved_tensors


def test_reachable_nodes_returns_each_node_once() -> None:
    x = leaf(2.0)
    y = x * x
    z = y * y + y
    names = [graph.op_of(node) for node in graph.reachable_nodes([z.grad_fn])]
    assert names == ["AddBackward0", "MulBackward0", "MulBackward0", "AccumulateGrad"]


def test_reachable_nodes_are_in_the_order_of_the_engine() -> None:
    tensors = scene()
    reachable = graph.reachable_nodes([tensors.e.grad_fn])
    assert reachable[0] is tensors.e.grad_fn
    assert reachable[1] is accumulator(tensors.d)
    assert reachable[2] is tensors.c.grad_fn
    assert {id(node) for node in reachable[3:]} == {id(accumulator(tensors.a)), id(accumulator(tensors.b))}


def test_reachable_nodes_of_several_roots_are_united() -> None:
    one, other = scene(), scene()
    assert len(graph.reachable_nodes([one.e.grad_fn, other.e.grad_fn, one.c.grad_fn])) == 10


def test_reachable_nodes_and_release_do_not_recurse() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(sys.getrecursionlimit() * 2):
        y = y + 1
    nodes = graph.reachable_nodes([y.grad_fn])
    assert len(nodes) == sys.getrecursionlimit() * 2 + 1
    graph.release(nodes)
    assert nodes == []


@pytest.mark.parametrize(("length", "deep"), [(19, False), (20, True)])
def test_reachable_nodes_raises_for_a_too_deep_graph(length: int, deep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPTH", 20)
    x = leaf(1.0)
    y = x
    for _ in range(length):
        y = y + 1
    if deep:
        with pytest.raises(graph.TooDeep):
            graph.reachable_nodes([y.grad_fn])
    else:
        assert len(graph.reachable_nodes([y.grad_fn])) == 20


def test_a_wide_graph_is_not_too_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "MAX_DEPTH", 20)
    x = leaf(1.0)
    assert len(graph.reachable_nodes([torch.stack([x * i for i in range(100)]).grad_fn])) == 102


def test_edge_of_returns_node_and_output_of_a_tensor() -> None:
    x = leaf(1.0, 2.0)
    u, v = x.unbind()
    assert graph.edge_of(v) == (u.grad_fn, 1)
    assert graph.edge_of(x) == (accumulator(x), 0)
    assert graph.edge_of(torch.ones(1)) == (None, 0)
    assert graph.edge_of(torch.autograd.graph.get_gradient_edge(v)) == (v.grad_fn, 1)


def test_a_node_keeps_its_number_in_the_next_snapshot() -> None:
    tensors = scene()
    numbering = NodeNumbers(Trace())
    first = number_nodes(numbering, tensors.e)
    gc.collect()
    assert number_nodes(numbering, tensors.e) == first
    assert sorted(number for _, number in first) == [0, 1, 2, 3, 4]


def test_nodes_added_later_do_not_change_node_numbers() -> None:
    a = leaf(2.0)
    c, numbering = (a * 2).sin(), NodeNumbers(Trace())
    first = number_nodes(numbering, c)
    assert number_nodes(numbering, c * 3)[1:] == first
    assert number_nodes(numbering, c) == first
    stacked = torch.stack([c, a.cos()])
    assert {numbered_node for numbered_node in number_nodes(numbering, stacked) if numbered_node in first} == set(first)


def test_a_leaf_keeps_its_number_when_torch_recreates_its_node() -> None:
    a = leaf(2.0)
    numbering = NodeNumbers(Trace())
    (first,) = [n for node, n in number_nodes(numbering, a * 2) if node == "AccumulateGrad"]
    gc.collect()
    (again,) = [n for node, n in number_nodes(numbering, a * 3) if node == "AccumulateGrad"]
    assert first == again


def number_nodes(numbering: NodeNumbers, root: torch.Tensor) -> list[tuple[str, int]]:
    snapshot = GraphSnapshot(numbering.trace, numbering)
    snapshot.capture([root], {})
    numbered_nodes = [(graph.op_of(node), snapshot.numbers[id(node)]) for node in snapshot.nodes]
    snapshot.release()
    return numbered_nodes


def test_different_graphs_share_only_numbers_of_common_leaves() -> None:
    a = leaf(2.0)
    numbering = NodeNumbers(Trace())
    one = {n for op, n in number_nodes(numbering, (a * 2).sin()) if op != "AccumulateGrad"}
    other = {n for op, n in number_nodes(numbering, (a * 2).sin()) if op != "AccumulateGrad"}
    assert not one & other


def test_graphs_built_in_different_threads_share_no_numbers() -> None:
    roots: list[torch.Tensor] = []
    for factor in (3, 5):  # each thread counts its nodes from 0
        thread = threading.Thread(target=lambda factor=factor: roots.append((leaf(2.0) * factor).sin()))
        thread.start()
        thread.join()
    numbering = NodeNumbers(Trace())
    one, other = ({number for _, number in number_nodes(numbering, root)} for root in roots)
    assert not one & other


def test_node_numbers_keep_no_leaf_alive() -> None:
    a = leaf(2.0)
    numbering = NodeNumbers(Trace())
    number_nodes(numbering, a * 2)
    reference = weakref.ref(a)
    del a
    gc.collect()
    assert reference() is None


def test_a_leaf_that_reuses_a_memory_address_gets_a_new_number() -> None:
    numbering = NodeNumbers(Trace())
    numbers_by_address: dict[int, int] = {}
    for _ in range(100):
        a = leaf(2.0)
        (number,) = [n for op, n in number_nodes(numbering, a * 2) if op == "AccumulateGrad"]
        assert number not in numbers_by_address.values()
        numbers_by_address[id(a)] = number
        del a
    assert len(numbers_by_address) < 100  # some addresses were reused


def test_only_accumulate_grad_has_a_leaf() -> None:
    tensors = scene()
    assert graph.leaf_of(accumulator(tensors.a)) is tensors.a
    assert graph.leaf_of(tensors.c.grad_fn) is None


@needs_saved_tensors
def test_saved_tensors_returns_the_tensors_saved_by_forward() -> None:
    tensors = scene()
    assert {(id(x), hook) for x, hook in graph.saved_tensors(tensors.e.grad_fn)} == {
        (id(tensors.c), None),
        (id(tensors.d), None),
    }


@needs_saved_tensors
def test_saved_tensors_with_hooks_are_not_unpacked() -> None:
    unpacked = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: unpacked.append(x) or x):
        tensors = scene()
    assert [tensor for tensor, hook in graph.saved_tensors(tensors.e.grad_fn) if hook] == [None, None]
    assert unpacked == []


def test_a_freed_graph_has_no_saved_tensors() -> None:
    tensors = scene()
    tensors.e.backward()
    assert list(graph.saved_tensors(tensors.e.grad_fn)) == []


# -- names of variables in a frame

everywhere = torch.ones(1)


def names_here(**_: Any) -> dict[str, torch.Tensor]:
    return variable_names.tensor_variables(sys._getframe(1))


def test_tensor_variables_finds_locals_and_globals() -> None:
    here = torch.ones(2)
    names = names_here()
    assert names["here"] is here
    assert names["everywhere"] is everywhere


def test_a_local_name_hides_a_global_one() -> None:
    everywhere = torch.zeros(3)
    assert names_here()["everywhere"] is everywhere


def test_private_and_ipython_names_are_omitted() -> None:
    _, _hidden = torch.ones(1), torch.ones(1)
    In = Out = torch.ones(1)  # noqa: N806
    assert not {"_", "_hidden", "In", "Out"} & set(names_here())
    assert In is Out


def test_tensors_in_containers_are_named_by_index_or_key() -> None:
    w = [torch.ones(1), "no tensor", torch.ones(2)]
    pair = (torch.ones(3),)
    table = {"bias": torch.ones(4), 1: torch.ones(5)}
    names = names_here()
    assert {name: len(x) for name, x in names.items() if name != "everywhere"} == {
        "w[0]": 1,
        "w[2]": 2,
        "pair[0]": 3,
        "table['bias']": 4,
        "table[1]": 5,
    }
    assert (w, pair, table) != ()


def test_parameters_are_named_by_their_path() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1))
    names = names_here()
    assert names["model.0.weight"] is model[0].weight
    assert names["model.1.bias"] is model[1].bias


def test_tensor_variables_keeps_no_tensor_alive() -> None:
    def make_reference() -> weakref.ref[torch.Tensor]:
        local = torch.ones(1)
        assert "local" in variable_names.tensor_variables(sys._getframe())
        reference = weakref.ref(local)
        del local
        assert reference() is None
        return reference

    assert make_reference()() is None


def test_caller_frame_returns_the_frame_of_user_code() -> None:
    frames = []
    x = leaf(2.0)
    x.register_hook(lambda grad: frames.append(variable_names.caller_frame()) and None)
    (x * 2).backward()
    assert frames[0].f_code.co_filename == __file__


# -- names given by the user


@pytest.mark.parametrize("name", ["loss", "损失", "a b", "<b>", 'say "hi"', "\\", "1", "a" * 200])
def test_any_text_may_be_a_name(name: str) -> None:
    x = torch.ones(1)
    assert variable_names.validate_names({name: x}) == {name: x}


@pytest.mark.parametrize(("thing", "words"), [([], "a list"), (1, "an int"), (None, "a NoneType"), ("", "a str")])
def test_describe_type_adds_the_article(thing: object, words: str) -> None:
    assert describe_type(thing) == words


def test_variable_name_keeps_no_object_of_the_caller_alive() -> None:
    thing = torch.nn.Linear(1, 1)
    assert variable_names.variable_name(thing, variable_names.caller_frame()) == "thing"
    reference = weakref.ref(thing)
    del thing
    gc.collect()
    assert reference() is None
