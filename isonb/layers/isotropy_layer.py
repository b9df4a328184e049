"""The Isotropy Layer (Attieh et al., ICDAR 2023)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from isonb.checks import check_points, validated
from isonb.errors import ShapeError, fail
from isonb.numerics.modules import OptionModule
from isonb.options import meaning, option


@dataclass(eq=False, repr=False)
class IsotropyLayer(OptionModule):
    """A linear map between sentence vector and classifier, trained for isotropy (IsoLayer, Attieh et al., ICDAR 2023).

    Weight d x d and bias; the paper gives neither initialisation nor activation. Train it with
    :class:`~isonb.JointLoss` of the task loss and :class:`~isonb.IsoScoreLoss`, encoder and head frozen.

    >>> import isonb, torch
    >>> isonb.IsotropyLayer(2)(torch.tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """

    d: int = field(metadata=meaning("dimensions of the vectors", low=1))
    activation: Literal["tanh"] | Callable[[Tensor], Tensor] | None = field(
        default_factory=lambda: None,  # a default on the class would hide a module
        metadata=meaning("what the result passes; by default nothing"),
    )
    init: Literal["identity", "default"] = option("identity", "start: the fine-tuned model as it is, or nn.Linear's")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.linear = nn.Linear(self.d, self.d)
        if self.init == "identity":
            nn.init.eye_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)

    @validated
    def forward(self, x: Tensor) -> Tensor:
        """(..., d); returns the shape and dtype of ``x``. Computed in the dtype of the weights."""
        check_points(x[None] if isinstance(x, Tensor) and x.ndim == 1 else x, points=0, dims=0, look=False)
        if x.shape[-1:] != (self.d,):
            fail(ShapeError, f"x must have {self.d} dimensions", tuple(x.shape), "Make the layer with d=x.shape[-1].")
        out: Tensor = self.linear(x.to(self.linear.weight.dtype))
        if self.activation is not None:
            out = torch.tanh(out) if self.activation == "tanh" else self.activation(out)
        return out.to(x.dtype)
