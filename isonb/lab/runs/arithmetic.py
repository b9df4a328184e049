"""Whether bfloat16 pays on a device: processors without instructions for it emulate it, tens of times slower."""

from __future__ import annotations

import functools

import torch

__all__ = ["bfloat16_pays"]


def bfloat16_pays(device: str | torch.device = "cpu") -> bool:
    """Whether bfloat16 autocast is done by the device itself; runs that ask for it use float32 where it isn't.

    True of every accelerator (one without bfloat16 is refused before a run) and of processors where oneDNN has kernels
    for it (AVX-512 or ARM's bfloat16). The rounding of float32 is finer, so a run that falls back loses nothing but
    the last digits' likeness to one that doesn't; manifests tell which (``hardware.bfloat16``).

    >>> bfloat16_pays("cuda")
    True
    """
    return torch.device(device).type != "cpu" or _processor()


@functools.cache
def _processor() -> bool:
    built: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return built and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
