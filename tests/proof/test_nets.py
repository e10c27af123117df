"""Recording does not change random networks with module hooks of every kind."""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

import hookviz as hv

from .compare import same
from .nets import ACTIONS, PLACES, SHAPES, Layer, NetProgram, net_strategy, run_net
from .test_programs import EVERY_RUN, large_graphs

PROGRAMS = int(os.environ.get("HOOKVIZ_PROGRAMS", 1_000))
"""The number of networks; set it higher for a longer search."""


def test_recording_random_networks_changes_nothing_observable() -> None:
    ran: Counter[str] = Counter()

    @settings(EVERY_RUN, max_examples=PROGRAMS)
    @given(net_strategy(), st.booleans())
    def networks(program: NetProgram, are_large: bool) -> None:
        once = run_net(program)
        with large_graphs(are_large):
            same(once, run_net(program, hv.record), program)
        ran.update(once["counts"])
        ran.update(kind for layer in program.layers for kind in kinds(layer))
        ran["programs"] += 1

    networks()
    assert ran["programs"] >= PROGRAMS
    assert not [kind for kind in SHAPES if not ran[kind]]
    fired = {(place, action): ran[f"{place}: {action}"] for place in PLACES for action in ACTIONS}
    assert min(sum(fired[place, action] for action in ACTIONS) for place in PLACES) >= PROGRAMS // 150
    assert min(sum(fired[place, action] for place in PLACES) for action in ACTIONS) >= PROGRAMS // 30


def kinds(layer: Layer) -> list[str]:
    return [layer.kind, *(kind for inner in layer.inner for kind in kinds(inner))]
