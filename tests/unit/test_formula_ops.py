"""For each op with a formula: a small recorded program in which the formula gives every gradient that was sent."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import torch
import torch.nn.functional as F
import yaml

import hookviz as hv
from hookviz.analysis.formulas import derivatives
from tests.requirements import needs_saved_tensors

aten: Any = torch.ops.aten
Tensor = torch.Tensor
Program = Callable[[Tensor, Tensor, Tensor], Any]


def indices(*numbers: int) -> Tensor:
    return torch.tensor(numbers)


# op → a program over three leaves x, y and z of two rows and three columns
OPS: dict[str, Program] = {
    "AddBackward0": lambda x, y, z: torch.add(x + y, z, alpha=3),
    "AddBackward1": lambda x, y, z: aten.add.Scalar(x, 2),
    "SubBackward0": lambda x, y, z: torch.sub(x - y, z, alpha=3),
    "SubBackward1": lambda x, y, z: aten.sub.Scalar(x, 2),
    "RsubBackward1": lambda x, y, z: torch.rsub(1 - x, 2, alpha=3),
    "MulBackward0": lambda x, y, z: x * y * 3,
    "MulBackward1": lambda x, y, z: aten.mul.Scalar(x, 3),
    "DivBackward0": lambda x, y, z: x / y / 3,
    "DivBackward1": lambda x, y, z: aten.div.Scalar(x, 3),
    "NegBackward0": lambda x, y, z: -x,
    "ReciprocalBackward0": lambda x, y, z: 1 / x,
    "PowBackward0": lambda x, y, z: x**2 + y**3 + z**0.5 + x**0 + y**-1 + z.square(),
    "PowBackward1": lambda x, y, z: x**y,
    "PowBackward2": lambda x, y, z: 2**x + 0**y,
    "ExpBackward0": lambda x, y, z: x.exp(),
    "LogBackward0": lambda x, y, z: x.log(),
    "Log1PBackward0": lambda x, y, z: x.log1p(),
    "Log2Backward0": lambda x, y, z: x.log2(),
    "Log10Backward0": lambda x, y, z: x.log10(),
    "SqrtBackward0": lambda x, y, z: x.sqrt(),
    "RsqrtBackward0": lambda x, y, z: x.rsqrt(),
    "SinBackward0": lambda x, y, z: x.sin(),
    "CosBackward0": lambda x, y, z: x.cos(),
    "TanhBackward0": lambda x, y, z: x.tanh() + (y * 20).tanh(),
    "AbsBackward0": lambda x, y, z: (x - 1).abs(),
    "RoundBackward0": lambda x, y, z: x.round(),
    "SigmoidBackward0": lambda x, y, z: x.sigmoid() + (y * 20).sigmoid(),
    "LogSigmoidBackward0": lambda x, y, z: F.logsigmoid(x - 1),
    "ReluBackward0": lambda x, y, z: (x - 1).relu() + (y * 1).relu_(),
    "HardtanhBackward0": lambda x, y, z: F.hardtanh(x - 1) + F.relu6(y * 5),
    "LeakyReluBackward0": lambda x, y, z: F.leaky_relu(x - 1, 0.1),
    "LeakyReluBackward1": lambda x, y, z: F.leaky_relu_(x - 1, 0.1),
    "EluBackward0": lambda x, y, z: F.elu(x - 1, 1.5) + F.selu(y - 1),
    "SoftplusBackward0": lambda x, y, z: F.softplus(x, beta=2, threshold=2),
    "SiluBackward0": lambda x, y, z: F.silu(x - 1),
    "MishBackward0": lambda x, y, z: F.mish(x - 1),
    "GeluBackward0": lambda x, y, z: F.gelu(x - 1),
    "HardsigmoidBackward0": lambda x, y, z: F.hardsigmoid(4 * x - 4),
    "HardswishBackward0": lambda x, y, z: F.hardswish(4 * x - 4),
    "PreluKernelBackward0": lambda x, y, z: F.prelu(x - 1, z[0, :1]),
    "ClampBackward1": lambda x, y, z: x.clamp(0.5, 1) + y.clamp(min=1) + z.clamp(max=1),
    "ClampMinBackward0": lambda x, y, z: x.clamp_min(1),
    "ClampMaxBackward0": lambda x, y, z: x.clamp_max(1),
    "MaximumBackward0": lambda x, y, z: torch.maximum(x, y) + torch.maximum(z, z.detach()),
    "MinimumBackward0": lambda x, y, z: torch.minimum(x, y) + torch.minimum(z, z.detach()),
    "MaxBackward1": lambda x, y, z: x.max() + torch.stack([y[0, 0], y[0, 0]]).max(),
    "MinBackward1": lambda x, y, z: x.min() + torch.stack([y[0, 0], y[0, 0]]).min(),
    "MaxBackward0": lambda x, y, z: x.max(1)[0] + y.max(-1, keepdim=True)[0] + z[0, 0].max(0)[0],
    "MinBackward0": lambda x, y, z: x.min(1)[0] + y.min(-1, keepdim=True)[0],
    "AmaxBackward0": lambda x, y, z: x.amax(1) + y.amax() + z.amax((0, 1), keepdim=True).sum(),
    "AminBackward0": lambda x, y, z: x.amin(1) + y.amin() + torch.stack([z, z]).amin(0).sum(1),
    "SumBackward0": lambda x, y, z: x.sum(),
    "SumBackward1": lambda x, y, z: x.sum(1) + y.sum((0, 1)) + z.sum(-1, keepdim=True) + x[0, 0].sum(0),
    "MeanBackward0": lambda x, y, z: x.mean(),
    "MeanBackward1": lambda x, y, z: x.mean(1) + y.mean((0, 1)) + z.mean(-1, keepdim=True),
    "VarBackward0": lambda x, y, z: x.var(1) + y.var() + z.var((0, 1), correction=0, keepdim=True).sum(),
    "StdBackward0": lambda x, y, z: x.std(1) + y.std() + torch.zeros_like(z).mul(z).std(),
    "LinalgVectorNormBackward0": lambda x, y, z: x.norm() + y.norm(dim=1) + torch.linalg.vector_norm(z, 1),
    "SoftmaxBackward0": lambda x, y, z: x.softmax(1) + y.softmax(0) + z[0, 0].softmax(0),
    "SafeSoftmaxBackward0": lambda x, y, z: aten._safe_softmax(x, -1),
    "LogSoftmaxBackward0": lambda x, y, z: x.log_softmax(1) + y.log_softmax(-2),
    "MmBackward0": lambda x, y, z: x @ y.t(),
    "MvBackward0": lambda x, y, z: x @ y[0],
    "DotBackward0": lambda x, y, z: x[0] @ y[0],
    "BmmBackward0": lambda x, y, z: torch.bmm(x.unsqueeze(0), y.unsqueeze(2).transpose(0, 2).reshape(1, 3, 2)),
    "AddmmBackward0": lambda x, y, z: F.linear(x, y, z[0, :2]) + torch.addmm(z[:, :2], x, y.t(), alpha=2, beta=3),
    "BaddbmmBackward0": lambda x, y, z: (
        torch.baddbmm(z[None, :, :2], x[None], y.t()[None], alpha=2, beta=3)
        + torch.baddbmm(z[None, :, :2], x[None], y.t()[None])
    ),
    "TBackward0": lambda x, y, z: x.t() + y[0].t().sum(),
    "TransposeBackward0": lambda x, y, z: x.transpose(0, 1) + y.mT,
    "PermuteBackward0": lambda x, y, z: x.unsqueeze(0).permute(2, 0, -2),
    "ViewBackward0": lambda x, y, z: x.view(6),
    "ReshapeAliasBackward0": lambda x, y, z: aten._reshape_alias(x, (6,), (1,)),
    "UnsafeViewBackward0": lambda x, y, z: x.unsqueeze(0) @ y.t(),
    "ExpandBackward0": lambda x, y, z: x.unsqueeze(0).expand(2, 2, 3) + y[:1].expand(2, 3),
    "SqueezeBackward0": lambda x, y, z: x.unsqueeze(0).squeeze(),
    "SqueezeBackward1": lambda x, y, z: x.unsqueeze(0).squeeze(0),
    "SqueezeBackward2": lambda x, y, z: x.unsqueeze(0).squeeze((0, 1)),
    "UnsqueezeBackward0": lambda x, y, z: x.unsqueeze(1),
    "CloneBackward0": lambda x, y, z: x.clone() + y.t().contiguous().t(),
    "ToCopyBackward0": lambda x, y, z: x.double() * y.double() + z.float(),
    "SelectBackward0": lambda x, y, z: x[0] + y[:, -1].sum(),
    "SliceBackward0": lambda x, y, z: x[:, 1:] + y[:, -2:] + z[:, ::2],
    "IndexBackward0": lambda x, y, z: x[indices(0, 0, 1)] + y[:, indices(2, 0, 0)].sum() + z[z > 1].sum(),
    "GatherBackward0": lambda x, y, z: x.gather(1, torch.tensor([[0, 0], [2, 1]])),
    "MaskedFillBackward0": lambda x, y, z: x.masked_fill(x > 1, 0),
    "WhereBackward0": lambda x, y, z: torch.where(x > 1, y, z[0]),
    "EmbeddingBackward0": lambda x, y, z: (
        F.embedding(indices(0, 1, 1), x) + F.embedding(indices(0, 1, 1), y, padding_idx=0)
    ),
    "ConstantPadNdBackward0": lambda x, y, z: F.pad(x, (1, 2, 0, 1)),
    "RepeatBackward0": lambda x, y, z: x.repeat(3, 2, 1),
    "UnbindBackward0": lambda x, y, z: x.unbind(1)[0] * y.unbind(0)[1][0],
    "SplitBackward0": lambda x, y, z: x.split(2, 1)[0] * 2 + y.split(2, 1)[1],
    "SplitWithSizesBackward0": lambda x, y, z: x.split([1, 2], 1)[1] * y.split([1, 2], 1)[0],
    "CatBackward0": lambda x, y, z: torch.cat([x, y, z], 1) + torch.cat([x, y, z], -1),
    "StackBackward0": lambda x, y, z: torch.stack([x, y, z], 1),
    "NllLossBackward0": lambda x, y, z: (
        F.nll_loss(x, indices(0, 2))
        + F.nll_loss(x, indices(0, 2), reduction="none").sum()
        + F.nll_loss(y, indices(0, -100), reduction="sum", weight=z[0].detach())
        + F.nll_loss(z[0], torch.tensor(1))
    ),
    "MseLossBackward0": lambda x, y, z: F.mse_loss(x, y) + F.mse_loss(y, z, reduction="none"),
    "HuberLossBackward0": lambda x, y, z: F.huber_loss(x, y, delta=0.1) + F.huber_loss(x, y, reduction="sum"),
    "SmoothL1LossBackward0": lambda x, y, z: (
        F.smooth_l1_loss(x, y, beta=0.1) + F.smooth_l1_loss(y, z, reduction="none")
    ),
    "BinaryCrossEntropyBackward0": lambda x, y, z: (
        F.binary_cross_entropy(x.sigmoid(), y.detach() / 2)
        + F.binary_cross_entropy(x.sigmoid(), y.detach() / 2, reduction="sum")
    ),
    "BinaryCrossEntropyWithLogitsBackward0": lambda x, y, z: (
        F.binary_cross_entropy_with_logits(x - 1, y) + F.binary_cross_entropy_with_logits(x - 1, y, reduction="none")
    ),
    "NativeLayerNormBackward0": lambda x, y, z: F.layer_norm(x, (3,), z[0], z[1]) + F.layer_norm(y, (2, 3)),
    "CopyBackwards": lambda x, y, z: torch.zeros(2, 3).copy_(x) * y,
    "BackwardHookFunctionBackward": lambda x, y, z: product_with_hook(x, y),
}


class Product(torch.nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x * y


def product_with_hook(x: Tensor, y: Tensor) -> Tensor:
    module = Product()
    module.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    result: Tensor = module(x, y)
    return result


def list_reasons(op: str) -> list[Any]:
    """Return the reasons for all gradients that nodes of ``op`` sent in its program; leaves are between 0.1 and 1.9."""
    torch.manual_seed(7)
    root = OPS[op](*((torch.rand(2, 3) * 1.8 + 0.1).requires_grad_() for _ in range(3)))
    with hv.record() as trace:
        root.backward(torch.rand(root.shape).to(root.dtype) + 0.5)
    computed = [step for step in trace.steps if step.kind == "compute" and trace._data.ops[step.node] == op]
    reasons = [reason for step in computed for reason in trace.why(step.index)]
    assert computed and reasons, trace._data.ops
    return reasons


@needs_saved_tensors
def test_the_formula_gives_the_recorded_gradient() -> None:
    reasons_by_op = [(op, reason) for op in OPS for reason in list_reasons(op)]
    unexplained = [
        (op, reason.formula, reason.note, reason.value) for op, reason in reasons_by_op if reason.verdict != "explained"
    ]
    assert unexplained == []
    assert [reason.text for _, reason in reasons_by_op if not reason.text.startswith(f"{reason.formula} = ")] == []


def test_every_formula_has_a_program() -> None:
    assert set(OPS) == set(derivatives.load_formulas())


def read_torch_texts() -> dict[str, dict[str, str]]:
    """Entry of the installed torch → name of an input → its formula, the first one if there are several."""
    file = files("torchgen").joinpath("packaged/autograd/derivatives.yaml")
    found: dict[str, dict[str, str]] = {}
    for entry in yaml.safe_load(file.read_text(encoding="utf-8")):
        texts = found.setdefault(entry["name"].partition("(")[0], {})
        for keys, text in (entry.get("dispatch", {}).get("Default") or entry).items():
            texts |= {key: " ".join(str(text).split()) for key in keys.split(", ") if key not in texts}
    return found


def test_every_formula_is_a_reading_of_the_text_of_the_installed_torch() -> None:
    """Fails for a torch with a changed formula, so that hookviz's is reviewed."""
    of_torch = read_torch_texts()
    for op, row in derivatives.load_formulas().items():
        for key, readings in row["slots"].items() if row["entry"] is not None else ():
            texts = [text for _reading, *texts in derivatives.list_readings(readings) for text in texts]
            assert of_torch[row["entry"]][key] in texts, (op, key)
