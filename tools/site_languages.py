"""The links from a page of the site to the same page in another language."""

import posixpath
from typing import TYPE_CHECKING, Any

from hookviz.support.messages.languages import LANGUAGE_TAGS, LANGUAGES, current_language
from tools.translation.translated import translatable

if TYPE_CHECKING:
    # Not at run time: the tests of tools.website run without Sphinx, too.
    from sphinx.application import Sphinx

ENGLISH_ONLY = {"api/index": translatable("API"), "atlas": translatable("Atlas of hooks")}
"""Pages that stand for what other languages do not have: the reference is made of docstrings, the atlas of programs."""


def add_languages(app: "Sphinx", page: str, template: str, context: dict[str, Any], tree: object) -> None:
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
    stub = next((name for name in ENGLISH_ONLY if page.startswith(name.removesuffix("index"))), page)
    page_there = page if language == "en" else stub
    here = posixpath.dirname(posixpath.join("" if own == "en" else own, page))
    there = posixpath.join("" if language == "en" else language, page_there)
    return posixpath.relpath(f"{there}.html", here or ".")


def setup(app: "Sphinx") -> dict[str, bool]:
    """Add the links to every page; Sphinx calls this."""
    app.connect("html-page-context", add_languages)
    return {"parallel_read_safe": True}
