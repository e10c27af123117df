"""Tags that tell a chat or a search engine what to show of a link to a page: title, description and picture."""

import posixpath
from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

MAX_DESCRIPTION = 200
"""Characters of a description. Chats and search engines cut longer ones."""
PICTURE = "_static/preview.png"
WIDTH, HEIGHT = 1200, 630


def add_tags(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Add the tags of a page: those of Open Graph, that of Twitter's cards, and a description if it has none.

    Open Graph asks for absolute addresses. They are, if ``html_baseurl`` is set; if nobody has said where the site
    will be, the picture's address is relative to the page, and most chats then show no picture.
    """
    base, address = app.config.html_baseurl, app.builder.get_target_uri(page)
    title = app.env.titles[page].astext() if page in app.env.titles else str(context.get("title") or page.capitalize())
    written = find_description(tree)
    description = written or find_first_paragraph(tree) or app.config.preview_description
    root = base or posixpath.relpath(".", posixpath.dirname(address) or ".")
    properties = {"og:type": "website", "og:site_name": app.config.html_title, "og:title": title}
    properties |= {"og:description": description, "og:image": posixpath.join(root, PICTURE)}
    properties |= {"og:image:width": str(WIDTH), "og:image:height": str(HEIGHT)}
    properties |= {"og:image:alt": app.config.preview_alt} | ({"og:url": posixpath.join(base, address)} if base else {})
    names = {"twitter:card": "summary_large_image"} | ({} if written else {"description": description})
    tags = [f'<meta property="{name}" content="{escape(text)}">' for name, text in properties.items()]
    tags += [f'<meta name="{name}" content="{escape(text)}">' for name, text in names.items()]
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags, ""])


def find_description(tree: nodes.document | None) -> str:
    """Find the description that the author of a page wrote; empty if there is none."""
    metas = tree.findall(nodes.meta) if tree is not None else ()
    return next((str(meta["content"]) for meta in metas if meta.get("name") == "description"), "")


def find_first_paragraph(tree: nodes.document | None) -> str:
    """Find the first paragraph of a page, cut at the end of a word if it is long; empty if there is none."""
    paragraphs = tree.findall(nodes.paragraph) if tree is not None else ()
    texts = (" ".join(paragraph.astext().split()) for paragraph in paragraphs)
    text = next((text for text in texts if len(text) > 40), "")
    return text if len(text) <= MAX_DESCRIPTION else f"{text[:MAX_DESCRIPTION].rpartition(' ')[0]} …"


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the tags to every page; Sphinx calls this."""
    app.add_config_value("preview_description", "", "html", str)
    app.add_config_value("preview_alt", "", "html", str)
    app.connect("html-page-context", add_tags)
    return {"parallel_read_safe": True}
