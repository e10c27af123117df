"""Pages of large traces: collapsed boxes, the timeline, colours and the search."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from playwright.sync_api import FloatRect, Locator, Page, expect
from torch import nn

import hookviz as hv
from tests.browser.accessibility import SERIOUS, violations
from tests.browser.conftest import count_mutations, press

Opener = Callable[..., Page]
FLAWS = Path(__file__).with_name("flaws.js").read_text(encoding="utf-8")
LAYERS = 60


def sixty_layers() -> hv.Trace:
    """A model of sixty layers, with hooks in two of them."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(LAYERS)))
    model[5][0].weight.register_hook(lambda grad: grad * 2)
    model[7].register_forward_hook(lambda module, args, output: None)
    with hv.record(model) as trace:
        model(torch.ones(2, 4)).sum().backward()
    return trace


def chain_with_nan() -> hv.Trace:
    """5,000 ops one after the other, and a NaN in the middle."""
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for i in range(5000):
        y = y * (float("nan") if i == 2500 else 1.0001)
    with hv.record() as trace:
        y.backward()
    return trace


def chain_with_zero() -> hv.Trace:
    """500 ops, one of which sends only zeros."""
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for i in range(500):
        y = y * (0.0 if i == 250 else 1.0001)
    with hv.record() as trace:
        y.backward()
    return trace


def sixty_passes() -> hv.Trace:
    """A small model that is trained for sixty passes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 1), nn.Tanh())
    with hv.record(model) as trace:
        for _ in range(60):
            model(torch.ones(1, 2)).sum().backward()
    return trace


class Log(nn.Module):
    """A logarithm as an activation, which returns NaN for negative inputs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The logarithm of ``x``."""
        return x.log()


def record_faulty_model(*layers: nn.Module, weight_factor: float = 1.0) -> hv.Trace:
    """Record a faulty model, with its weights multiplied by ``weight_factor``."""
    model = nn.Sequential(*layers)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= weight_factor
    with hv.record(model) as trace:
        model(torch.randn(8, 16)).square().mean().backward()
    return trace


def linear() -> nn.Linear:
    return nn.Linear(16, 16)


def faulty_models() -> dict[str, hv.Trace]:
    torch.manual_seed(0)
    return {
        "log": record_faulty_model(linear(), nn.ReLU(), linear(), Log(), *(linear() for _ in range(9))),
        "sigmoid": record_faulty_model(*(layer for _ in range(20) for layer in (linear(), nn.Sigmoid()))),
        "tenfold": record_faulty_model(*(layer for _ in range(8) for layer in (linear(), nn.ReLU())), weight_factor=10),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder_path = tmp_path_factory.mktemp("large")
    sixty_layers().to_html(folder_path / "encoder.html")
    chain_with_nan().to_html(folder_path / "chain.html")
    chain_with_zero().to_html(folder_path / "zero.html")
    sixty_passes().to_html(folder_path / "looped.html")
    for name, trace in faulty_models().items():
        trace.to_html(folder_path / f"{name}.html")
    return folder_path


@pytest.fixture
def player(open_file: Opener) -> Locator:
    page = open_file("encoder", reduced_motion="reduce")
    result = page.locator(".hv-live .hv-player")
    expect(result.locator(".hv-picture")).to_be_visible()
    result.focus()
    return result


def click_timeline(player: Locator, track: FloatRect, place: float) -> None:
    """Click the timeline at a place from 0 to 1, and wait until the player is at another step."""
    count = player.locator(".hv-count").inner_text()
    player.page.mouse.click(track["x"] + track["width"] * place, track["y"] + 20)
    expect(player.locator(".hv-count")).not_to_have_text(count)


def timeline_box(player: Locator) -> FloatRect:
    """The bounding box of the timeline on the screen."""
    track = player.locator(".hv-long .hv-track")
    track.scroll_into_view_if_needed()
    box = track.bounding_box()
    assert box
    return box


def current_location(player: Locator) -> Locator:
    return player.locator(".hv-here")


def boxes(player: Locator) -> Locator:
    return player.locator(".hv-fold")


def test_large_trace_opens_as_a_few_labelled_boxes(player: Locator) -> None:
    expect(current_location(player)).to_have_text("the whole pass")
    assert 2 <= boxes(player).count() <= 40
    expect(boxes(player).first).to_contain_text(re.compile(r"Sequential · \d+ nodes"))


def test_many_passes_are_grouped_into_boxes(open_file: Opener) -> None:
    player = open_file("looped", reduced_motion="reduce").locator(".hv-live .hv-player")
    expect(current_location(player)).to_have_text("All 60 passes")
    expect(player.locator(".hv-notes").last).to_contain_text("60 passes, more than the 40 that fit into one picture")
    expect(boxes(player)).to_have_count(6)
    expect(boxes(player).first).to_contain_text("Passes 1 – 10")
    press_and_check_location(player, ("e", "Passes 1 – 10"), ("e", "Pass 1"))
    expect(player.locator(".hv-node").first).to_be_visible()
    press_and_check_location(player, ("u", "Passes 1 – 10"), ("u", "All 60 passes"), ("End", "Pass 60"))
    expect(player.locator(".hv-picture")).to_contain_text("AccumulateGrad")
    press_and_check_location(player, ("u", "Passes 51 – 60"), ("u", "All 60 passes"))
    expect(boxes(player).last).to_have_class(re.compile("hv-now"))
    press_and_check_location(player, ("e", "Passes 51 – 60"), ("e", "Pass 60"), ("Home", "Pass 1"))


def press_and_check_location(player: Locator, *keys_and_locations: tuple[str, str]) -> None:
    """Press each key, and check the location that it leads to."""
    player.focus()
    for key, name in keys_and_locations:
        player.page.keyboard.press(key)
        expect(current_location(player)).to_have_text(name)


def test_click_opens_a_box_and_the_breadcrumb_closes_it(player: Locator) -> None:
    first = boxes(player).first
    first.click()
    expect(current_location(player)).not_to_have_text("the whole pass")
    expect(boxes(player).first).to_contain_text(re.compile(r"(Linear|Tanh) · \d nodes?"))
    press(player.page, "z")  # the whole picture, with all its boxes
    boxes(player).nth(2).click()
    expect(player.locator(".hv-port").first).to_contain_text(re.compile("from|to"))
    expect(player.locator(".hv-trail button")).to_have_count(2)
    player.locator(".hv-trail button").first.click()
    expect(current_location(player)).to_have_text("the whole pass")


def test_boxes_are_opened_and_closed_by_keys(player: Locator) -> None:
    page = player.page
    press_end_and_leave_all_boxes(player)
    press(page, "e")
    expect(current_location(player)).not_to_have_text("the whole pass")
    press(page, "u")
    expect(current_location(player)).to_have_text("the whole pass")
    press(page, "u")
    expect(player.locator(".hv-told")).to_contain_text("there is nothing around it")
    boxes(player).first.focus()
    press(page, "Enter")
    expect(current_location(player)).not_to_have_text("the whole pass")
    press(page, "u")
    expect(current_location(player)).to_have_text("the whole pass")
    expect(player.locator(".hv-told")).to_be_empty()


def test_next_hook_search_and_end_open_the_box_of_the_step_and_steps_leave_it(player: Locator) -> None:
    page = player.page
    press(page, "]", "]")
    expect(player.locator(".hv-sentence")).to_contain_text("replaced the gradient")
    expect(player.locator(".hv-pin.hv-now")).to_have_count(1)
    press(page, "End")
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    press(page, "Home")
    expect(current_location(player)).to_have_text("the whole pass")
    search_for(player, "model.5.0.weight")
    press(page, "Enter")
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    # From step to step the picture is one that shows the step, itself or in a closed box.
    for _ in range(12):
        press(page, "ArrowRight")
        expect(player.locator(".hv-elsewhere")).to_be_empty()
        expect(player.locator(":is(.hv-node, .hv-fold, .hv-module).hv-now").first).to_be_visible()


def press_end_and_leave_all_boxes(player: Locator) -> None:
    """Go to the last step, and show it in the picture of the whole pass."""
    press(player.page, "End")
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    while current_location(player).inner_text() != "the whole pass":
        around = player.locator(".hv-trail button").last.inner_text()
        press(player.page, "u")
        expect(current_location(player)).to_have_text(around)


def test_box_of_the_current_step_is_marked(player: Locator) -> None:
    press_end_and_leave_all_boxes(player)
    expect(player.locator(".hv-fold.hv-now")).to_have_count(1)
    expect(player.locator(".hv-fold.hv-now")).to_contain_text("gradient norm")
    assert player.locator(".hv-fold.hv-done").count() == boxes(player).count() - 1


def test_boxes_show_the_number_of_hooks_and_of_fired_hooks(player: Locator) -> None:
    press_end_and_leave_all_boxes(player)
    counts = player.locator(".hv-fold .hv-hooked").all_text_contents()
    fired = [tuple(map(int, re.findall(r"\d+", text))) for text in counts if text]
    assert sum(count for count, _ in fired) == sum(done for _, done in fired) == 2


def test_click_on_the_timeline_shows_the_sentence_of_a_distant_step(player: Locator) -> None:
    track = timeline_box(player)
    click_timeline(player, track, 0.8)
    expect(player.locator(".hv-sentence")).not_to_be_empty()
    step, steps = map(int, re.findall(r"\d+", player.locator(".hv-count").inner_text()))
    assert abs(step / steps - 0.8) < 0.02


RED_PIXELS = """(canvas, y) => {
  const pen = canvas.getContext("2d"), { data, width } = pen.getImageData(0, y, canvas.width, 1);
  const red = [...Array(width).keys()].filter((x) => data[4 * x + 3] && data[4 * x] > 1.5 * data[4 * x + 2]);
  return [red.length, red[0] / width, red.at(-1) / width];
}"""


def test_timeline_shows_nan_gradients_as_dashed_red_bars(open_file: Opener) -> None:
    page = open_file("chain")
    canvas = page.locator(".hv-long canvas")
    expect(page.locator(".hv-scale")).to_contain_text("Norm of each gradient")
    count, first, last = canvas.evaluate(RED_PIXELS, 2)
    assert count > 100 and 0.48 < first < 0.52 and last > 0.98
    assert canvas.evaluate(RED_PIXELS, 5)[0] == 0, "no other bar has gaps"


def test_breakpoint_is_marked_at_a_pin_that_is_drawn_later(player: Locator) -> None:
    press(player.page, "]", "]", "b")
    for _ in range(5):
        if not player.locator(".hv-pin.hv-now").count():
            press(player.page, "e")
            player.page.wait_for_timeout(150)
    expect(player.locator(".hv-pin.hv-now .hv-sign")).to_have_count(1)
    press(player.page, "b")
    expect(player.locator(".hv-pin .hv-sign")).to_have_count(0)


def test_panel_lists_the_gradients_of_a_step_one_below_the_other(player: Locator) -> None:
    search_for(player, "AddmmBackward0")
    press(player.page, "Enter", "ArrowRight")
    expect(player.locator(".hv-sentence")).to_contain_text("and sends")
    boxes = [part.bounding_box() for part in player.locator(".hv-panel .hv-part").all()]
    above = player.locator(".hv-sentence").bounding_box()
    assert len(boxes) >= 2 and above
    tops = [above["y"] + above["height"], *(box["y"] for box in boxes if box)]
    assert tops == sorted(tops)


# -- colours


FILLS = """player => [...player.querySelectorAll(".hv-fold")].map((box) => {
  const { fill } = getComputedStyle(box.querySelector(":scope > .hv-box"));
  const blend = /#([\\w-]+)/.exec(fill);
  if (!blend) return fill;
  return [...document.getElementById(blend[1]).children].map((stop) => getComputedStyle(stop).stopColor).join();
})"""


def fills(player: Locator) -> list[str]:
    """The colour of each collapsed box, or both colours if it has two."""
    result: list[str] = player.evaluate(FILLS)
    return result


def test_boxes_are_coloured_by_gradient_norm_as_gradients_arrive(player: Locator) -> None:
    plain = set(fills(player))
    assert len(plain) == 1
    press_end_and_leave_all_boxes(player)
    expect(player.locator(".hv-fold.hv-now")).to_have_count(1)
    coloured = fills(player)
    # The gradient vanishes, so each layer has a different colour.
    assert len(set(coloured)) == len(coloured) >= 5 and not plain & set(coloured)
    press(player.page, "c")
    assert len(set(fills(player))) <= 2  # done and now
    expect(player.locator(".hv-ramp")).not_to_be_visible()
    press(player.page, "c")
    assert fills(player) == coloured


def test_colour_legend_shows_the_range_of_norms(player: Locator) -> None:
    low, high = map(float, player.locator(".hv-scale b").all_text_contents())
    press_end_and_leave_all_boxes(player)
    text = " ".join(player.locator(".hv-fold text").all_text_contents())
    norms = [float(number) for number in re.findall(r"(?:norm|…) ([\d.]+(?:e[-+]\d+)?)", text)]
    assert 0 < low < min(norms) * 1.1 and max(norms) * 0.9 < high
    expect(player.locator(".hv-scale")).to_contain_text(re.compile("zero.*NaN or infinite.*hooks"))


def test_boxes_with_nan_and_with_zero_gradients_have_distinct_outlines(open_file: Opener) -> None:
    player = open_file("chain").locator(".hv-live .hv-player")
    player.focus()
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-bad").first).to_contain_text("NaN")
    widths = {
        element.evaluate("e => getComputedStyle(e).strokeWidth")
        for element in player.locator(".hv-bad > .hv-box").all()
    }
    assert widths <= {"4px", "7px"}  # a leaf has a thicker outline anyway
    player = open_file("zero").locator(".hv-live .hv-player")
    player.focus()
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-zero").first).to_contain_text("gradient norm 0")
    dashed = player.locator(".hv-zero > .hv-box").first.evaluate("e => getComputedStyle(e).strokeDasharray")
    assert dashed != "none"


# -- the timeline


def test_zoomed_timeline_follows_the_current_step(player: Locator) -> None:
    page, window = player.page, player.locator(".hv-window")
    expect(window).to_be_hidden()
    press(page, "]", ".", ".")
    expect(window).to_be_visible()
    track = timeline_box(player)
    window_box = window.bounding_box()
    assert window_box and 0.2 < window_box["width"] / track["width"] < 0.3
    click_timeline(player, track, 0.5)
    step, steps = map(int, re.findall(r"\d+", player.locator(".hv-count").inner_text()))
    middle = window_box["x"] + window_box["width"] / 2 - track["x"]
    assert abs(step / steps - middle / track["width"]) < 0.02
    player.focus()
    press(page, "End")
    moved = window.bounding_box()
    assert moved and abs(moved["x"] + moved["width"] - track["x"] - track["width"]) < 2
    press(page, ",", ",", ",")
    expect(window).to_be_hidden()
    player.get_by_role("button", name="Closer").click()
    expect(window).to_be_visible()


def test_timeline_grouping_is_set_by_key_and_by_list(player: Locator) -> None:
    page, choice = player.page, player.get_by_role("combobox", name="What the timeline shows")
    heights = [player.locator(".hv-long canvas").bounding_box()]
    for group in ("modules", "kinds", "hooks", "problems"):
        press(page, "g")
        expect(choice).to_have_value(group)
        heights.append(player.locator(".hv-long canvas").bounding_box())
    plain, modules, kinds, hooks, problems = (box["height"] for box in heights if box)
    assert plain == hooks == problems and plain < modules < kinds
    expect(player.locator(".hv-none")).to_have_text("No gradient is zero, NaN or infinite, and nothing was raised.")
    choice.select_option("hooks")
    expect(player.locator(".hv-none")).to_be_hidden()
    track = timeline_box(player)
    for place, text in ((0.2, "left it unchanged"), (0.8, "replaced the gradient")):
        page.mouse.click(track["x"] + track["width"] * place, track["y"] + 20)
        expect(player.locator(".hv-sentence")).to_contain_text(re.compile(text))


@pytest.mark.parametrize(
    ("name", "culprit", "text"),
    [
        (
            "log",
            "model.3 (Log) returns NaN: it takes the logarithm of numbers below 0",
            "The forward of model.3 returns",
        ),
        ("sigmoid", "each of 20 Sigmoid leaves about 0.2", "SigmoidBackward0"),
        ("tenfold", "Linear makes it about", "AddmmBackward0"),
    ],
)
def test_click_on_a_finding_goes_to_its_step(open_file: Opener, name: str, culprit: str, text: str) -> None:
    page = open_file(name, reduced_motion="reduce")
    link = page.locator(".hv-live .hv-notes a[href]").first
    expect(link).to_contain_text(culprit)
    page.locator(".hv-live .hv-found summary").click()
    link.click()
    expect(page.locator(".hv-live .hv-sentence")).to_contain_text(text)
    step = re.match(r"Step (\d+), \w+:", link.inner_text())
    assert step
    expect(page.locator(".hv-live .hv-count")).to_contain_text(re.compile(rf"^step {step[1]} ", re.IGNORECASE))


def test_findings_are_hidden_while_predicting(player: Locator) -> None:
    link = player.locator(".hv-notes a[href]").first
    expect(link).to_contain_text("vanishes")
    player.locator(".hv-found summary").click()
    player.focus()
    press(player.page, "p")
    expect(link).not_to_be_visible()
    press(player.page, "p")
    expect(link).to_be_visible()


@pytest.mark.parametrize("name", ["encoder", "chain"])
def test_step_in_a_large_trace_causes_few_dom_mutations(open_file: Opener, name: str) -> None:
    page = open_file(name)
    page.locator(".hv-live .hv-picture").wait_for()
    counts = count_mutations(page.locator(".hv-live .hv-player"))
    assert min(counts) > 0 and max(counts) < 40


def search_results(player: Locator) -> Locator:
    return player.get_by_role("listbox").get_by_role("option")


def search_for(player: Locator, query: str) -> None:
    """Open the search by its key, and type ``query``."""
    press(player.page, "/")
    expect(player.get_by_role("combobox", name="Search")).to_be_focused()
    player.page.keyboard.type(query)


def test_search_finds_and_opens_a_module_by_keyboard(player: Locator) -> None:
    search_for(player, "tanh")
    expect(player.get_by_role("status")).to_contain_text("found; here are the first 12")
    expect(search_results(player)).to_have_count(12)
    press(player.page, "Escape")
    search_for(player, "model.41")
    expect(search_results(player).first).to_have_text(re.compile(r"module\s+model\.41\s+Sequential\s+step \d+"))
    expect(search_results(player).first).to_have_attribute("aria-selected", "true")
    press(player.page, "ArrowDown")
    expect(search_results(player).nth(1)).to_contain_text("model.41.0")
    expect(search_results(player).nth(1)).to_have_attribute("aria-selected", "true")
    active = player.get_by_role("combobox", name="Search").get_attribute("aria-activedescendant")
    assert active == search_results(player).nth(1).get_attribute("id")
    press(player.page, "ArrowUp", "ArrowDown", "Enter")
    expect(player.get_by_role("combobox", name="Search")).to_be_hidden()
    expect(current_location(player)).to_have_text("model.41.0")
    expect(player).to_be_focused()
    expect(player.locator(".hv-trail button")).to_have_count(2)
    expect(player.locator(".hv-title")).to_have_text("model.41.0 is called")


def test_keys_during_composition_neither_close_the_search_nor_reach_the_player(player: Locator) -> None:
    search_for(player, "model.41")
    field = player.get_by_role("combobox", name="Search")
    for key, code in (("Enter", "Enter"), ("Escape", "Escape"), ("Process", "KeyL")):
        composing = {"key": key, "code": code, "isComposing": True, "bubbles": True, "cancelable": True}
        field.evaluate("(field, key) => field.dispatchEvent(new KeyboardEvent('keydown', key))", composing)
    expect(field).to_be_focused()
    expect(player.locator("xpath=self::*[contains(@class, 'hv-large')]")).to_have_count(0)
    press(player.page, "Escape")
    expect(field).to_be_hidden()


def test_search_result_of_a_hook_goes_to_its_pin(player: Locator) -> None:
    search_for(player, "grad * 2")
    expect(search_results(player)).to_have_count(1)
    press(player.page, "Enter")
    expect(player.locator(".hv-pin.hv-now")).to_have_count(1)
    expect(player.locator(".hv-sentence")).to_contain_text("replaced the gradient")


def test_escape_closes_the_search_and_restores_the_focus(player: Locator) -> None:
    count = player.locator(".hv-count").inner_text()
    search_for(player, "xyzzy")
    expect(player.get_by_role("status")).to_have_text("Nothing found.")
    press(player.page, "Enter", "ArrowDown", "Escape")
    expect(player).to_be_focused()
    button = player.get_by_role("button", name="Search")
    button.focus()
    press(player.page, "Enter")
    expect(player.get_by_role("combobox", name="Search")).to_be_focused()
    press(player.page, "Escape")
    expect(button).to_be_focused()
    expect(player.locator(".hv-count")).to_have_text(count)


def test_search_for_nan_finds_its_first_step(open_file: Opener) -> None:
    player = open_file("chain").locator(".hv-live .hv-player")
    player.focus()
    search_for(player, "nan")
    expect(search_results(player)).to_have_count(12)
    press(player.page, "Enter")
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    expect(player.locator(".hv-node.hv-now")).to_contain_text("nan")
    search_for(player, "norm<1e-6")
    expect(player.get_by_role("status")).to_have_text("Nothing found.")


def test_port_opens_the_neighbouring_box(player: Locator) -> None:
    boxes(player).nth(2).focus()
    press(player.page, "Enter")
    port = player.locator(".hv-port.hv-door").first
    neighbour = (port.locator("text").text_content() or "").partition(" ")[2]
    port.focus()
    press(player.page, "Enter")
    expect(current_location(player)).to_have_text(neighbour)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_search_has_no_layout_flaws_and_no_serious_axe_violation(open_file: Opener, width: int, theme: str) -> None:
    page = open_file("encoder", width, color_scheme=theme, reduced_motion="reduce")
    player = page.locator(".hv-live .hv-player")
    player.focus()
    search_for(player, "weight")
    expect(search_results(player)).to_have_count(12)
    assert page.evaluate(FLAWS) == []
    assert violations(page, impacts=SERIOUS) == []
    assert page.errors == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_open_box_has_no_layout_flaws_and_no_serious_axe_violation(open_file: Opener, width: int, theme: str) -> None:
    page = open_file("encoder", width, color_scheme=theme, reduced_motion="reduce")
    page.locator(".hv-live .hv-player").focus()
    press(page, "End", "e")
    page.wait_for_timeout(300)
    assert page.evaluate(FLAWS) == []
    assert violations(page, impacts=SERIOUS) == []
    assert page.errors == []  # type: ignore[attr-defined]
