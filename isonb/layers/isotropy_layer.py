"""The Isotropy Layer (Attieh et al., ICDAR 2023)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from isonb.errors import InputError, fail


class IsotropyLayer(nn.Module):
    """A linear map between sentence vector and classifier, trained for isotropy (IsoLayer, Attieh et al., ICDAR 2023).

    Weight d x d and bias. The paper gives neither initialisation nor activation: ``init="identity"`` starts where the
    fine-tuned model stands, ``"default"`` as ``nn.Linear``; ``activation`` is None, "tanh" or any callable. Train it
    with :class:`~isonb.JointLoss` of the task loss and :class:`~isonb.IsoScoreLoss`, encoder and
    head frozen.

    >>> IsotropyLayer(2)(torch.tensor([[1.0, 2.0]])).tolist()
    [[1.0, 2.0]]
    """

    def __init__(
        self, d: int, activation: str | Callable[[Tensor], Tensor] | None = None, init: str = "identity"
    ) -> None:
        super().__init__()
        if init not in ("identity", "default"):
            fail(InputError, 'init must be "identity" or "default"', repr(init), "The paper doesn't say which.")
        if isinstance(activation, str) and activation != "tanh":
            fail(InputError, 'activation must be None, "tanh" or a callable', repr(activation), "Pass torch.relu, say.")
        self.linear = nn.Linear(d, d)
        if init == "identity":
            nn.init.eye_(self.linear.weight)
            nn.init.zeros_(self.linear.bias)
        self.activation = torch.tanh if isinstance(activation, str) else activation

    def forward(self, x: Tensor) -> Tensor:
        """(..., d) to (..., d)."""
        out: Tensor = self.linear(x)
        return out if self.activation is None else self.activation(out)
