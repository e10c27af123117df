"""What is missing, fuzzy or wrong in the Chinese translations: their rules, and the list of what breaks them."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache

from markdown_it import MarkdownIt

from tools.translation.catalogue import read_catalogues
from tools.translation.message_sources import ROOT, read_sources

CODE = re.compile(r"`[^`]+`")
PLACEHOLDER = re.compile(r"\{\w*[^{}]*\}")
LINK = re.compile(r"\]\(([^)\s]+)[^)]*\)")
ADDRESS = re.compile(r"https?://[^\s)>]+")
TAG = re.compile(r"<[^<>]+>|&\w+;")
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
HAN = r"[\u3400-\u4dbf\u4e00-\u9fff]"
NO_SPACE = re.compile(rf"{HAN}[A-Za-z0-9`]|[A-Za-z0-9`]{HAN}")
"""Chinese and Latin without a space between them."""
HALF_WIDTH = re.compile(
    rf"{HAN}[\"'*`)]*[,;:!?](?!\d)|{HAN}[)]*\.(?![\w.])|{HAN}\(|{HAN} \({HAN}"
    rf"|[\w`}}][,;:!?] ?{HAN}"
)
"""A sign of Latin width that belongs to a Chinese sentence."""
WRONG_SPACE = re.compile(rf"[，。；：？！、（）“”《》] (?!·)|(?<!·) [，。；：？！、（）”《》]|{HAN} {HAN}")
QUOTE = re.compile(rf'{HAN}"|"{HAN}|[「」『』]')

STYLE = {
    "no space between Chinese and Latin": NO_SPACE,
    "a sign of half width in Chinese": HALF_WIDTH,
    "a space beside a Chinese sign, or between Chinese words": WRONG_SPACE,
    "quotation marks: use “ ”": QUOTE,
}
"""What is wrong → where it is found."""


def find_faults(language: str) -> list[str]:
    """Find the texts that have no translation or a fuzzy one, those that no source has, and broken rules."""
    sources = {message.text for messages in read_sources().values() for message in messages}
    known: set[str] = set()
    faults = []
    for name, catalogue in read_catalogues(language).items():
        for message in (message for message in catalogue if message.id):
            text, place = str(message.id), f"translations/{language}/{name}.po"
            known.add(text)
            if text not in sources:
                faults.append(f"{place}: no source has this text: {text}")
            elif message.fuzzy:
                faults.append(f"{place}: its English has changed: {text}")
            elif not message.string:
                faults.append(f"{place}: not translated: {text}")
            else:
                faults += [f"{place}: {fault}: {message.string}" for fault in check_entry(text, str(message.string))]
    return faults + [f"translations/{language}: not in the catalogue: {text}" for text in sorted(sources - known)]


def check_entry(english: str, chinese: str) -> Iterator[str]:
    """Yield a sentence for each rule that a translation breaks.

    >>> list(check_entry("`a` is 2", "`a`是3"))
    ['numbers: 2 in English only, 3 in Chinese only', 'no space between Chinese and Latin: "`x`是3"']
    """
    if english != english.strip() or not english.strip():
        return  # a separator
    yield from _compare(english, chinese)
    yield from _check_style(chinese)


def _compare(english: str, chinese: str) -> Iterator[str]:
    sides = (english, chinese)
    for name, pattern in (("code", CODE), ("links", LINK), ("tags", TAG)):
        yield from _differences(name, *(pattern.findall(side) for side in sides))
    # A Chinese sentence may need to name twice what an English pronoun stands for.
    yield from _differences("placeholders", *(sorted(set(PLACEHOLDER.findall(side))) for side in sides))
    plain = [_strip(side) for side in sides]
    yield from _differences("numbers", *(NUMBER.findall(side) for side in plain))
    if english.count("**") != chinese.count("**"):
        yield "the number of ** differs"
    if _render(chinese).count("*") > _render(english).count("*"):
        yield "Markdown does not read * or ** here: put a space or move the punctuation outside"


def _strip(text: str) -> str:
    """Return ``text`` without code, placeholders, targets of links and tags."""
    for pattern in (CODE, LINK, PLACEHOLDER, TAG, ADDRESS):
        text = pattern.sub(" ", text)
    return text


def _differences(name: str, english: list[str], chinese: list[str]) -> Iterator[str]:
    missing, extra = Counter(english) - Counter(chinese), Counter(chinese) - Counter(english)
    if missing or extra:
        parts = [f"{' '.join(missing)} in English only"] if missing else []
        parts += [f"{' '.join(extra)} in Chinese only"] if extra else []
        yield f"{name}: {', '.join(parts)}"


def _check_style(chinese: str) -> Iterator[str]:
    prose = ADDRESS.sub("", LINK.sub("]", TAG.sub("", CODE.sub("`x`", chinese))))
    prose = re.sub(r"([。：？！])\*{1,2} ", r"\1", prose)  # a space behind an emphasised sentence
    words = prose.replace("**", "").replace("*", "").replace("]", "").replace("[", "")
    for name, pattern in STYLE.items():
        match = pattern.search(words)
        if match:
            yield f'{name}: "{words[max(0, match.start() - 3) : match.end() + 3]}"'
    for word, right in forbidden_words().items():
        if word in words:
            yield f"the word {word}: use {right}"


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


def _render(text: str) -> str:
    return re.sub(r"<code>.*?</code>", "", _parser().renderInline(text))


@cache
def forbidden_words() -> dict[str, str]:
    """The words that must not stand for a term of translations/zh/terms.toml: word → the term."""
    terms = tomllib.loads((ROOT / "translations" / "zh" / "terms.toml").read_text(encoding="utf-8"))["term"]
    return {word: term["chinese"] for term in terms for word in term.get("not", ())}
