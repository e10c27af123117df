"""What went wrong: findings below the picture, which the key w focuses; and dashed pins of hooks that did not fire."""

import re

import torch
from playwright.sync_api import expect
from scenes import leaf
from torch import nn

import hookviz as hv
from tests.browser.helpers import Opener, player_of, press


class Log(nn.Module):
    """A logarithm as an activation, which returns NaN for negative inputs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.log()


def model_with_nan() -> hv.Trace:
    torch.manual_seed(0)
    small = nn.Linear(4, 4)
    model = nn.Sequential(nn.Linear(16, 4), nn.ReLU(), small, Log(), nn.Linear(4, 1))
    with hv.record(model) as trace:
        model(torch.randn(8, 16)).square().mean().backward()
    return trace


def zero_gradient() -> hv.Trace:
    x = leaf(2.0)
    x.register_hook(lambda grad: grad * 0)
    with hv.record() as trace:
        (x * x).backward()
    return trace


def keep(grad: torch.Tensor) -> None:
    return None


def hook_that_came_too_late() -> hv.Trace:
    a = leaf(2.0)
    with hv.record() as trace:
        c = a * a
        c.register_hook(lambda grad: grad * 2)
        c.backward()
        a.register_hook(keep)
    return trace


PAGES = {
    "nan": model_with_nan,
    "zero": zero_gradient,
    "late": hook_that_came_too_late,
}


def test_w_and_enter_lead_to_the_module_that_returned_nan(open_file: Opener) -> None:
    player = player_of(open_file("nan", reduced_motion="reduce"))
    link = player.locator(".hv-found a").first
    expect(link).not_to_be_visible()
    press(player.page, "w")
    expect(link).to_be_focused()
    expect(link).to_contain_text("model.3 (Log) returns NaN: it takes the logarithm of numbers below 0")
    expect(player.locator(".hv-graph")).to_be_in_viewport(ratio=0.9)
    press(player.page, "Enter")
    expect(player.locator(".hv-sentence")).to_contain_text("model.3 returns")
    step = re.match(r"Step (\d+), error:", link.inner_text())
    assert step
    expect(player.locator(".hv-count")).to_contain_text(re.compile(rf"^step {step[1]} ", re.IGNORECASE))
    press(player.page, "Escape")
    expect(link).not_to_be_visible()
    press(player.page, "ArrowRight")
    expect(player.locator(".hv-count")).to_contain_text(f"tep {int(step[1]) + 1} ")


def test_findings_are_hidden_while_predicting(open_file: Opener) -> None:
    player = player_of(open_file("zero"))
    expect(player.locator(".hv-found")).to_be_visible()
    press(player.page, "p")
    expect(player.locator(".hv-found")).not_to_be_visible()
    press(player.page, "w")
    expect(player.locator(".hv-told")).to_have_text("The findings are shown when you stop predicting.")


def test_a_silent_pin_is_dashed_and_says_why_unless_one_predicts(open_file: Opener) -> None:
    player = player_of(open_file("late", width=390))
    pin = player.locator(".hv-silent")
    assert (pin.get_attribute("aria-label") or "").startswith("keep on a did not fire.")
    assert pin.locator("title").text_content() == pin.get_attribute("aria-label")
    assert pin.locator(".hv-pin-box").evaluate("box => getComputedStyle(box).strokeDasharray") != "none"
    pin.press("Enter")
    expect(player.locator(".hv-told")).to_contain_text("keep on a did not fire.")
    chip, row = (
        player.locator(".hv-chip", has_text="keep"),
        player.locator(".hv-firings tr", has_text="keep on a did not"),
    )
    for shown, note in ((0, "to come"), (1, "did not fire")):
        player.press("p")
        expect(pin).to_have_count(shown)
        expect(chip).to_contain_text(note)
        expect(row.filter(visible=True)).to_have_count(shown)
