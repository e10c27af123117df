"""Long pictures in rows, arrows that are level with the gates of frames, and values beside arrows."""

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
