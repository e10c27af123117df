"""hookviz and its peers, each used as its README says: capturing a pass, and showing it."""

import copy
import functools
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hookviz as hv
from benchmarks.cases import AsModule, Case
from benchmarks.observation import record_pass, run_plain

Texts = Iterable[str]
"""The texts that a tool hands out for display."""


def _keep_case(case: Case) -> Case:
    return case


def _restore_nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Peer:
    """A tool: ``capture`` runs a case and returns its trace, ``picture`` makes the output for display from that."""

    name: str
    package: str
    capture: Callable[[Case], Any]
    picture: Callable[[Any], Texts]
    data: Callable[[Any], str] = str
    """All data about hooks in the trace, as text."""
    at_once: bool = False
    """Whether it makes the picture while it captures."""
    prepare: Callable[[Case], Case] = _keep_case
    """Adapts a case for the tool; this is not measured."""
    restore: Callable[[], None] = _restore_nothing
    """Restores torch, so that a plain pass is plain."""


def display_texts(displayed: Any) -> list[str]:
    """The texts that a notebook gets for an object, in all MIME types."""
    bundle: Mapping[str, Any] = displayed._repr_mimebundle_()
    return [shown.decode() if isinstance(shown, bytes) else str(shown) for shown in bundle.values()]


def _render(drawing: Any) -> list[str]:
    """Render a ``graphviz.Digraph`` with hookviz's Graphviz, which needs no ``dot``."""
    return display_texts(hv.render(drawing))


def _source(drawing: Any) -> str:
    return str(drawing.source)


def _make_dot(case: Case) -> Any:
    from torchviz import make_dot

    root = case.root()
    drawing = make_dot(root, params=dict(case.module().named_parameters()))
    root.backward()
    return drawing


def _lens_trace(case: Case, *, part: bool = False) -> Any:
    """Trace forward and backward with TorchLens, and save activations and gradients: all, or of the case's part."""
    import torchlens as tl  # takes seconds, and replaces torch's functions for the rest of the process

    case.input.grad = None
    saved = tl.func(case.part) if part else None
    capture = tl.options.CaptureOptions(save_grads=saved or "all", backward_ready=True)
    trace = tl.trace(case.module(), case.input, save=saved, capture=capture)
    return trace.log_backward(trace[trace.output_layers[0]].out.sum())


def _lens_picture(trace: Any) -> Texts:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph")
        trace.draw(
            vis_outpath=str(path), vis_save_only=True, vis_fileformat="svg", collapse="auto", order_siblings=False
        )
        return [path.with_suffix(".svg").read_text(encoding="utf-8")]


def _lens_data(trace: Any) -> str:
    """The hooks that TorchLens lists for modules, and all saved gradients, as text."""
    kinds = ("forward_hooks", "forward_pre_hooks", "backward_hooks", "full_backward_hooks", "full_backward_pre_hooks")
    hooks = [getattr(module, kind) for module in trace.modules for kind in kinds]
    return f"{hooks} {[op.grad for op in trace]}"


def _unwrap_lens() -> None:
    from torchlens.backends.torch.wrappers import unwrap_torch

    unwrap_torch()


def _on_meta(case: Case) -> Case:
    """Copy the case to the device ``meta``, since torchview moves the module to its device."""
    return replace(case, run=copy.deepcopy(case.module()).to("meta"), input=case.input.detach().to("meta"))


def _draw_graph(case: Case) -> Any:
    from torchview import draw_graph

    hide = not isinstance(case.run, AsModule)  # else a function would be a single box
    drawn = draw_graph(case.module(), input_data=case.input, device="meta", mode="train", hide_module_functions=hide)
    return drawn.visual_graph


def _trace_model(case: Case) -> str:
    import torchvista

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.html")
        torchvista.trace_model(case.module(), case.input, export_path=str(path))
        return path.read_text(encoding="utf-8")


def _explore(case: Case) -> Any:
    """Watch a pass with torchexplorer. It has no way to take its hooks off, so it gets a copy."""
    import torchexplorer

    module = copy.deepcopy(case.module())
    watched = torchexplorer.watch(module, log_freq=1, backend="none", verbose=False)
    module(case.input).sum().backward()
    return watched


def _explorer_data(watched: Any) -> Texts:
    """Return what torchexplorer's page reads: the layout with the histograms in it."""
    from torchexplorer.render import layout, serialize

    return [json.dumps(serialize.serialize_rows(layout.layout(watched.structure, None)[0]))]


@functools.cache
def _start_run() -> Any:
    import wandb

    settings = wandb.Settings(silent=True)
    return wandb.init(mode="offline", dir=tempfile.mkdtemp(prefix="wandb-"), settings=settings)


def _watch(case: Case) -> str:
    """Watch gradients and parameters with Weights & Biases, and log them without a network; its server draws them."""
    run, module = _start_run(), case.module()
    run.watch(module, log="all", log_freq=1)
    case.root().backward()
    run.log({})
    run.unwatch(module)
    return ""


def _firings(trace: hv.Trace) -> str:
    return str(trace.firings)


_LENS = Peer("TorchLens", "torchlens", _lens_trace, _lens_picture, _lens_data, restore=_unwrap_lens)
PLAIN = Peer("a plain pass", "torch", run_plain, lambda _: [])
PEERS: dict[str, Peer] = {
    "hookviz": Peer("hookviz", "hookviz", record_pass, display_texts, _firings),
    "torchviz": Peer("torchviz", "torchviz", _make_dot, _render, _source),
    "torchlens": _LENS,
    "torchlens-part": replace(_LENS, name="TorchLens (part)", capture=functools.partial(_lens_trace, part=True)),
    "torchview": Peer("torchview", "torchview", _draw_graph, _render, _source, prepare=_on_meta),
    "torchvista": Peer("torchvista", "torchvista", _trace_model, lambda page: [page], at_once=True),
    "torchexplorer": Peer("torchexplorer", "torchexplorer", _explore, _explorer_data, at_once=True),
    "wandb": Peer("wandb.watch", "wandb", _watch, lambda _: [], at_once=True),
}
"""Short name → tool."""
