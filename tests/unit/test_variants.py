"""Several runs in one player: what-ifs, comparisons, sliders."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import c_hook, leaf, scene
from shown import all_words, overview, shown_steps, shown_steps_of, unpack_chunk
from torch import nn

import hookviz as hv
from hookviz.player.compression import pack
from hookviz.player.payload import Content
from hookviz.what_if import WhatIf, whatif
from hookviz.what_if.slider_panel import make_sliders
from tests.unit.test_whatif import a_to_e


@pytest.fixture(scope="module")
def experiment() -> WhatIf:
    return whatif(a_to_e, a=(-3, 3), d=(0, 10))


@pytest.fixture(scope="module")
def content(experiment: WhatIf) -> Content:
    return experiment.content()


def without_numbers(text: str | None) -> str | None:
    """Return a text without the numbers of nodes and steps, which several runs share."""
    return text and re.sub(r" #\d+|\(step \d+\)", "", text)


def frame_texts(frames: list[Any]) -> list[tuple[Any, ...]]:
    present = [frame for frame in frames if frame["kind"] != "absent"]
    names = ("kind", "title", "sentence", "before", "after")
    return [tuple(without_numbers(frame[name]) for name in names) for frame in present]


def changed_graphs() -> None:
    """A run whose graph depends on its hooks: a sum, a sine or the exponential of the sine."""
    net, x = nn.Identity(), leaf(2.0)
    net.register_forward_hook(lambda module, args, output: output.sin())
    net.register_forward_hook(lambda module, args, output: output.exp())
    (net(x) + x.exp()).backward()


def shared_memory() -> None:
    """A run in which an edit in place reaches a second tensor."""
    a, b = leaf(2.0), leaf(3.0)
    c, d = a * 1, b * 1
    d.register_hook(lambda grad: grad.mul_(100))
    e = c + d
    e.register_hook(lambda grad: None)
    c.register_hook(lambda grad: None)
    e.backward()


def equal_hooks_and_passes() -> None:
    """A run with a hook twice on a leaf, and with a pass that only a hook starts."""
    x, y = leaf(3.0), leaf(4.0)
    x.register_hook(c_hook)
    x.register_hook(c_hook)
    y.register_hook(lambda grad: (x * 2).backward())
    (y * y).backward()
    (x * 3).backward()


RUNS = [a_to_e, changed_graphs, shared_memory, equal_hooks_and_passes]


@pytest.mark.parametrize("run", RUNS, ids=[run.__name__ for run in RUNS])
def test_every_variant_has_the_texts_of_its_own_player(run: Callable[[], Any]) -> None:
    experiment = whatif(run)
    content = experiment.content()
    frames = [shown_steps(content, run_index) for run_index in range(len(content["runs"]))]
    assert [frame_texts(steps) for steps in frames] == [
        frame_texts(shown_steps_of(trace)) for trace in experiment.traces.values()
    ]
    for side_by_side in zip(*frames, strict=True):
        titles = {without_numbers(f["title"].replace("①", "②")) for f in side_by_side if f["kind"] != "absent"}
        assert len(titles) == 1
    edits = [int(number) for step in frames[0] for number in re.findall(r"in place \(step (\d+)\)", step["sentence"])]
    assert all("edited" in frames[0][number - 1]["sentence"] for number in edits) and bool(edits) == (
        run is shared_memory
    )


def test_all_variants_share_one_timeline_and_one_picture(content: Content) -> None:
    assert sorted(content["combinations"].values()) == list(range(16))
    assert [run["baseline"] for run in content["runs"]] == [None] + [0] * 15
    assert {run["steps"] for run in content["runs"]} == {16} and len(content["svgs"]) == 1
    places = [[step["title"].split(" on ")[-1] for step in shown_steps(content, run)] for run in range(16)]
    assert places == [places[0]] * 16
    assert [switch["label"] for switch in content["switches"]] == ["c_hook", "look", "plus_hundred", "times_two"]
    switched = {hook for switch in content["switches"] for hook in switch["hooks"]}
    assert len(switched) == 4
    for run in range(16):
        pins = unpack_chunk(content, overview(content, run)["views"][0])["pins"]
        assert {pin["hook"] for pin in pins.values()} - {-1} == switched
        assert all(f'id="{spot}"' in content["svgs"][0] for spot in pins)
    texts = [json.dumps(words, sort_keys=True) for words in all_words(content)]
    assert len(set(texts)) == len(texts) < 110
    assert len(json.dumps(content)) < 160_000 and len(pack(content)) < 27_000


def test_an_absent_step_names_the_hooks_that_are_off(content: Content) -> None:
    run_index = content["combinations"]["0,2"]
    missing = [frame for frame in shown_steps(content, run_index) if frame["kind"] == "absent"]
    assert [frame["sentence"] for frame in missing] == ["This step does not happen without c_hook, plus_hundred."] * 2
    assert [frame["glyph"] for frame in missing] == ["hook", "hook"]
    assert content["runs"][run_index]["label"] == "Without c_hook, plus_hundred"
    assert content["runs"][0]["label"] == "With every hook on"


def test_after_a_change_each_run_has_its_former_run_as_baseline() -> None:
    experiment = whatif(a_to_e, a=(-3, 3))
    before = experiment.content()
    experiment.change(a=1.5)
    after = experiment.content()
    assert len(after["runs"]) == 32
    assert [run["baseline"] for run in after["runs"]] == [*range(16, 32), *[None] * 16]
    for run_index in range(16):
        assert frame_texts(shown_steps(after, run_index + 16)) == frame_texts(shown_steps(before, run_index))
    assert len(after["svgs"]) == 1, "former runs are only compared with and need no picture"


def test_moving_a_slider_records_again_and_updates_the_player() -> None:
    experiment = whatif(a_to_e, a=(-3, 3), d=(0, 10))
    player = experiment.player()
    first, second = make_sliders(experiment, player)
    assert (first.min, first.max, first.step, first.value) == (-3, 3, 0.05, 2.0)
    assert (second.description, second.value) == ("d", 4.0)
    player.step, player.answered, player.asked, player.right = 12, {1: 1, 5: 0}, 2, 1
    player.show(experiment.content())
    assert (player.answered, player.asked, player.right) == ({1: 1, 5: 0}, 2, 1), "nothing has changed"
    second.value = 5.0
    assert experiment.values == {"a": 2.0, "d": 5.0}
    assert (player.step, len(player.content["runs"])) == (12, 32)
    assert (player.answered, player.asked, player.right) == ({}, 0, 0)


def run_with_hook(hook: Callable[[torch.Tensor], Any] | None, *, on: str = "c") -> hv.Trace:
    tensors = scene()
    if hook is not None:
        getattr(tensors, on).register_hook(hook)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    return trace


def test_a_comparison_shows_both_traces_and_their_first_difference() -> None:
    plain, hooked = run_with_hook(None), run_with_hook(c_hook)
    content = plain.diff(hooked).content()
    assert frame_texts(shown_steps(content, 0)) == frame_texts(shown_steps_of(plain))
    assert frame_texts(shown_steps(content, 1)) == frame_texts(shown_steps_of(hooked))
    assert content["initial_state"] == {"shown": 1, "split": True}
    assert (
        shown_steps(content, 1)[content["first_difference"]]["sentence"] == "c_hook on c replaced the gradient: 4 → 6."
    )
    assert shown_steps(content, 0)[content["first_difference"]]["sentence"] == "This step is only in the other trace."
    step = content["first_difference"] + 1
    assert (content["questions"], content["about"]) == ([], "two runs compared, backward pass of e")
    assert content["notes"] == [f"Gradients that differ: 2. The difference begins at step {step}, with c_hook on c."]


def test_a_switched_off_module_hook_keeps_its_pin() -> None:
    def run() -> None:
        net = torch.nn.Identity()
        net.register_forward_hook(lambda module, args, output: output * 3)
        net(leaf(2.0))

    content = whatif(run).content()
    assert [set(re.findall(r'id="(m0-p\d+)"', svg)) for svg in content["svgs"]] == [{"m0-p0"}]
    final_texts = [shown_steps(content, run_index)[-1]["texts"].get("m0-p0-v") for run_index in (0, 1)]
    assert final_texts == ["2 → 6", "off"]


def test_a_note_states_that_steps_were_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.player.several_runs.MAX_STEPS", 8)
    content = run_with_hook(None).diff(run_with_hook(c_hook)).content()
    assert [run["steps"] for run in content["runs"]] == [8, 8]
    assert any("8" in note for note in content["notes"])


# -- questions


def test_runs_share_the_questions_of_the_first_and_have_their_own_after_them(content: Content) -> None:
    first, without_c_hook = (overview(content, run)["questions"] for run in (0, content["combinations"]["0"]))
    assert first == {"1": [0], "4": [1], "8": [2], "9": [3]}
    assert {step: keys[:1] for step, keys in without_c_hook.items()} == first
    own = [content["questions"][key] for key in without_c_hook["8"][1:]]
    assert [question["text"] for question in own] == [
        "c_hook is off. What is a.grad now?",
        "c_hook is off. What is b.grad now?",
    ]
    assert {question["run"] for question in own} == {content["combinations"]["0"]}
    assert {content["questions"][key]["run"] for keys in first.values() for key in keys} == {0}
