"""A player as one HTML file that plays, and as the output of a notebook's cell that does."""

import base64
import hashlib

from hookviz.picture.inline_svg import escape_text, prepare_for_notebook
from hookviz.player.bundles import bundle
from hookviz.player.compression import pack
from hookviz.player.payload import Content, page_state
from hookviz.player.static_picture import opened, static_picture
from hookviz.player.trace_content import TraceContent
from hookviz.support.messages import say
from hookviz.support.version import VERSION
from hookviz.trace import TraceData
from hookviz.trace.redaction import redact


def render_page(content: Content, title: str | None = None) -> str:
    """A page that plays ``content``, whole in one text: nothing is loaded from elsewhere, and nothing could be.

    Args:
        content: what a player shows, as ``hookviz.player.trace_content`` makes it.
        title: the heading; a general one if None.

    >>> import torch, hookviz
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with hookviz.record() as trace:
    ...     (x * x).backward()
    >>> "<h1>x &lt; 4</h1>" in render_page(TraceContent(trace).whole(), "x < 4")
    True
    """
    heading = escape_text(say("page.title") if title is None else title)
    css, js = "".join(map(bundle, ("player.css", "static_picture.css", "page.css"))), bundle("page.js")
    policy = (
        f"default-src 'none'; script-src '{_hash(js)}'; style-src '{_hash(css)}'; base-uri 'none'; form-action 'none'"
    )
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{heading}</title>",
        f"<style>{css}</style>",
    ]
    how = f'<p class="hv-how">{say("page.how")}</p>'
    inside = f"<h1>{heading}</h1>{how}{_body(content, js, say('page.hint'), packed=False)}"
    foot = f"<footer>{say('page.made', version=VERSION)}</footer>"
    body = f'<main class="hv-page">{inside}</main>{foot}'
    return f'<!DOCTYPE html>\n<html lang="en">\n<head>{"".join(head)}</head>\n<body>{body}</body>\n</html>\n'


def page(trace: TraceData, title: str | None = None, *, source: bool = True, values: bool = True) -> str:
    """A page that plays ``trace``, if need be without the ``source`` of hooks, or the ``values`` of tensors.

    Raises:
        ValueError: nothing was recorded.
    """
    if not trace.rows:
        raise ValueError(say("error.page.empty", why=repr(trace)))
    no_finding = None if values else say("redacted.found_none")  # nobody has looked
    made = TraceContent(redact(trace, source=source, values=values), no_finding=no_finding)
    return render_page(made.whole(), title)


def render_output(content: Content) -> str:
    """``content`` as the HTML of a cell's output: it plays where scripts run, and needs no kernel for it.

    Where they do not, as in a notebook that is not trusted, the still picture is seen.
    """
    css = bundle("player.css") + bundle("static_picture.css")
    inside = _body(content, bundle("page.js"), say("page.hint.notebook"), packed=True)
    # MathJax, which some notebooks load, leaves this class alone: a dollar sign in a hook is no formula.
    return f'<div class="hv-output tex2jax_ignore mathjax_ignore"><style>{css}</style>{inside}</div>'


def mimebundle(trace: TraceData) -> dict[str, str]:
    """What Jupyter shows for a trace: a player that needs no kernel; else the picture of its end; else a line."""
    if not trace.rows:
        return {"text/plain": repr(trace)}
    made = TraceContent(trace)
    content = made.brief()
    last = content["svgs"][-1] if made.is_large else _last(trace)
    return {"text/html": render_output(content), "image/svg+xml": prepare_for_notebook(last), "text/plain": repr(trace)}


def _last(trace: TraceData) -> str:
    from hookviz.picture import build_trace_figure

    return build_trace_figure(trace, len(trace.rows) - 1).svg()


def _body(content: Content, js: str, hint: str, *, packed: bool) -> str:
    """The still picture, what the player is given, and the script that puts the player in its place."""
    sent: Content = {**content}
    if len(content["runs"]) == 1 and len(opened(content)["pictures"]) == len(content["svgs"]):
        sent["svgs"] = []  # they are in the still pictures
    # The sentence is in the script's element, which goes where HTML is cleaned: there nothing tries to start.
    failed = escape_text(say("page.failed", why="{why}"))
    data = f'<script type="text/plain" data-failed="{failed}" class="hv-state">{pack(page_state(sent))}</script>'
    return f"{static_picture(content, hint, packed=packed)}{data}<script>{js}</script>"


def _hash(source: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}"
