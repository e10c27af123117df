"""Make slides in build/slides, of lessons or of the polls: ``python -m tools.slides 01 02`` or ``polls``.

They open from disk, without a network. They are in the language that ``HOOKVIZ_LANGUAGE`` names.
"""

import base64
import re
import shutil
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from nbconvert import SlidesExporter

from hookviz.course.question_bank import read_questions
from hookviz.player.compression import pack, unpack
from hookviz.support.messages.languages import LANGUAGE_TAGS, current_language
from tools.lessons import find_lessons, folder_of, language_of
from tools.notebook_runs import run_all
from tools.poll_slides import make_poll_slides, write_gift
from tools.predictions import find_graphs
from tools.slide_cells import make_slides

TARGET = Path("build") / "slides"
DECK = Path(__file__).parent / "deck"
STATE = re.compile(r'(?<=class="hv-state">)[^<]+')
PLOT = re.compile(r'<figure class="hv-plot"><figcaption>(?P<says>.*?)</figcaption>(?P<svg><svg.*?</svg>)', re.DOTALL)
WIDTH, HEIGHT = 1190, 550
"""The room for a drawing below the heading of a slide, in pixels."""
LARGE_LETTERS = 26
"""The size in pixels of letters that are large enough: a small drawing is not blown up any further."""


def main(numbers: list[str]) -> None:
    """Make the slides of the lessons with these numbers, or those of the polls, and print their paths."""
    language = current_language()
    target = folder_of(language, TARGET)
    if numbers == ["polls"]:
        print(*make_poll_deck(target, language), sep="\n")
        return
    for page in make_decks(find_lessons(numbers, language), target):
        print(f"{page}: open it in a browser; S opens the speaker's notes.")


def make_decks(paths: list[Path], target: Path) -> list[Path]:
    """Write the slides of these notebooks as pages into ``target``, and return their paths."""
    copy_assets(target)
    pages = []
    for path, notebook in run_all(paths).items():
        pages.append(target / f"{path.name[:2]}.html")
        pages[-1].write_text(render_deck(notebook, language_of(path)), encoding="utf-8")
    return pages


def make_poll_deck(target: Path, language: str) -> list[Path]:
    """Write the polls as slides, and in GIFT, into ``target``; return the paths."""
    copy_assets(target)
    questions = read_questions(language).values()
    page, gift = target / "polls.html", target / "polls.gift"
    page.write_text(export_slides(make_poll_slides(questions, language), language), encoding="utf-8")
    gift.write_text(write_gift(questions), encoding="utf-8")
    return [page, gift]


def copy_assets(target: Path) -> None:
    """Copy the scripts and styles that the slides load into ``target``."""
    (target / "reveal").mkdir(parents=True, exist_ok=True)
    reveal = files("sphinx_revealjs") / "_static" / "revealjs"
    for name in ("dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js"):
        (target / "reveal" / Path(name).name).write_bytes(reveal.joinpath(name).read_bytes())
    for name in ("deck.css", "deck.js"):
        shutil.copy(DECK / name, target)


def render_deck(notebook: Any, language: str = "en") -> str:
    """Render the slides of a notebook that ran, which is in ``language``, as one page of HTML."""
    graphs = {cell: embed_drawing(svg) for cell, svg in find_graphs(notebook.cells).items()}
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "data" in output:
            output.data = enlarge_output(output.data)
    return export_slides(make_slides(notebook, language, graphs), language)


def export_slides(slides: Any, language: str) -> str:
    """Write a notebook whose cells say on which slide they stand as one page of HTML."""
    exporter = SlidesExporter(  # type: ignore[no-untyped-call]
        template_name="deck", extra_template_basedirs=[str(DECK.parent)]
    )
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = exporter.exclude_anchor_links = True
    slides.metadata["language"] = LANGUAGE_TAGS[language]
    html, _ = exporter.from_notebook_node(slides)
    return str(html)


def enlarge_output(data: dict[str, Any]) -> dict[str, Any]:
    """Enlarge an output for the back row: the text of a player, or the letters of a plot or a drawing."""
    html, svg = data.get("text/html", ""), data.get("image/svg+xml")
    if "hv-state" in html:
        return {"text/html": STATE.sub(lambda match: pack({**unpack(match[0]), "large": True}), html)}
    plot = PLOT.search(html)
    if plot is not None:
        return {"text/html": f'<p class="plot">{plot["says"]}</p>{embed_drawing(plot["svg"])}'}
    return data if svg is None else {"text/html": embed_drawing(svg)}


def embed_drawing(svg: str) -> str:
    """Embed a drawing as a large image, so that its style for dark pages affects nothing else."""
    box = re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"', svg)
    width, height = map(float, box.groups()) if box else (WIDTH, HEIGHT)
    letters = min((float(size) for size in re.findall(r'font-size="([\d.]+)(?:px)?"', svg)), default=LARGE_LETTERS)
    scale = min(WIDTH / width, HEIGHT / height, LARGE_LETTERS / letters)
    size = f'width="{width * scale:.0f}" height="{height * scale:.0f}"'
    return f'<img alt="the graph" src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}" {size}>'


if __name__ == "__main__":
    main(sys.argv[1:])
