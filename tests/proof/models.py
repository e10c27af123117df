"""Record and show models of other libraries: ``python -m tests.proof.models [torchvision timm transformers]``.

It needs the libraries (``pip install torchvision timm transformers``) and no network: nothing is trained, sizes are as
small as a model allows, and large models run on torch's ``meta`` device, which has shapes but no numbers. It prints a
line for each model that failed, and a table.
"""

from __future__ import annotations

import importlib
import resource
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.player.trace_content import TraceContent
from tests.picture_faults import find_faults

from .compare import PACKAGE
from .pictures import count_deaths, draw_pictures

MAX_WEIGHTS = 3_000_000
"""Models with more weights run on the ``meta`` device."""
MEMORY_LIMIT = 12 * 2**30
"""In bytes: a model that needs more fails instead of exhausting the machine."""
FAMILIES = ("torchvision", "timm", "transformers")
SMALL_MODEL_MARKS = (
    "atto",
    "femto",
    "pico",
    "nano",
    "tiny",
    "xxs",
    "xx_small",
    "_s0",
    "_b0",
    "_t0",
    "small",
    "_s",
    "18",
)

Run = Callable[[], Any]
"""A forward pass."""


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor in a model's output that requires a gradient."""
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
    if "optical_flow" in module:
        x = torch.rand(2, 3, 128, 128, device=device)
        return net, lambda: net(x, x, num_flow_updates=2)
    size = 224 if name.startswith(("vit", "maxvit", "mvit", "inception", "googlenet", "vgg", "alexnet")) else 64
    frames = [16 if "mvit" in name else 8] if "video" in module else []
    x = torch.rand(1 if frames else 2, 3, *frames, size, size, device=device)
    if "detection" in module:
        net.eval()
        return net, lambda: net(list(x))
    return net, lambda: net(x)


def timm_names() -> list[str]:
    """Up to three models of each family, the smallest according to their names."""
    timm = importlib.import_module("timm")

    def size(name: str) -> tuple[int, int, str]:
        marked = [place for place, word in enumerate(SMALL_MODEL_MARKS) if word in name]
        return (min(marked, default=len(SMALL_MODEL_MARKS)), len(name), name)

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
"""Size → the options of configurations to set to it."""


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
    if weights > 4 * MAX_WEIGHTS:
        raise ValueError("its configuration has sizes that have other names")
    with torch.device(device):
        net = transformers.AutoModel.from_config(config)
        tokens = torch.ones(1, 7, dtype=torch.long)
        image, audio = torch.rand(1, 3, 32, 32), torch.rand(1, 4000)
    candidates: list[dict[str, Any]] = [{"input_ids": tokens}, {"input_ids": tokens, "decoder_input_ids": tokens}]
    candidates += [{"pixel_values": image}, {"input_ids": tokens, "pixel_values": image}, {"input_values": audio}]
    return net, first_accepted_call(net, candidates)


def shrink(config: Any) -> None:
    """Set small sizes in a configuration and its nested configurations."""
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


def first_accepted_call(net: nn.Module, candidates: list[dict[str, Any]]) -> Run:
    for inputs in candidates:
        with suppress(Exception), torch.no_grad():
            net(**inputs)
            return lambda: net(**inputs)
    raise ValueError("it takes none of the inputs that were tried")


# -- what is tried


def build(library: str, name: str) -> tuple[nn.Module, Run]:
    make = globals()[f"{library}_model"]
    device = "cpu"
    if library != "transformers":  # transformers_model shrinks these and tries their inputs
        weights = sum(p.numel() for p in make(name, "meta")[0].parameters())
        device = "meta" if weights > MAX_WEIGHTS else "cpu"
    torch.manual_seed(0)
    return make(name, device)


def record_and_show(library: str, name: str) -> dict[str, Any]:
    """Run one model plain, then record it and make its content; return what is wrong with its pictures, if anything."""
    net, run = build(library, name)
    loss = first_tensor(run())
    if loss is None:
        return {"skipped": "it returns nothing that has a gradient"}
    loss.sum().backward()
    with hv.record(net) as trace:
        out = first_tensor(run())
        assert out is not None
        out.sum().backward()
    with count_deaths() as deaths:
        TraceContent.of(trace._data).full_content()
        pictures = [*draw_pictures(trace)]
    faults = [fault for drawn in pictures for fault in find_faults(drawn.svg, drawn.scene)]
    return {"steps": len(trace._data.rows), "pictures": len(pictures), "faults": faults[:3], "deaths": deaths}


def try_model(library: str, name: str) -> dict[str, Any]:
    """Show a model; a failure counts as one of hookviz if a frame of hookviz is in its traceback."""
    try:
        return record_and_show(library, name)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        is_ours = any(frame.filename.startswith(PACKAGE) for frame in frames)
        return {"failed" if is_ours else "skipped": f"{type(error).__name__}: {error}".splitlines()[0][:160]}


def main(libraries: list[str]) -> None:
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    warnings.simplefilter("ignore")
    for library in libraries or FAMILIES:
        counts: Counter[str] = Counter()
        for name in globals()[f"{library}_names"]():
            found = try_model(library, name)
            counts[next(word for word in ("failed", "skipped", "steps") if word in found)] += 1
            counts["pictures"] += found.get("pictures", 0)
            if "steps" not in found or found["faults"] or found["deaths"]:
                print(library, name, found, flush=True)
        print(f"{library}: {dict(counts)}")


if __name__ == "__main__":
    main(sys.argv[1:])
