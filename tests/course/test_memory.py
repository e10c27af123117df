"""``held_megabytes`` counts what tensors and the graphs behind them keep in memory."""

import torch
from torch import nn

from hookviz.course.memory import held_megabytes

MEGABYTE = 250_000
"""As many numbers as make a megabyte."""


def test_each_storage_counts_once_and_leaves_do_not_count_with_the_graph() -> None:
    tensor, leaf = torch.ones(MEGABYTE), torch.ones(MEGABYTE, requires_grad=True)
    assert held_megabytes([]) == 0
    assert held_megabytes([tensor, tensor[:10], tensor.view(2, -1)]) == 1
    assert held_megabytes([tensor, tensor.clone()]) == 2
    assert held_megabytes([(leaf * leaf).sum()]) < 0.001
    middle = (leaf * 2).exp()
    assert round(held_megabytes([middle.sum(), middle.mean(), middle.sum() * 2])) == 1


def test_what_the_graph_saved_counts_until_backward_frees_it() -> None:
    net = nn.Sequential(nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 500), nn.ReLU(), nn.Linear(500, 1))
    output = net(torch.ones(500, 500)).sum()
    assert round(held_megabytes([output])) == 3  # the inputs of the three layers; a ReLU saves the next one's
    assert held_megabytes([output.detach()]) == 4 / 1_000_000
    output.backward()
    assert held_megabytes([output]) == 4 / 1_000_000
