"""Layers to put into a model, one file each: the module, and the function that it calls."""

from isonb.layers.isobn import IsoBN
from isonb.layers.isotropy_layer import IsotropyLayer
from isonb.layers.soft_decay import SoftDecay

__all__ = ["IsoBN", "IsotropyLayer", "SoftDecay"]
