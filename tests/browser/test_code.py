"""The user's code in the panel: an arrow at the line that runs, and a bar at the line that made the tensor."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

import hookviz as hv
from tests.browser.conftest import press
from tests.unit.test_step_lines import NET, SCRIPT, run_script

Opener = Callable[..., Page]


SEVERAL = """
import torch
from torch import nn

import hookviz as hv


class Product(nn.Module):
    def forward(self, a, b, c):
        return a * b * c


product = Product()
a, b, c = (torch.full((2, 3), value, requires_grad=True) for value in (2.0, 3.0, 4.0))


def scale_all_gradients(module, grad_input, grad_output):
    return tuple(grad * 2 for grad in grad_input)


product.register_full_backward_hook(scale_all_gradients)
with hv.record(product) as trace:
    product(a, b, c).sum().backward()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    traces: dict[str, hv.Trace] = {}
    for name, text in {"index": SCRIPT, "net": NET, "several": SEVERAL}.items():
        traces[name] = run_script(folder, text, f"{name}.py")["trace"]
        traces[name].to_html(folder / f"{name}.html")
    hv.Trace.to_html(traces["index"], folder / "redacted.html", source=False)
    return folder


def player_of(page: Page) -> Locator:
    player = page.locator(".hv-player")
    player.focus()
    return player


def go_to(page: Page, title: str) -> None:
    """Step until the title of the panel is ``title``."""
    for _ in range(60):
        if page.locator(".hv-title").inner_text().replace("\xa0", " ") == title:
            return
        page.keyboard.press("ArrowRight")
    raise AssertionError(f"There is no step {title!r}.")


def marked_lines(page: Page) -> tuple[str, str]:
    """Return the line with the arrow, which runs, and that with the bar, which made the tensor; with their numbers."""
    running, made = (page.locator(f".hv-program li{mark}") for mark in ("[aria-current]", ".hv-made"))
    expect(running).to_have_count(1)
    expect(running.locator(".hv-code-arrow")).to_be_visible()
    return " ".join(running.inner_text().split()), " ".join(" ".join(made.all_inner_texts()).split())


def test_the_line_that_runs_and_the_line_that_made_the_tensor_are_marked(open_file: Opener) -> None:
    page = open_file()
    player = player_of(page)

    assert marked_lines(page) == ("13 d.backward()", "")
    go_to(page, "arrival at c")
    assert marked_lines(page) == ("13 d.backward()", "9 c = a * b")
    expect(player.locator(".hv-code-note")).to_have_text("Line 9 assigned c.")
    go_to(page, "tensor hook ① on c")
    assert marked_lines(page) == ("5 return grad + 2", "9 c = a * b")
    go_to(page, "MulBackward0 (c) computes")
    assert marked_lines(page) == ("13 d.backward()", "9 c = a * b")
    go_to(page, "a.grad is written")
    assert marked_lines(page) == ("13 d.backward()", "7 a = torch.tensor(2.0, requires_grad=True)")


def test_a_node_that_no_line_names_keeps_the_code_and_takes_the_bar_away(open_file: Opener) -> None:
    page = open_file()
    player = player_of(page)
    top = player.locator(".hv-program").bounding_box()
    go_to(page, "AddBackward0 computes")

    assert marked_lines(page) == ("13 d.backward()", "")
    assert player.locator(".hv-program").bounding_box() == top


def test_the_arrow_stands_at_the_call_of_a_module_and_is_in_view_on_a_phone(open_file: Opener) -> None:
    page = open_file("net", width=390)
    player_of(page)
    for title, line, mark in (
        ("net.first is called", "11 h = self.first(x)", "[aria-current]"),
        ("TanhBackward0 computes", "12 return self.second(h)", ".hv-made"),
    ):
        go_to(page, title)
        assert line in marked_lines(page)
        box, line_box = (page.locator(f".hv-program {part}").bounding_box() for part in (".hv-code", f"li{mark}"))
        assert box and line_box
        assert box["y"] <= line_box["y"] and line_box["y"] + line_box["height"] <= box["y"] + box["height"] + 1


def test_before_and_after_of_several_gradients_are_in_sight_and_take_rows_from_the_code_while_they_need_them(
    open_file: Opener,
) -> None:
    page = open_file("several")
    player = player_of(page)
    code = player.locator(".hv-program .hv-code")
    heights = [(code.bounding_box() or {})["height"]]
    go_to(page, "full backward hook ① on product")
    panel, after = (player.locator(part).bounding_box() for part in (".hv-panel", ".hv-after"))
    assert panel and after and after["y"] + after["height"] <= panel["y"] + panel["height"]
    assert "return tuple" in marked_lines(page)[0]
    heights.append((code.bounding_box() or {})["height"])
    press(page, "ArrowRight")
    heights.append((code.bounding_box() or {})["height"])
    assert 30 < heights[1] < heights[0] == heights[2]


def test_a_page_without_source_has_no_code(open_file: Opener) -> None:
    page = open_file("redacted")
    player_of(page)
    expect(page.locator(".hv-program")).to_be_hidden()
    expect(page.locator(".hv-sentence")).to_be_visible()


def test_what_is_for_experts_stands_under_more_which_stays_open(open_file: Opener) -> None:
    page = open_file()
    player = player_of(page)
    go_to(page, "tensor hook ① on c")
    kept = player.locator(".hv-more .hv-kept")
    expect(kept).to_be_hidden()
    summary = player.locator(".hv-more summary")
    summary.focus()
    press(page, "Enter")
    expect(kept).to_contain_text("c._backward_hooks")
    expect(kept).to_be_visible()

    press(page, "ArrowRight")
    expect(summary).to_be_focused()
    expect(player.locator(".hv-more .hv-source").first).to_contain_text("PyTorch: ")
    expect(player.locator(".hv-more .hv-source").first).to_be_visible()


def test_the_first_step_says_what_to_do_and_the_primary_button_does_it(open_file: Opener) -> None:
    width = 390
    page = open_file(width=width)
    player = player_of(page)
    start = player.locator(".hv-start")
    expect(start).to_have_text("Press ] or Next hook to see what the hooks do, → to see every step.")
    boxes = [box for one in player.locator(".hv-buttons .hv-button").all() if (box := one.bounding_box())]
    assert len({box["y"] for box in boxes}) <= 2  # on two lines at most
    assert all(box["x"] + box["width"] <= width for box in boxes)

    player.locator(".hv-button-nextHook").click()
    expect(player.locator(".hv-title")).to_have_text(re.compile("tensor hook"))
    expect(start).to_be_hidden()
