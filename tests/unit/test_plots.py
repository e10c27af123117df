"""Plots of a trace: what they show, how they are saved, and what a trace without gradients says."""

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util.tensor_util import make_ndarray
from torch import nn
from torch.optim import SGD

import hookviz as hv


def train(passes: int, scheduled: bool = False) -> hv.Trace:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
    optimizer = SGD(net.parameters(), lr=0.1)
    with hv.record(net) as trace:
        for number in range(passes):
            optimizer.zero_grad()
            net(torch.randn(5, 3)).square().mean().backward()
            optimizer.step()
            optimizer.param_groups[0]["lr"] = 0.1 / (number + 2) if scheduled else 0.1
    return trace


def links(plot: hv.Plot) -> list[str]:
    found = (element.get("href", "") for element in ET.fromstring(plot.svg()).iter())
    return [link for link in found if link.startswith("#step-")]


def test_layers_stand_in_the_order_of_the_model_with_their_norms_and_lead_to_their_steps() -> None:
    trace = train(1)
    plot = trace.plot("layers")
    written = {step.on: step for step in trace.steps if step.kind == "accumulate"}
    assert [name for name, _norm in plot.table] == ["net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias"]
    for name, norm in plot.table:
        assert float(norm) == pytest.approx(written[name].after.norm, rel=1e-3)  # type: ignore[union-attr]
    steps = [trace.steps[int(link.removeprefix("#step-")) - 1] for link in links(plot)]
    assert {step.kind for step in steps} == {"arrive"}
    assert [step.on for step in steps] == [name for name, _norm in plot.table]


def test_a_gradient_is_plotted_as_hooks_left_it_and_without_what_was_in_grad_before() -> None:
    x = torch.tensor([3.0, 4.0], requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    with hv.record() as trace:
        (x * 1).sum().backward()
        (x * 1).sum().backward()
    assert trace.plot("layers").table == [("x", "14.14")]


def test_a_training_has_a_row_for_each_layer_and_pass_and_each_column_leads_to_its_pass() -> None:
    trace = train(3)
    plot = trace.plot("training", measure="rms")
    assert [row[:2] for row in plot.table[:3]] == [("net.0.weight", number) for number in "123"]
    norms = trace.plot("training").table
    assert float(plot.table[0][2]) == pytest.approx(float(norms[0][2]) / math.sqrt(12), rel=1e-3)
    assert [trace.steps[int(link.removeprefix("#step-")) - 1].pass_id for link in links(plot)] == [0, 1, 2]


def test_many_passes_share_links() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    with hv.record() as trace:
        for _ in range(450):
            (x * 2).backward()
    assert len(links(trace.plot("training"))) == 150


def test_zeros_and_what_is_not_finite_are_written_beside_their_layers() -> None:
    a, b, c = (torch.tensor([1.0, 1.0], requires_grad=True) for _ in range(3))
    with hv.record() as trace:
        (a * 0 + b * torch.tensor([float("nan"), 1.0]) + c).sum().backward()
    texts = [element.text for element in ET.fromstring(trace.plot("layers").svg()).iter() if element.text]
    assert "0" in texts and "nan" in texts
    assert trace.plot("layers", measure="zeros").table[0] == ("a", "1")
    assert trace.plot("training").svg()  # a scale without a number that it could show


def test_the_learning_rate_has_an_axis_if_it_changes() -> None:
    for scheduled in (False, True):
        plot = train(3, scheduled).plot("loss")
        assert len(plot.figure.axes) == 1 + scheduled
        assert len(plot.table) == 3 and plot.table[0][2] == "0.1"


def test_a_plot_is_shown_with_a_table_and_saved_in_the_colours_of_its_reader(tmp_path: Path) -> None:
    plot = train(1).plot()
    html = plot.to_html()
    assert html.count("<tr>") == 5 and "currentColor" in html and " id=" not in html.partition("<defs>")[0]
    plot.save(tmp_path / "layers.svg")
    assert "prefers-color-scheme" in (tmp_path / "layers.svg").read_text(encoding="utf-8")
    plot.save(tmp_path / "layers.png")
    assert (tmp_path / "layers.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="not supported"):
        plot.save(tmp_path / "layers.xyz")
    assert not (tmp_path / "layers.xyz").exists()


def test_the_same_trace_makes_the_same_svg() -> None:
    trace = train(2)
    assert trace.plot("training").svg() == trace.plot("training").svg()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "bars"}, "There is no kind 'bars' of a plot: choose one of layers, training, loss."),
        ({"measure": "mean"}, "There is no measure 'mean' of a plot: choose one of norm, rms, zeros."),
    ],
)
def test_an_unknown_plot_is_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(1).plot(**options)


def test_a_trace_without_gradients_has_no_plot() -> None:
    net = nn.Linear(2, 1)
    with hv.record(net) as trace, torch.no_grad():
        net(torch.ones(1, 2))
    with pytest.raises(ValueError, match="no gradient of a leaf was recorded"):
        trace.plot()
    with pytest.raises(ValueError, match="no pass started at a single number"):
        trace.plot("loss")


def test_tensorboard_reads_the_loss_the_rate_and_each_layer(tmp_path: Path) -> None:
    trace = train(3)
    trace.to_tensorboard(tmp_path)
    events = EventAccumulator(str(tmp_path)).Reload()
    tags = set(events.Tags()["tensors"])
    assert {"loss", "learning rate", "gradient norm/net.0.weight", "gradient zeros/net.2.bias"} <= tags
    assert len(tags) == 2 + 3 * 4
    read = [(event.step, make_ndarray(event.tensor_proto)) for event in events.Tensors("gradient norm/net.0.weight")]
    rows = [row for row in trace.plot("training").table if row[0] == "net.0.weight"]
    assert read == [(int(number), pytest.approx(float(norm), rel=1e-3)) for _name, number, norm in rows]


def test_without_matplotlib_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = train(1)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "hookviz\[plots\]"'):
        trace.plot()
