"""Plots of a trace: what they show, how they are saved, and what a trace without gradients says."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD

import hookviz as hv
from hookviz.api.trace import data_of
from hookviz.autograd.tensor_samples import distribute
from hookviz.picture.plots.histograms import count_in_columns, find_limits
from hookviz.trace.histogram_rows import HistogramRow


def train(passes: int, **options: bool) -> hv.Trace:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
    optimizer = SGD(net.parameters(), lr=0.1)
    with hv.record(net, **options) as trace:
        for _ in range(passes):
            optimizer.zero_grad()
            net(torch.randn(5, 3)).square().mean().backward()
            optimizer.step()
    return trace


def linked_steps(plot: hv.Plot) -> list[int]:
    found = (element.get("{http://www.w3.org/1999/xlink}href", "") for element in ET.fromstring(plot.svg()).iter())
    return [int(link.removeprefix("#step-")) - 1 for link in found if link.startswith("#step-")]


def texts_of(plot: hv.Plot) -> set[str]:
    """The first line of each text in a plot."""
    return {(element.text or "").strip().partition("\n")[0] for element in ET.fromstring(plot.svg()).iter()}


def leaf(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, requires_grad=True)


def test_layers_stand_in_the_order_of_the_model_with_their_norms_and_lead_to_their_steps() -> None:
    trace = train(1)
    plot = trace.plot("layers")
    written = {step.on: step for step in trace.steps if step.kind == "accumulate"}
    assert [name for name, _norm in plot.table] == ["net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias"]
    for name, norm in plot.table:
        assert float(norm) == pytest.approx(written[name].after.norm, rel=1e-3)  # type: ignore[union-attr]
    steps = [trace.steps[index] for index in linked_steps(plot)]
    assert {step.kind for step in steps} == {"arrive"}
    assert [step.on for step in steps] == [name for name, _norm in plot.table]


def test_shares_of_zeros_stand_between_0_and_1() -> None:
    x = leaf(1.0, 2.0)
    with hv.record(names={"x": x}) as trace:
        (x * torch.tensor([0.0, 3.0])).sum().backward()
    plot = trace.plot("layers", measure="zeros")
    assert [*plot.table] == [("x", "0.5")]
    assert plot.figure.axes[0].get_xlim() == pytest.approx((-0.02, 1.02))


def test_a_gradient_is_plotted_as_hooks_left_it_and_without_what_was_in_grad_before() -> None:
    x = leaf(3.0, 4.0)
    x.register_hook(lambda grad: grad * 10)
    with hv.record() as trace:
        for _ in range(2):
            (x * 1).sum().backward()
    assert trace.plot("layers").table == [("x", "14.14")]


def test_a_training_has_a_column_for_each_pass_that_leads_to_it() -> None:
    trace = train(3)
    norms = [trace.plot("layers", step=data_of(trace).lookup.steps(number)[0]).table[0][1] for number in range(3)]
    for kind in ("training", "curves"):
        plot = trace.plot(kind)
        smallest, *_ignored, largest = sorted(norms, key=float)
        assert plot.table[0] == ("net.0.weight", "3", norms[0], smallest, largest, norms[2])
        assert [trace.steps[index].pass_id for index in linked_steps(plot)] == [0, 1, 2]


def test_each_group_of_an_optimizer_has_its_rate_and_an_axis_if_one_changes() -> None:
    assert len(train(2).plot("loss").figure.axes) == 1
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    slow = SGD([{"params": net[0].parameters(), "lr": 0.1}, {"params": net[1].parameters(), "lr": 0.2}])
    with hv.record(net) as trace:
        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()
            slow.step()
            slow.param_groups[1]["lr"] = 0.02
    plot = trace.plot("loss")
    assert len(plot.figure.axes) == 2
    assert [(row[0], row[1], row[2], row[5]) for row in plot.table[1:]] == [
        ("learning rate of slow, group 0", "2", "0.1", "0.1"),
        ("learning rate of slow, group 1", "2", "0.2", "0.02"),
    ]


def test_passes_have_their_numbers_and_many_share_links() -> None:
    x = leaf(1.0)
    with hv.record(every=2) as trace:
        for _ in range(900):
            (x * 2).backward()
    assert list(trace.plot("curves").figure.axes[0].lines[0].get_xdata())[:3] == [1, 3, 5]
    assert list(trace.plot("loss").figure.axes[0].lines[0].get_xdata())[:3] == [1, 3, 5]
    assert len(linked_steps(trace.plot("training"))) == 90


def test_a_plot_is_shown_with_a_table_and_saved_in_the_colours_of_its_reader(tmp_path: Path) -> None:
    plot = train(1).plot()
    html = plot.to_html()
    assert html == train(1).plot().to_html()
    assert html.count("<tr>") == 5 and "currentColor" in html and " id=" not in html.partition("<defs>")[0]
    plot.save(tmp_path / "layers.svg")
    written = (tmp_path / "layers.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme" in written and ">Gradients of the layers<" in written
    plot.save(tmp_path / "layers.png")
    assert (tmp_path / "layers.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "bars"}, "no kind 'bars' of a plot: choose one of layers, curves, training, histograms, loss."),
        ({"kind": "histograms"}, r"needs histograms: write record\(..., histograms=True\)"),
        ({"layers": "encoder.*"}, "no layer is named like 'encoder.*'. The names are net.0.weight"),
    ],
)
def test_a_plot_that_there_is_not_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(1).plot(**options)


def test_the_columns_of_a_histogram_hold_all_numbers_between_limits_that_hold_nearly_all() -> None:
    torch.manual_seed(0)
    numbers = torch.cat([torch.randn(2000), torch.tensor([1000.0])])
    row = HistogramRow(0, "weights", 2001, *distribute(numbers))
    limits = find_limits([row])
    assert -4 < limits.low < -2.5 and 2.5 < limits.high < 4
    shares = count_in_columns(row, limits)
    assert sum(shares) == pytest.approx(1)
    exact = torch.histc(numbers.clamp(limits.low, limits.high), len(shares), *limits) / 2001
    assert (torch.tensor(shares) - exact).abs().max() < 0.01


def test_other_traces_stand_beside_with_a_pattern_of_their_own() -> None:
    trace, other = train(1), train(2)
    plot = trace.plot("layers", others={"longer": other})
    assert plot.table[0] == ("net.0.weight", trace.plot().table[0][1], other.plot().table[0][1])
    bars = plot.figure.axes[0].containers
    assert [each[0].get_hatch() or "" for each in bars] == ["", "////"]  # type: ignore[index]
    assert len(linked_steps(plot)) == 4


def test_parameters_of_modules_that_are_never_called_are_plotted() -> None:
    attention = nn.MultiheadAttention(4, 2)
    x = torch.randn(3, 1, 4)
    with hv.record(attention) as trace:
        attention(x, x, x)[0].sum().backward()
    names = {f"attention.{name}" for name, parameter in attention.named_parameters() if parameter.grad is not None}
    assert {row[0] for row in trace.plot().table} == names


def test_an_evaluation_is_no_pass() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
    with hv.record(net, histograms=True) as trace:
        out = net(torch.ones(2, 3))
        with torch.no_grad():
            net(torch.full((2, 3), 100.0))
        out.sum().backward()
        net(torch.full((2, 3), 50.0))
    (row, _tanh) = trace.plot(of="outputs", measure="rms").table
    assert float(row[1]) == pytest.approx(net[0](torch.ones(2, 3)).square().mean().sqrt().item(), rel=1e-3)
    assert trace.plot("histograms", of="outputs").table[0][1] == "1"


def test_what_a_bar_a_curve_or_a_colour_cannot_show_is_written() -> None:
    x, y = leaf(1.0, 1.0), leaf(1.0, 1.0)
    with hv.record(histograms=True) as trace:
        for factor in (1.0, 0.0, float("nan")):
            (x * factor).sum().backward()
        y.sum().backward()
    assert {"NaN or Inf", "0"} <= texts_of(trace.plot("curves"))
    assert {"NaN or Inf", "0", "no value"} <= texts_of(trace.plot("training"))
    starts = [data_of(trace).lookup.steps(number)[0] for number in range(4)]
    assert "0" in texts_of(trace.plot("layers", step=starts[1]))
    assert "nan" in texts_of(trace.plot("layers", step=starts[2]))
    assert trace.plot("layers", step=starts[1], measure="zeros").table[0] == ("x", "1")
    assert trace.plot("histograms", step=starts[2]).table[0][3] == "nan"


def test_histograms_lead_to_their_steps_and_update_by_weight_is_what_the_optimizer_did() -> None:
    trace = train(3, histograms=True)
    plot = trace.plot("histograms", of="outputs", step=0)
    assert [row[:2] for row in plot.table] == [("net.0", "1"), ("net.1", "1"), ("net.2", "1")]
    assert [trace.steps[index].on for index in linked_steps(plot)] == ["net.0", "net.1", "net.2"]
    heat = trace.plot("histograms", layers="*.weight")
    assert [row[:2] for row in heat.table] == [("net.0.weight", "3"), ("net.2.weight", "3")]
    assert len(linked_steps(heat)) == 6
    chosen = {"kind": "curves", "layers": "net.0.weight"}
    update, weight = (float(trace.plot(of="weights", measure=name, **chosen).table[0][2]) for name in ("update", "rms"))
    gradient = float(trace.plot(measure="rms", **chosen).table[0][2])
    assert update == pytest.approx(0.1 * gradient / weight, rel=1e-3)


def test_a_trace_without_gradients_has_no_plot() -> None:
    net = nn.Linear(2, 1)
    with hv.record(net) as trace, torch.no_grad():
        net(torch.ones(1, 2))
    with pytest.raises(ValueError, match="no gradient of a leaf was recorded"):
        trace.plot()
    with pytest.raises(ValueError, match="no pass started at a single number"):
        trace.plot("loss")


def test_tensorboard_reads_curves_and_histograms(tmp_path: Path) -> None:
    trace = train(3, histograms=True)
    trace.to_tensorboard(tmp_path)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path)).Reload()
    tags = set(events.Tags()["scalars"])
    assert {
        "loss",
        "learning rate/optimizer",
        "gradient norm/net.0.weight",
        "output std/net.1",
        "weight update/net.2.bias",
    } <= tags
    assert len(tags) == 2 + 3 * 4 + 3 * 3 + 2 * 4
    read = [(event.step, event.value) for event in events.Scalars("gradient norm/net.0.weight")]
    (row,) = trace.plot("curves", layers="net.0.weight").table
    assert [number for number, _norm in read] == [1, 2, 3]
    assert read[0][1] == pytest.approx(float(row[2]), rel=1e-3)
    histogram = events.Histograms("outputs/net.0")[0].histogram_value
    assert histogram.num == sum(histogram.bucket) == 20


def test_without_matplotlib_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = train(1)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "hookviz\[plots\]"'):
        trace.plot()
