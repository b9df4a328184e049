"""An encoder with a task head, the same for every architecture, and one place for a method's layer.

tokens -> (layer) -> sentence vector -> (layer) -> dense and tanh -> (layer) -> dropout -> classifier

The sentence vector is ``pooling`` of the last layer: "cls" takes the first token, of a decoder the last real one; or a
mean of tokens. The dense layer begins with the encoder's own pooler where it has one; decoders and ``head="linear"``
have none. A span task has no sentence vector: its head reads every token, ``layer`` acting on token vectors.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from isonb.integrations.hidden_states import Pooling
from isonb.models.text_models import is_decoder
from isonb.points import Mode, pool
from isonb_lab.methods import Method


def task_loss(kind: str, logits: Tensor, labels: Tensor) -> Tensor:
    """Mean loss of a batch in float32: cross-entropy, squared error, or the mean of start's and end's cross-entropy.

    Shapes: classification (B, C) and (B,); regression (B, 1) and (B,); span (B, T, 2) and (B, 2).

    >>> task_loss("regression", torch.tensor([[1.0], [2.0]]), torch.tensor([0.0, 2.0])).item()
    0.5
    """
    logits = logits.float()
    if kind == "regression":
        return F.mse_loss(logits.squeeze(-1), labels.float())
    if kind == "span":
        return F.cross_entropy(logits.mT.flatten(0, 1), labels.flatten())
    return F.cross_entropy(logits, labels)


class TaskModel(nn.Module):
    """``encoder`` (a transformers model), a head for ``outputs`` numbers, and the layer of ``method`` at its site."""

    def __init__(
        self, encoder: Any, kind: str, outputs: int, method: Method, head: str, dropout: float, pooling: Mode = "cls"
    ) -> None:
        super().__init__()
        dim = int(encoder.config.hidden_size)
        self.kind, self.site, self.decoder = kind, method.site, is_decoder(encoder.config)
        self.pooling = Pooling("last" if self.decoder and pooling == "cls" else pooling)
        self.encoder = encoder
        self.frozen = [name for name, weight in encoder.named_parameters() if not weight.requires_grad]
        with torch.random.fork_rng(devices=[]):  # whatever a layer draws, the head begins as its control's does
            self.layer = method.layer(dim)
        self.pooler = None if kind == "span" or self.decoder or head == "linear" else _pooler(encoder, dim)
        self.features = nn.Identity()  # what the classifier sees passes here, so that a loss can act on it by name
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(dim, outputs)
        nn.init.normal_(self.classifier.weight, std=float(getattr(encoder.config, "initializer_range", 0.02)))
        nn.init.zeros_(self.classifier.bias)
        self.unfreeze()

    def unfreeze(self) -> None:
        """Every weight in use requires gradients but those that came frozen; the encoder's own pooler is out of use."""
        self.requires_grad_(True)
        for name in self.frozen:
            self.encoder.get_parameter(name).requires_grad_(False)
        existing = getattr(self.encoder, "pooler", None)
        if isinstance(existing, nn.Module):
            existing.requires_grad_(False)

    @property
    def base_model(self) -> Any:
        """The encoder, under the name transformers models have for it."""
        return self.encoder

    @property
    def config(self) -> Any:
        return self.encoder.config

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> dict[str, Tensor]:
        """Logits, with labels also the loss; in evaluation also ``points``, the sentence vectors (B, d)."""
        extra = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        tokens = self.encoder(input_ids=input_ids, attention_mask=attention_mask, **extra).last_hidden_state
        logits = self.head(self.vector(tokens, attention_mask), attention_mask)
        out = {} if labels is None else {"loss": task_loss(self.kind, logits, labels)}
        out["logits"] = logits
        if not self.training:
            out["points"] = pool([tokens], attention_mask, self.pooling.mode).float()
        return out

    def vector(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """From the last hidden state (B, T, d) to what the head reads: (B, d), or (B, T, d) for a span task."""
        if self.layer is not None and self.site == "tokens":
            tokens = self.layer(tokens, mask)
        return tokens if self.kind == "span" else pool([tokens], mask, self.pooling.mode)

    def head(self, vector: Tensor, mask: Tensor | None = None) -> Tensor:
        """Logits from sentence vectors (B, d), or from token vectors (B, T, d) with their mask (B, T)."""
        logits: Tensor = self.classifier(self.dropout(self.features(self.represent(vector, mask))))
        return logits

    def represent(self, vector: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the classifier sees."""
        if self.site == "vector":
            vector = self._layered(vector, mask)
        if self.pooler is not None:
            vector = torch.tanh(self.pooler(vector))
        return self._layered(vector, mask) if self.site == "pooled" else vector

    def _layered(self, vector: Tensor, mask: Tensor | None) -> Tensor:
        if self.layer is None:
            return vector
        if vector.ndim == 2 or mask is None:
            layered: Tensor = self.layer(vector)
            return layered
        real = mask.bool()
        out = vector.clone()
        out[real] = self.layer(vector[real]).to(vector.dtype)
        return out


def _pooler(encoder: Any, dim: int) -> nn.Linear:
    """A dense layer with the encoder's own pooler weights if it has some."""
    existing = getattr(encoder, "pooler", None)
    dense = existing if isinstance(existing, nn.Linear) else getattr(existing, "dense", None)
    linear = nn.Linear(dim, dim)
    if isinstance(dense, nn.Linear) and dense.weight.shape == linear.weight.shape:
        with torch.no_grad():
            linear.weight.copy_(dense.weight)
            linear.bias.copy_(dense.bias)
    else:
        nn.init.normal_(linear.weight, std=float(getattr(encoder.config, "initializer_range", 0.02)))
        nn.init.zeros_(linear.bias)
    return linear
