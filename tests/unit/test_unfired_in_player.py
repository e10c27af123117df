"""The player says at the pins of hooks that did not fire why."""

import torch
from torch import nn

import hookviz as hv
from hookviz.player.payload import Content
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
    return TraceContent.of(trace._data).full_content()


def reasons_at_pins(content: Content) -> list[str]:
    views = [view for view in content["chunks"].values() if isinstance(view, dict) and "pins" in view]
    pins = [pin for view in views for pin in view["pins"].values()]  # type: ignore[typeddict-item]
    return [pin["reason"] for pin in pins if "reason" in pin]


def test_a_hook_that_was_registered_too_late_has_a_pin() -> None:
    content = full_content(record_late_hook())
    (reason,) = reasons_at_pins(content)
    assert reason.startswith("keep on a did not fire.") and reason.endswith("Register it before you call backward().")
    (finding,) = content["findings"]
    assert f"{finding['text']} {finding['more']}".endswith(reason)


def test_a_hook_of_a_module_that_was_called_has_a_pin_on_its_box() -> None:
    net = nn.Linear(1, 1)
    with hv.record(net) as trace:
        output = net(torch.ones(1))
        net.register_forward_hook(keep)
        output.backward()
    assert len(reasons_at_pins(full_content(trace))) == 1
