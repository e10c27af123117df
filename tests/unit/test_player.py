"""The Python half of the player: what goes to the browser, how little of it, and what stands in its place."""

import json
import xml.etree.ElementTree as ET
from typing import Any

import anywidget
import ipywidgets
import pytest
import torch
from scenes import c_hook, leaf, recorded, scene
from shown import in_english, shown_firings, shown_notes, shown_steps

import hookviz as hv
from hookviz.picture import element_ids as ids
from hookviz.picture.element_ids import is_tensor_fact
from hookviz.player.bundles import read_bundle
from hookviz.player.compression import unpack
from hookviz.player.payload import INITIAL
from hookviz.player.scene_views import MAX_LAYER_BOXES
from hookviz.player.widget import Player


@pytest.fixture
def player() -> Player:
    return recorded().player()


def size(thing: Any) -> int:
    return len(json.dumps(thing).encode())


def state(player: Player) -> dict[str, Any]:
    """What is sent to the browser, less what every player shares."""
    code = ("_esm", "_css", "_anywidget_id")
    return {key: value for key, value in player.get_state().items() if key not in code}


def test_a_player_is_a_widget_with_traits_to_set_and_link(player: Player) -> None:
    assert isinstance(player, anywidget.AnyWidget)
    linked = {
        "step",
        "steps",
        "playing",
        "speed",
        "predict",
        "right",
        "asked",
        "breakpoints",
        "large",
        "tensors",
        "nodes",
    }
    assert linked <= set(player.trait_names(sync=True))
    assert (player.step, player.steps, player.playing, player.speed) == (0, 16, False, 1)


@pytest.mark.parametrize(("given", "step"), [(0, 0), (7, 7), (15, 15), (16, 15), (10**6, 15), (-1, 0)])
def test_a_step_is_kept_in_range(player: Player, given: int, step: int) -> None:
    player.step = given
    assert player.step == step


def test_a_step_of_an_empty_trace_is_0() -> None:
    player = hv.Trace().player()
    player.step = 5
    assert (player.step, player.steps, player.content["runs"]) == (0, 0, [])


CONTROLS = {
    "step": ipywidgets.IntSlider,
    "playing": ipywidgets.ToggleButton,
    "speed": ipywidgets.FloatSlider,
    "predict": ipywidgets.Checkbox,
    "right": ipywidgets.IntProgress,
    "large": ipywidgets.Checkbox,
}


@pytest.mark.parametrize("trait", CONTROLS)
def test_a_control_can_be_linked_in_the_browser(player: Player, trait: str) -> None:
    control = CONTROLS[trait]()
    link = ipywidgets.jslink((player, trait), (control, "value"))
    assert link.source == (player, trait)
    assert link.target == (control, "value")


@pytest.mark.parametrize("trait", ["step", "playing"])
def test_only_traits_that_exist_can_be_linked(player: Player, trait: str) -> None:
    with pytest.raises((TypeError, ValueError)):
        ipywidgets.jslink((player, f"{trait}_nowhere"), (ipywidgets.IntSlider(), "value"))


def test_the_state_of_the_first_picture_is_small(player: Player) -> None:
    assert size(state(player)) <= 50_000


def test_the_state_of_twenty_nodes_is_small() -> None:
    x = leaf(2.0)
    y = x
    for _ in range(19):
        y = (y * 1.5) if y is x else y.sin()
        y.register_hook(c_hook)
    with hv.record() as trace:
        y.backward()
    assert len(trace.ops) == 20
    assert size(state(trace.player())) <= 150_000


def test_the_script_is_one_module() -> None:
    script = read_bundle("player.js")
    assert script.count("export{") == 1 and "render" in script.partition("export{")[2]
    assert "import " not in script


def test_a_page_begins_with_what_the_widget_begins_with() -> None:
    traits = {name: trait.default() for name, trait in Player.class_own_traits(sync=True).items() if name[0] != "_"}
    assert traits == {**INITIAL, "steps": 0, "content": {}}


def test_the_state_is_plain_data(player: Player) -> None:
    json.dumps(state(player), allow_nan=False)


def test_each_step_has_a_frame_with_what_to_mark_and_to_say(player: Player) -> None:
    trace, steps = recorded(), shown_steps(player.content)
    assert len(steps) == len(trace.steps) == player.steps
    assert [step["sentence"] for step in steps] == [step.sentence for step in trace.steps]
    assert [step["kind"] for step in steps] == [step.kind for step in trace.steps]


def test_every_id_that_a_frame_marks_is_in_its_picture(player: Player) -> None:
    for step in shown_steps(player.content):
        found = ids_in(player.content["svgs"][step["picture"]])
        assert step["on"] and set(step["on"]) <= found
        assert {spot for spot in step["texts"] if not is_tensor_fact(spot)} <= found


def ids_in(svg: str) -> set[str | None]:
    return {element.get("id") for element in ET.fromstring(svg).iter()}


def layers(player: Player) -> list[list[str]]:
    """The pictures with the nodes' lists, and those with the tensors."""
    drawn: list[list[str]] = unpack(player.content["layers"])
    return drawn


def test_the_layers_have_every_id_that_the_frames_mark(player: Player) -> None:
    plain, with_lists, with_tensors = (ids_in(svgs[0]) for svgs in (player.content["svgs"], *layers(player)))
    for step in shown_steps(player.content):
        assert set(step["on"]) <= with_lists & with_tensors
        assert {spot for spot in step["texts"] if is_tensor_fact(spot)} <= with_tensors
        # In the layer of tensors the gradient of a node stands on the arrows and pins alone.
        others = {
            spot
            for spot in step["texts"]
            if not is_tensor_fact(spot) and spot != ids.gradient_id(spot.partition("-")[0])
        }
        assert others <= with_lists & with_tensors
    assert plain == with_lists


def test_the_layers_say_where_hooks_are_kept(player: Player) -> None:
    with_lists, with_tensors = ("".join(ET.fromstring(svgs[0]).itertext()) for svgs in layers(player))
    for text in (with_lists, with_tensors):
        assert text.count("pre-hooks: ") == 5
    assert "is_leaf" not in with_lists and with_tensors.count("is_leaf") == 5
    assert "pre-hooks" not in "".join(ET.fromstring(player.content["svgs"][0]).itertext())


def test_the_layer_of_tensors_begins_with_the_grads_from_before() -> None:
    x = leaf(2.0)
    x.grad = torch.tensor(100.0)
    with hv.record(names={"x": x}) as trace:
        (x * 3).backward()
    player = trace.player()
    root = ET.fromstring(layers(player)[1][0])
    [fact] = [group for group in root.iter() if group.get("id") == f"n{trace.ops.index('AccumulateGrad')}-f0"]
    assert [text.strip() for text in fact.itertext()] == ["grad", "100"]
    texts = [step["texts"] for step in shown_steps(player.content)]
    assert [there[spot] for there in texts for spot in there if spot == fact.get("id")] == ["103"]


def test_a_large_graph_has_no_layers() -> None:
    x = leaf(2.0)
    y = x
    for _ in range(MAX_LAYER_BOXES):
        y = y.sin()
    with hv.record() as trace:
        y.backward()
    assert trace.content()["layers"] == ""


def test_a_frame_of_a_hook_tells_its_source_and_where_it_is_kept(player: Player) -> None:
    frame = shown_steps(player.content)[8]
    hook = player.hooks[frame["hook"]]
    assert frame["title"] == "tensor hook ① on c"
    assert (frame["before"], frame["after"]) == ("8", "10")
    assert frame["registration"].startswith("Kept in c._backward_hooks, first of 2. Because c is not a leaf")
    assert frame["next_hook"] == "Next: ② print on c sees 10."
    assert hook["name"] == "c_hook" and hook["source"].startswith("def c_hook")
    assert (hook["first_line"], hook["return_line"]) == (
        c_hook.__code__.co_firstlineno,
        c_hook.__code__.co_firstlineno + 1,
    )


def test_a_hook_without_source_says_so(player: Player) -> None:
    hook = player.hooks[shown_steps(player.content)[9]["hook"]]
    assert (hook["source"], hook["first_line"]) == (None, None)
    assert hook["no_source"] is not None and in_english(hook["no_source"]) == "The source of print is not available."


def test_a_hook_on_a_leaf_tells_when_it_runs(player: Player) -> None:
    assert "d is a leaf" in shown_steps(player.content)[5]["registration"]


def test_a_hook_on_a_leaf_that_raises_is_told_to_be_on_a_leaf() -> None:
    x = leaf(2.0)
    x.register_hook(lambda grad: 1 / 0)
    with pytest.raises(ZeroDivisionError), hv.record() as trace:
        (x * 3).backward()
    assert "x is a leaf" in shown_steps(trace.content())[-1]["registration"]


def test_what_takes_many_lines_to_tell_is_told_once_by_a_hook_that_keeps_it() -> None:
    x = torch.ones(100, requires_grad=True)
    x.register_hook(lambda grad: None)
    x.register_hook(lambda grad: grad * 2)
    with hv.record() as trace:
        x.sum().backward()
    kept, doubled = (frame for frame in shown_steps(trace.content()) if frame["kind"] == "tensor_hook")
    assert (kept["before"], kept["after_label"]) == (None, "before and after")
    assert kept["after"].startswith("shape  (100,)") and kept["after"] == doubled["before"]
    assert (doubled["before_label"], doubled["after_label"]) == ("before", "after")


def test_a_node_that_computes_lists_what_it_sends(player: Player) -> None:
    frame = shown_steps(player.content)[3]
    assert (frame["before"], frame["before_label"], frame["after"]) == ("2", "takes", None)
    assert frame["gradients"] == [["to c", "8"], ["to d", "12"]]


def test_what_arrives_and_what_is_computed_has_its_reasons(player: Player) -> None:
    source = "mul_tensor_backward(grad, other, self.scalar_type())"
    assert shown_steps(player.content)[7]["reasons"] == [["grad × other = 2 × 4 = 8", source, ""]]
    assert [text for text, *_ in shown_steps(player.content)[3]["reasons"]] == [
        "c: grad × other = 2 × 4 = 8",
        "d: grad × self = 2 × 6 = 12",
    ]
    assert {frame["kind"] for frame in shown_steps(player.content) if "reasons" in frame} == {"arrive", "compute"}
    assert sum(size(frame["reasons"]) for frame in shown_steps(player.content) if "reasons" in frame) <= 2_000


def test_the_hook_of_another_pass_is_not_the_next_to_see_a_gradient() -> None:
    tensors, x = scene(), leaf(7.0)
    y = x * x
    x.register_post_accumulate_grad_hook(lambda parameter: None)
    tensors.c.register_hook(lambda grad: y.backward())
    tensors.c.register_hook(c_hook)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    fired = [
        (frame["picture"], frame["next_hook"]) for frame in shown_steps(trace.content()) if frame["glyph"] == "hook"
    ]
    assert fired == [(1, ""), (0, "Next: ② c_hook on c sees 4."), (0, "")]


def test_firings_name_their_steps(player: Player) -> None:
    assert [(firing["step"], firing["hook"], firing["on"]) for firing in shown_firings(player.content)] == [
        (1, "① λ grad * 2", "e"),
        (5, "① λ grad + 100", "d"),
        (8, "① c_hook", "c"),
        (9, "② print", "c"),
    ]
    assert [firing["change"] for firing in shown_firings(player.content)] == ["1 → 2", "12 → 112", "8 → 10", "10 → 10"]


def test_passes_over_two_graphs_have_a_picture_each() -> None:
    x = leaf(2.0)
    with hv.record() as trace:
        x.sin().backward()
        x.cos().backward()
    player = trace.player()
    assert len(player.content["svgs"]) == 2
    assert {frame["picture"] for frame in shown_steps(player.content)} == {0, 1}
    assert "SinBackward0" in player.content["svgs"][0] and "CosBackward0" in player.content["svgs"][1]


def test_the_contributions_to_a_sum_are_listed() -> None:
    x = leaf(2.0)
    y = x.sin()
    with hv.record() as trace:
        (y * 3 + y * 5).backward()
    (parts,) = [
        frame["gradients"] for frame in shown_steps(trace.content()) if frame["kind"] == "arrive" and frame["gradients"]
    ]
    assert sorted(value for _, value in parts) == ["3", "5"]
    assert all(way.startswith("from MulBackward0") for way, _ in parts)


# -- in Jupyter


def test_jupyter_gets_a_player_and_a_picture_in_its_place() -> None:
    read_bundle = recorded()._repr_mimebundle_()
    assert set(read_bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert read_bundle["text/plain"].startswith("Trace: 16 steps")
    shown = "".join(ET.fromstring(read_bundle["image/svg+xml"]).itertext())
    assert "8 → 10" in shown and ".grad = 30" in shown


def test_an_empty_trace_makes_no_widget() -> None:
    with hv.record() as trace:
        pass
    (text,) = trace._repr_mimebundle_().items()
    assert text[0] == "text/plain"
    assert text[1].startswith("Nothing was recorded")


def test_a_trace_of_which_nothing_was_observed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.autograd.graph.MAX_DEPTH", 3)
    x = leaf(1.0)
    y = (x + 1 + 1 + 1 + 1).sin()
    with pytest.warns(hv.HookvizWarning), hv.record() as trace:
        y.backward()
    read_bundle = trace._repr_mimebundle_()
    assert "more than 3 nodes in a row" in read_bundle["text/plain"]
    player = trace.player()
    first, notes = shown_steps(player.content)[0], shown_notes(player.content)
    assert first["kind"] == "unobserved" and [first["sentence"]] == notes


def test_strange_values_are_shown_as_text() -> None:
    x = torch.tensor([float("nan"), float("inf")], requires_grad=True)
    with hv.record() as trace:
        (x * x).sum().backward()
    assert json.dumps(state(trace.player()), allow_nan=False)
    assert any("nan" in (frame["after"] or "") for frame in shown_steps(trace.content()))


def test_every_empty_tensor_shows_something() -> None:
    x = torch.zeros(0, 3, requires_grad=True)
    with hv.record() as trace:
        (x * 2).sum().backward()
    assert all(frame["after"] != "" and frame["before"] != "" for frame in shown_steps(trace.content()))
