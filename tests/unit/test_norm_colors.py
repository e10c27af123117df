"""The colours for norms: whatever is written on them can be read, in both themes."""

import colorsys
import re
from itertools import product
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "hookviz" / "player" / "browser"
CSS = "".join((SOURCES / name).read_text(encoding="utf-8") for name in ("player.css", "navigation.css"))
TEXTS = ("ink", "quiet", "purple", "red", "hook")
GROUNDS = ("paper", "side", "sunk")
Colour = tuple[float, ...]


def variables(theme: str) -> dict[str, Colour]:
    """The colours of a theme by their names; where Jupyter has its own, the one that stands in for it."""
    found: dict[str, Colour] = {}
    for selector, rules in re.findall(r"^(\.hv-player(?:\.hv-dark)?) \{([^}]*)\}", CSS, re.MULTILINE):
        if theme == "dark" or "dark" not in selector:
            for name, value in re.findall(r"--hv-([\w-]+): (?:var\([\w-]+, )?#(\w+)", rules):
                whole = value if len(value) == 6 else "".join(2 * digit for digit in value)
                found[name] = tuple(int(whole[at : at + 2], 16) for at in (0, 2, 4))
    return found


def light(colour: Colour) -> float:
    """The relative luminance of WCAG."""
    parts = (part / 255 for part in colour)
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: Colour, other: Colour) -> float:
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def between(one: Colour, other: Colour, part: float) -> Colour:
    return tuple(a + (b - a) * part for a, b in zip(one, other, strict=True))


def hue(colour: Colour) -> float:
    """In degrees: 0 is red, 120 green, 240 blue."""
    red, green, blue = (part / 255 for part in colour)
    return 360 * colorsys.rgb_to_hls(red, green, blue)[0]


def test_contrast_is_that_of_wcag() -> None:
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((119, 119, 119), (255, 255, 255)) == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_written_on_a_tint_can_be_read(theme: str) -> None:
    colours = variables(theme)
    tints = [
        between(colours["middle-tint"], colours[f"{end}-tint"], part / 10)
        for end in ("small", "large")
        for part in range(11)
    ]
    tints.append(colours["bad-tint"])
    poor = {(text, tint): contrast(colours[text], tint) for text, tint in product(TEXTS, tints)}
    assert {pair: ratio for pair, ratio in poor.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nan_and_hooks_are_told_apart_by_their_hue_and_by_how_light_they_are(theme: str) -> None:
    colours = variables(theme)
    bad, hook = colours["red"], colours["hook"]
    assert contrast(bad, hook) >= 1.6
    turn = abs(hue(bad) - hue(hook))
    assert min(turn, 360 - turn) >= 40
    assert min(contrast(colour, colours[ground]) for colour in (bad, hook) for ground in GROUNDS) >= 4.5


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_ends_of_the_scale_are_told_apart_from_its_middle_and_its_ground(theme: str) -> None:
    colours = variables(theme)
    for end in ("small", "large"):
        assert contrast(colours[f"{end}-tone"], colours["side"]) >= 3
        assert sum(abs(a - b) for a, b in zip(colours[f"{end}-tint"], colours["middle-tint"], strict=True)) >= 60
