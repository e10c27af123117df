"""hookviz and its peers, each used as its own README says: how it follows a pass, and what it then shows."""

import copy
import functools
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hookviz as hv
from benchmarks.cases import AsModule, Case
from benchmarks.observation import record_pass, run_plain

Shown = Iterable[str]
"""The texts that are handed to whoever shows them."""


def _same(case: Case) -> Case:
    return case


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Peer:
    """A tool: ``capture`` runs a case and keeps a trace of it, ``picture`` makes of the trace what is displayed."""

    name: str
    package: str
    capture: Callable[[Case], Any]
    picture: Callable[[Any], Shown]
    data: Callable[[Any], str] = str
    """All that the trace says of hooks, in words."""
    at_once: bool = False
    """It makes the picture while it captures."""
    prepare: Callable[[Case], Case] = _same
    """Brings a case into the shape that the tool wants; this is not measured."""
    restore: Callable[[], None] = _nothing
    """Gives torch back as it was, so that a plain pass is plain."""


def displayed(thing: Any) -> list[str]:
    """What a notebook is sent for ``thing``: the texts for all the forms in which it could be shown."""
    bundle: Mapping[str, Any] = thing._repr_mimebundle_()
    return [shown.decode() if isinstance(shown, bytes) else str(shown) for shown in bundle.values()]


def _drawn(drawing: Any) -> list[str]:
    """A ``graphviz.Digraph`` as displayed, drawn by hookviz's Graphviz: it needs no ``dot``."""
    return displayed(hv.render(drawing))


def _source(drawing: Any) -> str:
    return str(drawing.source)


def _make_dot(case: Case) -> Any:
    from torchviz import make_dot

    root = case.root()
    drawing = make_dot(root, params=dict(case.module().named_parameters()))
    root.backward()
    return drawing


def _lens_trace(case: Case, *, part: bool = False) -> Any:
    """Forward and backward followed by TorchLens, with activations and gradients saved: all, or the case's part."""
    import torchlens as tl  # it takes seconds, and replaces torch's functions for the rest of the process

    case.input.grad = None
    saved = tl.func(case.part) if part else None
    capture = tl.options.CaptureOptions(save_grads=saved or "all", backward_ready=True)
    trace = tl.trace(case.module(), case.input, save=saved, capture=capture)
    return trace.log_backward(trace[trace.output_layers[0]].out.sum())


def _lens_shown(trace: Any) -> Shown:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph")
        trace.draw(
            vis_outpath=str(path), vis_save_only=True, vis_fileformat="svg", collapse="auto", order_siblings=False
        )
        return [path.with_suffix(".svg").read_text(encoding="utf-8")]


def _lens_data(trace: Any) -> str:
    """The hooks that are listed for modules, and all saved gradients."""
    kinds = ("forward_hooks", "forward_pre_hooks", "backward_hooks", "full_backward_hooks", "full_backward_pre_hooks")
    hooks = [getattr(module, kind) for module in trace.modules for kind in kinds]
    return f"{hooks} {[op.grad for op in trace]}"


def _lens_off() -> None:
    from torchlens.backends.torch.wrappers import unwrap_torch

    unwrap_torch()


def _on_meta(case: Case) -> Case:
    """The module is moved to the device that torchview is told, so it gets one of its own."""
    return replace(case, run=copy.deepcopy(case.module()).to("meta"), input=case.input.detach().to("meta"))


def _draw_graph(case: Case) -> Any:
    from torchview import draw_graph

    hide = not isinstance(case.run, AsModule)  # a function would be a single box
    drawn = draw_graph(case.module(), input_data=case.input, device="meta", mode="train", hide_module_functions=hide)
    return drawn.visual_graph


def _trace_model(case: Case) -> str:
    import torchvista

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.html")
        torchvista.trace_model(case.module(), case.input, export_path=str(path))
        return path.read_text(encoding="utf-8")


def _firings(trace: hv.Trace) -> str:
    return str(trace.firings)


_LENS = Peer("TorchLens", "torchlens", _lens_trace, _lens_shown, _lens_data, restore=_lens_off)
PLAIN = Peer("a plain pass", "torch", run_plain, lambda _: [])
PEERS: dict[str, Peer] = {
    "hookviz": Peer("hookviz", "hookviz", record_pass, displayed, _firings),
    "torchviz": Peer("torchviz", "torchviz", _make_dot, _drawn, _source),
    "torchlens": _LENS,
    "torchlens-part": replace(_LENS, name="TorchLens (part)", capture=functools.partial(_lens_trace, part=True)),
    "torchview": Peer("torchview", "torchview", _draw_graph, _drawn, _source, prepare=_on_meta),
    "torchvista": Peer("torchvista", "torchvista", _trace_model, lambda page: [page], at_once=True),
}
"""Short name → the tool."""
