"""Every picture of random networks is drawn, without crashing the process."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections import Counter

from .pictures import figures, layout_method, record_network

NETWORKS = int(os.environ.get("HOOKVIZ_NETWORKS", 60))
"""The number of networks; set it higher for a longer search."""


def test_every_picture_is_drawn_and_nearly_all_by_the_usual_method() -> None:
    drawn_figures = [figure for seed in range(NETWORKS) for figure in figures(record_network(seed))]
    methods = Counter(layout_method(figure.source) for figure in drawn_figures)
    assert methods.total() >= 5 * NETWORKS
    assert methods["none"] == 0 and methods["usual"] >= 0.97 * methods.total()


def test_picture_drawn_by_another_method_has_all_elements() -> None:
    """Network 45 has a picture on which Graphviz crashes; its elements do not depend on the layout method."""
    (figure,) = [candidate for candidate in figures(record_network(45)) if layout_method(candidate.source) != "usual"]
    ids = {element.get("id") for element in ET.fromstring(figure.svg()).iter()}
    expected_ids = set(re.findall(r' id="?([nmeo][\w-]+)', figure.source))
    assert len(expected_ids) > 100 and expected_ids <= ids
