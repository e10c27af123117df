"""Animations: a frame for each step, in one layout, with clear errors."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from hookviz import Trace
from hookviz.picture.animation import MAX_FRAMES
from tests.scenes import recorded

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("resvg_py")


@pytest.fixture(scope="module")
def trace() -> Trace:
    return recorded()


def read_frames(path: Path) -> list["Image.Image"]:
    with Image.open(path) as film:
        frames = []
        for index in range(film.n_frames):
            film.seek(index)
            frames.append(film.convert("RGB"))
    return frames


@pytest.mark.parametrize("suffix", ["gif", "webp", "png"])
def test_each_step_is_a_frame_of_the_same_size(trace: Trace, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"pass.{suffix}"
    trace.animate(path, steps=range(8, 11), width=400)
    with Image.open(path) as film:
        assert (film.format or "").lower() == suffix and film.n_frames == 3
        assert film.size[0] == 400
    frames = read_frames(path)
    assert all(one.tobytes() != other.tobytes() for one, other in pairwise(frames))


def test_layout_stays_and_file_is_reproducible_and_seconds_and_dark_mode_are_chosen(
    trace: Trace, tmp_path: Path
) -> None:
    for name in ("one.gif", "two.gif"):
        trace.animate(tmp_path / name, steps=range(6, 10), width=400, seconds=0.5, dark=True)
    assert (tmp_path / "one.gif").read_bytes() == (tmp_path / "two.gif").read_bytes()
    with Image.open(tmp_path / "one.gif") as film:
        assert film.info["duration"] == 500
    frames = read_frames(tmp_path / "one.gif")
    assert max(frames[0].getpixel((0, 0))) < 25  # type: ignore[type-var]
    # White letters of the names stay where they are, also on another ground: no frame moves what an earlier one drew.
    first, *others = (frame.convert("L").tobytes()[: frame.width * round(0.8 * frame.height)] for frame in frames)
    ink = [place for place, value in enumerate(first) if value > 215]
    assert len(ink) > 50
    assert all(sum(other[place] < 145 for place in ink) < 0.02 * len(ink) for other in others)


def test_errors_name_the_remedy(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"\.gif, \.webp, \.png, not in \.mp4"):
        trace.animate(tmp_path / "pass.mp4")
    with pytest.raises(ValueError, match=f"at most {MAX_FRAMES} steps.*range"):
        trace.animate(tmp_path / "pass.gif", steps=[0] * (MAX_FRAMES + 1))
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(ImportError, match=r'pip install "hookviz\[images\]"'):
        trace.animate(tmp_path / "pass.gif")
