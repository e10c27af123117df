"""What the API reference changes of docstrings and signatures on their way to a page."""

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

SHOWN_AS = {"hookviz.trace.trace.TraceData": "hookviz.Trace", "TraceData": "hookviz.Trace"}
"""A type in an annotation → the public one that a user has."""
SIGNATURE = re.compile(r'<dl>\s*<dd>(?=<em class="sig-param">)')
"""The beginning of the arguments of a signature that takes several lines."""
COLON = "\ue000"
"""Stands for a colon while napoleon reads a docstring."""


def drop_constructor(app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: str, result: str) -> Any:
    """Show a type without the arguments of its constructor: hookviz makes the objects, a user gets them."""
    return ("", None) if what == "class" and signature else None


def hide_colons(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Hide the colon in the first line of an attribute: napoleon would take what stands before it for a type."""
    if what in ("attribute", "property") and lines:
        lines[0] = lines[0].replace(":", COLON)


def show_colons(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Put the colons back when napoleon has read the docstring."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def link_public_type(
    app: Sphinx, environment: BuildEnvironment, node: pending_xref, text: nodes.TextElement
) -> nodes.reference | None:
    """Link a type that only hookviz itself uses to the public type that a user has in its place."""
    target = SHOWN_AS.get(node.get("reftarget", ""))
    if target is None:
        return None
    label = nodes.Text(target.rpartition(".")[2])
    domain = environment.get_domain("py")
    return domain.resolve_xref(environment, node["refdoc"], app.builder, "class", target, node, label)


def mark_signatures(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Say that the arguments of a long signature, a list with no terms in it, are only laid out as a list."""
    context["body"] = SIGNATURE.sub(r'<dl role="presentation">\n<dd>', context.get("body", ""))


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the changes to the build; Sphinx calls this."""
    app.connect("autodoc-process-signature", drop_constructor)
    app.connect("autodoc-process-docstring", hide_colons, priority=400)
    app.connect("autodoc-process-docstring", show_colons, priority=600)
    app.connect("missing-reference", link_public_type)
    app.connect("html-page-context", mark_signatures)
    return {"parallel_read_safe": True}
