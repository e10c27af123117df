"""Predicting by keyboard: questions before each hook, reasons for wrong answers, and a score."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.helpers import SERIOUS, Opener, answer, errors_of, is_at, press, violations


@pytest.fixture
def page(open_file: Opener) -> Page:
    return open_file(color_scheme="dark")


@pytest.fixture
def player(page: Page) -> Locator:
    """The player at the first step, with predicting switched on."""
    found = page.locator(".hv-player")
    page.keyboard.press("p")
    expect(found.locator(".hv-told")).to_have_text(
        "Go on: before a step that can be predicted, a question stands here."
    )
    return found


def test_predicting_a_whole_pass_with_right_and_wrong_answers(page: Page, player: Locator) -> None:
    panel, score, question = (player.locator(f".hv-{part}") for part in ("panel", "score", "question"))
    press(page, "ArrowRight")
    expect(question).to_have_text("λ grad * 2 is about to run on e; the gradient is 1. What comes out?")
    answer(page, "1")
    expect(panel).to_contain_text("1 is the gradient before λ grad * 2. Try once more.")
    is_at(player, 1)
    press(page, "2", "Enter")  # the first answer is selected, so typing replaces it
    is_at(player, 2)
    expect(panel).to_contain_text("λ grad * 2 changed the gradient from 1 to 2")
    expect(player.locator(".hv-told")).to_have_text("Right.")
    expect(score).to_contain_text("Right at the first try: 0 of 1")

    press(page, *["ArrowRight"] * 3)
    is_at(player, 4)
    expect(question).to_have_text("Which hook runs next?")
    choices = player.locator(".hv-choice")
    tops = "all => all.map(choice => choice.getBoundingClientRect().top)"
    places = choices.evaluate_all(tops)
    press(page, "ArrowRight")
    expect(player.locator(".hv-reason")).to_have_text("Answer first, or press Show me.")
    press(page, "1")
    assert choices.evaluate_all(tops) == places, "no answer slips away under the pointer"
    expect(choices.first).to_have_accessible_name(re.compile("wrong$"))
    expect(panel).to_contain_text(
        "That hook runs later: d is a leaf, so its hook runs as soon as its gradient is ready."
    )
    press(page, "4")
    is_at(player, 5)
    expect(player.locator(".hv-told")).to_have_text("It has run already, at step 2. The answer: ① λ grad + 100 on d.")
    expect(score).to_contain_text("Right at the first try: 0 of 2")

    press(page, *["ArrowRight"] * 4)
    is_at(player, 8)
    expect(question).to_contain_text("c_hook is about to run on c; the gradient is 8.")
    expect(panel).to_contain_text("return grad + 2")
    answer(page, "10.0")
    is_at(player, 9)
    expect(score).to_contain_text("Right at the first try: 1 of 3")

    press(page, "ArrowRight", "Tab", "Tab", "Enter")  # from the field past Check to Show me
    is_at(player, 10)
    expect(panel).to_contain_text("only looked at the gradient")
    expect(score).to_contain_text("Right at the first try: 1 of 4")
    press(page, "End")
    is_at(player, 16)


def test_keys_lead_to_the_answer_field_and_skip_no_question_and_escape_leaves_it(page: Page, player: Locator) -> None:
    for key in ("ArrowRight", "]", "End", " "):
        press(page, key)
        expect(player.locator(".hv-ask .hv-field")).to_be_focused()
        is_at(player, 1)
        expect(player.locator(".hv-button-play")).to_have_attribute("aria-label", "Play")
        press(page, "Escape")
        expect(player).to_be_focused()
    press(page, "p")
    expect(player.locator(".hv-ask")).to_have_count(0)
    press(page, "ArrowRight")
    is_at(player, 2)


def test_step_back_closes_a_question_and_an_answered_one_is_not_asked_again(page: Page, player: Locator) -> None:
    press(page, "ArrowRight")
    answer(page, "2")
    press(page, "ArrowLeft", "ArrowRight")
    is_at(player, 2)
    expect(player.locator(".hv-score")).to_contain_text("Right at the first try: 1 of 1")
    press(page, *["ArrowRight"] * 3)
    expect(player.locator(".hv-choice").first).to_be_focused()
    press(page, "ArrowLeft")
    is_at(player, 3)
    expect(player).to_be_focused()
    expect(player.locator(".hv-ask")).to_have_count(0)


def test_axe_reports_no_serious_violation_in_a_question(page: Page, player: Locator) -> None:
    press(page, "ArrowRight")
    answer(page, "1")
    assert violations(page, inside=".hv-player", impacts=SERIOUS) == []
    answer(page, "2")
    press(page, *["ArrowRight"] * 3)
    expect(player.locator(".hv-choice").first).to_be_visible()
    assert violations(page, inside=".hv-player", impacts=SERIOUS) == []
    assert errors_of(page) == []
