"""The player lists the hooks that did not fire, and says at their pins why."""

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.player import unfired_texts
from hookviz.player.payload import Content
from hookviz.player.static_picture import static_picture
from hookviz.player.trace_content import TraceContent


def keep(*given: object) -> None:
    return None


def record_late_hook() -> hv.Trace:
    a = torch.tensor(2.0, requires_grad=True)
    with hv.record() as trace:
        (a * a).backward()
        a.register_hook(keep)
    return trace


def full_content(trace: hv.Trace) -> Content:
    return TraceContent(trace._data).full_content()


def reasons_at_pins(content: Content) -> list[str]:
    views = [view for view in content["chunks"].values() if isinstance(view, dict) and "pins" in view]
    pins = [pin for view in views for pin in view["pins"].values()]  # type: ignore[typeddict-item]
    return [pin["reason"] for pin in pins if "reason" in pin]


def test_a_hook_that_was_registered_too_late_is_listed_and_has_a_pin() -> None:
    content = full_content(record_late_hook())
    (row,) = content["runs"][0]["unfired"]
    assert (row["step"], row["hook"], row["on"], row["kind"]) == (0, "keep", "a", "tensor hook")
    assert row["advice"] == "Register it before you call backward()."
    assert [reason.startswith("keep on a did not fire.") for reason in reasons_at_pins(content)] == [True]


def test_a_hook_of_a_module_that_was_called_has_a_pin_on_its_box() -> None:
    net = nn.Linear(1, 1)
    with hv.record(net) as trace:
        output = net(torch.ones(1))
        net.register_forward_hook(keep)
        output.backward()
    assert len(reasons_at_pins(full_content(trace))) == 1


def test_a_long_list_says_how_many_more_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfired_texts, "MAX_UNFIRED", 1)
    a = torch.tensor(2.0, requires_grad=True)
    with hv.record() as trace:
        (a * a).backward()
        for _ in range(3):
            a.register_hook(keep)
    run = full_content(trace)["runs"][0]
    assert len(run["unfired"]) == 1
    assert run["unfired_more"] == "2 more hooks did not fire: trace.unfired lists all of them."


def test_paper_has_the_list_once_and_where_predicting_hides_it() -> None:
    page = static_picture(full_content(record_late_hook()), "", packed=False)
    assert page.count("Register it before you call backward().") == 1
    assert '<div class="hv-scroll"><table><caption>Hooks that did not fire' in page


def test_a_hook_that_was_removed_after_the_last_step_leads_to_no_step() -> None:
    a = torch.tensor(2.0, requires_grad=True)
    with hv.record() as trace:
        (a * a).backward()
        a.register_hook(keep).remove()
    assert [row.step for row in trace.unfired] == [None]
    assert full_content(trace)["runs"][0]["unfired"][0]["step"] == -1


def test_only_the_first_run_of_a_what_if_lists_them() -> None:
    def run() -> None:
        a = torch.tensor(2.0, requires_grad=True)
        b = a * 3
        b.register_hook(lambda grad: grad * 2)
        b.backward()
        a.register_hook(keep)

    runs = hv.whatif(run).content()["runs"]
    assert ["unfired" in one for one in runs] == [True] + [False] * (len(runs) - 1) and len(runs) > 1
