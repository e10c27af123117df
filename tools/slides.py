"""Make slides of lessons in build/slides: ``python -m tools.slides 01 02``. They work from disk, without a network."""

import base64
import re
import shutil
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from nbconvert import SlidesExporter

from hookviz.player.compression import pack, unpack
from tools.cutting import ALONE, BELOW_HEADING, slides_of
from tools.running import NOTEBOOKS, run_all

TARGET = Path("build") / "slides"
DECK = Path(__file__).parent / "deck"
STATE = re.compile(r'(?<=class="hv-state">)[^<]+')
WIDTH = 1190
"""Pixels that a slide has for a drawing, from left to right."""
READABLE, LARGE = 18, 26
"""Pixels of a drawing's letters: from the back row, and where they are large enough."""


def main(numbers: list[str]) -> int:
    """Make the slides of the lessons with these numbers, and say where they are."""
    paths = [path for number in numbers for path in NOTEBOOKS.glob(f"{number}_*.ipynb")]
    if len(paths) < len(numbers) or not paths:
        there = ", ".join(sorted(path.name[:2] for path in NOTEBOOKS.glob("[0-9]*_*.ipynb")))
        print(f"There is no lesson with one of these numbers: {' '.join(numbers)}. There are {there}.", file=sys.stderr)
        return 1
    for page in make(paths, TARGET):
        print(f"{page}: open it in a browser; S opens the speaker's notes.")
    return 0


def make(paths: list[Path], target: Path) -> list[Path]:
    """The slides of these notebooks, as pages in ``target``."""
    lay_out(target)
    made = {target / f"{path.name[:2]}.html": deck(notebook) for path, notebook in run_all(paths).items()}
    for page, html in made.items():
        page.write_text(html, encoding="utf-8")
    return list(made)


def lay_out(target: Path) -> None:
    """Put beside the slides what they load."""
    (target / "reveal").mkdir(parents=True, exist_ok=True)
    reveal = files("sphinx_revealjs") / "_static" / "revealjs"
    for name in ("dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js"):
        (target / "reveal" / Path(name).name).write_bytes(reveal.joinpath(name).read_bytes())
    for name in ("deck.css", "deck.js"):
        shutil.copy(DECK / name, target)


def deck(notebook: Any) -> str:
    """The slides of a notebook that ran, as one page."""
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "data" in output:
            output.data = enlarged(output.data)
    exporter = SlidesExporter(  # type: ignore[no-untyped-call]
        template_name="deck", extra_template_basedirs=[str(DECK.parent)]
    )
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    html, _ = exporter.from_notebook_node(slides_of(notebook))
    return str(html)


def enlarged(data: dict[str, Any]) -> dict[str, Any]:
    """An output for the back row: a player with larger text, a drawing with larger letters."""
    html, svg = data.get("text/html", ""), data.get("image/svg+xml")
    if "hv-state" in html:
        return {"text/html": STATE.sub(lambda found: pack({**unpack(found[0]), "large": True}), html)}
    return data if svg is None else {"text/html": drawing(svg)}


def drawing(svg: str) -> str:
    """A drawing as an image, so that the style in it for dark pages reaches nothing else, with letters of a good size.

    If they would be too small below a heading, it is made for a slide of its own.
    """
    box = re.search(r'viewBox="[\d.]+ [\d.]+ ([\d.]+) ([\d.]+)"', svg)
    width, height = map(float, box.groups()) if box else (WIDTH, BELOW_HEADING)
    smallest = min((float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)), default=LARGE)
    scale = min(WIDTH / width, BELOW_HEADING / height, LARGE / smallest)
    if scale * smallest < READABLE:
        scale = min(WIDTH / width, ALONE / height)
    size = f'width="{width * scale:.0f}" height="{height * scale:.0f}"'
    return f'<img alt="the graph" src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}" {size}>'


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
