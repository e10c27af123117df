"""What-if and comparison pages from disk, offline and by keyboard."""

import struct
from collections.abc import Callable
from itertools import product

from playwright.sync_api import Page, expect

from tests.browser.helpers import Opener, errors_of, is_at, press, slider_placeholder
from tests.unit.test_whatif import a_to_e

SHOWN_GRADS = """() => [...document.querySelectorAll(".hv-live .hv-node")].map((node) => {
  const text = node.querySelector(".hv-grad"), fresh = text.cloneNode(true);
  for (const was of fresh.querySelectorAll(".hv-was")) was.remove();
  return [node.querySelector("text").textContent, fresh.textContent.replace(/^.* /, "")];
})"""
"""The gradient that each box of the picture shows, without struck-through values."""


def test_all_sixteen_hook_combinations_match_fresh_runs_bit_for_bit(open_file: Opener) -> None:
    page = open_file("whatif")
    page.keyboard.press("End")
    off: set[int] = set()
    for on in product((True, False), repeat=4):
        for index in range(4):
            if (index in off) == on[index]:
                page.keyboard.press(str(index + 1))
                off ^= {index}
        page.wait_for_function("n => document.querySelectorAll('[aria-checked=false]').length === n", arg=len(off))
        fresh = {name: t.grad.item() for name, t in a_to_e(on=on).items() if t.grad is not None}
        shown = {name: float(number) for name, number in page.evaluate(SHOWN_GRADS)}
        assert shown.keys() == fresh.keys()
        assert [struct.pack("<f", shown[name]) for name in fresh] == [struct.pack("<f", x) for x in fresh.values()]
    assert errors_of(page) == []


def test_switching_a_hook_off_keeps_the_step_and_the_focus(open_file: Opener) -> None:
    page = open_file("whatif")
    press(page, *["ArrowRight"] * 8)
    assert page.locator(".hv-title").inner_text() == "tensor hook ① on c"
    page.keyboard.press("1")
    page.wait_for_selector("[aria-checked=false]")
    is_at(page, 9)
    assert page.locator(".hv-sentence").inner_text() == "This step does not happen without c_hook."
    expected = "With every hook on: c_hook on c replaced the gradient: 8 → 10."
    assert page.locator(".hv-beside").inner_text() == expected
    assert expected in page.locator(".hv-heard").inner_text()
    result = "Without c_hook: a.grad is 24 instead of 30, b.grad is 16 instead of 20."
    expect(page.locator(".hv-flip")).to_have_text(result)
    assert result in page.locator(".hv-heard").inner_text()
    page.keyboard.press("End")
    is_at(page, 16)  # the player still has the keyboard


def test_hooks_are_switched_by_space_and_by_a_click_on_a_pin(open_file: Opener) -> None:
    page = open_file("whatif")
    switch = page.get_by_role("switch", name="look")
    switch.focus()
    page.keyboard.press("Space")
    page.wait_for_selector("[aria-checked=false]")
    assert page.evaluate("document.activeElement.dataset.key") == "switch 1"
    page.locator(".hv-live .hv-pin", has_text="times_two").click()
    page.wait_for_function("document.querySelectorAll('[aria-checked=false]').length === 2")
    is_at(page, 1)  # a pin that is a switch leads nowhere
    assert page.locator(".hv-off").count() == 2


def test_two_passes_are_shown_side_by_side_and_step_together(open_file: Opener) -> None:
    page = open_file("diff")
    sides = page.locator(".hv-side")
    assert page.locator(".hv-live figcaption").all_inner_texts() == ["This trace", "The other trace"]
    page.keyboard.press("]")
    assert page.locator(".hv-sentence").inner_text() == "c_hook changed the gradient from 4 to 6"
    changed_texts = [[text for text in side.locator(".hv-changed").all_text_contents() if text] for side in sides.all()]
    assert changed_texts == [["gradient 4"], ["gradient 6"]]
    assert page.locator(".hv-ring").count() == 1
    assert (
        "The difference begins at step 6, with c_hook on c."
        in page.locator(".hv-live .hv-player > .hv-notes").inner_text()
    )
    page.keyboard.press("s")
    page.wait_for_function("!document.querySelector('.hv-pair')")
    assert page.locator(".hv-graph .hv-was").all_text_contents() == ["4"]
    assert errors_of(page) == []


def test_slider_records_a_new_run_and_shows_the_changes(open_page: Callable[..., Page]) -> None:
    page = open_page("sliders.ipynb")
    slider = page.locator(".jp-OutputArea-output:has(.widget-slider)")
    slider.wait_for()
    player = page.locator("[data-twin] > .hv-player")
    player.wait_for()
    assert page.locator(".hv-player").count() == 1, "the live player replaces the saved one"
    assert slider.evaluate("e => getComputedStyle(e).minHeight") == "32px", "the space reserved for the slider"
    assert slider.evaluate("e => e.getBoundingClientRect().height") == 32
    assert slider_placeholder(slider) == ["none", "visible"]
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
    assert errors_of(page) == []

    page.click(".lm-MenuBar-itemLabel >> text=Kernel")
    page.click(".lm-Menu-itemLabel >> text=/^Restart Kernel…/")
    page.click(".jp-Dialog-button >> text=Restart")
    page.wait_for_selector("#jp-main-statusbar >> text=/Python 3.*Idle/")
    disconnected_output = page.locator(".jp-OutputArea-output:has(> .jupyter-widgets-disconnected)")
    disconnected_output.wait_for(state="attached")
    assert slider_placeholder(disconnected_output) == [
        '"The sliders need a running kernel: run this cell again."',
        "visible",
    ]
    assert page.locator(".widget-slider:visible").count() == 0
    player.focus()
    page.keyboard.press("1")
    expect(player.locator(".hv-sentence")).to_have_text("x.grad is written: 62.")
