"""One HTML file that plays, and the output of a cell that does: no Python, server or network is needed."""

from hookviz.page.html_page import bundle, output, page, sheet

__all__ = ["bundle", "output", "page", "sheet"]
