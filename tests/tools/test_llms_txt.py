"""The site has an llms.txt with a line for each page, made of the titles and descriptions of the pages."""

from pathlib import Path

from tests.requirements import require_site

DESCRIBED = '---\nmyst:\n  html_meta:\n    description: "{}"\n---\n'
PAGES = {
    "index": DESCRIBED.format("Watch hooks.") + "# Home\n\n```{toctree}\nguide\nplayer\n```\n",
    "guide": "# The `guide`\n\n| name |\n|---|\n| No. |\n\nHow to begin. Then go on.\n\n```{toctree}\nplots\n```\n",
    "plots": DESCRIBED.format("Curves of losses") + "# Plots\n\nNot this one.\n",
    "player": "# Player\n",
}
EXPECTED = """\
# hookviz

> Watch hooks.

## The guide

- [The guide](guide.html): How to begin.
- [Plots](plots.html): Curves of losses

## Player

- [Player](player.html)
"""


def test_each_page_has_a_line_with_its_title_and_its_description(tmp_path: Path) -> None:
    require_site()
    from sphinx.application import Sphinx

    source, target = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for name, text in PAGES.items():
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    options = {"project": "hookviz", "extensions": ["myst_parser", "tools.llms_txt"], "html_theme": "basic"}
    Sphinx(source, None, target, tmp_path / "doctrees", "html", confoverrides=options, status=None).build()
    assert (target / "llms.txt").read_text(encoding="utf-8") == EXPECTED
