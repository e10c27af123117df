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


@pytest.fixture(scope="module")
def drawings() -> dict[str, str]:
    pictures: dict[str, str] = runpy.run_path(str(IMAGES / "make.py"))["pictures"]()
    return pictures


def test_committed_drawings_are_up_to_date(drawings: dict[str, str]) -> None:
    committed = {path.stem: texts(path.read_text(encoding="utf-8")) for path in IMAGES.glob("*.svg")}
    assert committed == {name: texts(svg) for name, svg in drawings.items()}


def test_every_picture_in_the_readme_exists() -> None:
    shown = re.findall(r'(?:\]\(|src(?:set)?=")(images/[^)"]+)', README.read_text(encoding="utf-8"))
    assert {"images/player.webp", "images/player.png", "images/whatif.png"} <= set(shown)
    assert all((README.parent / name).is_file() for name in shown)


def test_readme_starts_with_an_animation_of_the_player() -> None:
    with Image.open(IMAGES / "player.webp") as animation:
        assert animation.n_frames > 10
        frames = {hash(frame.tobytes()) for frame in ImageSequence.Iterator(animation)}
        assert len(frames) == animation.n_frames
    before, _, after = README.read_text(encoding="utf-8").partition("images/player.webp")
    assert before.count("images/") == 1 and "images/player.png" in before, (
        "a still picture for readers who prefer no motion"
    )
    assert after


def test_pictures_of_the_glossary_are_up_to_date(tmp_path: Path) -> None:
    runpy.run_path(str(IMAGES / "word_pictures.py"))["main"](tmp_path)
    made = {path.name: texts(path.read_text(encoding="utf-8")) for path in tmp_path.iterdir()}
    kept = {path.name: texts(path.read_text(encoding="utf-8")) for path in (IMAGES / "words").iterdir()}
    assert made == kept
