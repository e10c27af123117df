"""Wrong answers to any question that asks for a function."""

from typing import Any

import torch


def raises(*_: Any) -> torch.Tensor:
    raise RuntimeError("no")


def leaves_python(*_: Any) -> None:
    raise SystemExit
