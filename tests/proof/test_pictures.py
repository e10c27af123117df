"""Every picture of random networks is whole, and Graphviz dies of none."""

from __future__ import annotations

import os

from tests.picture_faults import find_faults

from .pictures import count_deaths, draw_pictures, record_network

NETWORKS = int(os.environ.get("HOOKVIZ_NETWORKS", 20))
"""The number of networks; set it higher for a longer search."""


def test_every_picture_has_all_elements_and_room_for_them() -> None:
    count, faults = 0, {}
    with count_deaths() as deaths:
        for seed in range(NETWORKS):
            for number, drawn in enumerate(draw_pictures(record_network(seed))):
                count += 1
                found = find_faults(drawn.svg, drawn.scene)
                if found:
                    faults[seed, number] = found
    assert count >= 5 * NETWORKS
    assert (faults, deaths) == ({}, {})
