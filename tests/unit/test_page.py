"""A page is whole in one file, plays nothing but itself, and keeps what people wrote as text."""

import base64
import gzip
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import Net, c_hook, leaf, recorded
from shown import shown_notes

import hookviz as hv
from hookviz import __version__
from hookviz.__main__ import main
from hookviz.picture.inline_svg import escape_text, fill_texts
from hookviz.player.bundles import read_bundle
from hookviz.player.compression import unpack
from hookviz.player.html_page import page, render_output
from hookviz.player.widget import Player
from hookviz.trace import Note

HOSTILE = "</script><script>alert(1)</script><!--\"'&\u2028\u202ex\x00\ud800"


class Parsed(HTMLParser):
    """The elements of a page with their attributes and what stands in them."""

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

    def handle_data(self, data: str) -> None:
        for index in self.open:
            self.found[index][2].append(data)

    def all(self, tag: str, **attributes: str) -> list[tuple[dict[str, Any], str]]:
        wanted = {name.replace("_", "-").strip("-"): value for name, value in attributes.items()}
        return [(a, "".join(t)) for name, a, t in self.found if name == tag and wanted.items() <= a.items()]


@pytest.fixture(scope="module")
def trace() -> hv.Trace:
    return recorded()


@pytest.fixture(scope="module")
def made(trace: hv.Trace) -> Parsed:
    return Parsed(page(trace, "The graph a to e"))


def data(parsed: Parsed) -> dict[str, Any]:
    ((_, written),) = parsed.all("script", type="text/plain")
    values: dict[str, Any] = unpack(written)
    return values


def hostile() -> hv.Trace:
    """A trace whose tensor is named, and whose hook is written, by somebody who means harm."""
    x = leaf(2.0)
    x.register_hook(c_hook)
    with hv.record(names={HOSTILE: x}) as trace:
        (x * x).backward()
    trace.hook_rows[0] = trace.hook_rows[0]._replace(
        name=HOSTILE, text=f"def f():\n    return {HOSTILE!s}", file=HOSTILE
    )
    trace.remarks.append(Note.verbatim(HOSTILE))
    return trace


# -- what is in it


def test_every_element_is_closed(made: Parsed) -> None:
    assert made.open == []


def test_it_has_a_title_a_language_and_a_width_for_phones(made: Parsed) -> None:
    assert [words for _, words in (*made.all("title"), *made.all("h1"))] == ["The graph a to e"] * 2
    assert made.all("html", lang="en")
    assert made.all("meta", name="viewport")[0][0]["content"] == "width=device-width, initial-scale=1"


def test_without_a_title_it_has_a_general_one() -> None:
    assert Parsed(page(recorded())).all("h1")[0][1] == "PyTorch hooks, step by step"


def test_it_says_how_to_use_it_and_what_made_it(made: Parsed) -> None:
    assert "arrow keys" in made.all("p", class_="hv-how")[0][1]
    assert made.all("footer")[0][1] == f"Made with hookviz {__version__}"


def test_it_carries_all_that_a_widget_does_but_the_pictures_twice(made: Parsed, trace: hv.Trace) -> None:
    values = data(made)
    traits = Player.class_own_traits(sync=True)
    synced = {name: trait.default() for name, trait in traits.items() if name not in ("_esm", "_css", "steps")}
    content = json.loads(json.dumps(trace.content()))
    assert values == {**synced, "content": {**content, "svgs": []}}
    assert len(made.all("svg")) == len(content["svgs"]) == 1


def test_the_still_picture_is_the_end_of_the_pass(made: Parsed) -> None:
    shown = made.all("svg")[0][1]
    assert all(end in shown for end in ("8 → 10", ".grad = 30", ".grad = 112", "gradient 10"))


def test_a_still_picture_shows_the_last_text_not_the_longest() -> None:
    svg = '<svg><text x="1" id="n1-g">gradient 1234</text><text id="n2-g">as it was</text></svg>'
    assert fill_texts(svg, {"n1-g": "<9>"}) == svg.replace("gradient 1234", "&lt;9&gt;")


def test_the_firings_are_a_table(made: Parsed) -> None:
    rows = [words for _, words in made.all("tr")]
    assert len(rows) == 5
    assert rows[3] == "9① c_hooktensor hookc8 → 10replaced"


def test_without_firings_there_is_no_table() -> None:
    x = leaf(2.0)
    with hv.record() as trace:
        x.sin().backward()
    assert not Parsed(page(trace)).all("table")


def test_each_pass_has_a_picture_with_its_number() -> None:
    net, x = Net(), leaf(1.0)
    with hv.record(net) as trace:
        net(x).backward()
        net(x).backward()
    parsed = Parsed(page(trace))
    assert [words for _, words in parsed.all("figcaption")] == ["Pass 1 of 2", "Pass 2 of 2"]
    assert len(parsed.all("svg")) == 2


def test_of_a_what_if_only_the_pictures_that_are_shown_are_counted(tmp_path: Path) -> None:
    def run() -> None:
        net, x = torch.nn.Identity(), leaf(2.0)
        net.register_forward_hook(lambda module, args, output: output * 3)
        net(x * 1).backward()

    both = hv.whatif(run)
    assert len(both.content()["svgs"]) == 2, "one with the hook, one without"
    both.to_html(tmp_path / "whatif.html")
    parsed = Parsed((tmp_path / "whatif.html").read_text(encoding="utf-8"))
    assert (len(parsed.all("svg")), parsed.all("figcaption")) == (1, [])


# -- how large it is


def test_the_page_of_the_first_picture_is_small() -> None:
    size = len(page(recorded()).encode())
    print(f"{size} bytes, of which script {len(read_bundle('page.js'))} and style {len(read_bundle('player.css'))}")
    assert size <= 120_000


def test_script_and_style_are_small_as_they_are_sent() -> None:
    sent = {name: len(gzip.compress(read_bundle(name).encode(), 9)) for name in ("page.js", "player.css", "page.css")}
    print(sent)
    assert sum(sent.values()) <= 40_000


# -- nothing from elsewhere, and nothing but what was put in


def digest(source: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def test_the_policy_allows_the_style_and_the_script_that_are_there_and_nothing_else(made: Parsed) -> None:
    (policy,) = [a["content"] for a, _ in made.all("meta", http_equiv="Content-Security-Policy")]
    rules = dict(rule.split(maxsplit=1) for rule in policy.split("; "))
    run = [source for attributes, source in made.all("script") if "type" not in attributes]
    assert rules == {
        "default-src": "'none'",
        "script-src": digest(run[0]),
        "style-src": digest(made.all("style")[0][1]),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert len(run) == len(made.all("style")) == 1


@pytest.mark.parametrize("make", [recorded, hostile])
def test_nothing_is_loaded(make: Callable[[], hv.Trace]) -> None:
    for _, attributes, _ in Parsed(page(make())).found:
        assert not {"src", "href", "xlink:href", "srcset", "style", "onload", "onclick"} & set(attributes)
    style = read_bundle("player.css") + read_bundle("page.css") + read_bundle("static_picture.css")
    assert "@import" not in style and "url(" not in style


def test_no_script_of_ours_ends_itself() -> None:
    assert "</script" not in read_bundle("page.js") and "<!--" not in read_bundle("page.js")


def test_hostile_names_and_sources_stay_text() -> None:
    parsed = Parsed(page(hostile(), HOSTILE))
    assert len(parsed.all("script")) == 2
    values = data(parsed)
    assert shown_notes(values["content"]) == [HOSTILE]
    assert values["content"]["hooks"][0]["source"].endswith(HOSTILE)
    assert parsed.open == []
    assert "alert(1)</script>" in parsed.all("h1")[0][1]


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\u202e", "\u2066", "\u200f", "\x00", "\x85", "\ud800"])
def test_no_character_that_turns_or_breaks_a_line_is_in_the_file(char: str) -> None:
    for made in (page(hostile(), f"a{char}b"), render_output(hostile().content())):
        assert char not in made
        made.encode()


def test_text_is_one_line_without_markup() -> None:
    assert escape_text("a\n <b>\u202e\"'") == "a &lt;b&gt;\N{REPLACEMENT CHARACTER}&quot;&#x27;"


# -- the output of a cell


def test_a_cell_shows_a_trace_by_html_that_needs_nothing_else() -> None:
    parsed = Parsed(recorded()._repr_mimebundle_()["text/html"])
    assert parsed.open == [] and parsed.found[0][1]["class"].startswith("hv-output")
    assert "run the cell or trust the notebook" in parsed.all("div", class_="hv-still")[0][1]
    assert data(parsed)["content"]["runs"][0]["steps"] == 16


def test_the_picture_of_an_output_outlives_a_cleaning() -> None:
    """Those that clean HTML take drawings, styles and scripts away; an image of data stays."""
    parsed = Parsed(render_output(recorded().content()))
    ((image, _),) = parsed.all("img")
    kind, _, packed = image["src"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert "8 → 10" in "".join(ET.fromstring(base64.b64decode(packed)).itertext())
    assert image["alt"] == "The autograd graph at the end of the pass"


def test_the_output_of_a_cell_is_no_larger_than_a_page_may_be() -> None:
    assert sum(len(part.encode()) for part in recorded()._repr_mimebundle_().values()) <= 135_000


def test_marimo_which_runs_no_scripts_in_html_gets_the_widget() -> None:
    shown = recorded()._display_()
    assert isinstance(shown, Player) and shown.steps == 16


# -- into a file


def test_a_trace_is_written(tmp_path: Path) -> None:
    target = tmp_path / "lesson.html"
    recorded().to_html(target, title="Lesson")
    assert target.read_bytes() == page(recorded(), "Lesson").encode()
    assert [path.name for path in tmp_path.iterdir()] == ["lesson.html"]
    assert stat.S_IMODE(target.stat().st_mode) == 0o666 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("trace", [hv.Trace(), hv.Trace(remarks=[Note.verbatim("It ran unobserved.")])])
def test_an_empty_trace_makes_no_page(trace: hv.Trace, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="There is no page to write") as error:
        trace.to_html(tmp_path / "x.html")
    assert repr(trace) in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "why"), [("", "Is a directory"), ("no/such/x.html", "No such file or directory")])
def test_a_place_that_cannot_be_written_is_named(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(OSError, match=re.escape(f"{tmp_path / name} cannot be written: {why}.")):
        recorded().to_html(tmp_path / name)


# -- from the command line


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    recorded().save(path)
    return path


def test_the_command_writes_a_page(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = saved.with_name("page.html")
    assert main(["page", str(saved), "-o", str(target), "--title", "By command"]) == 0
    assert target.read_text(encoding="utf-8") == page(hv.load(saved), "By command")
    assert capsys.readouterr().out == f"{target} is written: open it in a browser.\n"


def test_without_a_name_it_is_that_of_the_trace(saved: Path) -> None:
    assert main(["page", str(saved)]) == 0
    assert saved.with_suffix(".html").exists()


def test_a_minus_is_standard_output(saved: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["page", str(saved), "-o", "-"]) == 0
    assert capfdbinary.readouterr().out.decode() == page(hv.load(saved))


def write_json(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(fields))


FAULTS = {
    "nowhere.json": "There is no file",
    "text.json": "is not a trace: it is not JSON",
    "other.json": "is not a trace: it is JSON, but",
    "newer.json": "is a trace of version 99; this hookviz reads version 2",
    "broken.json": "is a damaged trace",
    "folder.json": "cannot be read: Is a directory",
    "empty.json": "There is no page to write. Nothing was recorded",
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_wrong_is_said_in_a_line(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.json").write_text("hello")
    write_json(tmp_path / "other.json", a=1)
    write_json(tmp_path / "newer.json", format="hookviz", version=99)
    write_json(tmp_path / "broken.json", format="hookviz", version=2)
    (tmp_path / "folder.json").mkdir()
    hv.Trace().save(tmp_path / "empty.json")
    assert main(["page", str(tmp_path / name), "-o", str(tmp_path / "x.html")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("hookviz: ") and FAULTS[name] in said and said.count("\n") == 1
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("arguments", [[], ["dance"], ["page"]])
def test_a_command_that_is_not_understood_shows_the_usage(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m hookviz")


@pytest.mark.slow
def test_it_is_a_command(saved: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hookviz", "page", saved.name], cwd=saved.parent, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert saved.with_suffix(".html").stat().st_size > 10_000


def test_a_model_of_many_steps_makes_a_page_too() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(300):
        y = y.sin() * 1.01
    with hv.record() as trace:
        y.backward()
    values = data(Parsed(page(trace)))
    assert values["content"]["runs"][0]["steps"] == len(trace.steps) > 1_000
    assert torch.isfinite(x.grad).all()  # type: ignore[arg-type]
