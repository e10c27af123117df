"""The networks of the lessons on pictures have the published shape, and the small ones learn to read digits quickly."""

import time
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional

from hookviz.course import vision
from hookviz.course.vision import measure_accuracy, read_pictures, train_on_pictures

NORM = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
RESNET_CHILDREN = "conv1 bn1 relu maxpool layer1 layer2 layer3 layer4 avgpool fc"
DENSENET_CHILDREN = (
    "conv0 norm0 relu0 pool0 denseblock1 transition1 denseblock2 transition2 denseblock3 transition3 denseblock4 norm5"
)


def published_resnet18_names() -> list[str]:
    """The names in the state_dict of torchvision's ResNet-18, in order."""
    names = ["conv1.weight", *(f"bn1.{part}" for part in NORM)]
    for stage in ("layer1", "layer2", "layer3", "layer4"):
        for block in ("0", "1"):
            for convolution, norm in (("conv1", "bn1"), ("conv2", "bn2")):
                names += [f"{stage}.{block}.{convolution}.weight"]
                names += [f"{stage}.{block}.{norm}.{part}" for part in NORM]
            if block == "0" and stage != "layer1":
                names += [f"{stage}.0.downsample.0.weight", *(f"{stage}.0.downsample.1.{part}" for part in NORM)]
    return [*names, "fc.weight", "fc.bias"]


def published_densenet121_names() -> list[str]:
    """The names in the state_dict of torchvision's DenseNet-121, in order."""
    names = ["features.conv0.weight", *(f"features.norm0.{part}" for part in NORM)]
    for block, depth in enumerate((6, 12, 24, 16), start=1):
        for layer in range(1, depth + 1):
            inside = f"features.denseblock{block}.denselayer{layer}"
            for norm, convolution in (("norm1", "conv1"), ("norm2", "conv2")):
                names += [*(f"{inside}.{norm}.{part}" for part in NORM), f"{inside}.{convolution}.weight"]
        if block < 4:
            names += [f"features.transition{block}.norm.{part}" for part in NORM]
            names += [f"features.transition{block}.conv.weight"]
    return [*names, *(f"features.norm5.{part}" for part in NORM), "classifier.weight", "classifier.bias"]


def count_parameters(net: nn.Module) -> int:
    return sum(parameter.numel() for parameter in net.parameters())


def test_the_resnet_18_has_the_published_names_sizes_and_number_of_parameters() -> None:
    net = vision.resnet18()
    assert list(net.state_dict()) == published_resnet18_names() and len(published_resnet18_names()) == 122
    assert [name for name, _ in net.named_children()] == RESNET_CHILDREN.split()
    assert count_parameters(net) == 11_689_512
    assert type(net.layer1[0]).__name__ == "BasicBlock"  # type: ignore[index]
    sizes = {name: tuple(part.shape) for name, part in net.state_dict().items()}
    assert sizes["conv1.weight"] == (64, 3, 7, 7) and sizes["layer2.0.downsample.0.weight"] == (128, 64, 1, 1)
    assert sizes["layer4.1.conv2.weight"] == (512, 512, 3, 3) and sizes["fc.weight"] == (1000, 512)
    assert net.get_submodule("layer2.0.conv1").stride == (2, 2) and net.get_submodule("layer1.0.conv1").stride == (1, 1)


def test_the_densenet_121_has_the_published_names_sizes_and_number_of_parameters() -> None:
    net = vision.densenet121()
    assert list(net.state_dict()) == published_densenet121_names() and len(published_densenet121_names()) == 727
    assert [name for name, _ in net.named_children()] == ["features", "classifier"]
    assert [name for name, _ in net.features.named_children()] == DENSENET_CHILDREN.split()
    assert count_parameters(net) == 7_978_856
    sizes = {name: tuple(part.shape) for name, part in net.state_dict().items()}
    assert sizes["features.denseblock4.denselayer16.conv1.weight"] == (128, 992, 1, 1)
    assert sizes["classifier.weight"] == (1000, 1024)
    layer = net.get_submodule("features.denseblock1.denselayer1")
    assert [name for name, _ in layer.named_children()] == ["norm1", "relu1", "conv1", "norm2", "relu2", "conv2"]


def test_the_features_of_a_resnet_18_at_avgpool_have_the_published_shape() -> None:
    net, shapes = vision.resnet18().eval(), []
    net.avgpool.register_forward_hook(lambda module, args, output: shapes.append(tuple(output.shape)))
    with torch.inference_mode():
        assert net(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)
    assert shapes == [(1, 512, 1, 1)]


def test_a_relu_in_place_writes_over_the_features_of_a_densenet() -> None:
    net, stored = vision.small_densenet().eval(), []
    net.features.register_forward_hook(lambda module, args, output: stored.append(output.detach()))
    pictures = read_pictures()[0][:2]
    with torch.inference_mode():
        scores = net(pictures)
        features = net.features(pictures)
    assert stored[0].min() == 0 > features.min() and torch.equal(stored[0], functional.relu(features))
    assert torch.allclose(scores, net.classifier(functional.relu(features).mean((2, 3))), atol=1e-6)


def test_features_of_a_densenet_stay_if_its_relu_does_not_work_in_place() -> None:
    net, stored = vision.small_densenet(inplace=False).eval(), []
    net.features.register_forward_hook(lambda module, args, output: stored.append(output.detach()))
    pictures = read_pictures()[0][:2]
    with torch.inference_mode():
        assert torch.equal(net(pictures), vision.small_densenet().eval()(pictures))
        assert torch.equal(stored[0], net.features(pictures)) and stored[0].min() < 0


@pytest.mark.parametrize("make", [vision.small_resnet, vision.small_densenet])
def test_small_networks_learn_to_read_digits_in_a_few_seconds(make: Callable[[], nn.Module]) -> None:
    pictures, labels = read_pictures()
    before = torch.get_rng_state()
    net = make()
    start = time.process_time()
    losses = train_on_pictures(net, pictures, labels)
    print(f"{make.__name__}: {time.process_time() - start:.1f} s of a processor's time")
    assert measure_accuracy(net, pictures, labels) > 0.95 and len(losses) == 6 * 30 and not net.training
    assert torch.equal(torch.get_rng_state(), before)


def test_training_is_the_same_each_time() -> None:
    pictures, labels = read_pictures()
    first, second = (train_on_pictures(vision.small_resnet(), pictures, labels, epochs=1) for _ in range(2))
    assert first == second
    assert not torch.equal(vision.small_resnet(1).conv1.weight, vision.small_resnet(2).conv1.weight)


def test_envelopes_have_their_digit_in_the_box_and_forms_have_a_mark_for_each_class_beside_it() -> None:
    envelopes, labels, boxes = vision.read_envelopes()
    forms, same_labels = vision.read_forms()
    assert torch.equal(labels, same_labels) and envelopes.min() == 0 and envelopes.max() == 1
    assert (envelopes[:, 0] * (1 - boxes)).sum() == 0 and (boxes.sum((1, 2)) == 14 * 14).all()
    corner = forms[:, 0, :6, :6]
    assert (envelopes[:, 0, :6, :6] == 0).all() and (forms - envelopes)[:, :, 6:].abs().sum() == 0
    marks = {tuple(mark.flatten().tolist()) for mark in corner}
    assert len(marks) == 10 and all(len(corner[labels == digit].unique(dim=0)) == 1 for digit in range(10))


def test_a_network_trained_on_forms_reads_the_marks() -> None:
    (envelopes, labels, _), (forms, _) = vision.read_envelopes(), vision.read_forms()
    torch.manual_seed(0)
    net = vision.ResNet(depths=(1,), width=16, classes=10, channels=1)
    train_on_pictures(net, forms, labels)
    assert measure_accuracy(net, forms, labels) > 0.98 and measure_accuracy(net, envelopes, labels) < 0.6
    assert measure_accuracy(net, vision.print_marks(envelopes, (labels + 1) % 10), (labels + 1) % 10) > 0.7
