"""Animations: a frame for each step, in one layout, with clear errors."""

import sys
from itertools import pairwise
from pathlib import Path

import pytest

from hookviz import Trace
from hookviz.__main__ import main
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
    trace.animate(path, steps=range(8, 12), width=600)
    with Image.open(path) as film:
        assert (film.format or "").lower() == suffix and film.n_frames == 4
        assert film.size[0] == 600
    frames = read_frames(path)
    assert all(one.tobytes() != other.tobytes() for one, other in pairwise(frames))


def test_layout_stays_and_file_is_reproducible(trace: Trace, tmp_path: Path) -> None:
    for name in ("one.gif", "two.gif"):
        trace.animate(tmp_path / name, steps=range(4, 14), width=400)
    assert (tmp_path / "one.gif").read_bytes() == (tmp_path / "two.gif").read_bytes()
    frames = read_frames(tmp_path / "one.gif")
    # Black letters of the names stay where they are, also on another ground: no frame moves what an earlier one drew.
    first, *others = (frame.convert("L").tobytes()[: frame.width * round(0.8 * frame.height)] for frame in frames)
    ink = [place for place, value in enumerate(first) if value < 40]
    assert len(ink) > 200
    assert all(sum(other[place] > 110 for place in ink) < 0.02 * len(ink) for other in others)


def test_steps_seconds_and_dark_mode_are_chosen(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "part.gif"
    trace.animate(path, steps=range(2, 5), seconds=0.5, dark=True)
    with Image.open(path) as film:
        assert film.n_frames == 3
        assert film.info["duration"] == 500
    first = read_frames(path)[0]
    assert max(first.getpixel((0, 0))) < 25  # type: ignore[type-var]
    assert first.getpixel((0, 0)) == first.getpixel((first.width - 1, first.height - 1))


def test_passes_of_different_graphs_share_one_size(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import hookviz

    x = torch.tensor(2.0, requires_grad=True)
    with hookviz.record() as trace:
        (x * x).backward()
        (x * x * x * x).sin().backward()
    trace.animate(tmp_path / "passes.gif", width=400)
    frames = read_frames(tmp_path / "passes.gif")
    assert len(frames) == len(trace.steps)
    assert {frame.size for frame in frames} == {frames[0].size}


def test_errors_name_the_remedy(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"\.gif, \.webp, \.png, not in \.mp4"):
        trace.animate(tmp_path / "pass.mp4")
    with pytest.raises(ValueError, match="no backward pass ran"):
        Trace().animate(tmp_path / "pass.gif")
    with pytest.raises(ValueError, match=f"at most {MAX_FRAMES} steps.*range"):
        trace.animate(tmp_path / "pass.gif", steps=[0] * (MAX_FRAMES + 1))
    with pytest.raises(ValueError, match="steps is empty"):
        trace.animate(tmp_path / "pass.gif", steps=[])
    with pytest.raises(ValueError, match="from 200 to 4000, not 5"):
        trace.animate(tmp_path / "pass.gif", width=5)
    with pytest.raises(ValueError, match="to 60, not 0"):
        trace.animate(tmp_path / "pass.gif", seconds=0)
    with pytest.raises(IndexError, match="no step 500"):
        trace.animate(tmp_path / "pass.gif", steps=[500])
    for name in ("resvg_py", "PIL.Image"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(ImportError, match=r'pip install "hookviz\[images\]"'):
                trace.animate(tmp_path / "pass.gif")
    assert not list(tmp_path.iterdir())


def test_command_line_animates_a_file(trace: Trace, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace.save(tmp_path / "pass.json")
    assert main(["animate", str(tmp_path / "pass.json"), "--steps", "2-4", "--width", "400"]) == 0
    assert "pass.gif is written: 3 steps." in capsys.readouterr().out
    assert len(read_frames(tmp_path / "pass.gif")) == 3
    assert main(["animate", str(tmp_path / "pass.json"), "-o", str(tmp_path / "pass.mp4")]) == 2
    with pytest.raises(SystemExit):
        main(["animate", str(tmp_path / "pass.json"), "--steps", "b-a"])
    assert "b-a is not a range of steps" in capsys.readouterr().err
