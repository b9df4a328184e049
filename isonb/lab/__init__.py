"""The laboratory: everything that touches models, texts, training and clusters.

The maths of :mod:`isonb` never imports this package. Submodules bring their heavy libraries when a function is called.
"""

from isonb.errors import needs

# What the files of this package import at their top.
with needs("isonb.lab", "lab", "numpy", "pandas", "pyarrow", "scipy", "transformers", "yaml"):
    pass
