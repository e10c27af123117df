"""The texts of a page of HTML, which are translated while its elements stay as they are."""

import re
from collections.abc import Callable
from html import unescape

from tools.translation.code_comments import collect_texts
from tools.translation.markdown_blocks import has_prose

ELEMENT = re.compile(r"(?P<open><(?P<tag>title|h1|h2|p|td|li)\b[^>]*>)(?P<text>.*?)(?P<close></(?P=tag)>)", re.DOTALL)


def translate_html(page: str, translate: Callable[[str], str]) -> str:
    """Translate the text of each heading, paragraph, item and cell of a table.

    >>> translate_html("<p>one</p><p>2</p>", str.upper)
    '<p>ONE</p><p>2</p>'
    """

    def translate_element(element: re.Match[str]) -> str:
        text = " ".join(element["text"].split())
        return element["open"] + (translate(text) if has_prose(unescape(text)) else text) + element["close"]

    return ELEMENT.sub(translate_element, page)


def list_html_texts(page: str) -> list[str]:
    """List the texts of ``page`` that are translated, in their order."""
    return collect_texts(lambda translate: translate_html(page, translate))
