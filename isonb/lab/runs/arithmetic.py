"""What a processor does to a number: whether bfloat16 pays there, and which runs are from processors of one kind.

Processors without instructions for bfloat16 emulate it, tens of times slower. And a float sum depends on the order of
its terms, which the libraries choose by the processor: the same run ends elsewhere on another one.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import torch

UNKNOWN = "not recorded"


def bfloat16_pays(device: str | torch.device = "cpu") -> bool:
    """Whether bfloat16 autocast is done by the device itself; runs that ask for it use float32 where it isn't.

    True of every accelerator (one without bfloat16 is refused before a run) and of processors where oneDNN has kernels
    for it (AVX-512 or ARM's bfloat16). The rounding of float32 is finer, so a run that falls back loses nothing but
    the last digits' likeness to one that doesn't; manifests tell which (``hardware.bfloat16``).

    >>> bfloat16_pays("cuda")
    True
    """
    import torch

    return torch.device(device).type != "cpu" or _processor()


@functools.cache
def _processor() -> bool:
    import torch

    built: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return built and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def processor_kinds(runs: pd.DataFrame) -> pd.Series[Any]:
    """The kind of processor of each run of a table (:func:`isonb.lab.runs.table.table`), indexed like it.

    The names of its GPUs; without GPUs that of its processor, and whether that has bfloat16, since one name stands for
    several generations. "not recorded" where the record doesn't say.

    >>> import pandas as pd
    >>> hardware = {"cpu": ["AMD EPYC", None], "bfloat16": [True, None], "gpus": ["[]", '["NVIDIA A100"]']}
    >>> processor_kinds(pd.DataFrame(hardware).add_prefix("manifest.hardware.")).tolist()
    ['AMD EPYC with bfloat16', 'NVIDIA A100']
    """
    import pandas as pd

    kinds = []
    columns = runs.reindex(columns=[f"manifest.hardware.{name}" for name in ("gpus", "cpu", "bfloat16")])
    for gpus, cpu, bfloat16 in columns.itertuples(index=False):
        names = json.loads(gpus) if isinstance(gpus, str) else []
        plain = (f"{cpu} with bfloat16" if bfloat16 in (True, "True") else cpu) if isinstance(cpu, str) else UNKNOWN
        kinds.append(", ".join(sorted(set(names))) or plain)
    return pd.Series(kinds, index=runs.index, dtype="object")


def mixed_processors(runs: pd.DataFrame) -> str:
    """What to say beside numbers from these runs: nothing if they are from processors of one kind, else a warning.

    Runs whose record doesn't tell count as a kind of their own: they may be of any.
    """
    counts = processor_kinds(runs).value_counts().sort_index()
    if len(counts) < 2:
        return ""
    told = ", ".join(f"{kind} ({count})" for kind, count in counts.items())
    return (
        f"These {len(runs)} runs are from {len(counts)} kinds of processor: {told}. The same run ends elsewhere on "
        "another kind, so a difference between two kinds is not the method's alone."
    )
