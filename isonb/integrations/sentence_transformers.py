"""sentence-transformers: a loss with a penalty, SoftDecay as a module, whitening that loads anywhere.

Affine post-processing (whitening, all-but-the-top, zero mean) becomes the library's own ``Dense``, so the saved model
needs nothing of isonb. SoftDecay isn't affine: a model with it needs isonb installed and, since the library refuses
modules of others by default, ``SentenceTransformer(folder, trust_remote_code=True)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from isonb.errors import InputError, fail, needs
from isonb.integrations.points import unwrapped
from isonb.integrations.union import asked, trainable
from isonb.layers import SoftDecay as SoftDecayLayer

with needs("isonb.integrations.sentence_transformers", "lab"):
    from sentence_transformers.base.modules import Dense, Module
    from sentence_transformers.sentence_transformer.modules import Normalize

__all__ = ["IsotropyLoss", "SoftDecay", "append_transform", "dense"]


def dense(transform: Any) -> Dense:
    """A fitted affine transform, or a linear layer, as the library's ``Dense`` without activation; frozen.

    Raises :class:`~isonb.errors.InputError` for a transform no linear layer can hold, such as cluster-based removal.
    """
    if not isinstance(transform, nn.Linear) and not hasattr(transform, "to_dense"):
        fix = "Whitening, AllButTheTop and ZeroMean are affine."
        fail(InputError, "the transform must be affine (have to_dense)", type(transform).__name__, fix)
    linear = transform if isinstance(transform, nn.Linear) else transform.to_dense()
    bias = torch.zeros(linear.out_features) if linear.bias is None else linear.bias
    made = Dense(
        linear.in_features,
        linear.out_features,
        activation_function=None,
        init_weight=linear.weight.detach().clone(),
        init_bias=bias.detach().clone(),
    )
    return made.requires_grad_(False)


def append_transform(model: Any, transform: Any, *, normalize: bool = False) -> Any:
    """Put a transform fitted on ``model.encode(...)`` behind the model, in place; ``normalize`` adds unit length.

    Returns the model, which saves and loads as any other and needs no isonb.
    """
    model.append(dense(transform).to(model.device))
    if normalize:
        model.append(Normalize())
    return model


class SoftDecay(Module):  # type: ignore[misc]
    """:class:`isonb.layers.SoftDecay` on the token vectors of each sentence; goes between Transformer and Pooling.

    Put it in with ``model.insert(1, SoftDecay())``. alpha is trained with the model (give it a learning rate of its
    own) and saved.
    """

    config_keys = ["alpha", "mode", "trainable"]  # noqa: RUF012 - the library's form

    def __init__(self, alpha: float = -0.2, mode: str = "code", trainable: bool = True) -> None:
        super().__init__()
        self.mode, self.trainable = mode, trainable
        self.layer = SoftDecayLayer(alpha, trainable, mode)

    @property
    def alpha(self) -> float:
        """The current alpha."""
        return float(self.layer.alpha.detach())

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Replace the token vectors; padding stays out of the matrix of each sentence."""
        features["token_embeddings"] = self.layer(features["token_embeddings"], features.get("attention_mask"))
        return features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Configuration and alpha."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(cls, model_name_or_path: str, **kwargs: Any) -> SoftDecay:
        """Inverse of :meth:`save`, from a folder or the hub."""
        place = {key: kwargs[key] for key in ("subfolder", "token", "cache_folder", "revision") if key in kwargs}
        made = cls(**cls.load_config(model_name_or_path, **place))
        cls.load_torch_weights(model_name_or_path, model=made, **place)
        return made


class IsotropyLoss(nn.Module):
    """A loss of the library plus ``weight * penalty`` of the sentence vectors of the batch, all columns together.

    ``penalty``: a loss of :mod:`isonb.losses`, or a callable of points (n, d). If it has a parameter ``labels``, it
    gets those of the batch where there is one integer label per vector. Returns a dict, so the Trainer logs
    ``isonb_penalty`` apart; in evaluation the penalty is left out. The vectors are those that ``loss`` itself computes:
    no second pass. The batch is that of one step on all processes; gradient accumulation averages, as it does for
    ``loss``. The ``Cached...`` losses build their graph later and can't be combined with a penalty. For example
    ``IsotropyLoss(model, MultipleNegativesRankingLoss(model), CosRegLoss())``.
    """

    def __init__(self, model: Any, loss: nn.Module, penalty: Callable[..., Tensor], weight: float = 1.0) -> None:
        super().__init__()
        self.model, self.loss, self.penalty, self.weight = model, loss, penalty, weight

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> dict[str, Tensor]:
        """What the library calls: features of each column, and labels."""
        seen: list[Tensor] = []
        hook = unwrapped(self.model).register_forward_hook(lambda *call: seen.append(call[-1]["sentence_embedding"]))
        try:
            value = self.loss(sentence_features, labels)
        finally:
            hook.remove()
        parts = dict(value) if isinstance(value, dict) else {"task": value}
        if self.model.training:
            points = trainable(torch.cat(seen))
            each = isinstance(labels, Tensor) and labels.shape == points.shape[:1] and not labels.is_floating_point()
            given = asked(self.penalty, labels=labels if each else None)
            parts["isonb_penalty"] = self.weight * self.penalty(points, **given)
        return parts

    def get_config_dict(self) -> dict[str, Any]:
        """What the model card says of this loss."""
        penalty = type(self.penalty).__name__ if isinstance(self.penalty, nn.Module) else str(self.penalty)
        return {"loss": type(self.loss).__name__, "penalty": penalty, "weight": self.weight}
