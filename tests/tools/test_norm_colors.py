"""Text on the colours for norms is readable in both themes."""

import colorsys
import re
from itertools import product
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "hookviz" / "player" / "browser" / "styles"
CSS = "".join((SOURCES / name).read_text(encoding="utf-8") for name in ("player.css", "navigation.css"))
TEXT_COLOURS = ("ink", "quiet", "purple", "red", "hook")
BACKGROUNDS = ("paper", "side", "sunk")
Colour = tuple[float, ...]
"""Red, green and blue, from 0 to 1."""


def theme_colours(theme: str) -> dict[str, Colour]:
    """Name → colour of a theme; where JupyterLab has one of its own, the one of hookviz."""
    colours: dict[str, Colour] = {}
    for selector, rules in re.findall(r"^(\.hv-player(?:\.hv-dark)?) \{([^}]*)\}", CSS, re.MULTILINE):
        if theme == "dark" or "dark" not in selector:
            for name, value in re.findall(r"--hv-(?:own-)?([\w-]+): #(\w+)", rules):
                digits = value if len(value) == 6 else "".join(2 * digit for digit in value)
                colours[name] = tuple(int(digits[start : start + 2], 16) / 255 for start in (0, 2, 4))
    return colours


def luminance(colour: Colour) -> float:
    """Relative luminance as WCAG defines it, 0 to 1."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(first: Colour, second: Colour) -> float:
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def interpolate(start: Colour, end: Colour, fraction: float) -> Colour:
    return tuple(a + (b - a) * fraction for a, b in zip(start, end, strict=True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_on_every_tint_has_enough_contrast_and_colours_with_a_meaning_differ(theme: str) -> None:
    colours = theme_colours(theme)
    middle, ends = colours["middle-tint"], (colours["small-tint"], colours["large-tint"])
    tints = [interpolate(middle, end, part / 10) for end in ends for part in range(11)] + [colours["bad-tint"]]
    ratios = {(text, tint): contrast(colours[text], tint) for text, tint in product(TEXT_COLOURS, tints)}
    assert {pair: ratio for pair, ratio in ratios.items() if ratio < 4.5} == {}
    bad, hook = colours["red"], colours["hook"]
    angle = 360 * abs(colorsys.rgb_to_hls(*bad)[0] - colorsys.rgb_to_hls(*hook)[0])
    assert contrast(bad, hook) >= 1.6 and min(angle, 360 - angle) >= 40
    assert min(contrast(colour, colours[background]) for colour in (bad, hook) for background in BACKGROUNDS) >= 4.5
    assert min(contrast(colours[f"{end}-tone"], colours["side"]) for end in ("small", "large")) >= 3
    assert min(sum(abs(a - b) for a, b in zip(end, middle, strict=True)) for end in ends) >= 60 / 255
