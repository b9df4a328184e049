"""Stage 3 of a fine-tuning run: what a method does to the features of the frozen encoder."""

from __future__ import annotations

import torch
from torch import Tensor

from isonb.lab.engines.second_phase import Features, SecondModel, fit_second
from isonb.lab.engines.stages import Finetuning, Part, Series
from isonb.lab.measuring.cloud import cloud_measures
from isonb.measures.registry import attempt
from isonb.measures.spectrum import explained_variance

__all__ = ["features", "scored", "second"]

CLOUD_ROWS = 1500  # points that are measured
CURVE = 20  # components of the curve of explained variance


def second(run_: Finetuning, metrics: dict[str, float | None], series: Series, progress: bool) -> dict[str, float]:
    """Stage 3 on cached features: the scores after it."""
    material, seed = run_.material, run_.settings.seed
    train, validation = features(run_, material.train), features(run_, material.validation)
    watched = validation if material.held is None else features(run_, material.held)
    part = material.validation if material.held is None else material.held
    torch.manual_seed(seed)
    phase = run_.method.second(train.cloud, seed)
    model = SecondModel(run_.model, phase, train.cloud.shape[-1], run_.task.outputs).to(run_.device)
    found = fit_second(
        model,
        phase,
        train,
        lambda model: scored(part, model, watched),
        seed=seed,
        select=material.held is not None,
        progress=progress,
    )
    series.update(found)
    with torch.no_grad():
        points = phase.module(validation.cloud)[:CLOUD_ROWS]
    metrics.update({f"end.second.{name}": v for name, v in cloud_measures(points).items() if v is not None})
    for ending, center in (("", False), ("_centered", True)):
        shares = attempt(explained_variance, points, min(CURVE, *points.shape), center=center)
        if shares is not None:
            series[f"k.end.second.explained_variance{ending}"] = list(enumerate(shares.tolist(), start=1))
    return scored(material.validation, model, validation)


def scored(part: Part, model: SecondModel, cached: Features) -> dict[str, float]:
    """The task's metrics of a part from its features."""
    logits = model.logits(cached)
    spans = not isinstance(logits, Tensor)
    return part.score(torch.nn.utils.rnn.pad_sequence(logits, batch_first=True) if spans else logits)


@torch.no_grad()
def features(run_: Finetuning, part: Part) -> Features:
    """What the head reads (or a method's own features) of every row of a part, computed once."""
    run_.model.eval()
    rows: list[Tensor] = []
    labels = []
    for batch in run_.batches(part):
        states, mask = run_.hidden(batch)
        vector = run_.model.vector(states[-1], mask)
        own = None if run_.task.kind == "span" else run_.method.features(torch.stack(states), mask)
        vector = vector if own is None else own
        rows += [vector] if vector.ndim == 2 else [row[m] for row, m in zip(vector, mask.bool(), strict=True)]
        labels.append(batch["labels"])
    return Features(rows if run_.task.kind == "span" else torch.cat(rows), torch.cat(labels))
