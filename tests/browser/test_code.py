"""The user's code in the panel: an arrow at the line that runs, and a bar at the line that made the tensor."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import hookviz as hv
from tests.browser.helpers import Opener, go_to, player_of
from tests.unit.test_step_lines import NET, SCRIPT, run_script


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    for name, text in {"index": SCRIPT, "net": NET}.items():
        trace: hv.Trace = run_script(folder, text, f"{name}.py")["trace"]
        trace.to_html(folder / f"{name}.html")
    trace.to_html(folder / "redacted.html", source=False)
    return folder


def marked_lines(page: Page) -> tuple[str, str]:
    """Return the line with the arrow, which runs, and that with the bar, which made the tensor; with their numbers."""
    running, made = (page.locator(f".hv-program li{mark}") for mark in ("[aria-current]", ".hv-made"))
    expect(running).to_have_count(1)
    expect(running.locator(".hv-code-arrow")).to_be_visible()
    return " ".join(running.inner_text().split()), " ".join(" ".join(made.all_inner_texts()).split())


def test_the_line_that_runs_and_the_line_that_made_the_tensor_are_marked(open_file: Opener) -> None:
    page = open_file()
    player = player_of(page)
    program = player.locator(".hv-program")
    top = program.bounding_box()

    assert marked_lines(page) == ("13 d.backward()", "")
    go_to(page, "AddBackward0 computes")  # no line names its node: the code stays, and has no bar
    assert marked_lines(page) == ("13 d.backward()", "")
    assert program.bounding_box() == top
    go_to(page, "arrival at c")
    assert marked_lines(page) == ("13 d.backward()", "9 c = a * b")
    expect(player.locator(".hv-code-note")).to_have_text("Line 9 assigned c.")
    go_to(page, "tensor hook ① on c")
    assert marked_lines(page) == ("5 return grad + 2", "9 c = a * b")
    go_to(page, "a.grad is written")
    assert marked_lines(page) == ("13 d.backward()", "7 a = torch.tensor(2.0, requires_grad=True)")


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


def test_a_page_without_source_has_no_code(open_file: Opener) -> None:
    expect(player_of(open_file("redacted")).locator(".hv-program")).to_be_hidden()
