"""Make slides of lessons in build/slides: ``python -m tools.slides 01 02``. They work from disk, without a network."""

import base64
import re
import shutil
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

from nbconvert import SlidesExporter

from hookviz.player.packed import pack, unpack
from tools.cutting import slides_of
from tools.running import NOTEBOOKS, ROOT, run_all

TARGET = ROOT / "build" / "slides"
DECK = Path(__file__).parent / "deck"
STATE = re.compile(r'(?<=class="hv-state">)[^<]+')
ZOOM = 1.3
"""From a notebook's pictures, whose letters are 15.6 pixels high or so, to those of a slide."""


def main(numbers: list[str]) -> int:
    """Make the slides of the lessons with these numbers, and say where they are."""
    paths = [path for number in numbers for path in NOTEBOOKS.glob(f"{number}_*.ipynb")]
    if len(paths) < len(numbers) or not paths:
        there = ", ".join(sorted(path.name[:2] for path in NOTEBOOKS.glob("[0-9]*_*.ipynb")))
        print(f"There is no lesson with one of these numbers: {' '.join(numbers)}. There are {there}.", file=sys.stderr)
        return 1
    for page in make(paths, TARGET):
        print(f"{page.relative_to(ROOT)}: open it in a browser; S opens the speaker's notes.")
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
    cut = slides_of(notebook)
    for cell in cut.cells:
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data = enlarged(output.data)
    exporter = SlidesExporter(template_name="deck", extra_template_basedirs=[str(DECK.parent)])
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    html, _ = exporter.from_notebook_node(cut)
    return str(html)


def enlarged(data: dict[str, Any]) -> dict[str, Any]:
    """An output for the back row: a player with larger text, a picture with larger letters."""
    html, svg = data.get("text/html", ""), data.get("image/svg+xml")
    if "hv-state" in html:
        return {"text/html": STATE.sub(lambda found: pack({**unpack(found[0]), "large": True}), html)}
    if svg is None:
        return data
    # As an image, so that the style within it, for dark pages, reaches nothing else.
    coded = base64.b64encode(svg.encode()).decode()
    width = re.search(r'<svg width="(\d+)px"', svg)
    size = f' width="{int(width[1]) * ZOOM:.0f}"' if width else ""
    return {"text/html": f'<img alt="The graph" src="data:image/svg+xml;base64,{coded}"{size}>'}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
