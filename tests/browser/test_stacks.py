"""Stacks of equal layers: bars with their norms, which open the layers; and what moves when one opens."""

import re

import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

import hookviz as hv
from tests.browser.helpers import SERIOUS, Opener, press, violations

HEIGHTS = "stack => [...stack.querySelectorAll('.hv-bar')].map((bar) => Number(bar.getAttribute('height')))"


def twenty_layers() -> hv.Trace:
    """The gradient vanishes from layer to layer, and a hook makes that of the first ones NaN."""
    torch.manual_seed(0)
    net = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(20)))
    net[3].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * float("nan"),))
    with hv.record(net) as trace:
        net(torch.ones(2, 4, requires_grad=True)).sum().backward()
    return trace


PAGES = {"stacks": twenty_layers}


def stack_of(page: Page) -> Locator:
    return page.locator(".hv-live [data-hv=stack]").first


def close_all(page: Page) -> None:
    """Show the stack whole, at the end of the pass: its first layer is open there."""
    press(page, "End")
    expect(page.locator(".hv-here")).to_have_text("net.0")
    press(page, "u")
    expect(stack_of(page)).to_have_attribute("data-count", "20")


def test_bars_grow_as_gradients_arrive_and_the_one_with_nan_has_a_broken_outline(open_file: Opener) -> None:
    page = open_file("stacks", 1280, 720, reduced_motion="reduce")
    first = stack_of(page).evaluate(HEIGHTS)
    assert len(first) == 20 and len(set(first)) == 1
    expect(stack_of(page).locator(".hv-bar-empty")).to_have_count(20)
    close_all(page)
    heights = stack_of(page).evaluate(HEIGHTS)
    assert heights[2:] == sorted(heights[2:]) and heights[-1] > 2 * heights[2]
    bad = stack_of(page).locator(".hv-bar-bad")
    expect(bad).to_have_count(2)
    assert bad.first.evaluate("bar => getComputedStyle(bar).strokeDasharray") != "none"
    assert heights[0] == heights[-1]
    expect(stack_of(page).locator(".hv-bar-now")).to_have_count(1)


def test_a_bar_opens_its_layer_by_a_click_and_by_keys(open_file: Opener) -> None:
    page = open_file("stacks", 1280, 720, reduced_motion="reduce")
    close_all(page)
    page.set_viewport_size({"width": 390, "height": 844})
    stack_of(page).locator(".hv-bar").nth(7).click()
    expect(page.locator(".hv-here")).to_have_text("net.7")
    layer = page.locator(".hv-live .hv-module[data-name='net.7']")
    name = page.locator(f".hv-live [data-id='{layer.get_attribute('data-id')}-h'] .hv-name")
    expect(name).to_be_in_viewport(ratio=1)  # it is away from the step, and seen from its name on
    press(page, "u")
    stack_of(page).locator(".hv-bar[tabindex='0']").focus()
    step = page.locator(".hv-count").first.text_content()
    press(page, "ArrowRight", "ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("aria-label", re.compile(r": bar 3 of 20$"))
    assert page.locator(".hv-count").first.text_content() == step
    press(page, "Enter")
    expect(page.locator(".hv-here")).to_have_text("net.2")
    assert violations(page, impacts=SERIOUS) == []
