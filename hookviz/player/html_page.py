"""A player as a self-contained HTML page, and as the HTML output of a notebook cell.

Both hold a static picture, for paper and where scripts are blocked: the end of the pass, and tables of hooks.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence

from hookviz.picture import build_trace_figure
from hookviz.picture.svg import escape_text, prepare_for_notebook, set_size
from hookviz.player import read_bundle
from hookviz.player.compression import pack
from hookviz.player.editions import make_editions
from hookviz.player.payload import Content, FiringRow, RunContent, SilentHook, page_state
from hookviz.player.trace_content import TraceContent
from hookviz.support.messages import N_, _, join_sentences
from hookviz.support.messages.languages import LANGUAGE_TAGS, speaking
from hookviz.support.version import VERSION
from hookviz.trace import TraceData
from hookviz.trace.redaction import redact

_PICTURE_LABEL = N_("The autograd graph at the end of the pass")
_COLUMNS = ("step", "hook", "kind", "on", "change", "effect")
"""The columns of the table of firings."""


def render_page(content: Content, title: str | None = None) -> str:
    """Render a page that plays ``content``. The page loads nothing, and its security policy forbids loading.

    Its own texts are in the language of ``content``, and in the languages in which that can be shown, too.

    Args:
        content: what the player shows, as ``hookviz.player.trace_content`` makes it.
        title: the heading; None is what the content is about: the statement that started the pass.

    >>> import torch, hookviz
    >>> from hookviz.api.trace import data_of
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with hookviz.record() as trace:
    ...     (x * x).backward()
    >>> "<h1>x &lt; 4</h1>" in render_page(TraceContent.of(data_of(trace)).full_content(), "x < 4")
    True
    """
    languages = [content["language"], *content["others"]]
    with speaking(languages[0]):
        return _render_page(content, title, languages)


def _render_page(content: Content, title: str | None, languages: Sequence[str]) -> str:
    heading = escape_text(content["title"] or _("PyTorch hooks, step by step") if title is None else title)
    css = read_bundle("static_picture.css") + read_bundle("page.css")
    # The policy allows the packed script and the packed styles by the hashes of their texts.
    scripts, styles = map(
        _csp_hashes, ((read_bundle("loader.js"), read_bundle("page.js")), (css, read_bundle("player.css")))
    )
    sources = f"script-src {scripts}; style-src {styles}"
    policy = f"default-src 'none'; {sources}; img-src data:; base-uri 'none'; form-action 'none'"
    head = [
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{heading}</title>",
        f"<style>{css}</style>",
    ]
    usage = _in_each(
        'p class="hv-how"',
        N_("] goes to the next hook, → to the next step; ? lists all keys."),
        languages,
    )
    hint = _("With JavaScript, you can step through it on this page.")
    style = f'<script type="text/plain" class="hv-style">{pack(read_bundle("player.css"))}</script>'
    main = f"<header><h1>{heading}</h1>{usage}</header>{style}{_player_html(content, hint, packed=False)}"
    foot = _in_each("footer", N_("Made with hookviz {version}"), languages, version=VERSION)
    body = f'<main class="hv-page">{main}</main>{foot}'
    tag = LANGUAGE_TAGS[languages[0]]
    return f'<!DOCTYPE html>\n<html lang="{tag}">\n<head>{"".join(head)}</head>\n<body>{body}</body>\n</html>\n'


def _in_each(element: str, text: str, languages: Sequence[str], **parts: str) -> str:
    """Return an element with ``text`` in each language; all but the first are hidden.

    With several languages, each is marked with its own, so that the script can show the one that is chosen.
    """
    if len(languages) == 1:
        return f"<{element}>{escape_text(_(text).format(**parts))}</{element.partition(' ')[0]}>"
    elements = []
    for language in languages:
        with speaking(language):
            hidden = "" if language == languages[0] else " hidden"
            mark = f'lang="{LANGUAGE_TAGS[language]}" data-language="{language}"{hidden}'
            elements.append(f"<{element} {mark}>{escape_text(_(text).format(**parts))}</{element.partition(' ')[0]}>")
    return "".join(elements)


def page(
    trace: TraceData,
    title: str | None = None,
    *,
    source: bool = True,
    values: bool = True,
    plots: bool = False,
    languages: Sequence[str] = (),
) -> str:
    """Render a page that plays ``trace``; ``source=False`` leaves out hook sources, ``values=False`` tensor values.

    Args:
        trace: the trace to show.
        title: the heading; the default heading if None.
        source: whether it holds the sources of hooks.
        values: whether it holds the values of tensors.
        plots: whether it holds the plots of the trace.
        languages: the languages of the page; empty for the current one.

    Raises:
        ImportError: plots are asked for, and Matplotlib is not installed.
        ValueError: ``trace`` is empty.
    """
    if not trace.rows:
        raise ValueError(_("There is no page to write. {why}").format(why=repr(trace)))
    redacted_trace = redact(trace, source=source, values=values)

    def make_content() -> Content:
        no_finding = (
            None if values else _("Without the numbers, hookviz cannot check the gradients for problems.")
        )  # without values nothing was searched
        return TraceContent.of(redacted_trace, no_finding=no_finding).full_content(plots=plots)

    return render_page(make_editions(make_content, languages), title)


def render_output(content: Content) -> str:
    """Render ``content`` as the output of a notebook cell, which plays without a kernel.

    Where scripts are blocked, as in a notebook that is not trusted, it shows the static picture.
    """
    css = read_bundle("player.css") + read_bundle("static_picture.css")
    body = _player_html(content, _("To step through it, run the cell or trust the notebook."), packed=True)
    # The classes keep MathJax, which some notebooks load, from reading dollar signs in a hook as formulas.
    return f'<div class="hv-output tex2jax_ignore mathjax_ignore"><style>{css}</style>{body}</div>'


def mimebundle(trace: TraceData) -> dict[str, str]:
    """Return what Jupyter shows for ``trace``: a player without a kernel; as fallbacks a picture and text."""
    if not trace.rows:
        return {"text/plain": repr(trace)}
    trace_content = TraceContent.of(trace)
    content = trace_content.brief_content()
    picture = content["svgs"][-1] if trace_content.is_large else build_trace_figure(trace, len(trace.rows) - 1).svg()
    return {
        "text/html": render_output(content),
        "image/svg+xml": prepare_for_notebook(picture),
        "text/plain": repr(trace),
    }


def _player_html(content: Content, hint: str, *, packed: bool) -> str:
    """Return the static picture, the state of the player, and the script that replaces the picture by the player.

    The script is packed, since nothing compresses a page from disk or the output of a cell; a small one unpacks it.
    """
    embedded: Content = {**content}
    if len(content["svgs"]) == 1:
        embedded["svgs"] = []  # the script reads it from the static picture
    # The error message is part of the script element: where sanitizers remove scripts, it is removed with them.
    failed = escape_text(
        _("The player could not start in this browser ({why}). Below you see the end of the recording.").format(
            why="{why}"
        )
    )
    data = f'<script type="text/plain" data-failed="{failed}" class="hv-state">{pack(page_state(embedded))}</script>'
    script = f'<script type="text/plain" class="hv-script">{pack(read_bundle("page.js"))}</script>'
    return f"{static_picture(content, hint, packed=packed)}{data}{script}<script>{read_bundle('loader.js')}</script>"


def _csp_hashes(sources: Sequence[str]) -> str:
    digests = (hashlib.sha256(source.encode()).digest() for source in sources)
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


# -- the static picture


def static_picture(content: Content, hint: str, *, packed: bool) -> str:
    """Return the end of the initial run of ``content`` as HTML; ``hint`` says how to make it play.

    Notebooks that are not trusted remove SVG from their outputs. With ``packed``, the picture is an image instead.
    """
    run = _initial_run(content)
    summary = _("The end of the recording: {steps} steps.").format(steps=f"{run['steps']:,}")
    findings = [join_sentences([finding["text"], finding["more"]]) for finding in content["findings"]]
    notes = [f"<li>{escape_text(note)}</li>" for note in (*findings, *content["notes"], *run["notes"])]
    note_list = f'<ul class="hv-notes">{"".join(notes)}</ul>' if notes else ""
    parts = [f"<p>{summary} {hint}</p>", note_list, _figure_html(content, packed), _firings_table(content)]
    # No <section>: reveal.js turns each section into a slide.
    return f'<div class="hv-still">{"".join(parts)}</div>'


def _initial_run(content: Content) -> RunContent:
    """Return the run that a player of ``content`` shows first."""
    return content["runs"][content["initial_state"].get("shown", 0)]


def _figure_html(content: Content, packed: bool) -> str:
    """Return the end of the last pass of the initial run, with the names of the run and the pass if there are any."""
    run = _initial_run(content)
    svg = content["svgs"][run["final_svg"]]
    titles = [escape_text(title) for title in (run["label"], run["last_pass"]) if title]
    caption = f"<figcaption>{' · '.join(titles)}</figcaption>" if titles else ""
    label = f'<svg role="img" aria-label="{_(_PICTURE_LABEL)}"'
    # An image is a document of its own: its style sheet follows the dark mode of the system.
    picture = _image_html(prepare_for_notebook(svg)) if packed else set_size(svg).replace("<svg", label, 1)
    return f"<figure>{caption}{picture}</figure>"


def _image_html(svg: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{_(_PICTURE_LABEL)}" src="data:image/svg+xml;base64,{data}">'


def _firings_table(content: Content) -> str:
    """Return the table of the initial run's hooks, which scrolls on a narrow screen; empty if there are none."""
    run, labels = _initial_run(content), content["labels"]
    if not run["firings"] and not run["silent"]:
        return ""
    caption = " · ".join(filter(None, (labels["firings"], escape_text(run["label"]))))
    head = "".join(f'<th scope="col">{labels[f"col_{column}"]}</th>' for column in _COLUMNS)
    rows = [*map(_firing_cells, run["firings"]), *map(_silent_cells, run["silent"])]
    body = "".join(f"<tr>{cells}</tr>" for cells in rows)
    table = f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="hv-scroll">{table}</div>'


def _firing_cells(firing: FiringRow) -> str:
    cells: Mapping[str, str] = {**firing, "step": str(firing["step"] + 1)}  # type: ignore[dict-item]
    return "".join(f"<td>{escape_text(cells[column])}</td>" for column in _COLUMNS)


def _silent_cells(hook: SilentHook) -> str:
    name, on, reason = (escape_text(hook[column]) for column in ("name", "on", "reason"))
    return f'<td></td><td>{name}</td><td></td><td>{on}</td><td colspan="2">{reason}</td>'
