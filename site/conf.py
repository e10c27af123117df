"""How Sphinx makes the site; ``make site`` lays out what it reads, see tools/website.py."""

from typing import Any

from sphinx.application import Sphinx

project = "hookviz"
author = "The hookviz authors"
language = "en"
extensions = ["myst_nb"]
exclude_patterns = ["map.md", "files", "extra"]

# The notebooks come with their outputs.
nb_execution_mode = "off"
# What holds the answer to a question opens with a click; {type} is the source, the output or both.
nb_code_prompt_show = "When you have answered: show the {type}"
nb_code_prompt_hide = "Hide the {type}"
# Nothing is loaded from elsewhere: no widgets' scripts, and a formula would need MathJax.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "hookviz"
html_static_path = ["static"]
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_js_files = ["site.js", "look_up.js"]
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}


def level(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Tell a screen reader the level of the headings in the menu, which Sphinx leaves out."""
    menu = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = menu.replace('role="heading"', 'role="heading" aria-level="2"')


def setup(app: Sphinx) -> None:
    """Run after Furo, which makes the menu."""
    app.connect("html-page-context", level, priority=900)
