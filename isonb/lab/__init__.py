"""The laboratory: everything that touches models, texts, training and clusters.

The maths of :mod:`isonb` never imports this package. Submodules bring their heavy libraries when a function is called.
"""

from isonb.checks import needs

with needs(
    "isonb.lab", "lab", "numpy", "pandas", "scipy", "transformers", "yaml"
):  # what its files import at their top
    pass
