"""The Python side of the player: its traits, the content and size of its state, and its static fallback."""

import json
import xml.etree.ElementTree as ET
from typing import Any

import anywidget
import pytest
import torch
from scenes import c_hook, recorded
from shown import shown_steps

import hookviz as hv
from hookviz.player.compression import unpack
from hookviz.player.payload import INITIAL
from hookviz.player.widget import Player
from tests.requirements import needs_saved_tensors


@pytest.fixture
def player() -> Player:
    return recorded().player()


def size(thing: Any) -> int:
    return len(json.dumps(thing).encode())


def state(player: Player) -> dict[str, Any]:
    """The state sent to the browser, without the code shared by all players."""
    code = ("_esm", "_css", "_anywidget_id")
    return {key: value for key, value in player.get_state().items() if key not in code}


def test_a_player_is_a_widget_with_synced_traits(player: Player) -> None:
    assert isinstance(player, anywidget.AnyWidget)
    assert (player.step, player.steps, player.playing, player.speed) == (0, 16, False, 1)
    traits = {name: trait.default() for name, trait in Player.class_own_traits(sync=True).items() if name[0] != "_"}
    assert traits == {**INITIAL, "steps": 0, "content": {}}, "the initial state of a page"
    assert size(state(player)) <= 50_000


def test_the_step_is_clamped_to_the_valid_range(player: Player) -> None:
    for value, step in ((15, 15), (16, 15), (-1, 0)):
        player.step = value
        assert player.step == step
    empty = hv.Trace().player()
    empty.step = 5
    assert (empty.step, empty.steps, empty.content["runs"]) == (0, 0, [])


def test_each_step_has_a_frame_whose_ids_are_in_its_picture(player: Player) -> None:
    steps = shown_steps(player.content)
    assert [(step["kind"], step["sentence"]) for step in steps] == [(s.kind, s.sentence) for s in recorded().steps]
    for step in steps:
        picture_ids = ids_in(player.content["svgs"][step["picture"]])
        assert step["on"] and set(step["on"]) <= picture_ids
        assert step["texts"].keys() <= picture_ids | ids_in(layer_of(player))


def ids_in(svg: str) -> set[str | None]:
    return {element.get("id") for element in ET.fromstring(svg).iter()}


def layer_of(player: Player) -> str:
    """The SVG with the layer of tensors of a player with one picture."""
    (svg,) = unpack(player.content["layers"])
    return str(svg)


def test_a_hook_frame_shows_source_and_registration(player: Player) -> None:
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


@needs_saved_tensors
def test_arrive_and_compute_frames_have_reasons(player: Player) -> None:
    source = "mul_tensor_backward(grad, other, self.scalar_type())"
    assert shown_steps(player.content)[7]["reasons"] == [["grad × other = 2 × 4 = 8", source, ""]]
    assert [text for text, *_ in shown_steps(player.content)[3]["reasons"]] == [
        "c: grad × other = 2 × 4 = 8",
        "d: grad × self = 2 × 6 = 12",
    ]
    assert {frame["kind"] for frame in shown_steps(player.content) if "reasons" in frame} == {"arrive", "compute"}
    assert sum(size(frame["reasons"]) for frame in shown_steps(player.content) if "reasons" in frame) <= 2_000


def test_the_table_of_firings_has_step_hook_tensor_and_change(player: Player) -> None:
    firings = player.content["runs"][0]["firings"]
    assert [(row["step"], row["hook"], row["on"], row["change"]) for row in firings] == [
        (1, "① λ grad * 2", "e", "1 → 2"),
        (5, "① λ grad + 100", "d", "12 → 112"),
        (8, "① c_hook", "c", "8 → 10"),
        (9, "② print", "c", "10 = 10"),
    ]


# -- in Jupyter


def test_an_empty_trace_has_a_text_representation_only() -> None:
    (text,) = hv.Trace()._repr_mimebundle_().items()
    assert text[0] == "text/plain" and text[1].startswith("Nothing was recorded")


def test_nan_and_inf_are_sent_as_text() -> None:
    x = torch.tensor([float("nan"), float("inf")], requires_grad=True)
    with hv.record() as trace:
        (x * x).sum().backward()
    assert json.dumps(state(trace.player()), allow_nan=False)
    assert any("nan" in (frame["after"] or "") for frame in shown_steps(trace.content()))
