"""Score sentence pairs by the cosine of their vectors, without labels, with a method, beside plain vectors.

The stages are those of :mod:`isonb_lab.methods.base`; no method is known here by name. Unless a method is ``post_hoc``,
the encoder is tuned on the task's own sentences: by the method's ``contrast``; and by SimCSE with the run's settings
where it has a penalty or a layer, which need a loss to act on. What is tuned is what is scored: the sentence vector of
the run, with the layer at its site. A method of two phases then trains its module on the vectors of the frozen encoder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from isonb.checks import strict
from isonb.errors import DegenerateError, fail
from isonb.measures.cosine import token_uniformity
from isonb.measures.neighbors import lsds
from isonb.measures.registry import attempt
from isonb.measures.spectrum import singular_values
from isonb.models.loading import Encoder, load
from isonb.points import mean_pool
from isonb_lab.data.labelled_pairs import LabelledPairs
from isonb_lab.data.sources import rows_folder
from isonb_lab.data.sts import Gold, gains, pair_cosine, scores
from isonb_lab.encoders.vectors import (
    Pool,
    SentenceVector,
    States,
    TokenizedSentences,
    distinct,
    embed,
    first_token,
    sample_tokens,
)
from isonb_lab.engines.callbacks import Reports
from isonb_lab.engines.contrast import tune
from isonb_lab.engines.preflight import preflight
from isonb_lab.engines.second_phase import fit_views
from isonb_lab.engines.stages import Series, seeded
from isonb_lab.measuring.cloud import Values, cloud_measures, number, variance_curves
from isonb_lab.measuring.layers import QUANTILES
from isonb_lab.methods import TUNING, Contrast, Method
from isonb_lab.runs.inputs import RunRows, own_files, recorded
from isonb_lab.runs.manifest import Clock
from isonb_lab.runs.record import Record
from isonb_lab.runs.settings import LAYERS, Planned, plan
from isonb_lab.runs.table import write_table

TOKENS = 100_000  # token vectors that a method learns from, at most
DIGITS = 5  # of the cosines in a record
CLOUD_ROWS = 2000  # sentence vectors of both sides together that are measured

Sides = tuple[Tensor, Tensor]


def run(
    request: Mapping[str, Any] | Planned,
    *,
    data: str | Path | None = None,
    work: str | Path | None = None,
    progress: bool = True,
    report_to: str = "",
    predictions: str | Path | None = None,
) -> Record:
    """Encode, tune if the method asks for it, transform, score; the record (unwritten). It leaves no checkpoints.

    As :func:`isonb_lab.engines.experiment.run` says; trackers are told when the run is over, and ``predictions`` has
    one row a pair. Raises :class:`~isonb.errors.DegenerateError`, which names the stage, where vectors or losses aren't
    finite.

    Metrics: ``spearman.<protocol>`` and ``subset.<name>.spearman``; both with ``plain.`` in front for the untouched
    encoder and the same layers; ``difference.spearman.<protocol>`` with ``.low``, ``.high`` and ``.p``; counts
    ``pairs``, ``sentences`` and ``subset.<name>.pairs``; ``start.features.<measure>`` of the plain vectors and
    ``end.features.<measure>`` of the final ones. Series: ``pair.cosine`` by row, ``step.train.loss`` and
    ``step.train.penalty`` of tuning, ``step.second.<loss>``, and those of :func:`features`.
    """
    clock, reports = Clock(), Reports(report_to)
    planned = preflight(plan(request), data)
    task, settings = planned.task, planned.settings
    read = RunRows.read(planned.selections, rows_folder(planned.selections.values(), data))
    rows = read.splits["rows"]
    texts, *places = distinct(*(list(rows[column]) for column in task.inputs))
    gold = Gold([float(value) for value in rows[task.target]], list(rows["subset"]) if task.subsets else None)
    with seeded(torch.device("cpu"), settings.seed):
        penalty = None if planned.method.post_hoc else planned.method.penalty()
    encoder = load(settings.model, device="cuda" if torch.cuda.is_available() else "cpu")
    tokens = TokenizedSentences.read(encoder, texts, settings.max_length)
    run_ = _Run(settings, planned.method, penalty, encoder, texts, tokens, places, read.labelled_pairs(), progress)
    with clock.fitting():
        plain, final, series = run_.vectors()
    cosines, plain_cosines = _cosines(final, "transforming"), _cosines(plain, "encoding")
    metrics: dict[str, float | None] = {"pairs": len(rows), "sentences": len(texts)}
    if gold.subsets is not None:
        metrics |= {f"subset.{name}.pairs": len(part) for name, part in gold.by_subset.items()}
    metrics |= scores(cosines, gold)
    metrics |= {f"plain.{name}": value for name, value in scores(plain_cosines, gold).items()}
    metrics |= gains(cosines, plain_cosines, gold, settings.seed)
    for where, sides in (("start", plain), ("end", final)):
        with clock.measuring():
            measured, curves = features(where, torch.cat(sides), torch.cat(plain), settings.seed)
        metrics |= measured
        series |= curves
    series["pair.cosine"] = [(row, round(value, DIGITS)) for row, value in enumerate(cosines)]
    if predictions is not None:
        columns = {f"text.{name}": list(rows[name]) for name in task.inputs}
        columns |= {"gold": gold.values, "predicted": cosines, "plain": plain_cosines}
        write_table(pd.DataFrame(columns), predictions)
    reports.afterwards(planned.run_id, metrics, series)
    prints = read.fingerprints() | {"model": encoder.revision} | own_files(task, planned.method)
    return recorded(planned, prints, clock, read.scored(task), metrics=metrics, series=series)


@dataclass(frozen=True)
class _Run:
    """What the stages of one run share. ``places``: where a pair's first and second sentences are in ``texts``."""

    settings: Any
    method: Method
    penalty: nn.Module | None  # the method's, built once
    encoder: Encoder
    texts: list[str]
    tokens: TokenizedSentences
    places: list[Tensor]
    pairs: LabelledPairs | None  # from which the method learns before anything else
    progress: bool

    def sides(self, vectors: Tensor) -> Sides:
        """Vectors of all sentences as the two sides of all pairs."""
        first, second = (vectors[place.to(vectors.device)] for place in self.places)
        return first, second

    def embed(self, *pools: Pool) -> list[Tensor]:
        """The vectors of all sentences, pooled in each of some ways."""
        size, name = self.settings.batch_size, f"{self.settings.task} {self.method.name}"
        return embed(self.encoder, self.tokens, pools, size, progress=self.progress, name=name)

    def vectors(self) -> tuple[Sides, Sides, Series]:
        """Both sides of all pairs: plain, and after all stages of the method; and the losses of what was trained."""
        method, seed, device = self.method, self.settings.seed, next(self.encoder.model.parameters()).device
        with seeded(device, seed):
            layer = None if method.post_hoc else method.layer(self.encoder.dim)
        if layer is not None:
            layer.to(device)
        vector = SentenceVector(self._pool(method), layer, method.site)
        plain, vectors = self.embed(self._pool(Method()), self._pool(method))
        series = {} if method.post_hoc else self._tune(vector)
        if method.token_fit:
            vector.pooled = self._token_pool()
        if series or method.token_fit:
            (vectors,) = self.embed(vector)
        vectors = _finite(vectors, "encoding")
        if method.two_phases and not method.post_hoc:
            phase, temperature = method.second(vectors, seed), self.settings.temperature
            with seeded(device, seed):
                self.encoder.model.train()
                first, second = (self.embed(vector)[0] for _ in range(2))  # under two dropout masks
                self.encoder.model.eval()
            series |= fit_views(phase, first, second, temperature=temperature, seed=seed, progress=self.progress)
            with torch.no_grad():
                vectors = _finite(phase.module.to(device).eval()(vectors), "the second phase")
        with strict(), torch.no_grad():
            mine, other = method.transform(*self.sides(vectors), seed)
        final = _finite(mine, "transforming").float(), _finite(other, "transforming").float()
        return self.sides(_finite(plain, "encoding")), final, series

    def _pool(self, method: Method) -> Pool:
        """The run's way to pool, unless the method has its own; "cls" is then the last layer to it."""
        layers = self.settings.layers
        if type(method).pool is Method.pool and layers == "cls":
            return first_token(self.encoder)
        return lambda states: method.pool(states.hidden, states.mask, LAYERS[layers])

    def _token_pool(self) -> Pool:
        """The last layer's word vectors by what the method learns from them, then their mean."""
        size, seed = self.settings.batch_size, self.settings.seed
        tokens = sample_tokens(self.encoder, self.tokens, size, limit=TOKENS, seed=seed, progress=self.progress)
        fitted: Any = self.method.fit_tokens(_finite(tokens, "encoding"), seed)

        def pooled(states: States) -> Tensor:
            rows = fitted.transform(states.hidden[-1][states.words])
            changed = rows.new_zeros(*states.words.shape, rows.shape[-1])
            changed[states.words] = rows
            return mean_pool(changed, states.words)

        return pooled

    def _tune(self, vector: SentenceVector) -> Series:
        """Stages 1 and 2, each if the method takes part in it."""
        options: dict[str, Any] = {"seed": self.settings.seed, "vector": vector, "progress": self.progress}
        objective = self.method.contrast()
        series: Series = {}
        if objective is not None:
            series = tune(self.encoder, self.texts, objective, pairs=self.pairs, **options)
        if self.penalty is not None or vector.layer is not None:
            series = {name.replace("step.", "step.contrast.", 1): values for name, values in series.items()}
            contrast = Contrast("simcse", **{ours: getattr(self.settings, theirs) for ours, theirs in TUNING.items()})
            options |= {"method": self.method, "penalty": self.penalty}
            series |= tune(self.encoder, self.texts, contrast, **options)
        return series


def _cosines(sides: Sides, stage: str) -> list[float]:
    with strict():
        cosines: list[float] = _finite(pair_cosine(*sides), stage).tolist()
    return cosines


def _finite(x: Tensor, stage: str) -> Tensor:
    if not bool(torch.isfinite(x).all()):
        bad = int((~torch.isfinite(x)).sum())
        fix = "Lower the learning rate or the weight of the penalty, or look at the model's weights."
        fail(DegenerateError, f"the vectors must be finite after {stage}", f"{bad} numbers that aren't", fix)
    return x


def features(where: str, vectors: Tensor, plain: Tensor, seed: int) -> tuple[Values, Series]:
    """Measures of sentence vectors (n, k), both sides of all pairs stacked, beside the plain ones (n, d).

    Of more than 2000 rows so many are measured, drawn by ``seed``: the same of both. ``<where>.features.<measure>``:
    those of :func:`~isonb_lab.measuring.cloud.cloud_measures`, ``token_uniformity``, and ``lsds`` from the plain
    vectors to these. Series: ``quantile.<where>.features.singular_values``, 51 quantiles of the raw
    singular values over the largest; ``k.<where>.features.explained_variance`` and ``..._centered``. What isn't defined
    is None.
    """
    rows = torch.randperm(len(vectors), generator=torch.Generator().manual_seed(seed))[:CLOUD_ROWS].sort().values
    x, origin = vectors.cpu()[rows].double(), plain.cpu()[rows].double()
    measured = cloud_measures(x) | {"token_uniformity": number(token_uniformity, x), "lsds": number(lsds, origin, x)}
    series: Series = {}
    values = attempt(singular_values, x)
    if values is not None and float(values.max()) > 0:
        share = torch.linspace(0, 1, QUANTILES, dtype=values.dtype)
        ends = torch.quantile(values / values.max(), share).tolist()
        series[f"quantile.{where}.features.singular_values"] = list(zip(share.tolist(), ends, strict=True))
    series |= {f"k.{where}.features.{name}": curve for name, curve in variance_curves(x).items()}
    return {f"{where}.features.{name}": value for name, value in measured.items()}, series
