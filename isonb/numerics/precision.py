"""The widest floating-point type a device computes in: float64, except on MPS, which stops at float32."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["precise", "wide"]


def wide(device: torch.device) -> torch.dtype:
    """The widest floating-point dtype of ``device``."""
    return torch.float32 if device.type == "mps" else torch.float64


def precise(x: Tensor) -> Tensor:
    """``x`` in the widest dtype of its device. A float64 product is also out of reach of TF32."""
    return x.to(wide(x.device))
