"""Plots of a trace: what they show, how they are saved, and what a trace without gradients says."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.optim import SGD

import hookviz as hv
from hookviz.api.trace import data_of
from hookviz.autograd.tensor_samples import distribute
from hookviz.picture.plots.histograms import count_in_columns, find_limits
from hookviz.trace.histogram_rows import HistogramRow


def train(passes: int, scheduled: bool = False, **options: bool) -> hv.Trace:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))
    optimizer = SGD(net.parameters(), lr=0.1)
    with hv.record(net, **options) as trace:
        for number in range(passes):
            optimizer.zero_grad()
            net(torch.randn(5, 3)).square().mean().backward()
            optimizer.step()
            optimizer.param_groups[0]["lr"] = 0.1 / (number + 2) if scheduled else 0.1
    return trace


def links(plot: hv.Plot) -> list[str]:
    found = (element.get("{http://www.w3.org/1999/xlink}href", "") for element in ET.fromstring(plot.svg()).iter())
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


def test_a_training_has_a_column_for_each_pass_that_leads_to_it() -> None:
    trace = train(3)
    norms = [trace.plot("layers", step=data_of(trace).lookup.steps(number)[0]).table[0][1] for number in range(3)]
    for kind in ("training", "curves"):
        plot = trace.plot(kind)
        smallest, *_ignored, largest = sorted(norms, key=float)
        assert plot.table[0] == ("net.0.weight", "3", norms[0], smallest, largest, norms[2])
        assert [trace.steps[int(link.removeprefix("#step-")) - 1].pass_id for link in links(plot)] == [0, 1, 2]


def test_many_passes_share_links() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    with hv.record() as trace:
        for _ in range(450):
            (x * 2).backward()
    assert len(links(trace.plot("training"))) == 90


def test_zeros_and_what_is_not_finite_are_written_beside_their_layers() -> None:
    a, b, c = (torch.tensor([1.0, 1.0], requires_grad=True) for _ in range(3))
    with hv.record() as trace:
        (a * 0 + b * torch.tensor([float("nan"), 1.0]) + c).sum().backward()
    texts = [element.text for element in ET.fromstring(trace.plot("layers").svg()).iter() if element.text]
    assert "0" in texts and "nan" in texts
    assert trace.plot("layers", measure="zeros").table[0] == ("a", "1")
    assert trace.plot("training").svg()  # a scale without a number that it could show


def test_the_learning_rate_has_an_axis_if_it_changes_and_passes_have_their_numbers() -> None:
    for scheduled in (False, True):
        plot = train(3, scheduled).plot("loss")
        assert len(plot.figure.axes) == 1 + scheduled
        assert [(row[0], row[1], row[2]) for row in plot.table][1] == ("learning rate of optimizer", "3", "0.1")
    x = torch.ones(1, requires_grad=True)
    with hv.record(every=10) as trace:
        for _ in range(21):
            x.sum().backward()
    for kind in ("loss", "curves"):
        assert list(trace.plot(kind).figure.axes[0].lines[0].get_xdata()) == [1, 11, 21]


def test_a_plot_is_shown_with_a_table_and_saved_in_the_colours_of_its_reader(tmp_path: Path) -> None:
    plot = train(1).plot()
    html = plot.to_html()
    assert html.count("<tr>") == 5 and "currentColor" in html and " id=" not in html.partition("<defs>")[0]
    plot.save(tmp_path / "layers.svg")
    written = (tmp_path / "layers.svg").read_text(encoding="utf-8")
    assert "prefers-color-scheme" in written and ">Gradients of the layers<" in written
    assert plot.to_html().count("Gradients of the layers") == html.count("Gradients of the layers")
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
        ({"kind": "bars"}, "no kind 'bars' of a plot: choose one of layers, curves, training, histograms, loss."),
        ({"of": "inputs"}, "no of 'inputs' of a plot: choose one of gradients, outputs, weights."),
        (
            {"measure": "max"},
            "no measure 'max' of a plot: choose one of norm, rms, mean_abs, mean, std, zeros, update.",
        ),
        ({"measure": "update"}, 'write of="weights"'),
        ({"kind": "histograms"}, r"needs histograms: write record\(..., histograms=True\)"),
        ({"measure": "mean"}, r"needs histograms"),
        ({"layers": "encoder.*"}, "no layer is named like 'encoder.*'. The names are net.0.weight"),
        ({"of": "weights", "measure": "update"}, "needs histograms"),
        ({"kind": "loss", "others": {"b": train(1)}}, 'in the kind "layers" only'),
    ],
)
def test_a_plot_that_there_is_not_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train(1).plot(**options)


def test_histograms_of_one_pass_lead_to_their_steps_and_of_several_stand_upright() -> None:
    trace = train(3, histograms=True)
    plot = trace.plot("histograms", of="outputs", step=0)
    assert [row[:2] for row in plot.table] == [("net.0", "1"), ("net.1", "1"), ("net.2", "1")]
    assert [trace.steps[int(link.removeprefix("#step-")) - 1].on for link in links(plot)] == ["net.0", "net.1", "net.2"]
    heat = trace.plot("histograms", layers="*.weight")
    assert [row[:2] for row in heat.table] == [("net.0.weight", "3"), ("net.2.weight", "3")]
    assert len(links(heat)) == 6


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
    assert len(links(plot)) == 4
    with pytest.raises(TypeError, match="others is name → trace"):
        trace.plot(others=[other])  # type: ignore[arg-type]


def test_parameters_of_modules_that_are_never_called_are_plotted() -> None:
    attention = nn.MultiheadAttention(4, 2)
    x = torch.randn(3, 1, 4)
    with hv.record(attention, histograms=True) as trace:
        attention(x, x, x)[0].sum().backward()
    names = {f"attention.{name}" for name, parameter in attention.named_parameters() if parameter.grad is not None}
    assert {row[0] for row in trace.plot().table} == names
    assert {row[0] for row in trace.plot("histograms", of="weights").table} == names


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


def test_each_group_of_each_optimizer_has_its_rate() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    slow = SGD([{"params": net[0].parameters(), "lr": 0.1}, {"params": net[1].parameters(), "lr": 0.2}])
    with hv.record(net) as trace:
        for _ in range(2):
            net(torch.ones(1, 2)).sum().backward()
            slow.step()
            slow.param_groups[1]["lr"] = 0.02
    table = trace.plot("loss").table
    assert [(row[0], row[2], row[5]) for row in table[1:]] == [
        ("learning rate of slow, group 0", "0.1", "0.1"),
        ("learning rate of slow, group 1", "0.2", "0.02"),
    ]


def test_the_update_of_a_step_that_runs_its_passes_is_the_whole_step() -> None:
    net = nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(net.parameters(), max_iter=3)
    before = net.weight.detach().clone()

    def run() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (net(torch.tensor([[1.0, 2.0]])) - 3).square().sum()
        loss.backward()
        return loss

    with hv.record(net, histograms=True) as trace:
        optimizer.step(run)
    move = (net.weight.detach() - before).square().mean().sqrt().item()
    (row,) = [
        row for row in data_of(trace).histograms if row.of == "weights" and row.total == 2 and row.move is not None
    ]
    assert row.move == pytest.approx(move, rel=1e-5)


def test_what_a_curve_or_a_colour_cannot_show_is_marked() -> None:
    x = torch.tensor([1.0, 1.0], requires_grad=True)
    y = torch.tensor([1.0, 1.0], requires_grad=True)
    with hv.record(histograms=True) as trace:
        for factor in (1.0, 0.0, float("nan")):
            (x * factor).sum().backward()
        y.sum().backward()
    for kind, marks in (("curves", {"NaN or Inf", "0"}), ("training", {"NaN or Inf", "0", "no value"})):
        texts = {(element.text or "").strip() for element in ET.fromstring(trace.plot(kind).svg()).iter()}
        assert marks <= texts
    assert trace.plot("histograms", step=data_of(trace).lookup.steps(2)[0]).table[0][3] == "nan"


def test_what_is_known_from_a_sample_is_marked_and_what_is_known_exactly_is_not() -> None:
    net, x = nn.Linear(100, 100), torch.randn(40, 100)
    with hv.record(net, histograms=True) as trace:
        net(x).sum().backward()
    assert trace.plot(of="outputs", measure="mean_abs").figure.axes[0].get_xlabel().startswith("≈ ")
    plot = trace.plot(of="outputs")
    assert plot.figure.axes[0].get_xlabel() == "norm of the output"
    assert float(plot.table[0][1]) == pytest.approx(net(x).norm().item(), rel=1e-3)


def test_names_are_shown_as_they_are() -> None:
    names = ("_first", "cost_in_$_and_$", "梯度")
    leaves = {name: torch.tensor([3.0, 4.0], requires_grad=True) for name in names}
    with hv.record(names=leaves, histograms=True) as trace:
        for _ in range(2):
            sum(leaves.values(), torch.zeros(2)).sum().backward()
    for kind in ("layers", "curves", "training", "histograms"):
        texts = [(element.text or "").strip() for element in ET.fromstring(trace.plot(kind).svg()).iter()]
        assert set(names) <= {text.partition("\n")[0] for text in texts}


def test_update_by_weight_is_what_the_optimizer_did() -> None:
    trace = train(2, histograms=True)
    rates = trace.plot("curves", of="weights", measure="update", layers="net.0.weight").table
    gradient = trace.plot("curves", measure="rms", layers="net.0.weight").table
    weight = trace.plot("curves", of="weights", measure="rms", layers="net.0.weight").table
    assert float(rates[0][2]) == pytest.approx(0.1 * float(gradient[0][2]) / float(weight[0][2]), rel=1e-3)


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
    train(1).to_tensorboard(tmp_path / "plain")
    assert len(EventAccumulator(str(tmp_path / "plain")).Reload().Tags()["scalars"]) == 2 + 3 * 4


def test_without_matplotlib_the_message_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = train(1)
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "hookviz\[plots\]"'):
        trace.plot()


def test_chart_of_several_traces_is_wider_than_high_so_that_its_letters_are_large_on_a_slide() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(*[nn.Linear(2, 2) for _ in range(9)])
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
    svg = trace.plot("layers", layers="*.bias", others={"b": trace, "c": trace, "d": trace}).svg()
    width, height = (float(ET.fromstring(svg).get(name, "").removesuffix("pt")) for name in ("width", "height"))
    assert 550 / height >= 1.8 and width > height  # the room on a slide; a letter has 10 points
