"""The laboratory: everything that touches models, texts, training and clusters.

The maths of :mod:`isonb` never imports this package. Submodules bring their heavy libraries when a function is called.
"""

from typing import Any

from isonb.errors import needs

# What the files of this package import at their top.
with needs("isonb_lab", "lab", "numpy", "pandas", "scipy", "transformers", "yaml"):
    pass


def __getattr__(name: str) -> Any:
    """``isonb_lab.compare`` and ``isonb_lab.plan_seeds``, which bring their libraries when first used."""
    if name in ("compare", "plan_seeds"):
        from isonb_lab import comparing

        return getattr(comparing, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
