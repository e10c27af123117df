"""Right and wrong answers to what lesson 13 asks."""

from functools import partial
from typing import Any

import torch

from hookviz.course import course_tools
from hookviz.course.transformer import ASKED
from tests.course.answers.common import changed, changed_part, raises

keeps_head = partial(
    changed,
    """
import torch

def keeps_head(head):
    def hook(module, args, fetched):
        kept = torch.zeros_like(fetched)
        kept[:, head] = fetched[:, head]
        return kept

    return hook
""",
    "keeps_head",
)
patched = partial(changed_part, course_tools.patch_run)
PUT = "changed[:, place] = kept[0][:, place]"
RUN = "with module.register_forward_hook(put_in):\n        return net(row_b)"
patches_from_the_place_on = patched((PUT, "changed[:, place:] = kept[0][:, place:]"))


def run_with(net: Any, module: Any, row: torch.Tensor, hook: Any) -> torch.Tensor:
    with module.register_forward_hook(hook):
        scores: torch.Tensor = net(row)
    return scores


def get_output(net: Any, module: Any, row: torch.Tensor) -> torch.Tensor:
    kept: list[torch.Tensor] = []
    run_with(net, module, row, lambda module, args, output: kept.append(output))
    return kept[0]


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


def leaves_a_hook_on_a_pattern(net: Any, rows: torch.Tensor, sources: torch.Tensor) -> Any:
    net.blocks[0].attention.pattern.register_forward_hook(lambda module, args, output: None)
    return find_pairs()(net, rows, sources)


RIGHT: dict[str, Any] = {
    "13.1": 0.25,
    "13.2": "4",
    "13.3": torch.tensor(0),
    "13.4": keeps_head(),
    "13.5": course_tools.patch_run,
    "13.6": find_pairs(),
}
WRONG: dict[str, list[Any]] = {
    "13.1": [1, 0, 0.2, 0.5, 0.333, 0.75, 0.8, 25, 0.6],
    "13.2": [3, 5, 13, 12, 14, 2, 8],
    "13.3": [1, 2, 3, 7],
    "13.4": [
        keeps_head(("return kept", "return fetched - kept")),
        keeps_head(
            ("kept = torch.zeros_like(fetched)", "kept, fetched = fetched, fetched.clone()\n        kept.zero_()")
        ),
        keeps_head(("return kept", "return fetched[:, head]")),
        keeps_head(("kept[:, head] = fetched[:, head]", "kept[:, :, head] = fetched[:, :, head]")),
        keeps_head(("kept[:, head] = fetched[:, head]", "kept[:, 0] = fetched[:, 0]")),
        lambda module, args, fetched: fetched,
        lambda head: None,
        lambda head: 5,
        lambda head: lambda module, args, fetched: fetched * 1,
        lambda head: lambda module, args, fetched: fetched * 0,
        lambda head: lambda fetched: fetched,
        raises,
    ],
    "13.5": [
        patched((PUT, "changed = kept[0]")),
        patched(("row_a: Tensor, row_b: Tensor", "row_b: Tensor, row_a: Tensor")),
        patched((RUN, "module.register_forward_hook(put_in)\n    return net(row_b)")),
        patched(("kept.append(output)", "kept.append(output.flip(-1))")),
        patched((PUT, "changed, changed[:, place] = kept[0].clone(), changed[:, place]")),
        patched((PUT, "changed[:, place + 1] = kept[0][:, place + 1]")),
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
