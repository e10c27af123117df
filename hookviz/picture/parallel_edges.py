"""Arrows between the same two boxes: they are laid out as one line, and their values stand below each other."""

from collections.abc import Sequence

from hookviz.picture.layered_layout import Edge, Placement, Point, Size


def join_parallel(edges: Sequence[Edge]) -> tuple[list[Edge], list[int]]:
    """Return the edges to lay out, and for each of ``edges`` the index of the one that it is part of.

    >>> join_parallel([Edge(0, 1, Size(40, 10)), Edge(1, 2), Edge(0, 1, Size(50, 10))])[1]
    [0, 1, 0]
    """
    numbers: dict[Edge, int] = {}
    joined: list[Edge] = []
    indices = []
    for edge in edges:
        number = numbers.setdefault(edge._replace(label=Size(0, 0)), len(joined))
        if number == len(joined):
            joined.append(edge)
        else:
            label = joined[number].label
            room = Size(max(label.width, edge.label.width), label.height + edge.label.height)
            joined[number] = edge._replace(label=room)
        indices.append(number)
    return joined, indices


def part_parallel(placement: Placement, edges: Sequence[Edge], indices: Sequence[int]) -> Placement:
    """Return the placement of all ``edges``; ``indices`` and the edges of ``placement`` are from ``join_parallel``."""
    total = [0.0] * len(placement.labels)
    for edge, number in zip(edges, indices, strict=True):
        total[number] += edge.label.height
    above = [0.0] * len(total)
    labels: list[Point] = []
    for edge, number in zip(edges, indices, strict=True):
        x, y = placement.labels[number]
        labels.append((x, y - total[number] / 2 + above[number] + edge.label.height / 2))
        above[number] += edge.label.height
    return placement._replace(curves=[placement.curves[number] for number in indices], labels=labels)
