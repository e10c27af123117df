"""Pictures of networks that nobody thought of: each is drawn, and no process dies of it."""

from __future__ import annotations

import os
import re
import xml.etree.ElementTree as ET
from collections import Counter

from .pictures import figures, recorded, way_of

NETWORKS = int(os.environ.get("HOOKVIZ_NETWORKS", 60))
"""Set it to a larger number for a longer search."""


def test_each_picture_of_a_network_is_drawn_and_nearly_all_in_the_usual_way() -> None:
    drawn = [figure for seed in range(NETWORKS) for figure in figures(recorded(seed))]
    ways = Counter(way_of(figure.source) for figure in drawn)
    assert ways.total() >= 5 * NETWORKS
    assert ways["none"] == 0 and ways["usual"] >= 0.97 * ways.total()


def test_a_picture_drawn_another_way_has_all_that_the_usual_one_has() -> None:
    """Network 45 has a picture on which Graphviz crashes; what stands in it does not depend on the layout."""
    (figure,) = [one for one in figures(recorded(45)) if way_of(one.source) != "usual"]
    ids = {element.get("id") for element in ET.fromstring(figure.svg()).iter()}
    wanted = set(re.findall(r' id="?([nmeo][\w-]+)', figure.source))
    assert len(wanted) > 100 and wanted <= ids
