"""How Sphinx makes the site; ``make site`` lays out what it reads, see tools/website.py."""

project = "hookviz"
author = "The hookviz authors"
language = "en"
extensions = ["myst_nb"]
exclude_patterns = ["map.md", "files"]

# The notebooks come with their outputs.
nb_execution_mode = "off"
# Nothing is loaded from elsewhere: no widgets' scripts, and a formula would need MathJax.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = "hookviz"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
