"""Files from other sources: each is refused in one sentence, or works in every view with its texts escaped."""

import json
import os
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz as hv
from hookviz.course import quiz
from hookviz.player.compression import unpack
from hookviz.player.html_page import page
from hookviz.player.trace_content import TraceContent
from hookviz.storage import integrity
from hookviz.storage.files import MAX_FILE_SIZE, encode_trace
from tests.proof.mutants import HOSTILE, hostile, peak_megabytes, saved
from tests.shown import content_of
from tests.unit.test_large_traces import picture, views_of
from tests.unit.test_page import ParsedPage

Data = dict[str, Any]


def load_data(data: Data, folder: Path) -> hv.Trace:
    """Write ``data`` to a file and load the trace."""
    (folder / "t.json").write_text(json.dumps(data))
    return hv.load(folder / "t.json")


def refusal_message(data: Data, folder: Path) -> str:
    """Return the error message for a file with ``data``."""
    with pytest.raises(ValueError, match=r"t\.json is damaged, or not a trace: ") as caught:
        load_data(data, folder)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
    return str(caught.value).partition("not a trace: ")[2]


# -- the format


@pytest.mark.parametrize("kind", ["graph", "in place", "modules", "training", "formulas", "large"])
def test_a_valid_file_is_read_and_written_unchanged(kind: str, tmp_path: Path) -> None:
    data = json.loads(saved(kind))
    trace = load_data(data, tmp_path)
    assert trace._data.rows and json.loads(json.dumps(encode_trace(trace._data))) == data


# -- files that are refused


def set_cell(table: str, column: str, value: Any, kind: str = "") -> Callable[[Data], None]:
    """Return a change that sets one cell of a table: of its first row, or of the first step of a kind."""
    return lambda data: data[table][column].__setitem__(first_step(data, kind) if kind else 0, value)


def first_step(data: Data, kind: str) -> int:
    """Return the index of the first step of ``kind``."""
    number: int = data["rows"]["kind"].index(kind)
    return number


DAMAGED_FILES: dict[str, tuple[Callable[[Data], Any], str]] = {
    # a cell of another type than is declared
    "a name that is a number": (set_cell("tensors", "name", 7), "Expected `str`, got `int` - at `$.tensors.name"),
    "half of a character (mutated file 4519)": (set_cell("rows", "effect", "\ud800"), "surrogates not allowed"),
    # tables
    "no steps": (lambda data: data.pop("rows"), "missing required field `rows`"),
    "a column that is too short": (lambda data: data["rows"]["effect"].pop(), "the columns of rows differ in length"),
    # values
    "a dtype that is a function": (lambda data: data["values"][0].__setitem__(1, "load"), "row 0 of values"),
    # what rows say of each other
    "an edge from a node to itself": (
        lambda data: data["edges"].append([[0, 5], [0, 0]]),
        "row 0 of ops",
    ),
    "a hook of a tensor on no tensor": (set_cell("hook_rows", "output", None), "row 0 of hook_rows"),
    "a hook step without a hook": (set_cell("rows", "hook", None, "tensor_hook"), "of rows does not fit"),
    "a seed with several values": (set_cell("rows", "after", [0, 1], "seed"), "of rows does not fit"),
}


@pytest.mark.parametrize("case", DAMAGED_FILES)
def test_a_damaged_file_is_refused_in_one_sentence(case: str, tmp_path: Path) -> None:
    data = json.loads(saved("graph"))
    change, words = DAMAGED_FILES[case]
    change(data)
    assert words in refusal_message(data, tmp_path)


def test_too_deeply_nested_calls_are_refused(tmp_path: Path) -> None:
    data = json.loads(saved("modules"))
    more, count = integrity.MAX_CALL_DEPTH, len(data["calls"]["module"])
    nested = {name: cells[:1] * more for name, cells in data["calls"].items()}
    for column, cells in {**nested, "parent": list(range(count - 1, count + more - 1))}.items():
        data["calls"][column] += cells
    assert "of calls does not fit" in refusal_message(data, tmp_path)


# -- files that are not read


def test_pipes_and_devices_are_refused_before_opening(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path(os.devnull), Path("/dev/zero")):
        with pytest.raises(ValueError, match=f"{path.name} is not read: hookviz reads ordinary files"):
            hv.load(path)


def test_a_too_large_file_is_refused_before_reading(tmp_path: Path) -> None:
    with (tmp_path / "t.json").open("wb") as file:
        file.truncate(MAX_FILE_SIZE + 1)  # a sparse file, which takes no space on disk
    with pytest.raises(ValueError, match=r"files of up to 512 MB"):
        hv.load(tmp_path / "t.json")


# -- limits on memory and time


def test_a_formula_with_too_many_numbers_is_not_evaluated(tmp_path: Path) -> None:
    """Expanding the gradient before checking its size took 6.3 GB."""
    x = torch.ones(2, 2, requires_grad=True)
    with hv.record() as trace:
        x.sum().backward()
    data = encode_trace(trace._data)
    data["saved"]["plain"][data["saved"]["name"].index("self_sym_sizes")] = [40_000, 40_000]
    before, start = peak_megabytes(), time.process_time()
    trace = load_data(json.loads(json.dumps(data)), tmp_path)
    (reason,) = trace.why(first_step(data, "compute"))
    assert (reason.verdict, reason.formula) == ("symbols only", "expand(grad, shape)")
    assert peak_megabytes() - before < 100 and time.process_time() - start < 5


# -- texts


SAFE_TAGS = {"svg", "g", "path", "rect", "text"}
HARMLESS_TAGS = SAFE_TAGS | {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "h1", "p", "ul", "li", "div"),
    *("figure", "figcaption", "table", "caption", "thead", "tbody", "tr", "th", "td", "script", "img", "kbd", "b"),
}
INVISIBLE = "\u2028\u2029\u202e\u2066\u200f\x00\x85\ud800"
MARKUP = "".join([*HOSTILE[1:8], "<!--\"'&", INVISIBLE])


def list_active(markup: ParsedPage) -> list[tuple[str, Any]]:
    """List the attributes that could run or load something."""
    attributes = [attribute for _tag, attributes, _text in markup.found for attribute in attributes.items()]
    return [
        (name, value)
        for name, value in attributes
        if name.startswith("on")
        or name in ("href", "xlink:href", "srcset")
        or (name == "src" and not str(value).startswith("data:image/svg+xml"))
    ]


def find_drawings(content: Any) -> Iterator[str]:
    """Yield all SVG pictures in the content of a player, including compressed ones."""
    if isinstance(content, str) and content.startswith("<svg"):
        yield content
    elif isinstance(content, str) and content.startswith("eN"):
        yield from find_drawings(unpack(content))
    elif isinstance(content, dict) and "fill" in content:
        return  # parts of a picture that several views share
    for part in content.values() if isinstance(content, dict) else content if isinstance(content, list) else ():
        yield from find_drawings(part)


def test_markup_in_a_file_is_escaped_in_html_and_invisible_characters_removed(tmp_path: Path) -> None:
    trace = load_data(hostile(json.loads(saved("modules")), MARKUP), tmp_path)
    for html in (page(trace._data, MARKUP), trace._repr_mimebundle_()["text/html"], trace.firings._repr_html_()):
        markup = ParsedPage(html)
        assert {tag for tag, _, _ in markup.found} <= HARMLESS_TAGS
        assert list_active(markup) == [] and markup.open == []
        assert not set(INVISIBLE) & set(html)
        assert len(markup.all("script")) <= 4
    for table in (trace.findings.values, quiz(trace), trace.why(len(trace._data.rows) - 3)):
        assert {tag for tag, _, _ in ParsedPage(table._repr_html_()).found} <= HARMLESS_TAGS


@pytest.mark.parametrize(("kind", "text"), [("graph", MARKUP), ("large", HOSTILE[1])])
def test_markup_in_a_file_is_escaped_in_pictures(kind: str, text: str, tmp_path: Path) -> None:
    trace = load_data(hostile(json.loads(saved(kind)), text), tmp_path)
    pictures = [*find_drawings(content_of(trace)), trace.figure(3, tensors=True).svg()]
    if kind == "large":
        content = TraceContent.of(trace._data)
        pictures += [picture(content, name) for name in views_of(content)]
    tags = {element.tag.partition("}")[2] for svg in pictures for element in ET.fromstring(svg).iter()}
    assert len(pictures) > 2 and tags <= SAFE_TAGS
    assert any('"><IMG' in (element.text or "") for element in ET.fromstring(pictures[0]).iter())
