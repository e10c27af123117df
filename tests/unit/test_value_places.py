"""Where the values on arrows stand."""

from itertools import combinations

from hookviz.picture.layered_layout import Boxes, Edge, Size, place_boxes, sample_curve


def test_values_of_steep_arrows_are_beside_all_lines_and_boxes_and_each_other() -> None:
    box, label = Size(180, 60), Size(110, 20)
    edges = (Edge(0, 1, label), Edge(0, 2, label), Edge(4, 0), Edge(4, 1), Edge(4, 2), Edge(0, 3, label))
    placement = place_boxes(Boxes((box, box, box, Size(250, 40), Size(1, 1)), edges, "left"))
    places = [placement.labels[index] for index, edge in enumerate(edges) if edge.label.width]
    for x, y in places:
        for curve in placement.curves:
            assert not [at for at in sample_curve(curve) if abs(at[0] - x) < 54 and abs(at[1] - y) < 6]
    for one, other in combinations(places, 2):
        assert abs(one[0] - other[0]) >= 110 or abs(one[1] - other[1]) >= 15
