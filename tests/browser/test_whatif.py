"""What if and comparison in a page from disk, with the network off and by keyboard alone."""

import struct
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from scenes import c_hook, scene

import hookviz as hv
from hookviz.support.messages import say
from tests.browser.conftest import again, press
from tests.unit.test_whatif import a_to_e

GRADS = """() => [...document.querySelectorAll(".hv-live .hv-node")].map((node) => {
  const text = node.querySelector(".hv-grad"), fresh = text.cloneNode(true);
  for (const was of fresh.querySelectorAll(".hv-was")) was.remove();
  return [node.querySelector("text").textContent, fresh.textContent.replace(/^.* /, "")];
})"""
"""What each box of the picture says of its gradient, without what is struck through."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whatif")
    hv.whatif(a_to_e).to_html(folder / "whatif.html", title="What if")
    slid = hv.whatif(a_to_e, d=(0, 10))
    slid.change(d=0)
    slid.to_html(folder / "slid.html")
    hv.whatif(cut).to_html(folder / "cut.html")
    plain, hooked = (passed(hooks) for hooks in ({}, {"c": c_hook}))
    plain.diff(hooked).to_html(folder / "diff.html")
    passed({"b": lambda leaf: None}, "register_post_accumulate_grad_hook").diff(plain).to_html(folder / "longer.html")
    return folder


def passed(hooks: dict[str, Any], register: str = "register_hook") -> hv.Trace:
    """The pass through a to e with hooks on it (tensor's name → hook)."""
    tensors = scene()
    for name, hook in hooks.items():
        getattr(getattr(tensors, name), register)(hook)
    with hv.record(names=tensors._asdict()) as trace:
        tensors.e.backward()
    return trace


def cut() -> None:
    """A hook that takes the output off the graph and doubles it."""
    net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    for parameter in net.parameters():
        torch.nn.init.constant_(parameter, 2.0)
    net[0].register_forward_hook(lambda module, args, output: output.detach() * 2)
    net(torch.tensor([[3.0]])).backward()


BOTTOM = "height => Math.abs(document.querySelector('.hv-bar').getBoundingClientRect().bottom - height) <= 1"
"""Whether the bar with the buttons ends where the screen ends."""
CHANGED = ".hv-live .hv-picture:not([hidden]) .hv-changed"
STRUCK = f"""() => [...document.querySelectorAll("{CHANGED}")].map((text) =>
  [...text.childNodes].map((part) => part.classList ? `-${{part.textContent}}-` : part.textContent.trim())
    .filter(Boolean).join(" ").replace(/\\u00a0/g, ""))"""
"""The texts of the picture in which something is struck through, as ``= -4- 0``."""


def bits(x: float) -> bytes:
    return struct.pack("<f", x)


def test_all_sixteen_states_in_the_page_are_sixteen_fresh_runs(opened: Any) -> None:
    page = opened("whatif")
    page.keyboard.press("End")
    off: set[int] = set()
    for on in product((True, False), repeat=4):
        for place in range(4):
            if (place in off) == on[place]:
                page.keyboard.press(str(place + 1))
                off ^= {place}
        page.wait_for_function("n => document.querySelectorAll('[aria-checked=false]').length === n", arg=len(off))
        fresh = {name: t.grad.item() for name, t in a_to_e(on=on).items() if t.grad is not None}
        shown = {name: float(number) for name, number in page.evaluate(GRADS)}
        assert {name: bits(x) for name, x in shown.items()} == {name: bits(x) for name, x in fresh.items()}
    assert page.errors == []


def test_a_flip_stays_at_its_step_and_keeps_the_keyboard(opened: Any) -> None:
    page = opened("whatif")
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    assert page.locator(".hv-title").inner_text() == "tensor hook ① on c"
    page.keyboard.press("1")
    page.wait_for_selector("[aria-checked=false]")
    assert page.locator(".hv-count").inner_text() == "Step 9 of 16"
    assert page.locator(".hv-sentence").inner_text() == "This step does not happen without c_hook."
    told = "With every hook on: c_hook on c replaced the gradient: 8 → 10."
    assert page.locator(".hv-beside").inner_text() == told
    assert told in page.locator(".hv-heard").inner_text()
    page.keyboard.press("End")
    assert page.locator(".hv-count").inner_text() == "Step 16 of 16", "the player still has the keyboard"


def test_the_end_is_that_of_the_pass_that_is_shown(opened: Any) -> None:
    page = opened("cut")
    press(page, "End")
    expect(page.locator(".hv-sentence")).to_contain_text("net.1.weight.grad is written")
    for last in (15, 23, 15):
        press(page, "End")
        expect(page.locator(".hv-count")).to_have_text(f"Step {last} of 23")
        press(page, "1")


def test_beside_each_other_both_passes_have_their_ends(opened: Any) -> None:
    page = opened("longer")
    press(page, "End")
    expect(page.locator(".hv-count")).to_have_text("Step 11 of 11")
    expect(page.locator(".hv-sentence")).to_have_text("This step is only in this trace; the other has none here.")
    press(page, "s", "End")
    expect(page.locator(".hv-count")).to_have_text("Step 10 of 11")


def test_every_changed_number_is_marked_with_what_it_was(opened: Any) -> None:
    page = opened("whatif")
    page.keyboard.press("End")
    assert page.locator(".hv-was").count() == 0
    page.keyboard.press("1")
    page.wait_for_selector("[aria-checked=false]")
    texts = page.locator(".hv-graph .hv-changed").all_text_contents()
    assert sorted(" ".join(text.split()) for text in texts) == sorted(
        [
            "gradient 10 8",
            "8 → 10 off",
            "10 → 10 8 → 8",
            ".grad = 10 8",
            "30 24",
            "20 16",
            ".grad = 30 24",
            ".grad = 20 16",
        ]
    )
    rows = page.locator(".hv-live tbody tr").all_inner_texts()
    assert [row for row in rows if "c_hook" in row] == ["9\t① c_hook\ttensor hook\tc\t8 → 10\tnot here"]
    assert page.locator(".hv-card .hv-was").inner_text() == "20"


def test_a_digit_that_answers_a_question_flips_no_switch(opened: Any) -> None:
    page = opened("whatif")
    for key in ("p", "ArrowRight", "2", "Enter", *["ArrowRight"] * 4):
        page.keyboard.press(key)
    page.wait_for_selector(".hv-choice")
    for key in ("9", "1", "3"):  # no such choice, a wrong one, the right one
        page.keyboard.press(key)
    page.wait_for_selector(".hv-ask", state="detached")
    assert "Right. The answer: ①" in page.inner_text(".hv-told")
    assert page.locator("[aria-checked=false]").count() == 0
    page.keyboard.press("3")  # where nothing is asked either
    assert page.locator("[aria-checked=false]").count() == 0
    page.keyboard.press("p")
    assert page.locator(".hv-predicting").count() == 0
    page.keyboard.press("3")
    assert page.locator("[aria-checked=false]").count() == 1
    page.keyboard.press("p")
    assert page.inner_text(".hv-told") == say("player.ask_elsewhere")
    assert page.errors == []


def test_switches_work_with_tab_and_space_and_a_pin_with_the_mouse(opened: Any) -> None:
    page = opened("whatif")
    switch = page.get_by_role("switch", name="look")
    switch.focus()
    page.keyboard.press("Space")
    page.wait_for_selector("[aria-checked=false]")
    assert page.evaluate("document.activeElement.dataset.key") == "switch 1"
    page.locator(".hv-live .hv-pin", has_text="times_two").click()
    page.wait_for_function("document.querySelectorAll('[aria-checked=false]').length === 2")
    assert page.locator(".hv-count").inner_text() == "Step 1 of 16", "a pin that is a switch leads nowhere"
    assert page.locator(".hv-off").count() == 2


def test_two_passes_stand_beside_each_other_and_step_together(opened: Any) -> None:
    page = opened("diff")
    sides = page.locator(".hv-side")
    assert page.locator(".hv-live figcaption").all_inner_texts() == ["This trace", "The other trace"]
    page.keyboard.press("]")
    assert page.locator(".hv-sentence").inner_text() == "c_hook on c replaced the gradient: 4 → 6."
    marked = [[text for text in side.locator(".hv-changed").all_text_contents() if text] for side in sides.all()]
    assert marked == [["gradient 4"], ["gradient 6"]]
    assert page.locator(".hv-ring").count() == 1
    assert (
        "The difference begins at step 6, with c_hook on c."
        in page.locator(".hv-live .hv-player > .hv-notes").inner_text()
    )
    page.keyboard.press("s")
    page.wait_for_function("!document.querySelector('.hv-pair')")
    assert page.locator(".hv-graph .hv-was").all_text_contents() == ["4"]
    assert page.errors == []


@pytest.mark.parametrize("name", ["whatif", "diff"])
def test_side_by_side_fills_the_screen_and_ends_on_it(opened: Any, name: str) -> None:
    page = opened(name)
    if name == "whatif":
        press(page, "s", "1")
    press(page, "f", "]")
    page.wait_for_function("document.fullscreenElement")
    for (width, height), _ in product(((1280, 720), (1920, 1080)), ("plain", "larger")):
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(BOTTOM, arg=height)
        parts = [page.locator(f".hv-live .hv-{part}").bounding_box() for part in ("pair", "panel", "bar")]
        ends = [part["y"] + part["height"] for part in parts]
        assert [part["y"] for part in parts] == pytest.approx([0, *ends[:2]], abs=1)
        assert parts[0]["height"] >= height / 2 and parts[1]["height"] >= 140
        sentence = page.locator(".hv-sentence").bounding_box()
        assert sentence["y"] + sentence["height"] <= ends[1]
        press(page, "l")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["whatif", "diff"])
def test_nothing_reaches_beyond_the_window_and_axe_finds_nothing_serious(opened: Any, name: str, width: int) -> None:
    page = opened(name, width)
    page.keyboard.press("1")
    page.keyboard.press("End")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


def test_a_slider_records_afresh_and_shows_what_changed(open_page: Any) -> None:
    page = open_page("sliders.ipynb")
    slider = page.locator(".jp-OutputArea-output:has(.widget-slider)")
    slider.wait_for()
    player = page.locator("[data-twin] > .hv-player")
    player.wait_for()
    assert page.locator(".hv-player").count() == 1, "the living one stands in the place of that for later"
    assert slider.evaluate("e => getComputedStyle(e).minHeight") == "32px", "the place that is kept for the slider"
    assert slider.evaluate("e => e.getBoundingClientRect().height") == 32
    assert again(slider) == ["none", "visible"]
    player.focus()
    page.keyboard.press("End")
    handle = page.locator(".widget-slider .noUi-handle")
    handle.focus()
    page.keyboard.press("ArrowRight")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 62.")
    expect(player.locator(".hv-beside")).to_have_text("Before the change: x.grad is written: 60.")
    player.focus()
    page.keyboard.press("1")
    expect(player.locator(".hv-beside")).to_have_text("With every hook on: x.grad is written: 62.")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 6.2.")
    assert page.errors == []

    page.click(".lm-MenuBar-itemLabel >> text=Kernel")
    page.click(".lm-Menu-itemLabel >> text=/^Restart Kernel…/")
    page.click(".jp-Dialog-button >> text=Restart")
    page.wait_for_selector("#jp-main-statusbar >> text=/Python 3.*Idle/")
    dead = page.locator(".jp-OutputArea-output:has(> .jupyter-widgets-disconnected)")
    dead.wait_for(state="attached")
    assert again(dead) == [f'"{say("whatif.again")}"', "visible"]
    assert page.locator(".widget-slider:visible").count() == 0
    player.focus()
    page.keyboard.press("1")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 62.")


def test_values_that_a_slider_changed_are_struck_through_from_the_first_step(opened: Any) -> None:
    page = opened("slid")
    assert sorted(page.evaluate(STRUCK)) == ["= -24- 0", "= -4- 0"]
    for layer in ("n", "t"):
        page.keyboard.press(layer)
    page.wait_for_function("shown => !document.querySelector(shown).textContent.includes('=')", arg=CHANGED)
    assert sorted(page.evaluate(STRUCK)) == ["-24- 0", "-4- 0"]
    assert page.errors == []


def test_where_a_hook_changes_the_graph_the_numbers_of_modules_are_struck_through_as_well(opened: Any) -> None:
    page = opened("cut")
    page.keyboard.press("End")
    assert page.evaluate(STRUCK) == []
    page.keyboard.press("1")
    page.wait_for_selector("[aria-checked=false]")
    struck = page.evaluate(STRUCK)
    assert {"output -[[34]]- [[18]]", "output -[[16]]- [[8]]", ".grad = -[[16]]- [[8]]"} <= set(struck)
    assert page.errors == []
