"""Models of other libraries, each recorded and shown: ``python -m tests.proof.models [torchvision timm transformers]``.

It needs the libraries (``pip install torchvision timm transformers``) and no network: nothing is trained, sizes are as
small as a model allows, and what has many weights runs on torch's ``meta`` device, which has shapes but no numbers. It
prints a line for each model that failed, and a table. Models run in processes of their own, so that one that dies is
counted, and the others go on.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Timer
from typing import Any

import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.picture import layout
from hookviz.player.trace_content import TraceContent

from .pictures import way_of_drawn

HEAVY = 3_000_000
"""A model of more weights than this has no numbers."""
MOST_MEMORY = 12 * 2**30
"""Bytes: a model that needs more fails by itself, lest it take the machine down."""
SECONDS = 180.0
"""One that takes longer is ended, and counts as failed."""
FAMILIES = ("torchvision", "timm", "transformers")
TINY = ("test_", "atto", "femto", "pico", "nano", "tiny", "xxs", "xx_small", "_s0", "_b0", "_t0", "small", "_s", "18")

Run = Callable[[], Any]
"""A forward pass."""


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor that has a gradient in what a model returned."""
    if isinstance(value, Tensor):
        return value if value.requires_grad and value.is_floating_point() else None
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return next((found for part in parts if (found := first_tensor(part)) is not None), None)


# -- the libraries


def torchvision_names() -> list[str]:
    models = importlib.import_module("torchvision.models")
    return [name for name in models.list_models() if "quantized" not in name]


def torchvision_model(name: str, device: str) -> tuple[nn.Module, Run]:
    models = importlib.import_module("torchvision.models")
    module = models.get_model_builder(name).__module__
    options: dict[str, Any] = {} if "detection" in module or "raft" in module else {"num_classes": 10}
    if "detection" in module or "segmentation" in module:
        options["weights_backbone"] = None
    with torch.device(device):
        net = models.get_model(name, weights=None, **options)
    if "video" in module:
        x = torch.rand(1, 3, 16 if "mvit" in name else 8, *((224, 224) if "mvit" in name else (64, 64)), device=device)
    elif "optical_flow" in module:
        x = torch.rand(2, 3, 128, 128, device=device)
        return net, lambda: net(x, x, num_flow_updates=2)
    else:
        size = 224 if name.startswith(("vit", "maxvit", "inception", "googlenet", "vgg", "alexnet")) else 64
        x = torch.rand(2, 3, size, size, device=device)
    if "detection" in module:
        net.eval()
        return net, lambda: net(list(x))
    return net, lambda: net(x)


def timm_names() -> list[str]:
    """Of each family up to three models, the smallest as far as names tell."""
    timm = importlib.import_module("timm")

    def size(name: str) -> tuple[int, int, str]:
        return next((k for k, word in enumerate(TINY) if word in name), len(TINY)), len(name), name

    found = []
    for family in timm.list_modules():
        with suppress(Exception):
            found += sorted(timm.list_models(module=family, exclude_filters="test_*"), key=size)[:3]
    return list(dict.fromkeys(found))


def timm_model(name: str, device: str) -> tuple[nn.Module, Run]:
    timm = importlib.import_module("timm")
    with torch.device(device):
        try:
            net = timm.create_model(name, num_classes=10, img_size=64)
            size = 64
        except (TypeError, ValueError, AssertionError, RuntimeError):
            net = timm.create_model(name, num_classes=10)
            size = max(net.default_cfg.get("input_size", (3, 224, 224))[-1], 64)
    x = torch.rand(2, 3, size, size, device=device)
    return net, lambda: net(x)


SIZES = {
    32: ("hidden_size d_model n_embd dim embedding_size image_size"),
    48: ("intermediate_size d_ff encoder_ffn_dim decoder_ffn_dim ffn_dim"),
    2: (
        "num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers num_decoder_layers "
        "num_key_value_heads num_experts num_local_experts eos_token_id"
    ),
    4: ("num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads"),
    8: ("head_dim d_kv patch_size q_lora_rank kv_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim"),
    99: ("vocab_size"),
    64: ("max_position_embeddings n_positions"),
    3: ("num_channels"),
    1: ("num_experts_per_tok bos_token_id"),
    24: ("moe_intermediate_size"),
    0: ("pad_token_id"),
}
"""Size → what configurations call the sizes that shall be so small."""


def transformers_names() -> list[str]:
    importlib.import_module("transformers")
    auto = importlib.import_module("transformers.models.auto.modeling_auto")
    return sorted(auto.MODEL_MAPPING_NAMES)


def transformers_model(name: str, device: str) -> tuple[nn.Module, Run]:
    transformers = importlib.import_module("transformers")
    config = transformers.AutoConfig.for_model(name)
    shrink(config)
    with torch.device("meta"):
        weights = sum(p.numel() for p in transformers.AutoModel.from_config(config).parameters())
    if weights > 4 * HEAVY:
        raise ValueError("its configuration has sizes that have other names")
    with torch.device(device):
        net = transformers.AutoModel.from_config(config)
        words = torch.ones(1, 7, dtype=torch.long)
        image, sound = torch.rand(1, 3, 32, 32), torch.rand(1, 4000)
    tries: list[dict[str, Any]] = [{"input_ids": words}, {"input_ids": words, "decoder_input_ids": words}]
    tries += [{"pixel_values": image}, {"input_ids": words, "pixel_values": image}, {"input_values": sound}]
    return net, working(net, tries)


def shrink(config: Any) -> None:
    """Make the sizes in a configuration small, and in those that it holds."""
    for size, options in SIZES.items():
        for option in options.split():
            if isinstance(getattr(config, option, None), int):
                with suppress(Exception):
                    setattr(config, option, size)
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:2]
    for inner in list(vars(config).values()):
        if hasattr(inner, "to_dict") and hasattr(inner, "model_type"):
            shrink(inner)


def working(net: nn.Module, tries: list[dict[str, Any]]) -> Run:
    """The first way of calling ``net`` that it takes."""
    for given in tries:
        with suppress(Exception), torch.no_grad():
            net(**given)
            return lambda: net(**given)
    raise ValueError("it takes none of the inputs that were tried")


# -- one process


def build(library: str, name: str) -> tuple[nn.Module, Run]:
    """A model with numbers if it has few weights, else without."""
    make = globals()[f"{library}_model"]
    device = "cpu"
    if library != "transformers":  # those are made small, and tried before they are used
        weights = sum(p.numel() for p in make(name, "meta")[0].parameters())
        device = "meta" if weights > HEAVY else "cpu"
    torch.manual_seed(0)
    return make(name, device)


def show(library: str, name: str) -> dict[str, Any]:
    """Run one model plain, then record it and make its page; how its pictures were drawn."""
    net, run = build(library, name)
    loss = first_tensor(run())
    if loss is None:
        return {"skipped": "it returns nothing that has a gradient"}
    loss.sum().backward()
    drawn: Counter[str] = Counter()
    draw = layout._draw_by_any_method

    def counted(*arguments: Any) -> Any:
        made = draw(*arguments)
        drawn[way_of_drawn(made)] += 1
        return made

    layout._draw_by_any_method = counted  # type: ignore[assignment]
    try:
        with hv.record(net) as trace:
            out = first_tensor(run())
            assert out is not None
            out.sum().backward()
        TraceContent(trace).full_content()
    finally:
        layout._draw_by_any_method = draw
    return {"steps": len(trace.rows), "drawn": drawn}


def one_process(library: str, names: list[str]) -> None:
    """Show the models one by one, and print a line of JSON before and after each."""
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    warnings.simplefilter("ignore")
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print
    for name in names:
        print(json.dumps({"began": name}), file=out, flush=True)
        try:
            found = show(library, name)
        except Exception as error:
            inside = any("hookviz" in frame.tb_frame.f_code.co_filename for frame in frames(error))
            why = f"{type(error).__name__}: {error}".splitlines()[0][:160]
            found = {"failed" if inside else "skipped": why}
        print(json.dumps({"name": name, **found}), file=out, flush=True)


def frames(error: BaseException) -> Iterator[Any]:
    """The tracebacks of an exception."""
    at = error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


# -- all of them


def outcomes(library: str, names: list[str]) -> Iterator[dict[str, Any]]:
    """What became of each model; a process that dies or hangs is followed by another."""
    waiting = list(names)
    while waiting:
        command = [sys.executable, "-m", "tests.proof.models", "--one", library, *waiting]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        name, began, timer = "", time.monotonic(), Timer(SECONDS, running.kill)
        assert running.stdout is not None
        for line in running.stdout:
            found = json.loads(line)
            timer.cancel()
            if "began" in found:
                name, began, timer = found["began"], time.monotonic(), Timer(SECONDS, running.kill)
                timer.start()
            else:
                waiting.remove(found["name"])
                yield {**found, "seconds": time.monotonic() - began}
        timer.cancel()
        status = running.wait()
        if name in waiting:
            waiting.remove(name)
            yield {"name": name, "died": status, "seconds": time.monotonic() - began}
        elif waiting:
            raise RuntimeError(f"a process of {library} ended with status {status} before it began")


def main(libraries: list[str]) -> None:
    table = []
    for library in libraries or FAMILIES:
        counts: Counter[str] = Counter()
        drawn: Counter[str] = Counter()
        for found in outcomes(library, globals()[f"{library}_names"]()):
            result = next(word for word in ("died", "failed", "skipped", "steps") if word in found)
            counts["shown" if result == "steps" else result] += 1
            drawn.update(found.get("drawn", {}))
            if result != "steps" or found["seconds"] > 60 or set(found["drawn"]) - {"usual"}:
                print(library, found["name"], {key: found[key] for key in found if key not in ("name",)}, flush=True)
        table.append(f"{library}: {dict(counts)}; pictures: {dict(drawn)}")
    print("\n".join(table))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one_process(sys.argv[2], sys.argv[3:])
    else:
        main(sys.argv[1:])
