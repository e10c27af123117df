"""Room mode by keyboard: the question large, votes for its choices, the answer revealed."""

import torch
from playwright.sync_api import Page, expect
from scenes import scene

import hookviz as hv
from tests.browser.helpers import SERIOUS, Opener, errors_of, is_at, press, violations

OVERFLOWS = """() => [".hv-room", ".hv-room-body"].map((part) => document.querySelector(part))
  .map((part) => Math.max(part.scrollHeight - part.clientHeight, part.scrollWidth - part.clientWidth))"""
"""How much of the dialog and of its middle is hidden."""
SMALLEST = """() => Math.min(...[...document.querySelectorAll(".hv-room-text, .hv-room-letter, .hv-room-question")]
  .map((text) => parseFloat(getComputedStyle(text).fontSize)))"""


def a_hook_with_a_name_of_thirty_letters_and_more(grad: torch.Tensor) -> torch.Tensor:
    return grad + 1


def long_choices() -> hv.Trace:
    """Record a pass whose second question has four choices with long texts and reasons."""
    tensors = scene()
    names = {f"the_{name}_of_the_encoder_layers_0_attention": tensor for name, tensor in tensors._asdict().items()}
    tensors.e.register_hook(a_hook_with_a_name_of_thirty_letters_and_more)
    tensors.d.register_hook(a_hook_with_a_name_of_thirty_letters_and_more)
    tensors.c.register_hook(a_hook_with_a_name_of_thirty_letters_and_more)
    tensors.c.register_hook(a_hook_with_a_name_of_thirty_letters_and_more)
    with hv.record(names=names) as trace:
        tensors.e.backward()
    return trace


PAGES = {"long": long_choices}


def choices(page: Page) -> list[str]:
    return page.locator(".hv-room-text").all_inner_texts()


def test_a_question_is_shown_voted_on_revealed_and_left_by_keyboard_alone(open_file: Opener) -> None:
    page = open_file()
    press(page, "r")  # switches predicting on, and goes to the first question
    room = page.locator(".hv-room")
    expect(room.locator(".hv-room-question")).to_have_text(
        "λ grad * 2 is about to run on e; the gradient is 1. What comes out?"
    )
    assert choices(page) == ["1", "2"]
    expect(room.locator(".hv-room-letter")).to_have_text(["A", "B"])
    expect(room.get_by_label("Votes for A")).to_be_focused()
    expect(page.locator(".hv-room .hv-right")).to_have_count(0)
    press(page, "6", "Enter", "1", "8", "x", "b", "Enter")  # a letter goes to its field, and others are not typed
    expect(room.get_by_label("Votes for B")).to_have_value("18")
    expect(room.locator(".hv-room-percent")).to_have_text(["25 %", "75 %"])
    expect(room.get_by_role("button", name="Reveal")).to_be_focused()
    press(page, "Enter")
    expect(room.locator(".hv-room-choice.hv-right .hv-room-text")).to_have_text("2")
    expect(room.locator(".hv-room-choice.hv-right .hv-check")).to_be_visible()
    expect(room.locator(".hv-room-reason:not(:empty)")).to_have_text("1 is the gradient before λ grad * 2.")
    expect(room.locator(".hv-room-result")).to_have_text("B is right: 2. 18 of 24 chose it.")
    expect(room.get_by_role("button", name="Go on")).to_be_focused()
    press(page, "Enter")
    expect(room).to_have_count(0)
    is_at(page, 2)
    expect(page.locator(".hv-score")).to_contain_text("Right at the first try: 1 of 1")
    expect(page.locator(".hv-player")).to_be_focused()
    press(page, "ArrowRight")
    is_at(page, 3)
    assert errors_of(page) == []


def test_four_choices_with_long_texts_fit_the_screen_in_large_letters(open_file: Opener) -> None:
    page = open_file("long", 1280, 720, color_scheme="light")
    press(page, "r", "r", "Enter", "r")
    expect(page.locator(".hv-room-choice")).to_have_count(4)
    assert page.evaluate(OVERFLOWS) == [0, 0]
    press(page, *"30", "Enter", *"12", "Enter", *"5", "Enter", *"1", "r")
    expect(page.locator(".hv-room-reason:not(:empty)")).to_have_count(3)
    assert page.evaluate(OVERFLOWS) == [0, 0]
    assert page.evaluate(SMALLEST) >= 0.022 * 720
    assert violations(page, inside=".hv-room", impacts=SERIOUS) == []
