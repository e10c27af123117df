"""The site's ``llms.txt``: its title, its summary and a line for each page, for programs that read (llmstxt.org).

Sphinx runs this at the end of a build. Titles and descriptions are those of the pages.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

SENTENCE = re.compile(r".+?[.!?。！？](?=\s|$)")
"""The first sentence of a paragraph."""


def write_file(app: Sphinx, error: Exception | None) -> None:
    """Write ``llms.txt`` at the root of the site that was built."""
    if error is None and app.builder.name == "html":
        Path(app.outdir, "llms.txt").write_text(write_text(app.env, app.config.root_doc), encoding="utf-8")


def write_text(env: BuildEnvironment, root: str) -> str:
    """Write the title, the summary, and a section for each page in the table of contents of ``root``."""
    lines = [f"# {env.config.project}", "", f"> {describe(env, root)}"]
    for name in env.toctree_includes[root]:
        pages = (name, *env.toctree_includes.get(name, ()))
        lines += ["", f"## {env.titles[name].astext()}", "", *(write_link(env, page) for page in pages)]
    return "\n".join([*lines, ""])


def write_link(env: BuildEnvironment, name: str) -> str:
    """Write the line of a page: a link with its title, and its description if it has one."""
    title = re.sub(r"[\[\]]", "", env.titles[name].astext())
    description = describe(env, name)
    return f"- [{title}]({name}.html){f': {description}' if description else ''}"


def describe(env: BuildEnvironment, name: str) -> str:
    """Return the description of a page; without one, the first sentence of its text."""
    tree = env.get_doctree(name)
    [*texts] = (meta["content"] for meta in tree.findall(nodes.meta) if meta.get("name") == "description")
    texts += _list_sentences(tree)
    return " ".join(texts[0].split()) if texts else ""


def _list_sentences(tree: nodes.document) -> Iterator[str]:
    """Yield the first sentence of each paragraph; what stands in a table is about something else than the page."""
    for paragraph in tree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.entry):
            continue
        sentence = SENTENCE.match(" ".join(paragraph.astext().split()))
        if sentence:
            yield sentence[0]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect this to the build; Sphinx calls it."""
    app.connect("build-finished", write_file)
    return {"parallel_read_safe": True}
