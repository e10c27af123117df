"""Rules about the parameters and the modes of a model."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch
from torch import nn

from hookviz.autograd.tensor_statistics import hidden_from_tools
from hookviz.static_checks.registered_hooks import NamedModel
from hookviz.static_checks.static_finding import StaticFinding, make_finding
from hookviz.support.messages import _, join_list

_MODE_CLASSES = (
    nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm,
    nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout, nn.FeatureAlphaDropout,
)  # fmt: skip
"""Modules that compute something else in train mode than in eval mode."""
MAX_LISTED_NAMES = 5
"""How many modules or parameters a sentence lists."""


def find_in_model(model: NamedModel) -> Iterator[StaticFinding]:
    """Find what is unusual about a model's numbers and settings, whatever its hooks."""
    yield from _find_nonfinite(model)
    yield from _find_shared_memory(model)
    yield from _find_mixed_modes(model)
    yield from _find_partly_frozen(model)


def _find_nonfinite(model: NamedModel) -> Iterator[StaticFinding]:
    """Parameters that hold NaN or Inf; each is read once."""
    with torch.no_grad(), hidden_from_tools():
        for names, parameter in model.parameters.values():
            kind = _nonfinite_kind(parameter)
            if kind is not None:
                yield make_finding(kind, "error" if kind == "nan" else "warning", names[0])


def _nonfinite_kind(tensor: torch.Tensor) -> str | None:
    """``nan`` or ``inf`` if a tensor holds one; None if not, or if it has no numbers that can be read."""
    if tensor.device.type == "meta" or isinstance(tensor, nn.UninitializedParameter):
        return None
    try:
        if bool(torch.isfinite(tensor).all()):
            return None
        return "nan" if bool(torch.isnan(tensor).any()) else "inf"
    except (RuntimeError, NotImplementedError, TypeError):  # a tensor subclass or a layout that cannot do this
        return None


def _find_shared_memory(model: NamedModel) -> Iterator[StaticFinding]:
    """Two parameters whose numbers lie in the same memory."""
    spans = sorted(_memory_spans(model))
    for (_ignored, end, name), (start, _ignored, other) in pairwise(spans):
        if start < end:
            yield make_finding("shared_memory", "warning", other, other=name)


def _memory_spans(model: NamedModel) -> Iterator[tuple[int, int, str]]:
    """Yield (first address, end, name) of each contiguous parameter. Others, such as transposed ones, are left out."""
    for names, parameter in model.parameters.values():
        try:
            if parameter.numel() and parameter.is_contiguous() and parameter.data_ptr():
                start = parameter.data_ptr()
                yield start, start + parameter.numel() * parameter.element_size(), names[0]
        except (RuntimeError, ValueError, NotImplementedError):  # a tensor without memory of its own
            continue


def _find_mixed_modes(model: NamedModel) -> Iterator[StaticFinding]:
    """BatchNorm and Dropout modules in another mode than the model."""
    differing = [
        name
        for name, module in model.modules
        if isinstance(module, _MODE_CLASSES) and module.training != model.root.training
    ]
    if differing:
        modes = {True: "train", False: "eval"}
        own, other = modes[model.root.training], modes[not model.root.training]
        yield make_finding("mixed_modes", "remark", model.name, own=own, other=other, names=_list_names(differing))


def _find_partly_frozen(model: NamedModel) -> Iterator[StaticFinding]:
    """Frozen parameters beside others that are trained."""
    frozen = [names[0] for names, parameter in model.parameters.values() if not parameter.requires_grad]
    total = len(model.parameters)
    if 0 < len(frozen) < total:
        counts = {"count": f"{len(frozen):,}", "total": f"{total:,}"}
        yield make_finding("partly_frozen", "remark", model.name, names=_list_names(frozen), **counts)


def _list_names(names: Sequence[str]) -> str:
    """List the first names, and how many more there are."""
    more = len(names) - MAX_LISTED_NAMES
    listed = join_list(names[:MAX_LISTED_NAMES])
    return _("{names} and {count} more").format(names=listed, count=f"{more:,}") if more > 0 else listed
