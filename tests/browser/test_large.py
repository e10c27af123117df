"""Pages of large traces: boxes are entered and left, the timeline shows every step, and all of it at once."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import FloatRect, Locator, Page, expect
from torch import nn

import hookviz as hv
from tests.browser.conftest import changes, press

Opener = Callable[..., Page]
FLAWS = Path(__file__).with_name("flaws.js").read_text(encoding="utf-8")
LAYERS = 60


def encoder() -> hv.Trace:
    """A model of sixty layers, with hooks in two of them."""
    torch.manual_seed(0)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(LAYERS)))
    model[5][0].weight.register_hook(lambda grad: grad * 2)
    model[7].register_forward_hook(lambda module, args, output: None)
    with hv.record(model) as trace:
        model(torch.ones(2, 4)).sum().backward()
    return trace


def chain() -> hv.Trace:
    """5,000 ops one after the other, and a NaN in the middle."""
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for i in range(5000):
        y = y * (float("nan") if i == 2500 else 1.0001)
    with hv.record() as trace:
        y.backward()
    return trace


def zero() -> hv.Trace:
    """500 ops, of which one sends nothing but zeros."""
    x = torch.tensor(1.0, requires_grad=True)
    y = x
    for i in range(500):
        y = y * (0.0 if i == 250 else 1.0001)
    with hv.record() as trace:
        y.backward()
    return trace


def looped() -> hv.Trace:
    """A small model that is trained for sixty passes."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 1), nn.Tanh())
    with hv.record(model) as trace:
        for _ in range(60):
            model(torch.ones(1, 2)).sum().backward()
    return trace


class Log(nn.Module):
    """What no activation should be."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """NaN for whatever is negative."""
        return x.log()


def sick(*layers: nn.Module, times: float = 1.0) -> hv.Trace:
    """A model with something wrong, and its weights so many times as large."""
    model = nn.Sequential(*layers)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= times
    with hv.record(model) as trace:
        model(torch.randn(8, 16)).square().mean().backward()
    return trace


def linear() -> nn.Linear:
    return nn.Linear(16, 16)


def sick_ones() -> dict[str, hv.Trace]:
    torch.manual_seed(0)
    return {
        "log": sick(linear(), nn.ReLU(), linear(), Log(), *(linear() for _ in range(9))),
        "sigmoid": sick(*(layer for _ in range(20) for layer in (linear(), nn.Sigmoid()))),
        "tenfold": sick(*(layer for _ in range(8) for layer in (linear(), nn.ReLU())), times=10),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("large")
    encoder().to_html(made / "encoder.html")
    chain().to_html(made / "chain.html")
    zero().to_html(made / "zero.html")
    looped().to_html(made / "looped.html")
    for name, trace in sick_ones().items():
        trace.to_html(made / f"{name}.html")
    return made


@pytest.fixture
def player(opened: Opener) -> Locator:
    page = opened("encoder", reduced_motion="reduce")
    found = page.locator(".hv-live .hv-player")
    expect(found.locator(".hv-picture")).to_be_visible()
    found.focus()
    return found


def track_of(player: Locator) -> FloatRect:
    """Where the timeline is, on the screen."""
    track = player.locator(".hv-long .hv-track")
    track.scroll_into_view_if_needed()
    box = track.bounding_box()
    assert box
    return box


def here(player: Locator) -> Locator:
    return player.locator(".hv-here")


def boxes(player: Locator) -> Locator:
    return player.locator(".hv-fold")


def test_it_opens_as_a_few_boxes_that_say_what_is_in_them(player: Locator) -> None:
    expect(here(player)).to_have_text("the whole pass")
    assert 2 <= boxes(player).count() <= 40
    expect(boxes(player).first).to_contain_text(re.compile(r"Sequential · \d+ nodes"))


def test_very_many_passes_are_in_groups_that_are_entered_and_left_as_boxes_are(opened: Opener) -> None:
    player = opened("looped", reduced_motion="reduce").locator(".hv-live .hv-player")
    expect(here(player)).to_have_text("All 60 passes")
    expect(player.locator(".hv-notes").last).to_contain_text("60 passes, more than the 40 that fit into one picture")
    expect(boxes(player)).to_have_count(6)
    expect(boxes(player).first).to_contain_text("Passes 1 – 10")
    walk(player, ("e", "Passes 1 – 10"), ("e", "Pass 1"))
    expect(player.locator(".hv-node").first).to_be_visible()
    walk(player, ("u", "Passes 1 – 10"), ("u", "All 60 passes"), ("End", "All 60 passes"))
    expect(boxes(player).last).to_have_class(re.compile("hv-now"))
    walk(player, ("e", "Passes 51 – 60"), ("e", "Pass 60"))
    expect(player.locator(".hv-picture")).to_contain_text("AccumulateGrad")
    walk(player, ("Home", "Pass 1"))


def walk(player: Locator, *ways: tuple[str, str]) -> None:
    """Press each key, and see that it leads to the picture of that name."""
    player.focus()
    for key, name in ways:
        player.page.keyboard.press(key)
        expect(here(player)).to_have_text(name)


def test_a_click_enters_a_box_and_the_trail_leads_back(player: Locator) -> None:
    first = boxes(player).first
    first.click()
    expect(here(player)).not_to_have_text("the whole pass")
    expect(boxes(player).first).to_contain_text(re.compile(r"(Linear|Tanh) · \d nodes?"))
    boxes(player).nth(2).click()
    expect(player.locator(".hv-port").first).to_contain_text(re.compile("from|to"))
    expect(player.locator(".hv-trail button")).to_have_count(2)
    player.locator(".hv-trail button").first.click()
    expect(here(player)).to_have_text("the whole pass")


def test_all_of_it_goes_by_keys(player: Locator) -> None:
    page = player.page
    press(page, "]", "]")
    expect(player.locator(".hv-sentence")).to_contain_text("replaced the gradient")
    for _ in range(5):
        if not player.locator(".hv-pin.hv-now").count():
            press(page, "e")
            page.wait_for_timeout(150)
    expect(player.locator(".hv-pin.hv-now")).to_have_count(1)
    press(page, "Home")
    expect(player.locator(".hv-elsewhere")).to_contain_text("Step 1 is not in this picture")
    press(page, "u", "u", "u", "u")
    expect(here(player)).to_have_text("the whole pass")
    press(page, "u")
    expect(player.locator(".hv-told")).to_contain_text("there is nothing around it")
    boxes(player).first.focus()
    press(page, "Enter")
    expect(here(player)).not_to_have_text("the whole pass")
    press(page, "u")
    expect(here(player)).to_have_text("the whole pass")
    expect(player.locator(".hv-told")).to_be_empty()


def test_the_box_that_holds_the_step_is_marked(player: Locator) -> None:
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-now")).to_have_count(1)
    expect(player.locator(".hv-fold.hv-now")).to_contain_text("gradient norm")
    assert player.locator(".hv-fold.hv-done").count() == boxes(player).count() - 1


def test_a_box_says_how_many_hooks_are_in_it_and_how_many_fired(player: Locator) -> None:
    press(player.page, "End")
    counts = player.locator(".hv-fold .hv-hooked").all_text_contents()
    fired = [tuple(map(int, re.findall(r"\d+", text))) for text in counts if text]
    assert sum(count for count, _ in fired) == sum(done for _, done in fired) == 2


def test_the_words_of_a_far_step_are_there_at_once(player: Locator) -> None:
    track = track_of(player)
    player.page.mouse.click(track["x"] + track["width"] * 0.8, track["y"] + 20)
    expect(player.locator(".hv-sentence")).not_to_be_empty()
    step, steps = map(int, re.findall(r"\d+", player.locator(".hv-count").inner_text()))
    assert abs(step / steps - 0.8) < 0.02


RED = """(canvas, y) => {
  const pen = canvas.getContext("2d"), { data, width } = pen.getImageData(0, y, canvas.width, 1);
  const red = [...Array(width).keys()].filter((x) => data[4 * x + 3] && data[4 * x] > 1.5 * data[4 * x + 2]);
  return [red.length, red[0] / width, red.at(-1) / width];
}"""


def test_where_a_gradient_is_nan_the_timeline_is_red_and_in_pieces(opened: Opener) -> None:
    page = opened("chain")
    canvas = page.locator(".hv-long canvas")
    expect(page.locator(".hv-scale")).to_contain_text("Norm of each gradient")
    count, first, last = canvas.evaluate(RED, 2)
    assert count > 100 and 0.48 < first < 0.52 and last > 0.98
    assert canvas.evaluate(RED, 5)[0] == 0, "no other bar has gaps"


def test_a_breakpoint_has_its_sign_at_the_pin_also_when_the_picture_is_drawn_later(player: Locator) -> None:
    press(player.page, "]", "]", "b")
    for _ in range(5):
        if not player.locator(".hv-pin.hv-now").count():
            press(player.page, "e")
            player.page.wait_for_timeout(150)
    expect(player.locator(".hv-pin.hv-now .hv-sign")).to_have_count(1)
    press(player.page, "b")
    expect(player.locator(".hv-pin .hv-sign")).to_have_count(0)


def test_what_a_step_sends_stands_in_the_panel_part_below_part(player: Locator) -> None:
    seek(player, "AddmmBackward0")
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
    """The colour of each closed box, or both colours where it has two."""
    found: list[str] = player.evaluate(FILLS)
    return found


def test_boxes_get_their_colours_as_gradients_arrive(player: Locator) -> None:
    plain = set(fills(player))
    assert len(plain) == 1
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-now")).to_have_count(1)
    coloured = fills(player)
    # The gradient vanishes: from layer to layer its colour is another.
    assert len(set(coloured)) == len(coloured) >= 5 and not plain & set(coloured)
    press(player.page, "c")
    assert len(set(fills(player))) <= 2  # done and now
    expect(player.locator(".hv-ramp")).not_to_be_visible()
    press(player.page, "c")
    assert fills(player) == coloured


def test_the_legend_says_in_numbers_what_the_colours_stand_for(player: Locator) -> None:
    low, high = map(float, player.locator(".hv-scale b").all_text_contents())
    press(player.page, "End")
    told = " ".join(player.locator(".hv-fold text").all_text_contents())
    norms = [float(number) for number in re.findall(r"(?:norm|…) ([\d.]+(?:e[-+]\d+)?)", told)]
    assert 0 < low < min(norms) * 1.1 and max(norms) * 0.9 < high
    expect(player.locator(".hv-scale")).to_contain_text(re.compile("zero.*NaN or infinite.*hooks"))


def test_what_is_nan_and_what_is_zero_have_outlines_of_their_own(opened: Opener) -> None:
    player = opened("chain").locator(".hv-live .hv-player")
    player.focus()
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-bad").first).to_contain_text("NaN")
    widths = {
        element.evaluate("e => getComputedStyle(e).strokeWidth")
        for element in player.locator(".hv-bad > .hv-box").all()
    }
    assert widths <= {"4px", "7px"}  # a leaf has a thicker outline anyway
    player = opened("zero").locator(".hv-live .hv-player")
    player.focus()
    press(player.page, "End")
    expect(player.locator(".hv-fold.hv-zero").first).to_contain_text("gradient norm 0")
    dashed = player.locator(".hv-zero > .hv-box").first.evaluate("e => getComputedStyle(e).strokeDasharray")
    assert dashed != "none"


# -- the timeline


def test_the_timeline_zooms_about_the_step_and_follows_it(player: Locator) -> None:
    page, part = player.page, player.locator(".hv-window")
    expect(part).to_be_hidden()
    press(page, "]", "+", "+")
    expect(part).to_be_visible()
    track = track_of(player)
    shown = part.bounding_box()
    assert shown and 0.2 < shown["width"] / track["width"] < 0.3
    page.mouse.click(track["x"] + track["width"] * 0.5, track["y"] + 20)
    step, steps = map(int, re.findall(r"\d+", player.locator(".hv-count").inner_text()))
    middle = shown["x"] + shown["width"] / 2 - track["x"]
    assert abs(step / steps - middle / track["width"]) < 0.02
    player.focus()
    press(page, "End")
    moved = part.bounding_box()
    assert moved and abs(moved["x"] + moved["width"] - track["x"] - track["width"]) < 2
    press(page, "-", "-", "-")
    expect(part).to_be_hidden()
    player.get_by_role("button", name="Closer").click()
    expect(part).to_be_visible()


def test_the_timeline_groups_by_key_and_by_its_list(player: Locator) -> None:
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
    track = track_of(player)
    for place, told in ((0.2, "left it unchanged"), (0.8, "replaced the gradient")):
        page.mouse.click(track["x"] + track["width"] * place, track["y"] + 20)
        expect(player.locator(".hv-sentence")).to_contain_text(re.compile(told))


@pytest.mark.parametrize(
    ("name", "culprit", "told"),
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
def test_a_click_leads_to_the_culprit(opened: Opener, name: str, culprit: str, told: str) -> None:
    page = opened(name, reduced_motion="reduce")
    link = page.locator(".hv-live .hv-notes a[href]").first
    expect(link).to_contain_text(culprit)
    link.click()
    expect(page.locator(".hv-live .hv-sentence")).to_contain_text(told)
    step = re.match(r"Step (\d+), \w+:", link.inner_text())
    assert step
    expect(page.locator(".hv-live .hv-count")).to_contain_text(re.compile(rf"^step {step[1]} ", re.IGNORECASE))


def test_findings_are_hidden_while_the_player_asks(player: Locator) -> None:
    link = player.locator(".hv-notes a[href]").first
    expect(link).to_contain_text("vanishes")
    press(player.page, "p")
    expect(link).not_to_be_visible()
    press(player.page, "p")
    expect(link).to_be_visible()


@pytest.mark.parametrize("name", ["encoder", "chain"])
def test_a_step_changes_no_more_than_in_a_small_trace(opened: Opener, name: str) -> None:
    page = opened(name)
    page.locator(".hv-live .hv-picture").wait_for()
    counts = changes(page.locator(".hv-live .hv-player"))
    assert min(counts) > 0 and max(counts) < 40


def hits(player: Locator) -> Locator:
    return player.get_by_role("listbox").get_by_role("option")


def seek(player: Locator, query: str) -> None:
    """Open the search by its key, and type."""
    press(player.page, "/")
    expect(player.get_by_role("combobox", name="Search")).to_be_focused()
    player.page.keyboard.type(query)


def test_search_finds_a_module_and_enters_it_by_keys_alone(player: Locator) -> None:
    seek(player, "tanh")
    expect(player.get_by_role("status")).to_contain_text("found; here are the first 12")
    expect(hits(player)).to_have_count(12)
    press(player.page, "Escape")
    seek(player, "model.41")
    expect(hits(player).first).to_have_text(re.compile(r"module\s+model\.41\s+Sequential\s+step \d+"))
    expect(hits(player).first).to_have_attribute("aria-selected", "true")
    press(player.page, "ArrowDown")
    expect(hits(player).nth(1)).to_contain_text("model.41.0")
    expect(hits(player).nth(1)).to_have_attribute("aria-selected", "true")
    active = player.get_by_role("combobox", name="Search").get_attribute("aria-activedescendant")
    assert active == hits(player).nth(1).get_attribute("id")
    press(player.page, "ArrowUp", "ArrowDown", "Enter")
    expect(player.get_by_role("combobox", name="Search")).to_be_hidden()
    expect(here(player)).to_have_text("model.41.0")
    expect(player).to_be_focused()
    expect(player.locator(".hv-trail button")).to_have_count(2)
    expect(player.locator(".hv-title")).to_have_text("model.41.0 is called")


def test_while_letters_are_composed_the_search_stays_open_and_no_key_is_the_players(player: Locator) -> None:
    seek(player, "model.41")
    field = player.get_by_role("combobox", name="Search")
    for key, code in (("Enter", "Enter"), ("Escape", "Escape"), ("Process", "KeyL")):
        composing = {"key": key, "code": code, "isComposing": True, "bubbles": True, "cancelable": True}
        field.evaluate("(field, key) => field.dispatchEvent(new KeyboardEvent('keydown', key))", composing)
    expect(field).to_be_focused()
    expect(player.locator("xpath=self::*[contains(@class, 'hv-large')]")).to_have_count(0)
    press(player.page, "Escape")
    expect(field).to_be_hidden()


def test_search_leads_to_a_hook_where_it_is_drawn(player: Locator) -> None:
    seek(player, "grad * 2")
    expect(hits(player)).to_have_count(1)
    press(player.page, "Enter")
    expect(player.locator(".hv-pin.hv-now")).to_have_count(1)
    expect(player.locator(".hv-sentence")).to_contain_text("replaced the gradient")


def test_escape_closes_the_search_and_gives_the_keyboard_back(player: Locator) -> None:
    count = player.locator(".hv-count").inner_text()
    seek(player, "xyzzy")
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


def test_the_first_nan_is_found_by_its_value(opened: Opener) -> None:
    player = opened("chain").locator(".hv-live .hv-player")
    player.focus()
    seek(player, "nan")
    expect(hits(player)).to_have_count(12)
    press(player.page, "Enter")
    expect(player.locator(".hv-node.hv-now")).to_have_count(1)
    expect(player.locator(".hv-node.hv-now")).to_contain_text("nan")
    seek(player, "norm<1e-6")
    expect(player.get_by_role("status")).to_have_text("Nothing found.")


def test_a_port_leads_to_the_neighbour(player: Locator) -> None:
    boxes(player).nth(2).focus()
    press(player.page, "Enter")
    port = player.locator(".hv-port.hv-door").first
    there = (port.locator("text").text_content() or "").partition(" ")[2]
    port.focus()
    press(player.page, "Enter")
    expect(here(player)).to_have_text(there)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_search_is_whole_and_axe_finds_nothing_serious(opened: Opener, width: int, theme: str) -> None:
    page = opened("encoder", width, color_scheme=theme, reduced_motion="reduce")
    player = page.locator(".hv-live .hv-player")
    player.focus()
    seek(player, "weight")
    expect(hits(player)).to_have_count(12)
    assert page.evaluate(FLAWS) == []
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in ("serious", "critical")] == []
    assert page.errors == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_label_is_cut_and_axe_finds_nothing_serious(opened: Opener, width: int, theme: str) -> None:
    page = opened("encoder", width, color_scheme=theme, reduced_motion="reduce")
    page.locator(".hv-live .hv-player").focus()
    press(page, "End", "e")
    page.wait_for_timeout(300)
    assert page.evaluate(FLAWS) == []
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found if rule["impact"] in ("serious", "critical")] == []
    assert page.errors == []  # type: ignore[attr-defined]
