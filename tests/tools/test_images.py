"""The committed pictures are those that the package draws today."""

import re
import runpy
from pathlib import Path

import pytest
from PIL import Image, ImageSequence

pytestmark = pytest.mark.filterwarnings("ignore:distutils Version classes")  # torchviz looks for torch's version
IMAGES = Path(__file__).parents[2] / "images"
README = IMAGES.parent / "README.md"


def words(svg: str) -> list[str]:
    """The texts of a picture; coordinates depend on the fonts that are installed."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg)


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    pictures: dict[str, str] = runpy.run_path(str(IMAGES / "make.py"))["pictures"]()
    return pictures


def test_each_drawing_is_committed_as_it_is_drawn_today(drawn: dict[str, str]) -> None:
    committed = {path.stem: words(path.read_text(encoding="utf-8")) for path in IMAGES.glob("*.svg")}
    assert committed == {name: words(svg) for name, svg in drawn.items()}


def test_the_drawings_show_names_values_and_hooks(drawn: dict[str, str]) -> None:
    assert {"a", "b", "c", "d", "e", "\N{NO-BREAK SPACE}= 24", "① c_hook", "retain_grad"} <= set(words(drawn["a_to_e"]))
    assert "8 → 10" in words(drawn["c_hook"])


def test_every_picture_that_the_readme_shows_is_there() -> None:
    shown = re.findall(r'(?:\]\(|src(?:set)?=")(images/[^)"]+)', README.read_text(encoding="utf-8"))
    assert {"images/player.webp", "images/player.png", "images/whatif.png"} <= set(shown)
    assert all((README.parent / name).is_file() for name in shown)


def test_the_readme_opens_with_the_player_in_motion_from_step_to_step() -> None:
    with Image.open(IMAGES / "player.webp") as moving:
        assert moving.n_frames > 10
        seen = {hash(frame.tobytes()) for frame in ImageSequence.Iterator(moving)}
        assert len(seen) == moving.n_frames
    before, _, after = README.read_text(encoding="utf-8").partition("images/player.webp")
    assert before.count("images/") == 1 and "images/player.png" in before, "still, for whom motion disturbs"
    assert after


def test_drawing_twice_gives_the_same_bytes(drawn: dict[str, str]) -> None:
    again = runpy.run_path(str(IMAGES / "make.py"))["pictures"]()
    assert again == drawn


def test_torchviz_is_drawn_without_addresses(drawn: dict[str, str]) -> None:
    assert "MulBackward0" in words(drawn["torchviz"])
    assert re.search(r"\d{9,}", drawn["torchviz"]) is None
