"""Outputs in frames like Colab's, and in a page like that of VS Code's notebooks.

Both imitate what is known of these programs: neither runs here.
"""

import html
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Frame, Locator, Page, expect
from scenes import leaf, recorded

import hookviz as hv
from tests.browser.helpers import Opener, errors_of, is_at, press

WIDTH, HEIGHT = 1280, 720

REPORT_HEIGHT = """<script>
const report = () => parent.postMessage(document.documentElement.getBoundingClientRect().height, "*");
new ResizeObserver(report).observe(document.documentElement);
</script>"""
FRAME = """<!DOCTYPE html><meta charset="utf-8"><body style="margin: 0">
<iframe sandbox="allow-scripts" style="width: 1000px; height: 150px; border: 0" srcdoc="{page}"></iframe>
<script>
const heights = [];
addEventListener("message", ({{ data }}) => {{
  heights.push(data);
  document.querySelector("iframe").style.height = `${{data}}px`;
}});
</script>"""
"""A frame of an opaque origin, without storage; it is as high as what it holds."""

WIDGET_STYLES = "<style>:root { --jp-layout-color0: white; --jp-ui-font-color0: black; }</style>"
"""Variables that the widgets of ipywidgets 7 set in every page."""

POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' https: http: data:; font-src 'self' https:; connect-src https:; child-src https: data:"
)
"""What VS Code sets with ``notebook.experimental.enableCsp``, without its own hosts; otherwise it sets nothing."""
EDITOR_COLORS = {
    "vscode-light": ("#ffffff", "#3b3b3b"),
    "vscode-dark": ("#1f1f1f", "#cccccc"),
    "vscode-high-contrast": ("#000000", "#ffffff"),
}
"""Theme → the colours of the editor's paper and of its text."""
EDITOR = """<!DOCTYPE html><html style="--vscode-editor-background: {paper}; --vscode-editor-foreground: {ink}">
<head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}"><style>
body {{ margin: 0; background: var(--vscode-editor-background); color: var(--vscode-editor-foreground); }}
img {{ max-width: 100%; max-height: 100%; }}
button {{ appearance: none; background: transparent; color: inherit; font: inherit; }}
code {{ padding: 1px 3px; border-radius: 4px; background: #8884; color: #d16969; }}
kbd {{ vertical-align: middle; border: 1px solid #8888; background: #8884; color: #d16969; box-shadow: 0 1px red; }}
</style></head><body class="{theme}"><div id="output"></div><script>
const output = document.querySelector("#output");
output.innerHTML = {output};
for (const inert of [...output.getElementsByTagName("script")]) {{
  const script = document.createElement("script");
  script.text = inert.innerText;
  if (inert.type) script.setAttribute("type", inert.type);
  output.append(script);
  script.remove();
}}
</script></body></html>"""
"""VS Code writes an output as text, and then runs copies of its scripts, each taken out again at once."""


@cache
def output(name: str) -> str:
    """The HTML that a notebook saves for a trace: a small one, or one whose picture does not fit."""
    trace = recorded() if name == "small" else record_chain()
    return str(trace._repr_mimebundle_()["text/html"])


def record_chain() -> hv.Trace:
    y = leaf(1.0)
    for _ in range(60):
        y = y * 1.01
    y.register_hook(lambda grad: grad * 2)
    with hv.record() as trace:
        y.backward()
    return trace


def open_text(page: Page, text: str, folder: Path) -> None:
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    (folder / "opened.html").write_text(text, encoding="utf-8")
    page.goto((folder / "opened.html").as_uri())


@pytest.fixture
def open_frame(new_offline_page: Opener, tmp_path: Path) -> Callable[..., Frame]:
    """Open a page with a frame that holds an output and is as high as the output."""

    def open_it(shown: str, theme: str = "", **settings: str) -> Frame:
        page = new_offline_page(**settings)
        inner = (
            f'<!DOCTYPE html><html theme="{theme}"><meta charset="utf-8">{WIDGET_STYLES}<body>{shown}{REPORT_HEIGHT}'
        )
        open_text(page, FRAME.format(page=html.escape(inner)), tmp_path)
        expect(page.frame_locator("iframe").locator(".hv-player .hv-picture").first).to_be_visible()
        return page.frames[1]

    return open_it


def wait_until_settled(page: Page) -> list[float]:
    """Wait until the height of the frame has not changed for half a second; return all heights it had."""
    heights: list[float] = page.evaluate("heights")
    while True:
        page.wait_for_timeout(500)
        before, heights = heights, page.evaluate("heights")
        if heights == before:
            return heights


def check_stepping(page: Page, player: Locator) -> None:
    """Check that keys and the button step, and that nothing was written to the console."""
    is_at(player, 1)
    player.get_by_role("button", name="Next step").click()
    press(page, "]")
    is_at(player, 6)
    press(page, "End")
    expect(player.locator(".hv-panel")).to_contain_text("b.grad is written: 20.")
    assert errors_of(page) == []


# -- like Colab


def test_output_plays_in_a_frame_without_an_origin(open_frame: Callable[..., Frame]) -> None:
    frame = open_frame(output("small"))
    assert frame.evaluate("origin") == "null"
    check_stepping(frame.page, frame.locator(".hv-player"))


def test_frame_as_high_as_its_output_settles_and_shows_the_controls_on_one_screen(
    open_frame: Callable[..., Frame],
) -> None:
    frame = open_frame(output("large"))
    heights = wait_until_settled(frame.page)
    # The static picture, the player with its first size, the bar below it, the picture in its pane.
    assert len(set(heights)) <= 5, heights
    content = "document.documentElement"
    assert frame.evaluate(f"{content}.scrollHeight - innerHeight") == 0
    assert frame.evaluate(f"{content}.scrollWidth - {content}.clientWidth") == 0
    bar = frame.locator(".hv-foot").evaluate("bar => bar.getBoundingClientRect().bottom")
    assert 350 < bar <= HEIGHT


def test_player_follows_the_theme_of_the_frame_and_not_of_the_system(open_frame: Callable[..., Frame]) -> None:
    player = open_frame(output("small"), "dark", color_scheme="light").locator(".hv-player")
    expect(player).to_have_css("background-color", "rgb(17, 20, 24)")


# -- like VS Code


@pytest.fixture
def open_editor(new_offline_page: Opener, tmp_path: Path) -> Callable[[str], Page]:
    """Open a page that shows an output as VS Code's notebooks do, in one of its themes."""

    def open_it(theme: str) -> Page:
        page = new_offline_page(color_scheme="dark" if theme == "vscode-light" else "light")
        paper, ink = EDITOR_COLORS[theme]
        text = json.dumps(output("small")).replace("</", "<\\/")
        open_text(page, EDITOR.format(policy=POLICY, theme=theme, output=text, paper=paper, ink=ink), tmp_path)
        expect(page.locator(".hv-player")).to_have_count(1)
        return page

    return open_it


def test_output_plays_in_a_page_like_that_of_vs_code(open_editor: Callable[[str], Page]) -> None:
    page = open_editor("vscode-dark")
    check_stepping(page, page.locator(".hv-player"))
    expect(page.locator(".hv-still")).to_be_hidden()


@pytest.mark.parametrize("theme", ["vscode-light", "vscode-high-contrast"])
def test_player_is_legible_in_the_themes_of_vs_code(theme: str, open_editor: Callable[[str], Page]) -> None:
    page = open_editor(theme)
    press(page, *["ArrowRight"] * 2)
    is_dark = theme == "vscode-high-contrast"
    expect(page.locator(".hv-player")).to_have_class("hv-player hv-dark" if is_dark else "hv-player")
    found = Axe().run(page, context=".hv-player", options={"runOnly": ["color-contrast"]}).response
    assert found["passes"] and found["violations"] == []
    expect(page.locator(".hv-player kbd").first).to_have_css("box-shadow", "none")
