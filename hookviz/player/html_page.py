"""A player as a self-contained HTML page, and as the HTML output of a notebook cell."""

import base64
import hashlib

from hookviz.picture import build_trace_figure
from hookviz.picture.inline_svg import escape_text, prepare_for_notebook
from hookviz.player.bundles import read_bundle
from hookviz.player.compression import pack
from hookviz.player.payload import Content, page_state
from hookviz.player.static_picture import initial_run, static_picture
from hookviz.player.trace_content import TraceContent
from hookviz.support.messages import say
from hookviz.support.version import VERSION
from hookviz.trace import TraceData
from hookviz.trace.redaction import redact


def render_page(content: Content, title: str | None = None) -> str:
    """Render a page that plays ``content``. The page loads nothing, and its security policy forbids loading.

    Args:
        content: what the player shows, as ``hookviz.player.trace_content`` makes it.
        title: the heading; the default heading if None.

    >>> import torch, hookviz
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with hookviz.record() as trace:
    ...     (x * x).backward()
    >>> "<h1>x &lt; 4</h1>" in render_page(TraceContent(trace).full_content(), "x < 4")
    True
    """
    heading = escape_text(say("page.title") if title is None else title)
    css, js = "".join(map(read_bundle, ("player.css", "static_picture.css", "page.css"))), read_bundle("page.js")
    # The policy allows the packed script by the hash of its text.
    sources = f"script-src '{_csp_hash(read_bundle('loader.js'))}' '{_csp_hash(js)}'; style-src '{_csp_hash(css)}'"
    policy = f"default-src 'none'; {sources}; img-src data:; base-uri 'none'; form-action 'none'"
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{heading}</title>",
        f"<style>{css}</style>",
    ]
    usage = f'<p class="hv-how">{say("page.how")}</p>'
    main = f"<h1>{heading}</h1>{usage}{_player_html(content, say('page.hint'), packed=False)}"
    foot = f"<footer>{say('page.made', version=VERSION)}</footer>"
    body = f'<main class="hv-page">{main}</main>{foot}'
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{"".join(head)}</head>\n<body>{body}</body>\n</html>\n'


def page(trace: TraceData, title: str | None = None, *, source: bool = True, values: bool = True) -> str:
    """Render a page that plays ``trace``; ``source=False`` leaves out hook sources, ``values=False`` tensor values.

    Raises:
        ValueError: ``trace`` is empty.
    """
    if not trace.rows:
        raise ValueError(say("error.page.empty", why=repr(trace)))
    no_finding = None if values else say("redacted.found_none")  # without values nothing was searched
    redacted_trace = redact(trace, source=source, values=values)
    return render_page(TraceContent(redacted_trace, no_finding=no_finding).full_content(), title)


def render_output(content: Content) -> str:
    """Render ``content`` as the output of a notebook cell, which plays without a kernel.

    Where scripts are blocked, as in a notebook that is not trusted, it shows the static picture.
    """
    css = read_bundle("player.css") + read_bundle("static_picture.css")
    body = _player_html(content, say("page.hint.notebook"), packed=True)
    # The classes keep MathJax, which some notebooks load, from reading dollar signs in a hook as formulas.
    return f'<div class="hv-output tex2jax_ignore mathjax_ignore"><style>{css}</style>{body}</div>'


def mimebundle(trace: TraceData) -> dict[str, str]:
    """Return what Jupyter shows for ``trace``: a player without a kernel; as fallbacks a picture and text."""
    if not trace.rows:
        return {"text/plain": repr(trace)}
    trace_content = TraceContent(trace)
    content = trace_content.brief_content()
    picture = content["svgs"][-1] if trace_content.is_large else _final_svg(trace)
    return {
        "text/html": render_output(content),
        "image/svg+xml": prepare_for_notebook(picture),
        "text/plain": repr(trace),
    }


def _final_svg(trace: TraceData) -> str:
    return build_trace_figure(trace, len(trace.rows) - 1).svg()


def _player_html(content: Content, hint: str, *, packed: bool) -> str:
    """Return the static picture, the state of the player, and the script that replaces the picture by the player.

    The script is packed, since nothing compresses a page from disk or the output of a cell; a small one unpacks it.
    """
    embedded: Content = {**content}
    if len(content["runs"]) == 1 and len(initial_run(content)["pictures"]) == len(content["svgs"]):
        embedded["svgs"] = []  # the script reads them from the static picture
    # The error message is part of the script element: where sanitizers remove scripts, it is removed with them.
    failed = escape_text(say("page.failed", why="{why}"))
    data = f'<script type="text/plain" data-failed="{failed}" class="hv-state">{pack(page_state(embedded))}</script>'
    script = f'<script type="text/plain" class="hv-script">{pack(read_bundle("page.js"))}</script>'
    return f"{static_picture(content, hint, packed=packed)}{data}{script}<script>{read_bundle('loader.js')}</script>"


def _csp_hash(source: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
