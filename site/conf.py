"""How Sphinx makes the site; ``make site`` lays out what it reads, see tools/website.py."""

from typing import Any

from sphinx.application import Sphinx

from hookviz.support.messages.languages import LANGUAGE_TAGS, current_language
from tools.project_urls import read_url
from tools.translation.translated import translated

project = "hookviz"
author = translated("The hookviz authors", current_language())
language = LANGUAGE_TAGS[current_language()].replace("-", "_")
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"]
extensions += ["tools.link_preview", "tools.reference_markup", "tools.site_search", "tools.site_languages"]
exclude_patterns = ["map.md", "launch.md", "files", "extra"]

# The reference. A link that leads nowhere is an error; what other packages document has no page here.
nitpicky = True
OTHER_PACKAGES = "anywidget|collections|graphviz|ipywidgets|pandas|pathlib|pd|pytest|t|torch|typing"
nitpick_ignore_regex = [
    ("py:.*", rf"({OTHER_PACKAGES})\..*"),
    ("py:class", r"Path|hookviz\.support\.table\.RowT"),  # a path; the type of the rows of a table
    ("py:exc", "NoPictureError"),
]
add_module_names = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autosummary_generate = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
strip_signature_backslash = True  # with it, napoleon keeps the last _ of a name
toc_object_entries_show_parents = "hide"
napoleon_use_rtype = False

# The notebooks come with their outputs.
nb_execution_mode = "off"
# What holds the answer to a question opens with a click; {type} is the source, the output or both.
nb_code_prompt_show = translated("When you have answered: show the {type}", current_language())
nb_code_prompt_hide = translated("Hide the {type}", current_language())
# Nothing is loaded from elsewhere: no widgets' scripts, and a formula would need MathJax.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "hookviz"
# Where the site will be, if pyproject.toml says so: links to the picture of a preview are absolute then.
html_baseurl = read_url("Documentation")
templates_path = ["templates"]
html_favicon = "static/favicon.svg"
html_static_path = ["static", "images/preview.png"]
html_extra_path = ["extra"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/languages.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_copy_source = False
html_show_sphinx = False
html_use_index = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
preview_description = translated("See what PyTorch's hooks do: record a pass, and step through it.", current_language())
preview_alt = translated("The player at a hook: the gradient 4 goes in, and 6 comes out", current_language())


def level(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Tell a screen reader the level of the headings in the menu, which Sphinx leaves out."""
    menu = context.get("furo_navigation_tree", "")
    context["furo_navigation_tree"] = menu.replace('role="heading"', 'role="heading" aria-level="2"')


def unmark_corners(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """Make the empty corner of a table a cell like any other: it is the heading of nothing."""
    context["body"] = context.get("body", "").replace('<th class="head"><p></p></th>', "<td></td>")


def setup(app: Sphinx) -> None:
    """Run after Furo, which makes the menu."""
    app.connect("html-page-context", level, priority=900)
    app.connect("html-page-context", unmark_corners)
