"""Several passes as the player shows them: what-ifs, comparisons, sliders."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import c_hook, leaf, scene
from shown import all_words, content_of, in_english, outline, shown_notes, shown_steps, shown_steps_of, unpack_chunk

import hookviz as hv
from hookviz.player.compression import pack
from hookviz.player.payload import Content
from hookviz.player.several_runs import MAX_STEPS, Variant, several_runs
from hookviz.player.widget import Player
from hookviz.what_if import WhatIf, slider_panel, whatif
from hookviz.what_if.slider_panel import make_sliders, show
from tests.unit.test_whatif import a_to_e


@pytest.fixture(scope="module")
def both() -> WhatIf:
    return whatif(a_to_e, a=(-3, 3), d=(0, 10))


@pytest.fixture(scope="module")
def shown(both: WhatIf) -> Content:
    return both.content()


def told(frames: list[Any]) -> list[tuple[Any, ...]]:
    there = [frame for frame in frames if frame["kind"] != "absent"]
    return [(frame["kind"], frame["title"], frame["sentence"], frame["before"], frame["after"]) for frame in there]


def test_every_variant_tells_what_its_own_player_would_tell(both: WhatIf, shown: Content) -> None:
    for place, trace in enumerate(both.traces.values()):
        assert told(shown_steps(shown, place)) == told(shown_steps_of(trace))


def test_all_variants_share_one_timeline_and_one_picture(shown: Content) -> None:
    assert len(shown["svgs"]) == 1
    assert {run["steps"] for run in shown["runs"]} == {16}
    titles = [[frame["title"].split(" on ")[-1] for frame in shown_steps(shown, place)] for place in range(16)]
    assert all(there == titles[0] for there in titles)


def test_a_step_that_is_not_there_says_why(shown: Content) -> None:
    place = shown["combinations"]["0,2"]
    missing = [frame for frame in shown_steps(shown, place) if frame["kind"] == "absent"]
    assert [frame["sentence"] for frame in missing] == ["This step does not happen without c_hook, plus_hundred."] * 2
    assert [frame["glyph"] for frame in missing] == ["hook", "hook"]
    assert in_english(shown["runs"][place]["label"]) == "Without c_hook, plus_hundred"
    assert in_english(shown["runs"][0]["label"]) == "With every hook on"


def test_switches_know_their_pins(shown: Content) -> None:
    assert [switch["label"] for switch in shown["switches"]] == ["c_hook", "look", "plus_hundred", "times_two"]
    switched = {hook for switch in shown["switches"] for hook in switch["hooks"]}
    assert len(switched) == 4
    for run in range(16):
        pins = unpack_chunk(shown, outline(shown, run)["views"][0])["pins"]
        assert {pin["hook"] for pin in pins.values()} - {-1} == switched
        assert all(f'id="{spot}"' in shown["svgs"][0] for spot in pins)


def test_every_combination_has_its_variant(shown: Content) -> None:
    assert sorted(shown["combinations"].values()) == list(range(16))
    assert [run["baseline"] for run in shown["runs"]] == [None] + [0] * 15


def test_a_step_that_only_others_have_is_said_to_be_missing_with_every_hook_on() -> None:
    def run() -> None:
        x = leaf(2.0)
        net = torch.nn.Identity()
        net.register_forward_hook(lambda module, args, output: output.detach().requires_grad_())
        net(x * 1).backward()

    missing = {frame["sentence"] for frame in shown_steps(whatif(run).content(), 0) if frame["kind"] == "absent"}
    assert missing == {"This step does not happen with every hook on."}


def test_the_words_of_a_step_are_there_once_and_few(shown: Content) -> None:
    texts = [json.dumps(words, sort_keys=True) for words in all_words(shown)]
    assert len(set(texts)) == len(texts) < 110
    assert len(json.dumps(shown)) < 160_000 and len(pack(shown)) < 25_000


def test_texts_that_differ_have_room_beside_each_other(both: WhatIf) -> None:
    def width(svg: str) -> float:
        return float(svg.partition('viewBox="')[2].split('"')[0].split()[2])

    alone = content_of(next(iter(both.traces.values())))["svgs"][0]
    assert width(both.content()["svgs"][0]) > width(alone)


def test_after_a_change_each_variant_is_compared_with_what_it_was() -> None:
    both = whatif(a_to_e, a=(-3, 3))
    before = both.content()
    both.change(a=1.5)
    after = both.content()
    assert len(after["runs"]) == 32
    assert [run["baseline"] for run in after["runs"]] == [*range(16, 32), *[None] * 16]
    for place in range(16):
        assert told(shown_steps(after, place + 16)) == told(shown_steps(before, place))
    assert len(after["svgs"]) == 1, "what was is only compared with, and needs no picture"
    now, then = (shown_steps(after, place)[0]["texts"] for place in (0, 16))
    changed = {spot: (then[spot].strip(), now[spot].strip()) for spot in now if then.get(spot) != now[spot]}
    behind_the_names = {("= 2", "= 1.5"), ("= 6", "= 4.5"), ("= 24", "= 18")}  # a, c and e
    among_the_facts = {(old.removeprefix("= "), new.removeprefix("= ")) for old, new in behind_the_names}
    assert {pair for spot, pair in changed.items() if "-d" in spot} == behind_the_names
    assert {pair for spot, pair in changed.items() if "-b" in spot} == among_the_facts
    assert len(changed) == 6


def test_a_value_that_no_variant_changes_is_part_of_the_picture_and_not_of_the_frames(shown: Content) -> None:
    assert not any(
        re.search("-[bd]0$", spot) for run in range(16) for step in shown_steps(shown, run) for spot in step["texts"]
    )
    assert "= 24<" in shown["svgs"][0].replace("\N{NO-BREAK SPACE}", " ")


def test_sliders_record_afresh_and_tell_the_player() -> None:
    both = whatif(a_to_e, a=(-3, 3), d=(0, 10))
    player = both.player()
    first, second = make_sliders(both, player)
    assert (first.min, first.max, first.step, first.value) == (-3, 3, 0.06, 2.0)
    assert (second.description, second.value) == ("d", 4.0)
    player.step = 12
    second.value = 5.0
    assert both.values == {"a": 2.0, "d": 5.0}
    assert player.step == 12
    assert len(player.content["runs"]) == 32


def test_the_score_is_of_what_is_shown() -> None:
    both = whatif(a_to_e, d=(0, 10))
    player = both.player()
    player.answered, player.asked, player.right = {1: 1, 5: 0}, 2, 1
    player.show(both.content())
    assert (player.answered, player.asked, player.right) == ({1: 1, 5: 0}, 2, 1), "nothing has changed"
    both.change(d=5)
    player.show(both.content())
    assert (player.answered, player.asked, player.right) == ({}, 0, 0)


def test_jupyter_shows_sliders_and_below_them_what_stays_without_a_kernel(
    both: WhatIf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []
    boxes: list[Any] = []
    monkeypatch.setattr(slider_panel, "display", lambda thing, **_: shown.append(thing))
    make = slider_panel.ipywidgets.VBox
    monkeypatch.setattr(slider_panel.ipywidgets, "VBox", lambda children: boxes.append(make(children)) or boxes[-1])
    show(both)
    (moved, box), (sliders, player) = boxes, shown
    assert [type(child).__name__ for child in moved.children] == ["FloatSlider", "FloatSlider"]
    assert [type(child).__name__ for child in box.children] == ["HBox", "Player"]
    assert sliders == {
        "application/vnd.jupyter.widget-view+json": {"version_major": 2, "version_minor": 0, "model_id": box.model_id},
        "text/html": "<p>The sliders need a running kernel: run this cell again.</p>",
    }
    assert f'data-twin="{box.children[-1].twin}"' in player["text/html"]
    assert "min-height: 64px" in player["text/html"] and "hv-state" in player["text/html"]
    assert player["text/plain"] == repr(both)


def test_a_what_if_without_sliders_is_shown_without_a_widget() -> None:
    both = whatif(a_to_e)
    assert not hasattr(both, "_ipython_display_")
    assert set(both._repr_mimebundle_()) == {"text/html", "text/plain"}
    assert isinstance(both.player(), Player)


def passed(hook: Callable[[torch.Tensor], Any] | None, *, on: str = "c") -> hv.Trace:
    tensors = scene()
    if hook is not None:
        getattr(tensors, on).register_hook(hook)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    return trace


def test_a_comparison_shows_both_traces_and_where_they_part() -> None:
    this, other = passed(None), passed(c_hook)
    shown = this.diff(other).content()
    assert told(shown_steps(shown, 0)) == told(shown_steps_of(this))
    assert told(shown_steps(shown, 1)) == told(shown_steps_of(other))
    assert shown["initial_state"] == {"shown": 1, "split": True}
    assert shown_steps(shown, 1)[shown["first_difference"]]["sentence"] == "c_hook on c replaced the gradient: 4 → 6."
    assert shown_steps(shown, 0)[shown["first_difference"]]["sentence"] == "This step is only in the other trace."
    step = shown["first_difference"] + 1
    assert shown_notes(shown) == [f"Gradients that differ: 2. The difference begins at step {step}, with c_hook on c."]


def test_a_comparison_the_other_way_round_marks_the_same_firing() -> None:
    shown = passed(c_hook).diff(passed(None)).content()
    assert shown_steps(shown, 0)[shown["first_difference"]]["sentence"] == "c_hook on c replaced the gradient: 4 → 6."
    assert shown_steps(shown, 1)[shown["first_difference"]]["sentence"].startswith("This step is only in this trace;")


def test_where_another_seed_makes_the_difference_the_note_says_so() -> None:
    def seeded(seed: float) -> hv.Trace:
        tensors = scene()
        tensors.c.register_hook(c_hook)
        with hv.record(names=tensors._asdict()) as trace:
            tensors.e.backward(torch.tensor(seed))
        return trace

    [note] = shown_notes(seeded(1.0).diff(seeded(2.0)).content())
    assert "They differ before any observed hook changes one. The first hook to receive " in note
    assert "such a gradient is c_hook on c, step" in note


def test_a_hook_that_only_the_other_has_has_no_pin_and_one_that_did_not_fire_says_so() -> None:
    def unreached(*, hooked: bool) -> hv.Trace:
        x, y = leaf(3.0), leaf(4.0)
        x.register_hook(c_hook)
        if hooked:
            y.register_hook(c_hook)
        z = x * y
        with hv.record(names={"x": x, "y": y}) as trace:
            torch.autograd.grad(z, [z])
        return trace

    shown = unreached(hooked=False).diff(unreached(hooked=True)).content()
    pins = [[text for spot, text in shown_steps(shown, place)[-1]["texts"].items() if "-p" in spot] for place in (0, 1)]
    assert pins == [["did not fire"], ["did not fire", "did not fire"]]


def test_each_side_of_a_comparison_lists_and_counts_its_own_hooks() -> None:
    def kept(*hooks: Callable[[torch.Tensor], torch.Tensor]) -> hv.Trace:
        x = leaf(3.0)
        for hook in hooks:
            x.register_hook(hook)
        with hv.record(names={"x": x}) as trace:
            (x * x).backward()
        return trace

    shown = kept(lambda grad: grad + 100, c_hook).diff(kept(c_hook)).content()
    pictures = [shown["svgs"][shown_steps(shown, place)[0]["picture"]] for place in (0, 1)]
    listed = [re.findall("[①②] [^<]*", picture) for picture in pictures]
    assert listed == [["① λ grad + 100", "② c_hook"], ["① c_hook"]]
    titles = [[f["title"] for f in shown_steps(shown, place) if f["kind"] == "tensor_hook"] for place in (0, 1)]
    assert titles == [["tensor hook ① on x", "tensor hook ② on x"], ["tensor hook ① on x"]]


def test_equal_traces_have_no_mark() -> None:
    shown = passed(c_hook).diff(passed(c_hook)).content()
    assert shown["first_difference"] == -1
    assert isinstance(passed(c_hook).diff(passed(c_hook)).player(), Player)


def test_a_graph_that_a_hook_changes_gets_a_picture_of_its_own() -> None:
    def run() -> None:
        net, x = torch.nn.Identity(), leaf(2.0)
        net.register_forward_hook(lambda module, args, output: output * 3)
        y = net(x * 1)
        y.backward()

    shown = whatif(run).content()
    assert len(shown["svgs"]) == 2
    pictures = [{frame["picture"] for frame in shown_steps(shown, place)} for place in (0, 1)]
    assert pictures == [{0}, {1}]


@pytest.mark.parametrize("backward", [True, False])
def test_the_pin_of_a_module_hook_that_is_off_stays_as_a_switch(*, backward: bool) -> None:
    def run() -> None:
        net = torch.nn.Identity()
        net.register_forward_hook(lambda module, args, output: output * 3)
        y = net(leaf(2.0))
        if backward:
            y.backward()

    shown = whatif(run).content()
    assert len(shown["svgs"]) == (2 if backward else 1)
    assert [set(re.findall(r'id="(m0-p\d+)"', svg)) for svg in shown["svgs"]] == [{"m0-p0"}] * len(shown["svgs"])
    ends = [shown_steps(shown, place)[-1]["texts"].get("m0-p0-v") for place in (0, 1)]
    assert ends == ([None, "off"] if backward else ["2 → 6", "off"])


def test_passes_over_one_graph_keep_their_pictures_apart() -> None:
    def run() -> None:
        x = leaf(3.0)
        x.register_hook(c_hook)
        y = x * x
        y.backward(retain_graph=True)
        y.backward()

    shown = whatif(run).content()
    assert len(shown["svgs"]) == 2
    assert {frame["picture"] for frame in shown_steps(shown, 1)} == {0, 1}


def test_more_steps_than_are_shown_are_said() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(MAX_STEPS // 2 + 10):
        y = y * 1
    with hv.record() as trace:
        y.backward()
    shown = several_runs([Variant(trace, "this", "", "")])
    assert shown["runs"][0]["steps"] == MAX_STEPS
    assert len(shown["notes"]) == 1
