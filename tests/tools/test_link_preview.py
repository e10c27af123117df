"""What a link to a page of the site shows, and the links of the project's addresses."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.requirements import require_site
from tools.project_urls import read_url, write_launch_links


def make_tags(page: str, base: str = "", *paragraphs: str) -> dict[str, str]:
    require_site()
    from docutils import nodes, utils

    from tools.link_preview import add_tags

    tree = utils.new_document("page")
    for text in paragraphs:
        tree += nodes.paragraph(text, text)
    config = SimpleNamespace(
        html_baseurl=base, html_title="hookviz", preview_description="All.", preview_alt="A picture"
    )
    app: Any = SimpleNamespace(
        config=config,
        builder=SimpleNamespace(get_target_uri=lambda name: f"{name}.html"),
        env=SimpleNamespace(titles={page: nodes.title("", "A <b> title")}),
    )
    context = {"metatags": "<meta before>"}
    add_tags(app, page, "page.html", context, tree)
    assert context["metatags"].startswith("<meta before>")
    return dict(re.findall(r'<meta (?:property|name)="([\w:]+)" content="([^"]*)">', context["metatags"]))


def test_picture_is_relative_to_the_page_while_nobody_has_said_where_the_site_is() -> None:
    tags = make_tags("api/types/Trace")
    assert tags["og:image"] == "../../_static/preview.png" and "og:url" not in tags
    assert make_tags("index")["og:image"] == "./_static/preview.png"


def test_addresses_are_absolute_if_the_site_has_one() -> None:
    tags = make_tags("api/index", "https://host.example/docs/")
    assert tags["og:image"] == "https://host.example/docs/_static/preview.png"
    assert tags["og:url"] == "https://host.example/docs/api/index.html"


def test_description_is_the_first_paragraph_cut_at_a_word() -> None:
    tags = make_tags("index", "", "Short.", "A paragraph that is long enough. " * 20)
    assert tags["og:description"].endswith(" …") and len(tags["og:description"]) <= 202
    assert tags["description"] == tags["og:description"] and tags["og:title"] == "A &lt;b&gt; title"
    assert make_tags("search")["og:description"] == "All."


def test_address_of_the_project_is_read_from_one_setting(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text('[project]\nname = "a"\n', encoding="utf-8")
    assert read_url("Repository", file) == ""
    file.write_text('[project]\nname = "a"\n[project.urls]\nRepository = "https://github.com/a/b"\n', encoding="utf-8")
    assert read_url("Repository", file) == "https://github.com/a/b"


def test_there_are_links_to_binder_and_colab_only_if_there_is_a_repository() -> None:
    assert write_launch_links("") == ""
    assert "colab" not in write_launch_links("https://git.example/a/b").lower()
    text = write_launch_links("https://github.com/a/b.git")
    assert "https://mybinder.org/v2/gh/a/b/main?labpath=notebooks%2F01_the_graph.ipynb" in text
    assert "https://colab.research.google.com/github/a/b/blob/main/notebooks/01_the_graph.ipynb" in text
