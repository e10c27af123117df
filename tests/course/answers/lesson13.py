"""Right and wrong answers to what lesson 13 asks."""

from collections.abc import Callable
from typing import Any

import torch

from hookviz.course.transformer import ASKED
from tests.course.answers.common import raises

Hook = Callable[[Any, Any, torch.Tensor], Any]


def keeps_head(head: int) -> Hook:
    def hook(module: Any, args: Any, fetched: torch.Tensor) -> torch.Tensor:
        changed = torch.zeros_like(fetched)
        changed[:, head] = fetched[:, head]
        return changed

    return hook


def switches_head_off(head: int) -> Hook:
    return lambda module, args, fetched: fetched - keeps_head(head)(module, args, fetched)


def writes_into_the_output(head: int) -> Hook:
    def hook(module: Any, args: Any, fetched: torch.Tensor) -> torch.Tensor:
        kept = fetched[:, head].clone()
        fetched.zero_()
        fetched[:, head] = kept
        return fetched

    return hook


def returns_one_head(head: int) -> Hook:
    return lambda module, args, fetched: fetched[:, head]


def keeps_a_place(head: int) -> Hook:
    def hook(module: Any, args: Any, fetched: torch.Tensor) -> torch.Tensor:
        changed = torch.zeros_like(fetched)
        changed[:, :, head] = fetched[:, :, head]
        return changed

    return hook


def keeps_the_first(head: int) -> Hook:
    return keeps_head(0)


def run_with(net: Any, module: Any, row: torch.Tensor, hook: Any) -> torch.Tensor:
    with module.register_forward_hook(hook):
        scores: torch.Tensor = net(row)
    return scores


def get_output(net: Any, module: Any, row: torch.Tensor) -> torch.Tensor:
    kept: list[torch.Tensor] = []
    run_with(net, module, row, lambda module, args, output: kept.append(output))
    return kept[0]


def put_in(output_a: torch.Tensor, places: Any) -> Any:
    def hook(module: Any, args: Any, output: torch.Tensor) -> torch.Tensor:
        changed = output.clone()
        changed[:, places] = output_a[:, places]
        return changed

    return hook


def patches(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return run_with(net, module, row_b, put_in(get_output(net, module, row_a), place))


def patches_everywhere(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return run_with(net, module, row_b, put_in(get_output(net, module, row_a), slice(None)))


def patches_from_the_place_on(
    net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int
) -> torch.Tensor:
    return run_with(net, module, row_b, put_in(get_output(net, module, row_a), slice(place, None)))


def keeps_the_second_row(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return patches(net, module, row_b, row_b, place)


def exchanges_the_rows(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return patches(net, module, row_b, row_a, place)


def leaves_a_hook(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> Any:
    module.register_forward_hook(put_in(get_output(net, module, row_a), place))
    return net(row_b)


def patches_the_other_places(
    net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int
) -> torch.Tensor:
    others = [other for other in range(row_a.shape[1]) if other != place]
    return run_with(net, module, row_b, put_in(get_output(net, module, row_a), others))


def patches_one_place_on(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return patches(net, module, row_a, row_b, place + 1)


def patches_something_else(net: Any, module: Any, row_a: torch.Tensor, row_b: torch.Tensor, place: int) -> torch.Tensor:
    return run_with(net, module, row_b, put_in(get_output(net, module, row_a).flip(-1), place))


def find_pairs(shift: int = 1, least: float = 0.9, used: slice = slice(None)) -> Any:
    def find(net: Any, rows: torch.Tensor, sources: torch.Tensor) -> list[tuple[int, int]]:
        found = []
        wanted = sources[used, ASKED - 12] + shift
        for number, block in enumerate(net.blocks):
            kept = get_output(net, block.attention.pattern, rows[used])[:, :, ASKED]
            shares = kept.gather(3, wanted[:, None, :, None].expand(-1, kept.shape[1], -1, 1)).mean((0, 2, 3))
            found += [(number, head) for head, share in enumerate(shares.tolist()) if share > least]
        return found

    return find


def finds_one_row_at_a_time(net: Any, rows: torch.Tensor, sources: torch.Tensor) -> list[list[int]]:
    totals: dict[tuple[int, int], float] = {}
    for row, source in zip(rows, sources, strict=True):
        for number, block in enumerate(net.blocks):
            pattern = get_output(net, block.attention.pattern, row[None])[0]
            for head, looks in enumerate(pattern):
                shares = [looks[place, source[place - 12] + 1].item() for place in ASKED.tolist()]
                totals[number, head] = totals.get((number, head), 0) + sum(shares) / len(shares) / len(rows)
    return [[number, head] for (number, head), share in totals.items() if share > 0.9]


def leaves_a_hook_on_a_pattern(net: Any, rows: torch.Tensor, sources: torch.Tensor) -> Any:
    net.blocks[0].attention.pattern.register_forward_hook(lambda module, args, output: None)
    return find_pairs()(net, rows, sources)


RIGHT: dict[str, Any] = {
    "13.1": 0.25,
    "13.2": "4",
    "13.3": torch.tensor(0),
    "13.4": keeps_head,
    "13.5": patches,
    "13.6": finds_one_row_at_a_time,
}
WRONG: dict[str, list[Any]] = {
    "13.1": [1, 0, 0.2, 0.5, 0.333, 0.75, 0.8, 25, 0.6],
    "13.2": [3, 5, 13, 12, 14, 2, 8],
    "13.3": [1, 2, 3, 7],
    "13.4": [
        switches_head_off,
        writes_into_the_output,
        returns_one_head,
        keeps_a_place,
        keeps_the_first,
        lambda module, args, fetched: fetched,
        lambda head: None,
        lambda head: 5,
        lambda head: lambda module, args, fetched: fetched * 1,
        lambda head: lambda module, args, fetched: fetched * 0,
        lambda head: lambda fetched: fetched,
        raises,
    ],
    "13.5": [
        patches_everywhere,
        exchanges_the_rows,
        leaves_a_hook,
        patches_something_else,
        patches_the_other_places,
        patches_one_place_on,
        lambda net, module, row_a, row_b, place: None,
        lambda net, module, row_a, row_b, place: net(row_a),
        lambda net, module, row_a, row_b, place: net(row_b),
        raises,
    ],
    "13.6": [
        find_pairs(shift=0),
        find_pairs(used=slice(1)),
        find_pairs(least=0.96),
        leaves_a_hook_on_a_pattern,
        lambda net, rows, sources: [(0, 0)],
        lambda net, rows, sources: [1, 1],
        lambda net, rows, sources: [(5, 5)],
        lambda net, rows, sources: [],
        lambda net, rows, sources: None,
        lambda net, rows, sources: [(block, head) for block in range(2) for head in range(3)],
        lambda net, rows, sources: [(block + 1, head + 1) for block, head in find_pairs()(net, rows, sources)],
        lambda net, rows, sources: [(head, block) for block, head in find_pairs()(net, rows, sources)],
        lambda net, rows: [(0, 1), (1, 1)],
        raises,
    ],
}
