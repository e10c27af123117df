"""Judges the answers to the exercises of lesson 13."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Judge,
    are_close,
    as_float,
    call_hook,
    call_safely,
    check_callable,
    check_parameters,
    describe_shape,
    has_forward_hook,
    is_comparable,
    judge_number,
)
from hookviz.course.transformer import ASKED, FIRST, LENGTH, SmallTransformer, as_row, make_rows, make_tiny_attention

TEXT = "hbkdnpafcjlmkd"
HEADS = 3


def _look_at_the_first_place() -> float:
    """How much the last place of ``a``, ``b``, ``a``, ``a``, ``a`` looks at the first one."""
    patterns: list[torch.Tensor] = []
    attention = make_tiny_attention()
    attention.pattern.register_forward_hook(lambda module, args, output: patterns.append(output))
    attention(torch.tensor([[[1.0], [-1.0], [1.0], [1.0], [1.0]]]))
    return patterns[0][0, 0, -1, 0].item()


SHARES = {1: "alone", 0: "zero", 0.2: "equally", 0.33: "three", 0.5: "player", 0.75: "others", 0.8: "places"}
"""A usual wrong share, with two digits → the feedback."""


def _judge_share(answer: Any) -> Feedback:
    """Compare the learner's number with the share that the first place gets."""
    given = as_float(answer)
    if given is not None and not 0 <= given <= 1:
        return Feedback("range")
    usual = None if given is None else SHARES.get(round(given, 2))
    return Feedback(usual) if usual else judge_number(_look_at_the_first_place, {})(answer)


def _place_to_look_at() -> float:
    """The place behind the earlier copy of the last letter."""
    return float(TEXT.index(TEXT[-1]) + 1)


def _calls_of_out_proj() -> float:
    """How often a layer of a transformer calls the module ``out_proj`` of its attention."""
    calls: list[nn.Module] = []
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    layer.self_attn.out_proj.register_forward_hook(lambda module, args, output: calls.append(module))
    layer(torch.ones(1, 3, 4))
    return float(len(calls))


def _judge_head_keeper(answer: Any) -> Feedback:
    """Call the learner's function for each head, and the hook that it returns with what three heads fetched."""
    if fault := check_callable(answer):
        return fault
    if check_parameters(answer, 0):
        return Feedback("takes_head")
    feedbacks = []
    for head in range(HEADS):
        hook, error = call_safely(answer, head)
        feedbacks.append(Feedback("fails", error) if error else _judge_head_hook(hook, head))
    wrong = [head for head, feedback in enumerate(feedbacks) if feedback.name != "right"]
    if wrong and len(wrong) < HEADS:
        works = next(head for head in range(HEADS) if head not in wrong)
        return Feedback("some", str(works), str(wrong[0]))
    return feedbacks[0]


def _judge_head_hook(hook: Any, head: int) -> Feedback:
    fetched = torch.arange(1.0, 2 * HEADS * 4 * 5 + 1).view(2, HEADS, 4, 5)
    module = nn.Identity()
    if not callable(hook):
        return Feedback("no_hook" if hook is None else "hook")
    result, fault = call_hook(hook, module, (fetched,), fetched)
    if fault:
        return fault
    if not is_comparable(result, fetched):
        return Feedback("shapes", describe_shape(result))
    mask = torch.arange(HEADS).eq(head).view(1, HEADS, 1, 1)
    usual = {"right": fetched * mask, "inverse": fetched * ~mask, "unchanged": fetched, "all_off": fetched * 0}
    return Feedback(next((name for name, tensor in usual.items() if torch.equal(result, tensor)), "other"))


def _judge_patching(answer: Any) -> Feedback:
    """Let the learner's function patch a small network, and compare the scores with those of the usual mistakes."""
    if fault := check_callable(answer):
        return fault
    net = SmallTransformer(width=8, seed=1)
    rows = as_row("abcdeab"), as_row("badceba")
    for module, place in ((net.get_submodule("blocks.0.attention"), 1), (net.get_submodule("blocks.1"), 2)):
        feedback = _judge_patched(answer, net, module, *rows, place)
        if feedback.name != "right":
            return feedback
    return Feedback("right")


def _judge_patched(
    answer: Any, net: nn.Module, module: nn.Module, row_a: torch.Tensor, row_b: torch.Tensor, place: int
) -> Feedback:
    scores, error = call_safely(answer, net, module, row_a, row_b, place)
    others = [other for other in range(row_a.shape[1]) if other != place]
    left = [hook for part in net.modules() for hook in part._forward_hooks.values()]
    for part in net.modules():
        part._forward_hooks.clear()
    if error:
        return Feedback("fails", error)
    usual: list[tuple[str, torch.Tensor]] = [
        ("right", _patch(net, module, row_a, row_b, slice(place, place + 1))),
        ("unpatched", net(row_b)),
        ("first_run", net(row_a)),
        ("everywhere", _patch(net, module, row_a, row_b, slice(None))),
        ("everywhere", _patch(net, module, row_a, row_b, slice(place, None))),
        ("everywhere", _patch(net, module, row_a, row_b, slice(None, place + 1))),
        ("exchanged", _patch(net, module, row_b, row_a, slice(place, place + 1))),
        ("inverse", _patch(net, module, row_a, row_b, others)),
        *(("elsewhere", _patch(net, module, row_a, row_b, [other])) for other in others),
    ]
    if not isinstance(scores, torch.Tensor) or scores.shape != usual[0][1].shape:
        return Feedback("scores")
    name = next((name for name, wanted in usual if are_close(scores, wanted)), "other")
    return Feedback("left") if name == "right" and left else Feedback(name)


def _patch(net: nn.Module, module: nn.Module, row_a: torch.Tensor, row_b: torch.Tensor, places: Any) -> torch.Tensor:
    """Run ``net`` on ``row_b`` with the output of ``module`` on ``row_a`` put in at ``places``."""
    kept: list[torch.Tensor] = []

    def put_in(module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
        changed = output.clone()
        changed[:, places] = kept[0][:, places]
        return changed

    with module.register_forward_hook(lambda module, args, output: kept.append(output)):
        net(row_a)
    with module.register_forward_hook(put_in):
        scores: torch.Tensor = net(row_b)
    return scores


class _ArrangedPattern(nn.Module):
    """Returns attention patterns that were arranged for known rows, in place of computing them."""

    def __init__(self, patterns: torch.Tensor) -> None:
        super().__init__()
        self.patterns = patterns
        self.asked = torch.arange(len(patterns))

    def forward(self, queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        return self.patterns[self.asked]


class _ArrangedTransformer(SmallTransformer):
    """A transformer of two blocks with three heads, whose attention patterns are arranged for each of its rows."""

    def __init__(self, rows: torch.Tensor, sources: torch.Tensor) -> None:
        super().__init__(width=6, heads=HEADS, seed=1)
        self.rows = rows
        after = _look_from_pieces_at(sources + 1)
        weak = after * torch.linspace(1.0, 0.2, len(rows)).view(-1, 1, 1)  # the first row alone is above 90 %
        before = torch.eye(LENGTH).roll(-1, 1).tril().expand(len(rows), -1, -1)
        arranged = [[before, after * 0.95, _look_from_pieces_at(sources)], [weak, after, before * 0.5]]
        for block, heads in zip(self.blocks, arranged, strict=True):
            block.get_submodule("attention").pattern = _ArrangedPattern(torch.stack(heads, 1))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        asked = (rows[:, None] == self.rows).all(-1).int().argmax(1)
        for module in self.modules():
            if isinstance(module, _ArrangedPattern):
                module.asked = asked
        return super().forward(rows)


INDUCTION_HEADS = {(0, 1), (1, 1)}
OTHER_HEADS = {(0, 2): "copied", (1, 0): "weak", (0, 0): "before", (1, 2): "before"}
"""A head of the arranged transformer that is no induction head → the feedback if it is found."""


def _look_from_pieces_at(places: torch.Tensor) -> torch.Tensor:
    """Make patterns (row, place, place looked at) in which the places of the pieces look at ``places``."""
    patterns = torch.zeros(len(places), LENGTH, LENGTH)
    asked = places[:, ASKED - FIRST]
    patterns[torch.arange(len(places))[:, None], ASKED, asked] = 1.0
    return patterns


def _judge_head_finder(answer: Any) -> Feedback:
    """Let the learner's function find the two induction heads among six arranged heads."""
    if fault := check_callable(answer):
        return fault
    rows, sources = make_rows(5, seed=3)
    net = _ArrangedTransformer(rows, sources)
    if fault := check_parameters(answer, net, rows, sources):
        return fault
    result, error = call_safely(answer, net, rows, sources)
    if error:
        return Feedback("fails", error)
    if result is None:
        return Feedback("no_return")
    found, error = call_safely(lambda: {(_whole(block), _whole(head)) for block, head in result})
    if error:
        return Feedback("pairs")
    if found != INDUCTION_HEADS:
        return _explain_heads(found)
    left = any(map(has_forward_hook, net.modules()))
    return Feedback("left" if left else "right")


def _whole(number: Any) -> int:
    if isinstance(number, str) or float(number).is_integer():
        return int(number)
    raise ValueError(f"{number} counts nothing")


def _explain_heads(found: set[tuple[int, int]]) -> Feedback:
    """Say what is wrong with heads that are not the induction heads."""
    if not found:
        return Feedback("none_found")
    if found == {(block, head) for block in range(2) for head in range(HEADS)}:
        return Feedback("all")
    if found == {(block + 1, head + 1) for block, head in INDUCTION_HEADS}:
        return Feedback("from_one")
    if found == {(head, block) for block, head in INDUCTION_HEADS}:
        return Feedback("exchanged")
    for head, name in OTHER_HEADS.items():
        if head in found:
            return Feedback(name)
    return Feedback("missing" if found < INDUCTION_HEADS else "other")


JUDGES: dict[str, Judge] = {
    "13.1": _judge_share,
    "13.2": judge_number(
        _place_to_look_at, {3: "same", 5: "counted", 13: "itself", 12: "before", 14: "answer", 2: "pair"}
    ),
    "13.3": judge_number(_calls_of_out_proj, {1: "once", 2: "heads", 3: "places"}),
    "13.4": _judge_head_keeper,
    "13.5": _judge_patching,
    "13.6": _judge_head_finder,
}
