"""List the findings in sound networks: ``python -m tests.proof.findings``.

It records fresh models of torchvision, timm and transformers (``pip install torchvision timm transformers``; names may
be given as ``timm:resnet18``), each with two losses, and lists every finding with its severity. A fresh model is sound:
an error is a false alarm, and so is a warning without a cause in the model or the loss.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import hookviz as hv

from . import models

# fmt: off
FRESH_MODELS = {
    "torchvision": [
        "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet",
        "lraspp_mobilenet_v3_large", "maxvit_t", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small", "r3d_18",
        "raft_small", "regnet_x_400mf", "regnet_y_400mf", "resnet152", "resnet18", "resnext50_32x4d",
        "shufflenet_v2_x0_5", "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11", "vgg11_bn",
    ],
    "timm": [
        "cait_xxs24_224", "coat_tiny", "convit_tiny", "convmixer_768_32", "convnext_atto", "cs3darknet_s",
        "deit_tiny_patch16_224", "dla34", "edgenext_xx_small", "efficientvit_m0", "fastvit_s12", "ghostnet_050",
        "gmlp_s16_224", "hgnetv2_b0", "hrnet_w18_small", "levit_384_s8", "mixer_s16_224", "mobilevit_xxs",
        "nf_regnet_b0", "pvt_v2_b0", "repvit_m1", "rexnet_100", "swinv2_cr_tiny_224", "xcit_nano_12_p16_224",
    ],
    "transformers": [
        "albert", "bart", "bert", "bloom", "clip", "deberta-v2", "deit", "dinov2", "distilbert", "electra", "falcon",
        "fnet", "gemma", "gemma2", "gpt2", "gpt_neox", "llama", "longformer", "mbart", "mistral", "mixtral",
        "mobilebert", "modernbert", "nystromformer", "olmo2", "opt", "phi", "qwen2", "qwen3", "roberta", "rwkv",
        "segformer", "t5", "vit", "wav2vec2", "xlnet",
    ],
}
# fmt: on
LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": torch.sum,
    "squares": lambda y: (y - torch.randn_like(y)).square().mean(),
}


def record_fresh_model(library: str, name: str) -> Iterator[tuple[str, hv.Trace]]:
    """Record an untrained model of a library with each of the losses."""
    torch.manual_seed(0)
    net, run = getattr(models, f"{library}_model")(name)
    for loss, compute_loss in LOSSES.items():
        torch.manual_seed(1)
        with hv.record(net) as trace:
            out = models.first_tensor(run())
            assert out is not None, f"{name} returns nothing that has a gradient"
            compute_loss(out).backward()
        net.zero_grad()
        yield f"{library}:{name} ({loss})", trace


def print_findings(name: str, trace: hv.Trace) -> Counter[str]:
    """Print the findings of one trace, and return their number for each severity."""
    for row in trace.findings.values:
        print(f"| {name} | {row.severity} | {row.kind} | {row.text} |", flush=True)
    return Counter(row.severity for row in trace.findings.values)


def main(names: list[str]) -> None:
    """List the findings of all models."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    selected = [tuple(name.split(":")) for name in names] or [
        (lib, name) for lib in FRESH_MODELS for name in FRESH_MODELS[lib]
    ]
    count: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for library, name in selected:
        try:
            for title, trace in record_fresh_model(library, name):
                found += print_findings(title, trace)
            count["recorded"] += 1
        except Exception as error:
            count["left out"] += 1
            print(f"# {library}:{name} left out: {type(error).__name__}: {error}".splitlines()[0][:160])
    print(f"fresh models: {dict(count)}; findings in them: {dict(found)}")


if __name__ == "__main__":
    main(sys.argv[1:])
