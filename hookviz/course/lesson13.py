"""Judges the answers to the exercises of lesson 13."""

from typing import Any

import torch
from torch import nn

from hookviz.course.judges import (
    Feedback,
    Judge,
    call_answer,
    call_safely,
    check_callable,
    check_parameters,
    is_comparable,
    judge_number,
)
from hookviz.course.transformer import SmallTransformer, as_row, make_tiny_attention

TEXT = "hbkdnpafcjlmkd"
HEADS = 3


def _look_at_the_first_place() -> float:
    """How much the last place of ``a``, ``b``, ``a`` looks at the first one."""
    patterns: list[torch.Tensor] = []
    attention = make_tiny_attention()
    attention.pattern.register_forward_hook(lambda module, args, output: patterns.append(output))
    attention(torch.tensor([[[1.0], [-1.0], [1.0]]]))
    return patterns[0][0, 0, 2, 0].item()


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
    for head in range(HEADS):
        hook, fault = call_answer(answer, head)
        if fault:
            return fault
        feedback = _judge_head_hook(hook, head)
        if feedback.name != "right":
            return feedback
    return Feedback("right")


def _judge_head_hook(hook: Any, head: int) -> Feedback:
    fetched = torch.arange(1.0, 2 * HEADS * 4 * 5 + 1).view(2, HEADS, 4, 5)
    module = nn.Identity()
    if not callable(hook):
        return Feedback("hook")
    if fault := check_parameters(hook, module, (fetched,), fetched):
        return fault
    result, fault = call_answer(hook, module, (fetched,), fetched)
    if fault:
        return fault
    if not is_comparable(result, fetched):
        return Feedback("shape")
    mask = torch.arange(HEADS).eq(head).view(1, HEADS, 1, 1)
    usual = {"right": fetched * mask, "inverse": fetched * ~mask, "unchanged": fetched, "all_off": fetched * 0}
    return Feedback(next((name for name, tensor in usual.items() if torch.equal(result, tensor)), "other"))


def _judge_patching(answer: Any) -> Feedback:
    """Let the learner's function patch a small network, and compare the scores with those of the usual mistakes."""
    if fault := check_callable(answer):
        return fault
    net = SmallTransformer(width=8, seed=1)
    rows = as_row("abcdeab"), as_row("acbdeab")
    for module, place in ((net.get_submodule("blocks.0.attention"), 1), (net.get_submodule("blocks.1"), 2)):
        feedback = _judge_patched(answer, net, module, *rows, place)
        if feedback.name != "right":
            return feedback
    return Feedback("right")


def _judge_patched(
    answer: Any, net: nn.Module, module: nn.Module, row_a: torch.Tensor, row_b: torch.Tensor, place: int
) -> Feedback:
    scores, error = call_safely(answer, net, module, row_a, row_b, place)
    left = [hook for part in net.modules() for hook in part._forward_hooks.values()]
    for part in net.modules():
        part._forward_hooks.clear()
    if error:
        return Feedback("raised", error)
    if not isinstance(scores, torch.Tensor):
        return Feedback("scores")
    usual = {
        "right": _patch(net, module, row_a, row_b, slice(place, place + 1)),
        "unpatched": net(row_b),
        "first_run": net(row_a),
        "everywhere": _patch(net, module, row_a, row_b, slice(None)),
        "exchanged": _patch(net, module, row_b, row_a, slice(place, place + 1)),
    }
    same = (name for name, wanted in usual.items() if scores.shape == wanted.shape and _is_close(scores, wanted))
    name = next(same, "other")
    return Feedback("left") if name == "right" and left else Feedback(name)


def _is_close(scores: torch.Tensor, wanted: torch.Tensor) -> bool:
    return is_comparable(scores, wanted) and torch.allclose(scores.to(wanted.dtype), wanted, atol=1e-6)


def _patch(net: nn.Module, module: nn.Module, row_a: torch.Tensor, row_b: torch.Tensor, places: slice) -> torch.Tensor:
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


JUDGES: dict[str, Judge] = {
    "13.1": judge_number(_look_at_the_first_place, {1: "alone", 0: "zero", 1 / 3: "equally"}),
    "13.2": judge_number(_place_to_look_at, {3: "same", 5: "counted", 13: "itself", 12: "before"}),
    "13.3": judge_number(_calls_of_out_proj, {1: "once", 2: "heads", 3: "places"}),
    "13.4": _judge_head_keeper,
    "13.5": _judge_patching,
}
