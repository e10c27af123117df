"""Find the entry of the look-up page for a line of code from an article. ``site/static/look_up.js`` does the same."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from hookviz.support.messages.languages import current_language

PAGE = "what_your_article_says.ipynb"
SHOWN = 3
"""How many entries a search shows."""

_STRING = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_COMMENT = re.compile(r"#.*")
_TOKEN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+(?:\.[0-9]+)?|\.\.\.|[-+*/]=|[^\sA-Za-z0-9_]")
_NAME = re.compile(r"[A-Za-z0-9_\"]")
_KEYWORDS = {
    "and",
    "as",
    "class",
    "def",
    "else",
    "for",
    "from",
    "global",
    "if",
    "import",
    "in",
    "is",
    "lambda",
    "nonlocal",
    "not",
    "or",
    "print",
    "return",
    "with",
}
"""Words that ``_`` does not stand for."""
_ANY_NAME, _GAP = "_", "..."
"""In a pattern: one name, number or text; and any few tokens."""
_LONGEST_GAP = 14


@dataclass(frozen=True)
class Entry:
    """An entry of the look-up page."""

    id: str
    """The name of the entry in a link to it."""
    heading: str
    """The code in its heading, between backquotes."""
    says: str
    """What articles say."""
    today: str
    """What PyTorch does today."""
    patterns: tuple[tuple[str, ...], ...]
    """The tokens of each piece of code that belongs to the entry."""

    @property
    def address(self) -> str:
        """The link to the entry, as JupyterLab understands it."""
        return f"{PAGE}#cell-id={self.id}-text"


@dataclass(frozen=True)
class FoundEntries:
    """The entries of the look-up page that fit a line of code best, the best first."""

    entries: tuple[Entry, ...]
    """At most three entries."""

    def __repr__(self) -> str:
        if not self.entries:
            return _texts()["none"]
        lines = [f"- {entry.heading}: {entry.says} → {entry.today}" for entry in self.entries]
        return "\n".join([_texts()["found"], *lines])

    def _repr_html_(self) -> str:
        if not self.entries:
            return f"<p>{escape(_texts()['none'])}</p>"
        items = [
            f'<li><a href="{entry.address}">{_code_html(entry.heading)}</a>: {_code_html(entry.says)}'
            f" → {_code_html(entry.today)}</li>"
            for entry in self.entries
        ]
        return f"<p>{escape(_texts()['found'])}</p><ol>{''.join(items)}</ol>"


def look_up(code: str) -> FoundEntries:
    """Find the entries of the look-up page of the course that fit a line of code from an article.

    Args:
        code: a line of the article, or a few. The names of its variables do not matter.

    Returns:
        Up to three entries of the page, the best first. A notebook shows them as links.

    >>> import hookviz as hv
    >>> hv.look_up("my_maps.append(result.detach().cpu())")
    Look here, the best fit first:
    - `output.detach().cpu()`: ... → not on a CPU: `detach().clone()`
    >>> hv.look_up("print('hello')")
    No entry of this page has to do with this code. Paste a line with the name of a function or an attribute in it.
    """
    tokens = split_code(code, _usual_names())
    weights = _pattern_weights()
    scores = {entry: _score(entry, tokens, weights) for entry in read_entries()}
    best = sorted((entry for entry in scores if scores[entry] > 0), key=lambda entry: -scores[entry])
    return FoundEntries(tuple(best[:SHOWN]))


def read_entries() -> tuple[Entry, ...]:
    """All entries of the look-up page, in its order."""
    return _read_entries(current_language())


@cache
def _read_entries(language: str) -> tuple[Entry, ...]:
    return tuple(
        Entry(
            entry["id"],
            entry["heading"],
            entry["says"],
            entry["today"],
            tuple(tuple(split_code(code)) for code in entry["code"]),
        )
        for entry in read_index(language)["entries"]
    )


@cache
def read_index(language: str = "en") -> dict[str, Any]:
    """The index as the site in one language gets it: entries, usual names and texts."""
    index: dict[str, Any] = json.loads(_read_file("article_index.json"))
    if language != "en":
        translated = json.loads(_read_file(f"article_index.{language}.json"))
        index["texts"] = translated["texts"]
        index["entries"] = [{**entry, **translated["entries"][entry["id"]]} for entry in index["entries"]]
    return index


def _read_file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def split_code(code: str, usual_names: Mapping[str, str] | None = None) -> list[str]:
    """Split code into tokens, without comments and with every text as ``"``; usual names of a thing become one name.

    >>> split_code("kept['a'] *= out  # twice", {"out": "output"})
    ['kept', '[', '"', ']', '*=', 'output']
    """
    without_texts = _COMMENT.sub("", _STRING.sub('"', code))
    names = usual_names or {}
    return [names.get(token, token) for token in _TOKEN.findall(without_texts)]


def _score(entry: Entry, tokens: Sequence[str], weights: Mapping[tuple[str, ...], float]) -> float:
    return sum(weights[pattern] for pattern in dict.fromkeys(entry.patterns) if has_pattern(tokens, pattern))


@cache
def _pattern_weights() -> dict[tuple[str, ...], float]:
    """How much a pattern says: more if it is long, and if few entries have it."""
    patterns = [pattern for entry in _read_entries("en") for pattern in set(entry.patterns)]
    counts = Counter(patterns)
    return {pattern: _length(pattern) * math.log(1 + len(_read_entries("en")) / counts[pattern]) for pattern in counts}


def _length(pattern: Iterable[str]) -> float:
    """The length of a pattern: names count 1, other signs 0.25, wildcards 0."""
    fixed = [token for token in pattern if token not in (_ANY_NAME, _GAP)]
    return sum(1.0 if _NAME.match(token) else 0.25 for token in fixed)


def has_pattern(tokens: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a pattern occurs in tokens.

    >>> has_pattern(["a", ".", "cpu", "(", ")"], [".", "cpu"])
    True
    """
    return any(_starts_with(tokens, start, pattern, 0) for start in range(len(tokens)))


def _starts_with(tokens: Sequence[str], at: int, pattern: Sequence[str], part: int) -> bool:
    if part == len(pattern):
        return True
    if pattern[part] == _GAP:
        ends = range(at, min(len(tokens), at + _LONGEST_GAP) + 1)
        return any(_starts_with(tokens, end, pattern, part + 1) for end in ends)
    return at < len(tokens) and _fits(tokens[at], pattern[part]) and _starts_with(tokens, at + 1, pattern, part + 1)


def _fits(token: str, wanted: str) -> bool:
    if wanted == _ANY_NAME:
        return bool(_NAME.match(token)) and token not in _KEYWORDS
    return token == wanted


@cache
def _usual_names() -> dict[str, str]:
    """Usual name of a thing in an article → the name that the index has for it."""
    return {usual: name for name, usual_names in read_index()["usual_names"].items() for usual in usual_names}


def _texts() -> Mapping[str, str]:
    texts: dict[str, str] = read_index(current_language())["texts"]
    return texts


def _code_html(text: str) -> str:
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text))
