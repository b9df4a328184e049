"""Score sentence pairs by the cosine of their vectors, without labels, with a method, beside plain vectors.

The stages are those of :mod:`isonb.lab.methods.base`; no method is known here by name. Unless a method is ``post_hoc``,
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
from isonb.lab.data.sources import fingerprint
from isonb.lab.data.sts import pair_cosine
from isonb.lab.data.tasks import task_named
from isonb.lab.encoders.loading import Encoder, load
from isonb.lab.encoders.vectors import (
    Pool,
    SentenceVector,
    States,
    TokenizedSentences,
    distinct,
    embed,
    first_token,
    sample_tokens,
)
from isonb.lab.engines.contrast import Series, tune
from isonb.lab.engines.preflight import preflight
from isonb.lab.engines.reports import Reports, report
from isonb.lab.engines.second_phase import fit_views
from isonb.lab.engines.similarity_report import Gold, features, gains, scores
from isonb.lab.methods import Contrast, Method
from isonb.lab.runs.inputs import own_files, pair_rows, recorded
from isonb.lab.runs.manifest import Clock
from isonb.lab.runs.record import Record
from isonb.lab.runs.settings import LAYERS, Planned, SimilaritySettings
from isonb.lab.runs.table import write_table
from isonb.points import mean_pool

__all__ = ["run"]

TOKENS = 100_000  # token vectors that a method learns from, at most
DIGITS = 5  # of the cosines in a record

Sides = tuple[Tensor, Tensor]


def run(
    given: Mapping[str, Any] | Planned,
    *,
    data: str | Path | None = None,
    work: str | Path | None = None,
    progress: bool = True,
    report_to: str = "",
    predictions: str | Path | None = None,
) -> Record:
    """Encode, tune if the method asks for it, transform, score; the record (unwritten). It leaves no checkpoints.

    ``given`` as in :func:`~isonb.lab.runs.settings.plan`; ``data`` a folder in the hub's layout or "hub"; ``work``
    isn't used. The same configuration gives the same metrics and series on the same machine. ``report_to`` names
    trackers, which are told when the run is over; ``predictions`` is the file for a table of one row a pair. Raises as
    :func:`~isonb.lab.engines.preflight.preflight`, and :class:`~isonb.errors.DegenerateError`, which names the stage,
    where vectors or losses aren't finite.

    Metrics: ``spearman.<protocol>`` and ``subset.<name>.spearman``; both with ``plain.`` in front for the untouched
    encoder and the same layers; ``difference.spearman.<protocol>`` with ``.low``, ``.high`` and ``.p``; counts
    ``pairs``, ``sentences`` and ``subset.<name>.pairs``; ``start.features.<measure>`` of the plain vectors and
    ``end.features.<measure>`` of the final ones. Series: ``pair.cosine`` by row, ``step.train.loss`` and
    ``step.train.penalty`` of tuning, ``step.second.<loss>``, and those of
    :func:`~isonb.lab.engines.similarity_report.features`.
    """
    clock, reports = Clock(), Reports(report_to)
    run_ = _prepare(given, data)
    with clock.fitting():
        plain, final, series = _vectors(run_, progress)
    cosines, plain_cosines = _cosines(final, "transforming"), _cosines(plain, "encoding")
    seed, gold = run_.settings.seed, run_.gold
    metrics = run_.counts() | scores(cosines, gold)
    metrics |= {f"plain.{name}": value for name, value in scores(plain_cosines, gold).items()}
    metrics |= gains(cosines, plain_cosines, gold, seed)
    for where, sides in (("start", plain), ("end", final)):
        with clock.measuring():
            measured, curves = features(where, torch.cat(sides), torch.cat(plain), seed)
        metrics |= measured
        series |= curves
    series["pair.cosine"] = [(row, round(value, DIGITS)) for row, value in enumerate(cosines)]
    if predictions is not None:
        task = task_named(run_.settings.task)
        texts = {f"text.{name}": list(run_.rows[name]) for name in task.inputs}
        told = {"gold": gold.values, "predicted": cosines, "plain": plain_cosines}
        write_table(pd.DataFrame(texts | told), predictions)
    report(reports, run_.planned.run_id, metrics, series)
    prints = {"rows": fingerprint(run_.rows), "model": run_.encoder.revision}
    prints |= own_files(task_named(run_.settings.task), run_.method)
    return recorded(run_.planned, prints, clock, metrics=metrics, series=series)


@dataclass(frozen=True)
class _Run:
    """What the stages of one run share. ``first`` and ``second`` are the places of a pair's sentences in ``texts``."""

    planned: Planned
    settings: SimilaritySettings
    method: Method
    penalty: nn.Module | None  # the method's, built once
    encoder: Encoder
    rows: Any
    gold: Gold
    texts: list[str]
    tokens: TokenizedSentences
    first: Tensor
    second: Tensor

    def counts(self) -> dict[str, float | None]:
        """Pairs and sentences that were scored."""
        counts: dict[str, float | None] = {"pairs": len(self.rows), "sentences": len(self.texts)}
        subsets = self.gold.by_subset if self.gold.subsets is not None else {}
        return counts | {f"subset.{name}.pairs": len(rows) for name, rows in subsets.items()}

    def sides(self, vectors: Tensor) -> Sides:
        """Vectors of all sentences as the two sides of all pairs."""
        return vectors[self.first.to(vectors.device)], vectors[self.second.to(vectors.device)]


def _prepare(given: Mapping[str, Any] | Planned, data: str | Path | None) -> _Run:
    planned = preflight(given, data)
    settings, method = planned.settings, planned.method
    task = task_named(settings.task)
    rows = pair_rows(settings, data)
    texts, one, other = distinct(*(list(rows[column]) for column in task.inputs))
    gold = Gold([float(value) for value in rows[task.target]], list(rows["subset"]) if task.subsets else None)
    penalty = None if method.post_hoc else method.penalty()
    encoder = load(settings.model, device="cuda" if torch.cuda.is_available() else "cpu")
    tokens = TokenizedSentences.read(encoder, texts, settings.max_length)
    return _Run(planned, settings, method, penalty, encoder, rows, gold, texts, tokens, one, other)


def _vectors(run_: _Run, progress: bool) -> tuple[Sides, Sides, Series]:
    """Both sides of all pairs: plain, and after all stages of the method; and the losses of what was trained."""
    method, encoder, seed = run_.method, run_.encoder, run_.settings.seed
    layer = None if method.post_hoc else method.layer(encoder.dim)
    if layer is not None:
        layer.to(next(encoder.model.parameters()).device)
    vector = SentenceVector(_pool(run_, method), layer, method.site)
    plain, vectors = _embed(run_, [_pool(run_, Method()), _pool(run_, method)], progress)
    series = _tune(run_, vector, progress)
    if method.token_fit:
        vector.pooled = _token_pool(run_, progress)
    if series or method.token_fit:
        (vectors,) = _embed(run_, [vector], progress)
    vectors = _finite(vectors, "encoding")
    if method.two_phases and not method.post_hoc:
        phase = method.second(vectors, seed)
        first, second = _views(run_, vector, progress)
        series |= fit_views(phase, first, second, temperature=run_.settings.temperature, seed=seed, progress=progress)
        with torch.no_grad():
            vectors = _finite(phase.module.to(vectors.device).eval()(vectors), "the second phase")
    with strict(), torch.no_grad():
        one, other = method.transform(*run_.sides(vectors), seed)
    final = _finite(one, "transforming").float(), _finite(other, "transforming").float()
    return run_.sides(_finite(plain, "encoding")), final, series


def _embed(run_: _Run, pools: list[Pool], progress: bool) -> list[Tensor]:
    name = f"{run_.settings.task} {run_.method.name}"
    return embed(run_.encoder, run_.tokens, pools, run_.settings.batch_size, progress=progress, name=name)


def _pool(run_: _Run, method: Method) -> Pool:
    """The run's way to pool, unless the method has its own; "cls" is then the last layer to it."""
    layers = run_.settings.layers
    if type(method).pool is Method.pool and layers == "cls":
        return first_token(run_.encoder)
    return lambda states: method.pool(states.hidden, states.mask, LAYERS[layers])


def _token_pool(run_: _Run, progress: bool) -> Pool:
    """The last layer's word vectors by what the method learns from them, then their mean."""
    size, seed = run_.settings.batch_size, run_.settings.seed
    tokens = sample_tokens(run_.encoder, run_.tokens, size, limit=TOKENS, seed=seed, progress=progress)
    fitted: Any = run_.method.fit_tokens(_finite(tokens, "encoding"), seed)

    def pooled(states: States) -> Tensor:
        rows = fitted.transform(states.hidden[-1][states.words])
        changed = rows.new_zeros(*states.words.shape, rows.shape[-1])
        changed[states.words] = rows
        return mean_pool(changed, states.words)

    return pooled


def _tune(run_: _Run, vector: SentenceVector, progress: bool) -> Series:
    """Stages 1 and 2, each if the method takes part in it."""
    method, settings = run_.method, run_.settings
    if method.post_hoc:
        return {}
    options: dict[str, Any] = {"seed": settings.seed, "vector": vector, "progress": progress}
    own, acts = method.contrast(), run_.penalty is not None or vector.layer is not None
    series: Series = {}
    if own is not None:
        series = tune(run_.encoder, run_.texts, own, **options)
    if acts:
        series = {name.replace("step.", "step.contrast.", 1): values for name, values in series.items()}
        contrast = Contrast(
            "simcse",
            steps=settings.tuning_steps,
            batch_size=settings.tuning_batch,
            learning_rate=settings.tuning_rate,
            temperature=settings.temperature,
            max_length=settings.tuning_length,
        )
        series |= tune(run_.encoder, run_.texts, contrast, method=method, penalty=run_.penalty, **options)
    return series


def _views(run_: _Run, vector: nn.Module, progress: bool) -> Sides:
    """The vectors of all sentences under two dropout masks."""
    device = next(run_.encoder.model.parameters()).device
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices, device_type=device.type if devices else "cuda"):
        torch.manual_seed(run_.settings.seed)
        run_.encoder.model.train()
        try:
            return _embed(run_, [vector], progress)[0], _embed(run_, [vector], progress)[0]
        finally:
            run_.encoder.model.eval()


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
