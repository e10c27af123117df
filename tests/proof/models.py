"""Untrained models of other libraries, as small as each allows, and a forward pass of each. Nothing is downloaded."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

Run = Callable[[], Any]
"""A forward pass."""


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor in a model's output that requires a gradient."""
    if isinstance(value, Tensor):
        return value if value.requires_grad and value.is_floating_point() else None
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return next((found for part in parts if (found := first_tensor(part)) is not None), None)


def torchvision_model(name: str) -> tuple[nn.Module, Run]:
    models = importlib.import_module("torchvision.models")
    module = models.get_model_builder(name).__module__
    net = models.get_model(name, weights=None, **({} if "optical_flow" in module else {"num_classes": 10}))
    if "optical_flow" in module:
        x = torch.rand(2, 3, 128, 128)
        return net, lambda: net(x, x, num_flow_updates=2)
    size = 224 if name.startswith(("maxvit", "googlenet", "vgg", "alexnet")) else 64
    x = torch.rand(1, 3, 8, size, size) if "video" in module else torch.rand(2, 3, size, size)
    return net, lambda: net(x)


def timm_model(name: str) -> tuple[nn.Module, Run]:
    timm = importlib.import_module("timm")
    try:
        net, size = timm.create_model(name, num_classes=10, img_size=64), 64
    except (TypeError, ValueError, AssertionError, RuntimeError):
        net = timm.create_model(name, num_classes=10)
        size = max(net.default_cfg.get("input_size", (3, 224, 224))[-1], 64)
    x = torch.rand(2, 3, size, size)
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


def transformers_model(name: str) -> tuple[nn.Module, Run]:
    transformers = importlib.import_module("transformers")
    config = transformers.AutoConfig.for_model(name)
    shrink(config)
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
