"""A page is one self-contained file that loads nothing and escapes user text."""

import base64
import gzip
import hashlib
import json
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import recorded, silent

import hookviz as hv
from hookviz import __version__
from hookviz.player import read_bundle
from hookviz.player.compression import unpack
from hookviz.player.html_page import page
from hookviz.player.widget import Player


class ParsedPage(HTMLParser):
    """The elements of a page with their attributes and text."""

    VOID = ("meta", "img", "br")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, Any], list[str]]] = []
        self.open: list[int] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(len(self.found))
        self.found.append((tag, dict(attrs), []))

    def handle_endtag(self, tag: str) -> None:
        assert self.found[self.open.pop()][0] == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), []))

    def handle_data(self, embedded_data: str) -> None:
        for index in self.open:
            self.found[index][2].append(embedded_data)

    def all(self, tag: str, **attributes: str) -> list[tuple[dict[str, Any], str]]:
        wanted = {name.replace("_", "-").strip("-"): value for name, value in attributes.items()}
        return [(a, "".join(t)) for name, a, t in self.found if name == tag and wanted.items() <= a.items()]


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    return recorded()


@pytest.fixture(scope="module")
def parsed_page(trace: hv.Trace) -> ParsedPage:
    return ParsedPage(page(trace._data, "The graph a to e"))


def embedded_data(parsed: ParsedPage) -> dict[str, Any]:
    ((_, packed_text),) = parsed.all("script", class_="hv-state")
    values: dict[str, Any] = unpack(packed_text)
    return values


# -- content


def test_a_page_has_title_language_and_viewport(parsed_page: ParsedPage) -> None:
    assert parsed_page.open == []  # every element is closed
    assert [words for _, words in (*parsed_page.all("title"), *parsed_page.all("h1"))] == ["The graph a to e"] * 2
    assert parsed_page.all("html", lang="en")
    assert parsed_page.all("meta", name="viewport")[0][0]["content"] == "width=device-width, initial-scale=1"
    assert ParsedPage(page(recorded()._data)).all("h1")[0][1] == "tensors.e.backward()"
    assert "lists all keys" in parsed_page.all("p", class_="hv-how")[0][1]
    assert parsed_page.all("footer")[0][1] == f"Made with hookviz {__version__}"


def test_a_page_embeds_the_widget_state_and_shows_the_end_of_the_pass(parsed_page: ParsedPage, trace: hv.Trace) -> None:
    values = embedded_data(parsed_page)
    traits = Player.class_own_traits(sync=True)
    synced = {name: trait.default() for name, trait in traits.items() if name not in ("_esm", "_css", "steps")}
    content = json.loads(json.dumps(trace.content()))
    assert values == {**synced, "content": {**content, "svgs": []}}
    assert len(parsed_page.all("svg")) == len(content["svgs"]) == 1
    picture_text = parsed_page.all("svg")[0][1]
    assert all(value in picture_text for value in ("8 → 10", ".grad = 30", ".grad = 112", "gradient 10"))
    rows = [words for _, words in parsed_page.all("tr")]
    assert len(rows) == 5
    assert rows[3] == "9① c_hooktensor hookc8 → 10replaced"


# -- size


def test_the_table_of_a_page_that_plays_nothing_has_the_hook_that_did_not_fire() -> None:
    with hv.record() as trace:
        x = torch.ones(2, requires_grad=True)
        unused = x * 2
        unused.register_hook(silent("tensor"))
        (x * 3).sum().backward()
    [row] = [text for _, text in ParsedPage(page(trace._data, "")).all("tr") if "did not fire" in text]
    assert "tensor on unused did not fire." in row


def test_pages_outputs_scripts_and_styles_are_small() -> None:
    assert len(page(recorded()._data).encode()) <= 106_100
    assert sum(len(part.encode()) for part in recorded()._repr_mimebundle_().values()) <= 149_500
    sizes = {name: len(gzip.compress(read_bundle(name).encode(), 9)) for name in ("page.js", "player.css", "page.css")}
    assert sum(sizes.values()) <= 61_000


# -- no external resources, no injected markup


def digest(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def test_the_content_security_policy_allows_only_the_embedded_script_and_style(parsed_page: ParsedPage) -> None:
    (policy,) = [a["content"] for a, _ in parsed_page.all("meta", http_equiv="Content-Security-Policy")]
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    run = [source for attributes, source in parsed_page.all("script") if "type" not in attributes]
    ((_, packed),) = parsed_page.all("script", class_="hv-script")
    ((_, packed_style),) = parsed_page.all("script", class_="hv-style")
    assert rules == {
        "default-src": "'none'",
        "script-src": f"{digest(run[0])} {digest(unpack(packed))}",
        "style-src": f"{digest(parsed_page.all('style')[0][1])} {digest(unpack(packed_style))}",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(run) == len(parsed_page.all("style")) == 1


def test_a_page_and_its_styles_load_nothing(parsed_page: ParsedPage) -> None:
    loading = {"src", "href", "xlink:href", "srcset", "style", "onload", "onclick"}
    assert not any(loading & set(attributes) for _, attributes, _ in parsed_page.found)
    style = read_bundle("player.css") + read_bundle("page.css") + read_bundle("static_picture.css")
    assert "@import" not in style and "url(" not in style


# -- the output of a cell


def test_a_cell_output_is_self_contained_and_its_picture_survives_html_sanitizing() -> None:
    """Sanitizers remove SVG elements, styles and scripts, but keep images with data URLs."""
    parsed = ParsedPage(recorded()._repr_mimebundle_()["text/html"])
    assert parsed.open == [] and parsed.found[0][1]["class"].startswith("hv-output")
    assert "run the cell or trust the notebook" in parsed.all("div", class_="hv-still")[0][1]
    assert embedded_data(parsed)["content"]["runs"][0]["steps"] == 16
    ((image, _),) = parsed.all("img")
    kind, _, packed = image["src"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert "8 → 10" in "".join(ET.fromstring(base64.b64decode(packed)).itertext())
    assert image["alt"] == "The autograd graph at the end of the pass"


def test_marimo_gets_the_widget() -> None:
    widget = recorded()._display_()
    assert isinstance(widget, Player) and widget.steps == 16


# -- writing a file


def test_to_html_writes_the_page(tmp_path: Path) -> None:
    target = tmp_path / "lesson.html"
    recorded().to_html(target, title="Lesson")
    assert target.read_bytes() == page(recorded()._data, "Lesson").encode()
    assert [path.name for path in tmp_path.iterdir()] == ["lesson.html"]


def test_an_empty_trace_raises_and_writes_no_page(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There is no page to write"):
        hv.Trace().to_html(tmp_path / "x.html")
    assert not list(tmp_path.iterdir())
