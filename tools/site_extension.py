"""What Sphinx does otherwise for this site: the links between languages, the search in Chinese, and the reference."""

import posixpath
from typing import Any

import jieba
from sphinx.application import Sphinx
from sphinx.search.zh import SearchChinese

from hookviz.support.messages.languages import LANGUAGE_TAGS, LANGUAGES, current_language
from tools.translation.message_sources import ROOT
from tools.website import ENGLISH_ONLY

REPLACED = {
    'role="heading"': 'role="heading" aria-level="2"',  # a heading of the menu needs a level
    '<th class="head"><p></p></th>': "<td></td>",  # the empty corner of a table is the heading of nothing
    '<dl>\n<dd><em class="sig-param">': '<dl role="presentation">\n<dd><em class="sig-param">',
}
"""What Sphinx and Furo write, and what a screen reader understands. (A signature is no list of terms.)"""
COLON = "\ue000"
"""Stands for a colon while napoleon reads the docstring of an attribute, which it would take for the end of a type."""


class ChineseSearch(SearchChinese):
    """Let jieba find the words of a page; the words of a query are those that the index has."""

    language_name = "English"
    """Sphinx names the browser's stemmer after the language, and the words that have stems are English."""
    js_splitter_code = (ROOT / "site" / "chinese_search.js").read_text(encoding="utf-8")


def change_page(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Give the templates the address of a page in each language, and replace what a screen reader misreads."""
    own = current_language()
    context["languages"] = [
        {"title": title, "tag": LANGUAGE_TAGS[language], "address": find_address(page, own, language)}
        for language, title in LANGUAGES.items()
    ]
    for name in ("body", "furo_navigation_tree"):
        for written, meant in REPLACED.items():
            context[name] = context.get(name, "").replace(written, meant)


def find_address(page: str, own: str, language: str) -> str:
    """Return the address of ``page`` in another language, relative to the page; empty for the language it is in.

    >>> find_address("notebooks/01_the_graph", "en", "zh"), find_address("index", "zh", "en")
    ('../zh/notebooks/01_the_graph.html', '../index.html')
    """
    if language == own:
        return ""
    stub = next((name for name in ENGLISH_ONLY if page.startswith(name.removesuffix("index"))), page)
    here = posixpath.join("" if own == "en" else own, page)
    there = page if language == "en" else posixpath.join(language, stub)
    return posixpath.relpath(f"{there}.html", posixpath.dirname(here) or ".")


def drop_constructor(app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str, result: str) -> Any:
    """Show a type without the arguments of its constructor: hookviz makes the objects, a user gets them."""
    return ("", None) if what == "class" and signature else None


def hide_colon(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Hide the colons in the first line of an attribute from napoleon."""
    if what in ("attribute", "property") and lines:
        lines[0] = lines[0].replace(":", COLON)


def show_colon(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Put the colons back when napoleon has read the docstring."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the changes to the build; Sphinx calls this."""
    jieba.setLogLevel("ERROR")
    app.add_search_language(ChineseSearch)
    # After Furo, which makes the menu.
    app.connect("html-page-context", change_page, priority=900)
    app.connect("autodoc-process-signature", drop_constructor)
    app.connect("autodoc-process-docstring", hide_colon, priority=400)
    app.connect("autodoc-process-docstring", show_colon, priority=600)
    return {"parallel_read_safe": True}
