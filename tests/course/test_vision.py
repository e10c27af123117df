"""The networks of the lessons on pictures have the published shape, and the small ones learn to read digits quickly."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from hookviz.course import vision
from hookviz.course.vision import measure_accuracy, read_pictures, train_on_pictures

RESNET = {
    "conv1.weight": (64, 3, 7, 7),
    "layer1.1.bn2.running_var": (64,),
    "layer2.0.downsample.0.weight": (128, 64, 1, 1),
    "layer3.0.downsample.1.num_batches_tracked": (),
    "layer4.1.conv2.weight": (512, 512, 3, 3),
    "fc.weight": (1000, 512),
}
DENSENET = {
    "features.conv0.weight": (64, 3, 7, 7),
    "features.denseblock1.denselayer6.norm2.running_mean": (128,),
    "features.transition3.conv.weight": (512, 1024, 1, 1),
    "features.denseblock4.denselayer16.conv1.weight": (128, 992, 1, 1),
    "features.norm5.bias": (1024,),
    "classifier.weight": (1000, 1024),
}
"""Names and sizes in the state_dict of torchvision's networks, whose published weights fit ours."""


@pytest.mark.parametrize(
    ("net", "names", "numbers", "sizes"),
    [(vision.resnet18(), 122, 11_689_512, RESNET), (vision.densenet121(), 727, 7_978_856, DENSENET)],
    ids=["ResNet-18", "DenseNet-121"],
)
def test_a_network_has_the_published_names_sizes_and_number_of_parameters(
    net: nn.Module, names: int, numbers: int, sizes: dict[str, Any]
) -> None:
    state = net.state_dict()
    assert len(state) == names and sum(parameter.numel() for parameter in net.parameters()) == numbers
    assert {name: tuple(state[name].shape) for name in sizes} == sizes


def test_a_relu_in_place_writes_over_the_features_of_a_densenet() -> None:
    pictures = read_pictures()[0][:2]
    for inplace in (True, False):
        net, stored = vision.small_densenet(inplace=inplace).eval(), list[torch.Tensor]()
        net.features.register_forward_hook(lambda module, args, output, stored=stored: stored.append(output.detach()))
        with torch.inference_mode():
            scores, features = net(pictures), net.features(pictures)
        assert torch.equal(stored[0], functional.relu(features) if inplace else features) and features.min() < 0
        assert torch.allclose(scores, net.classifier(functional.relu(features).mean((2, 3))), atol=1e-6)


@pytest.mark.parametrize("make", [vision.small_resnet, vision.small_densenet])
def test_small_networks_learn_to_read_digits(make: Callable[[], nn.Module]) -> None:
    pictures, labels = read_pictures()
    before = torch.get_rng_state()
    net = make()
    losses = train_on_pictures(net, pictures, labels)
    assert measure_accuracy(net, pictures, labels) > 0.95 and len(losses) == 6 * 30 and not net.training
    assert torch.equal(torch.get_rng_state(), before)


def test_forms_have_a_mark_for_each_class_beside_the_box_and_a_network_learns_the_marks() -> None:
    envelopes, labels, boxes = vision.read_envelopes()
    forms, same_labels = vision.read_forms()
    assert torch.equal(labels, same_labels) and envelopes.min() == 0 and envelopes.max() == 1
    assert (envelopes[:, 0] * (1 - boxes)).sum() == 0 and (boxes.sum((1, 2)) == 14 * 14).all()
    corner = forms[:, 0, :6, :6]
    assert (envelopes[:, 0, :6, :6] == 0).all() and (forms - envelopes)[:, :, 6:].abs().sum() == 0
    marks = {tuple(mark.flatten().tolist()) for mark in corner}
    assert len(marks) == 10 and all(len(corner[labels == digit].unique(dim=0)) == 1 for digit in range(10))
    torch.manual_seed(0)
    net = vision.ResNet(depths=(1,), width=16, classes=10, channels=1)
    train_on_pictures(net, forms, labels)
    assert measure_accuracy(net, forms, labels) > 0.98 and measure_accuracy(net, envelopes, labels) < 0.6
    assert measure_accuracy(net, vision.print_marks(envelopes, (labels + 1) % 10), (labels + 1) % 10) > 0.7
