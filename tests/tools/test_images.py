"""The committed pictures are up to date."""

import re
import runpy
from pathlib import Path

import pytest
from PIL import Image, ImageSequence

pytestmark = pytest.mark.filterwarnings("ignore:distutils Version classes")  # torchviz looks for torch's version
IMAGES = Path(__file__).parents[2] / "images"
README = IMAGES.parent / "README.md"


def texts(svg: str) -> list[str]:
    """The texts of a picture, because coordinates depend on the installed fonts."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


def read_texts(folder: Path) -> dict[str, list[str]]:
    return {path.stem: texts(path.read_text(encoding="utf-8")) for path in folder.glob("*.svg")}


def test_committed_drawings_are_up_to_date() -> None:
    drawings = runpy.run_path(str(IMAGES / "make.py"))["pictures"]()
    assert read_texts(IMAGES) == {name: texts(svg) for name, svg in drawings.items()}


def test_readme_starts_with_an_animation_of_the_player_and_its_pictures_exist() -> None:
    text = README.read_text(encoding="utf-8")
    shown = re.findall(r'(?:\]\(|src(?:set)?=")(images/[^)"]+)', text)
    assert "images/whatif.png" in shown and all((README.parent / name).is_file() for name in shown)
    still, animated = shown[:2]  # the first is for readers who prefer no motion
    assert (still, animated) == ("images/player.png", "images/player.webp")
    with Image.open(README.parent / animated) as animation:
        frames = {hash(frame.tobytes()) for frame in ImageSequence.Iterator(animation)}
        assert len(frames) == animation.n_frames > 10


def test_figures_of_the_plots_are_up_to_date_and_show_what_the_page_says(tmp_path: Path) -> None:
    plots = runpy.run_path(str(IMAGES / "plot_pictures.py"))["main"](tmp_path)
    assert read_texts(tmp_path) == read_texts(IMAGES / "plots")
    page = (IMAGES.parent / "site" / "plots.md").read_text(encoding="utf-8")
    assert {f"{name}.svg" for name in plots} == set(re.findall(r"images/plots/(\w+\.svg)", page))


def test_graphs_of_the_glossary_are_up_to_date() -> None:
    graphs = runpy.run_path(str(IMAGES / "word_pictures.py"))["draw_graphs"]()
    committed = read_texts(IMAGES / "words")
    assert graphs and {name: committed[name] for name in graphs} == {name: texts(svg) for name, svg in graphs.items()}
