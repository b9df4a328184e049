"""The penalty of a method in contrastive tuning: on which points, and against which shrinkage covariance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from isonb.lab.encoders.loading import Encoder
from isonb.lab.encoders.task_model import is_decoder
from isonb.lab.encoders.vectors import TokenizedSentences, forward
from isonb.lab.methods import Contrast, Method
from isonb.losses.istar import ShrinkageCovariance
from isonb.training.hidden_states import Pooling
from isonb.training.union import asked, trainable

__all__ = ["ContrastPenalty"]

SHRINKAGE_ROWS = 250_000  # points behind a shrinkage covariance


class ContrastPenalty:
    """A method's penalty on the points of the pass just seen; with shrinkage, a covariance measured each pass."""

    def __init__(self, encoder: Encoder, tokens: TokenizedSentences, contrast: Contrast, method: Method | None) -> None:
        self.encoder, self.tokens, self.size = encoder, tokens, contrast.batch_size
        self.device = next(encoder.model.parameters()).device
        self.loss = None if method is None else method.penalty()
        self.pooling = Pooling() if method is None else method.points()
        if self.pooling.mode == "cls" and is_decoder(encoder.model.config):
            self.pooling = replace(self.pooling, mode="last")
        self.shrinkage: ShrinkageCovariance | None = None
        if self.loss is not None:
            self.loss.to(self.device).train()
            if asked(self.loss, shrinkage_cov=None):  # layer 0, pads included: the points come chosen
                self.shrinkage = ShrinkageCovariance(0, True, SHRINKAGE_ROWS, forward=self._points, group=None)

    def _points(self, model: Any, batch: dict[str, Tensor]) -> tuple[list[Tensor], None]:
        with self.pooling.watch(model) as seen:
            forward(model, batch)
        return [self.pooling.points(seen, batch)[0].unsqueeze(0)], None

    def refresh(self) -> None:
        """Measure the shrinkage covariance on the sentences, in their order."""
        if self.shrinkage is not None:
            starts = range(0, len(self.tokens), self.size)
            rows = (range(start, min(start + self.size, len(self.tokens))) for start in starts)
            self.shrinkage.refresh(self.encoder.model, (self.tokens.batch(part, self.device) for part in rows))

    def __call__(self, seen: Any, inputs: dict[str, Tensor], rows: int) -> Tensor | None:
        """The penalty on the points of the first ``rows`` sentences of the pass just seen; None without one."""
        if self.loss is None:
            seen.take()
            return None
        points, _ = self.pooling.points(seen, inputs, rows)
        cov = None if self.shrinkage is None else self.shrinkage.cov
        value: Tensor = self.loss(trainable(points), **asked(self.loss, labels=None, shrinkage_cov=cov))
        return value
