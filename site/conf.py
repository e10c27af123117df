"""How Sphinx makes the site; ``make site`` lays out what it reads, see tools/website.py."""

import re
from pathlib import Path

from hookviz.support.messages.languages import LANGUAGE_TAGS, current_language
from hookviz.trace.tables import TraceTables
from tools.translation.translated import translated

project = "hookviz"
author = translated("The hookviz authors", current_language())
language = LANGUAGE_TAGS[current_language()].replace("-", "_")
extensions = [
    *("myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"),
    *("tools.site_extension", "tools.llms_txt"),
]
exclude_patterns = ["map.md", "launch.md", "for_agents.md", "files", "extra", "templates"]
templates_path = ["templates"]

# The reference: autosummary makes a page for each name in the two last tables of its index, by templates/autosummary.
# A link that leads nowhere is an error; what other packages document has no page here.
nitpicky = True
OTHER_PACKAGES = "anywidget|collections|graphviz|ipywidgets|matplotlib|pandas|pathlib|pd|pytest|t|torch|typing"
nitpick_ignore_regex = [
    ("py:.*", rf"({OTHER_PACKAGES})\..*"),
    # A path; the type of the rows of a table; what stands for a Trace in an annotation; bases that nobody uses alone.
    ("py:.*", r"Path|hookviz\.support\.table\.(RowT|ShownRow)|hookviz\.trace\.trace\.TraceData"),
    ("py:class", r"hookviz\.integrations\.\w+\._RecordingCallback"),
    ("py:.*", r"(hookviz\.api\.plotting\.)?TracePlots"),
    ("py:exc", "NoPictureError"),
]
index = Path(__file__).with_name("api").joinpath("index.rst")
names = re.findall(r"(?m)^   ~?([\w.]+)$", index.read_text(encoding="utf-8")) if index.exists() else []
# The callbacks for two trainers have the same names.
autosummary_filename_map = {
    f"hookviz.{name}": name.partition(".")[2] if name.startswith("integrations.") else name.rpartition(".")[2]
    for name in names
}
PUBLIC_OF_TABLES = {"dropped", "lacks_passes", "notes", "pass_number", "pass_numbers", "rank", "ranks", "statistics"}
TABLES = {name for name in (*dir(TraceTables), *TraceTables.__annotations__) if not name.startswith("_")}
autosummary_context = {
    # Type → its members that other parts of hookviz use, and nobody else should.
    "hidden": {
        "Comparison": ["caption", "content", "head", "lines", "texts"],
        "Hook": ["source_"],
        "Player": ["answer", "answered", "content", "flipped", "of", "show", "showing", "twin"],
        "RecordBlock": ["exit_requested", "write_exception"],
        "Step": ["row", "scales", "trace"],
        "Trace": ["content", "verify_formula", *sorted(TABLES - PUBLIC_OF_TABLES)],
        "Value": ["row"],
        "WhatIf": ["before", "content"],
    },
    # Type → the base whose members are not listed on its page; other types have only their own members there.
    "inherited": {"Comparison": "Sequence", "Trace": "object", "WhatIf": "object"},
}
add_module_names = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
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
html_favicon = "static/favicon.svg"
html_static_path = ["static"]
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
