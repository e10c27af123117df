"""How wide a text is: measured in DejaVu Sans, the widest of the fonts that show a picture, so that every text fits."""

from functools import lru_cache

from hookviz.picture.primitives import SPACE
from hookviz.support.terminal_text import truncate

SMALL, LARGE = 14, 17
"""Points: the two sizes of letters in a picture."""
LINE_HEIGHTS = {SMALL: 20, LARGE: 24}
"""Size of letters → the height of a line, in points."""
MAX_TEXT = 1_000
"""Characters of a text in a picture; longer texts are cut."""

_REGULAR = {
    29: "'ijlIJ",
    34: " ,./:;\\|·\N{NO-BREAK SPACE}",
    36: "f-",
    41: "()[]t!r",
    50: '"*_`–',
    56: "sz?cL∂",
    60: "FkvxyPλ",
    62: "TYaoe",
    64: "ESbdghnpqu$0123456789{}",
    70: "KAVBRXZC",
    77: "UHNDG",
    84: "&OQw#+<=>^~→×−",
    90: "M①②③④⑤⑥⑦⑧⑨",
}
_BOLD = {
    38: "'ijl/IJ\\| ,.·\N{NO-BREAK SPACE}",
    42: ":;-",
    49: "f!()[]tr",
    54: '_`–"*∂',
    60: "?zcs",
    65: "λLvxy",
    70: "akEFTeo$0123456789",
    73: "hnu{}SYbdgpqCPZ",
    78: "BAKRVX",
    87: "UGDHN#+<=>^~→×−OQ&①②③④⑤⑥⑦⑧⑨",
    92: "w",
}
"""Width in hundredths of the font size → the characters that are no wider."""


def _widths(groups: dict[int, str]) -> dict[str, int]:
    return {char: width for width, chars in groups.items() for char in chars}


_WIDTHS = {False: _widths(_REGULAR), True: _widths(_BOLD)}
_WIDEST, _SQUARE = {False: 100, True: 110}, 110


@lru_cache(maxsize=8192)
def text_width(text: str, size: int = SMALL, *, bold: bool = False) -> float:
    """Return how many points wide ``text`` can be.

    >>> text_width("8 → 10"), text_width("8 → 10", 2 * SMALL)
    (48.16, 96.32)
    """
    widths, widest = _WIDTHS[bold], _WIDEST[bold]
    # Chinese, Japanese and Korean characters are squares.
    return size * sum(widths.get(char) or (_SQUARE if char > "\u2e7f" else widest) for char in text) / 100


@lru_cache(maxsize=8192)
def fit_for_picture(text: str) -> str:
    """Return ``text`` as a picture shows it: cut if it is very long, and � for characters that XML forbids.

    >>> fit_for_picture("loss\\x00\\N{NO-BREAK SPACE}= 4")
    'loss�\\xa0= 4'
    """
    shown = truncate(text, MAX_TEXT)
    if shown.isprintable():
        return shown
    return "".join(char if char.isprintable() or char == SPACE else "\N{REPLACEMENT CHARACTER}" for char in shown)
