"""The losses of the four papers, of their baselines and of later years, ready to be added to a task loss.

Each returns what is *added*; its weight and sign are its own. All act on the points of the whole batch: of every
process, when torch.distributed is initialised (``group=None`` keeps to this one; see :mod:`isonb.numerics.distributed`
for what that means for gradients). Under autocast they compute in float32. Too few points for a loss to mean anything
give 0 with a graph, so the last small batch of an epoch passes (the functions say what a mask that leaves too few gives
where values aren't looked at). All compile into one graph (``torch.compile(loss, fullgraph=True)``), but for loops
(``max_dim`` above 0), where it breaks; compiled, they don't look at values (see :mod:`isonb.checks`).
"""

from isonb.losses.cosreg import CosRegLoss, GaoCosineLoss
from isonb.losses.gor import GORLoss
from isonb.losses.isoscore import IsoScoreLoss
from isonb.losses.istar import IStarLoss, ShrinkageCovariance
from isonb.losses.joint import JointLoss
from isonb.losses.persistent_entropy import PersistentEntropyLoss
from isonb.losses.sigreg import SIGRegLoss
from isonb.losses.spectrum import SpectrumControlLoss

__all__ = [
    "CosRegLoss",
    "GORLoss",
    "GaoCosineLoss",
    "IStarLoss",
    "IsoScoreLoss",
    "JointLoss",
    "PersistentEntropyLoss",
    "SIGRegLoss",
    "ShrinkageCovariance",
    "SpectrumControlLoss",
]
