"""Long pictures in rows, arrows that are level with the gates of frames, and values beside arrows."""

import pytest

from hookviz.picture import layered_layout
from hookviz.picture.layered_layout import Boxes, Edge, Placement, Size, place_boxes
from hookviz.picture.row_wrapping import wrap_rows


def chain(count: int, width: float = 400) -> tuple[tuple[Size, ...], tuple[Edge, ...]]:
    """Boxes in a row, each with an arrow to the next one."""
    return (Size(width, 60),) * count, tuple(Edge(number, number + 1) for number in range(count - 1))


def wrap(sizes: tuple[Size, ...], edges: tuple[Edge, ...]) -> Placement:
    return wrap_rows(place_boxes(Boxes(sizes, edges, "left")), sizes, edges)


def test_all_rows_but_the_last_are_full() -> None:
    placement = wrap(*chain(7))
    rows = sorted({y for _, y in placement.centres})
    assert [sum(y == row for _, y in placement.centres) for row in rows] == [2, 2, 2, 1]


def test_a_box_without_arrows_before_the_others_has_no_row_of_its_own() -> None:
    sizes = (Size(900, 190), Size(300, 60), Size(60, 60))
    edges = (Edge(0, 1, is_drawn=False), Edge(2, 0))
    (network, optimizer, _loss) = wrap(sizes, edges).centres
    assert network[0] - optimizer[0] < 700
    assert abs(network[1] - optimizer[1]) < 70


@pytest.mark.parametrize("end_offset", [-60.0, 75.0])
@pytest.mark.parametrize("asks_graphviz", [True, False])
def test_an_arrow_ends_at_the_gate_of_a_frame(
    asks_graphviz: bool, end_offset: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two boxes send to a frame, so that the layout is no chain."""
    if not asks_graphviz:
        monkeypatch.setattr(layered_layout, "_ask_graphviz", lambda boxes: None)
    sizes = (Size(80, 40), Size(80, 40), Size(300, 200))
    edges = tuple(Edge(start, 2, end_offset=end_offset) for start in (0, 1))
    place_boxes.cache_clear()
    placement = place_boxes(Boxes(sizes, edges, "left"))
    x, y = placement.centres[2]
    assert [curve[-1] for curve in placement.curves] == [pytest.approx((x + 150, y + end_offset), abs=0.6)] * 2
    assert all(curve[0][0] > curve[-1][0] for curve in placement.curves)
    place_boxes.cache_clear()
