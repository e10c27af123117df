"""One HTML file that plays, and the output of a cell that does: no Python, server or network is needed."""

from hookviz.page.html_page import mimebundle, page, render_output, render_page

__all__ = ["mimebundle", "page", "render_output", "render_page"]
