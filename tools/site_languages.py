"""The links from a page of the site to the same page in another language."""

import posixpath
from typing import Any

from sphinx.application import Sphinx

from hookviz.support.messages.languages import LANGUAGE_TAGS, LANGUAGES, current_language

ENGLISH_PAGES = ("api/", "atlas")
"""The beginnings of the names of pages that only the English site has in full."""


def add_languages(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Give the templates the address of this page in each language, relative to it."""
    own = current_language()
    context["languages"] = [
        {"title": title, "tag": LANGUAGE_TAGS[language], "address": find_address(page, own, language)}
        for language, title in LANGUAGES.items()
    ]


def find_address(page: str, own: str, language: str) -> str:
    """Return the address of ``page`` in another language, relative to the page; empty for the language it is in.

    >>> find_address("notebooks/01_the_graph", "en", "zh"), find_address("index", "zh", "en")
    ('../zh/notebooks/01_the_graph.html', '../index.html')
    """
    if language == own:
        return ""
    if language != "en" and page.startswith(ENGLISH_PAGES):
        page_there = "api/index" if page.startswith("api/") else "atlas"
    else:
        page_there = page
    here = posixpath.dirname(posixpath.join("" if own == "en" else own, page))
    there = posixpath.join("" if language == "en" else language, page_there)
    return posixpath.relpath(f"{there}.html", here or ".")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the links to every page; Sphinx calls this."""
    app.connect("html-page-context", add_languages)
    return {"parallel_read_safe": True}
