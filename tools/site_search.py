"""The search of the Chinese site: jieba finds the words of a page, with the terms of the course among its words."""

import re

import jieba
from sphinx.application import Sphinx
from sphinx.search.zh import SearchChinese

from tools.translation.message_sources import ROOT
from tools.translation.terms import read_terms

HAN = re.compile(r"[\u3400-\u9fff]{2,}")


def load_words() -> list[str]:
    """Read the terms of the course, which are words of the search.

    >>> "张量钩子" in load_words()
    True
    """
    return sorted({word for term in read_terms() for word in HAN.findall(term["chinese"])})


class TermSearch(SearchChinese):
    """The words of a page: those that jieba finds, and for each term of the course also its parts."""

    language_name = "English"
    """Sphinx names the browser's stemmer after the language, and the words that have stems are English."""
    js_splitter_code = (ROOT / "site" / "chinese_search.js").read_text(encoding="utf-8")

    def __init__(self, options: dict[str, str]) -> None:
        jieba.setLogLevel("ERROR")
        super().__init__(options)
        for word in load_words():
            jieba.add_word(word)


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace Sphinx's search for Chinese; Sphinx calls this."""
    app.add_search_language(TermSearch)
    return {"parallel_read_safe": True}
