"""The networks of the lessons on pictures have the published shape."""

from typing import Any

import pytest
from torch import nn

from hookviz.course import vision

RESNET = {
    "conv1.weight": (64, 3, 7, 7),
    "layer1.1.bn2.running_var": (64,),
    "layer3.0.downsample.1.num_batches_tracked": (),
    "fc.weight": (1000, 512),
}
DENSENET = {
    "features.conv0.weight": (64, 3, 7, 7),
    "features.denseblock1.denselayer6.norm2.running_mean": (128,),
    "features.denseblock4.denselayer16.conv1.weight": (128, 992, 1, 1),
    "classifier.weight": (1000, 1024),
}
"""Names and sizes in the state_dict of torchvision's networks, whose published weights fit ours."""


@pytest.mark.parametrize(
    ("net", "names", "numbers", "sizes"),
    [(vision.resnet18(), 122, 11_689_512, RESNET), (vision.DenseNet(), 727, 7_978_856, DENSENET)],
    ids=["ResNet-18", "DenseNet-121"],
)
def test_a_network_has_the_published_names_sizes_and_number_of_parameters(
    net: nn.Module, names: int, numbers: int, sizes: dict[str, Any]
) -> None:
    state = net.state_dict()
    assert len(state) == names and sum(parameter.numel() for parameter in net.parameters()) == numbers
    assert {name: tuple(state[name].shape) for name in sizes} == sizes
