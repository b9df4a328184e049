r"""Tuning of an encoder on sentences alone, SimCSE (Gao et al. 2021) and tension (Carlsson et al. 2021), or on pairs.

SimCSE: every sentence passes twice, under two dropout masks, and is to be nearest to itself among the batch. The
vectors go through a dense layer with tanh that is dropped afterwards. AdamW, the learning rate falls to 0 in a line.
Where the paper always takes [CLS], any sentence vector may be given, so that what is trained is what is scored.

Tension: two copies of the encoder, dropout off; a sentence seen by both (one pair in K + 1) is to have a large dot
product, two different ones a small one. RMSprop at 1, 0.8, 0.6, 0.4 and 0.2 times the learning rate, switching after
each 500 updates, or after each fifth of a run of fewer than 2500. The given encoder becomes the first copy; the paper
keeps the better one on a development set, which there is none of here.

Sentence-BERT (Reimers and Gurevych 2019) learns from pairs with labels: a linear classifier reads u, v and |u - v|.
Its rate rises over a tenth of the updates. Supervised SimCSE learns from what a sentence entails; what it contradicts
joins the others of the batch.

A method's penalty joins any of these losses. It sees the points of each row's first sentence alone: two passes of
SimCSE are nearly the same points twice.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import LambdaLR

from isonb.errors import ShapeError, fail
from isonb.integrations.union import asked, one_number, trainable
from isonb.losses.istar import ShrinkageCovariance
from isonb.models.loading import Encoder
from isonb.models.text_models import is_decoder
from isonb.points import mean_pool
from isonb_lab.data.labelled_pairs import LabelledPairs
from isonb_lab.data.tasks import TaskError
from isonb_lab.encoders.vectors import Pool, SentenceVector, TokenizedSentences, first_token, forward
from isonb_lab.engines.stages import Series, finite, penalised_points, seeded
from isonb_lab.methods import Contrast, Method

MAX_NORM = 1.0  # of gradients, but for tension's
STAGE = 500  # updates between two rates of tension
RATES = (1.0, 0.8, 0.6, 0.4, 0.2)


def info_nce(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """Mean over i of the cross-entropy of cos(first_i, second_j) / temperature with j = i as the right answer.

    Shapes: (B, d) and (at least B, d); returns a scalar >= 0.

    >>> info_nce(torch.eye(2), torch.eye(2), temperature=1.0)
    tensor(0.3133)
    """
    cosines = F.normalize(first, dim=-1) @ F.normalize(second, dim=-1).mT
    return F.cross_entropy(cosines / temperature, torch.arange(len(first), device=first.device))


def tension_loss(first: Tensor, second: Tensor, same: Tensor) -> Tensor:
    """Mean binary cross-entropy of the dot products first_i . second_i with ``same`` (B,), 1 for equal sentences.

    >>> tension_loss(torch.tensor([[2.0], [1.0]]), torch.tensor([[1.0], [0.0]]), torch.tensor([1.0, 0.0]))
    tensor(0.4100)
    """
    return F.binary_cross_entropy_with_logits((first * second).sum(-1), same.to(first.dtype))


def tune(
    encoder: Encoder,
    sentences: Sequence[str],
    contrast: Contrast,
    *,
    seed: int,
    method: Method | None = None,
    penalty: nn.Module | None = None,
    vector: SentenceVector | None = None,
    pairs: LabelledPairs | None = None,
    progress: bool = True,
) -> Series:
    """Tune ``encoder.model`` in place, and leave it frozen and in evaluation mode; returns the losses by update.

    Series: ``step.train.loss``, the penalty included, and ``step.train.penalty``. Random states are put back at the
    end. Raises :class:`~isonb.errors.ShapeError` for fewer than two different sentences that aren't blank, and
    :class:`~isonb.errors.DegenerateError` where a loss isn't finite.

    Args:
        encoder: the model and its tokenizer.
        sentences: repeated ones count once.
        contrast: objective, updates, batch size and rates.
        seed: of the order of the sentences, dropout and the head.
        method: its penalty, on its points, joins the loss.
        penalty: that of the method, where it has been built already.
        vector: makes the sentence vectors and is tuned with the model where it has a layer; None takes the first token
            (SimCSE) or the mean (tension, Sentence-BERT) of the last layer.
        pairs: what an objective of labelled pairs learns from in place of ``sentences``.
        progress: show a bar.
    """
    from tqdm import tqdm

    texts = list(dict.fromkeys(text for text in sentences if text.strip())) if pairs is None else pairs.texts
    if len(texts) < 2:
        fail(ShapeError, "contrastive tuning needs at least 2 different sentences", len(texts), "Give more examples.")
    tokens = TokenizedSentences.read(encoder, texts, contrast.max_length)
    series: Series = {}
    kind = OBJECTIVES[contrast.objective]
    modules = [encoder.model] if vector is None else [encoder.model, vector]
    with seeded(next(encoder.model.parameters()).device, seed), torch.enable_grad():
        try:
            for module in modules:
                module.train(kind.dropout or module is vector).requires_grad_(True)
            objective = kind(encoder, tokens, contrast, method, vector, pairs)
            penalty = method.penalty() if penalty is None and method is not None else penalty
            penalised = _Penalty(encoder, tokens, contrast.batch_size, method, penalty)
            batches = islice(_batches(objective.rows, contrast.batch_size, seed), contrast.steps)
            bar = tqdm(batches, contrast.objective, contrast.steps, leave=False, disable=None if progress else True)
            for step, (fresh, rows) in enumerate(bar, start=1):
                if fresh:
                    penalised.refresh()
                with penalised.pooling.watch(encoder.model) as caught:
                    loss, inputs = objective.loss(rows)
                added = penalised(caught, inputs, len(rows))
                if added is not None:
                    loss = loss + added
                    series.setdefault("step.train.penalty", []).append((step, float(added.detach())))
                finite(loss, "contrastive tuning", step)
                objective.update(loss)
                series.setdefault("step.train.loss", []).append((step, float(loss.detach())))
        finally:
            for module in modules:
                module.eval().requires_grad_(False)
                module.zero_grad(set_to_none=True)
    return series


def _batches(count: int, size: int, seed: int) -> Iterator[tuple[bool, list[int]]]:
    """Shuffled batches without end, and whether one begins a pass; what doesn't fill a batch waits for another pass."""
    draw, size = torch.Generator().manual_seed(seed), min(size, count)
    while True:
        order = torch.randperm(count, generator=draw).tolist()
        for start in range(0, count - size + 1, size):
            yield start == 0, order[start : start + size]


class Objective:
    """What is minimized, and how: a loss of some rows, an optimizer and the course of its rate.

    ``tokens``: of all sentences; ``beside``: what is trained with the encoder and dropped afterwards.
    """

    rows: int  # what is learned from: sentences or pairs
    dropout = True
    warmup = 0.0  # share of the updates over which the rate rises
    optimizer: torch.optim.Optimizer
    schedule: LambdaLR

    def __init__(
        self,
        encoder: Encoder,
        tokens: TokenizedSentences,
        contrast: Contrast,
        method: Method | None = None,
        vector: SentenceVector | None = None,
        pairs: LabelledPairs | None = None,
    ) -> None:
        self.model, self.tokens, self.contrast, self.rows = encoder.model, tokens, contrast, len(tokens)
        self.device = next(encoder.model.parameters()).device
        if pairs is not None:
            self.learn_from(pairs)
        self.vector = SentenceVector(self.usual(encoder)) if vector is None else vector
        self.beside = self.module(encoder).to(self.device)
        rates = {} if method is None else method.learning_rates()
        layer = [] if self.vector.layer is None else self.vector.layer.named_parameters()
        groups: list[dict[str, Any]] = [{"params": [*self.model.parameters(), *self.beside.parameters()]}]
        groups += [{"params": [p], "lr": rates.get(name, contrast.learning_rate)} for name, p in layer]
        self.optimizer, self.schedule = self.course(groups)

    def learn_from(self, pairs: LabelledPairs) -> None:
        """Take pairs for rows; sentences alone have nothing to learn from them."""

    def usual(self, encoder: Encoder) -> Pool:
        """The sentence vector of the paper."""
        return lambda states: mean_pool(states.hidden[-1], states.mask)

    def module(self, encoder: Encoder) -> nn.Module:
        raise NotImplementedError

    def loss(self, rows: list[int]) -> tuple[Tensor, dict[str, Tensor]]:
        """The loss of some rows, and what passed the encoder for it, the first sentence of each row first."""
        raise NotImplementedError

    def course(self, groups: list[dict[str, Any]]) -> tuple[torch.optim.Optimizer, LambdaLR]:
        """AdamW, whose rate rises over the share ``warmup`` of the updates and falls to 0 in a line."""
        optimizer = torch.optim.AdamW(groups, lr=self.contrast.learning_rate, weight_decay=0.0)
        rise = math.ceil(self.warmup * self.contrast.steps)
        fall = max(1, self.contrast.steps - rise)
        return optimizer, LambdaLR(
            optimizer, lambda done: (done + 1) / rise if done < rise else max(0.0, 1 - (done - rise) / fall)
        )

    def embed(self, sentences: list[int]) -> tuple[Tensor, dict[str, Tensor]]:
        """The vectors of some sentences, and what passed the encoder."""
        batch = self.tokens.batch(sentences, self.device)
        return self.vector(forward(self.model, batch)), batch

    def update(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        if self.dropout:
            nn.utils.clip_grad_norm_([p for group in self.optimizer.param_groups for p in group["params"]], MAX_NORM)
        self.optimizer.step()
        self.schedule.step()


class SimCSE(Objective):
    """Two dropout passes of a batch as one batch of twice the size, behind a dense layer with tanh."""

    def usual(self, encoder: Encoder) -> Pool:
        return first_token(encoder)

    def module(self, encoder: Encoder) -> nn.Module:
        dense = nn.Linear(encoder.dim, encoder.dim)
        nn.init.normal_(dense.weight, std=0.02)
        nn.init.zeros_(dense.bias)
        return nn.Sequential(dense, nn.Tanh())

    def loss(self, rows: list[int]) -> tuple[Tensor, dict[str, Tensor]]:
        vectors, batch = self.embed([*rows, *rows])
        first, second = self.beside(vectors).split(len(rows))
        return info_nce(first, second, self.contrast.temperature), batch


class Tension(Objective):
    """Groups of one pair of equal and ``negatives`` pairs of different sentences, each side read by its own copy."""

    dropout = False

    def module(self, encoder: Encoder) -> nn.Module:
        twin: nn.Module = copy.deepcopy(encoder.model)
        return twin

    def loss(self, rows: list[int]) -> tuple[Tensor, dict[str, Tensor]]:
        same = torch.arange(len(rows)) % (self.contrast.negatives + 1) == 0
        away = torch.randint(1, len(self.tokens), (len(rows),))
        others = torch.where(same, torch.tensor(rows), (torch.tensor(rows) + away) % len(self.tokens)).tolist()
        first, batch = self.embed(rows)
        second = self.vector(forward(self.beside, self.tokens.batch(others, self.device)))
        return tension_loss(first, second, same.to(self.device)), batch

    def course(self, groups: list[dict[str, Any]]) -> tuple[torch.optim.Optimizer, LambdaLR]:
        optimizer = torch.optim.RMSprop(groups, lr=self.contrast.learning_rate)
        stage = min(STAGE, math.ceil(self.contrast.steps / len(RATES)))
        return optimizer, LambdaLR(optimizer, lambda done: RATES[min(done // stage, len(RATES) - 1)])


class SBERT(Objective):
    """A linear classifier of both vectors of a pair and their absolute difference tells the pair's label."""

    warmup = 0.1

    def learn_from(self, pairs: LabelledPairs) -> None:
        place = {text: row for row, text in enumerate(pairs.texts)}
        self.sides = [[place[text] for text in side] for side in (pairs.first, pairs.second)]
        self.labels, self.rows = torch.tensor(pairs.labels, device=self.device), len(pairs)
        self.names = pairs.names

    def module(self, encoder: Encoder) -> nn.Module:
        return nn.Linear(3 * encoder.dim, len(self.names))

    def loss(self, rows: list[int]) -> tuple[Tensor, dict[str, Tensor]]:
        vectors, batch = self.embed([side[row] for side in self.sides for row in rows])
        first, second = vectors.chunk(2)
        logits = self.beside(torch.cat([first, second, (first - second).abs()], -1))
        return F.cross_entropy(logits, self.labels[rows]), batch


class SupervisedSimCSE(SimCSE):
    """A sentence is told from all that the batch's sentences entail and contradict, by what it entails itself."""

    def learn_from(self, pairs: LabelledPairs) -> None:
        place: dict[str | None, int] = {text: row for row, text in enumerate(pairs.texts)}
        self.triplets = [(place[item], place[two], place.get(three)) for item, two, three in pairs.triplets()]
        self.rows = len(self.triplets)
        if self.rows < 2:
            fix = "Choose pairs of entailment, such as mnli or english_entailment."
            fail(TaskError, "supervised_simcse needs pairs with the label entailment", self.rows, fix)

    def loss(self, rows: list[int]) -> tuple[Tensor, dict[str, Tensor]]:
        first, second, third = zip(*(self.triplets[row] for row in rows), strict=True)
        negatives = [sentence for sentence in third if sentence is not None]
        vectors, batch = self.embed([*first, *second, *negatives])
        mine, theirs = self.beside(vectors).split([len(rows), len(rows) + len(negatives)])
        return info_nce(mine, theirs, self.contrast.temperature), batch


OBJECTIVES: dict[str, type[Objective]] = {
    "simcse": SimCSE,
    "tension": Tension,
    "sbert": SBERT,
    "supervised_simcse": SupervisedSimCSE,
}


class _Penalty:
    """A method's penalty on the points of the pass just seen; with shrinkage, a covariance measured each pass."""

    def __init__(
        self, encoder: Encoder, tokens: TokenizedSentences, size: int, method: Method | None, loss: nn.Module | None
    ) -> None:
        self.model, self.tokens, self.size, self.loss = encoder.model, tokens, size, loss
        self.device = next(encoder.model.parameters()).device
        self.pooling = penalised_points(method or Method(), "last" if is_decoder(encoder.model.config) else "cls")
        self.shrinkage: ShrinkageCovariance | None = None
        if self.loss is not None:
            self.loss.to(self.device).train()
            if asked(self.loss, shrinkage_cov=None):  # layer 0, pads included: the points come chosen
                self.shrinkage = ShrinkageCovariance(0, True, forward=self._points, group=None)

    def _points(self, model: Any, batch: dict[str, Tensor]) -> tuple[list[Tensor], None]:
        with self.pooling.watch(model) as caught:
            forward(model, batch)
        return [self.pooling.points(caught, batch)[0].unsqueeze(0)], None

    def refresh(self) -> None:
        """Measure the shrinkage covariance on the sentences, in their order."""
        if self.shrinkage is not None:
            rows, size = range(len(self.tokens)), self.size
            parts = (list(rows[start : start + size]) for start in rows[::size])
            self.shrinkage.refresh(self.model, (self.tokens.batch(part, self.device) for part in parts))

    def __call__(self, caught: Any, inputs: dict[str, Tensor], rows: int) -> Tensor | None:
        """The penalty on the points of the first ``rows`` sentences of the pass just seen; None without one."""
        if self.loss is None:
            caught.take()
            return None
        points, _ = self.pooling.points(caught, inputs, rows)
        cov = None if self.shrinkage is None else self.shrinkage.cov
        return one_number(self.loss(trainable(points), **asked(self.loss, labels=None, shrinkage_cov=cov)))
