"""A fine-tuned model kept in memory, and layers trained behind it: the two phases of a run, one at a time.

What :func:`isonb.lab.engines.finetune.run` does in one go, for those who want to try many second phases on the same
features.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.lab.engines.finetune import prepare
from isonb.lab.engines.second_phase import Features, SecondModel, features, fit_second
from isonb.lab.engines.stages import Finetuning, work_folder
from isonb.lab.engines.trainer import train
from isonb.lab.methods import SecondPhase, method_from
from isonb.measures.isoscore import isoscore
from isonb.measures.spectrum import explained_variance


@dataclass(frozen=True)
class FineTuned:
    """Phase 1: a model that has learned its task, frozen, and what its head reads of both splits."""

    run: Finetuning
    train: Features
    held: Features
    seconds: float

    @property
    def seed(self) -> int:
        """Of the run."""
        return self.run.settings.seed

    @property
    def width(self) -> int:
        """Dimensions of the features."""
        return int(self.train.cloud.shape[-1])

    def phase(self, options: Mapping[str, Any], **changes: Any) -> SecondPhase:
        """The second phase of a method with two phases, by name and options; ``changes`` replace fields of it."""
        return replace(method_from(dict(options)).second(self.train.cloud, self.seed), **changes)

    def layered(self, options: Mapping[str, Any], *, trained: bool = True, **changes: Any) -> Layered:
        """Phase 2: the method's module behind the frozen model, trained unless it needs no training."""
        phase = self.phase(options, **changes)
        model = SecondModel(self.run.model, phase, self.width, self.run.task.outputs)
        began = time.perf_counter()
        series = {}
        if trained:
            series = fit_second(
                model, phase, self.train, lambda _: {"none": 0.0}, seed=self.seed, select=False, progress=False
            )
        return Layered(self, model, series, time.perf_counter() - began)


@dataclass(frozen=True)
class Layered:
    """A fine-tuned model with a module behind it, and the losses of each update."""

    tuned: FineTuned
    model: SecondModel
    series: Mapping[str, list[tuple[float, float]]]
    seconds: float

    @torch.no_grad()
    def measured(self) -> dict[str, float]:
        """Score and shape of the validation cloud ("before.", "after."), of the training cloud ("train.", after).

        ``changed`` is the share of validation rows whose answer is another one.
        """
        tuned, split = self.tuned, self.tuned.run.material.validation
        main = tuned.run.task.metrics[0]
        before, after = tuned.run.model.head(tuned.held.cloud), torch.as_tensor(self.model.logits(tuned.held))
        measured = {"before.score": split.score(before)[main], "after.score": split.score(after)[main]}
        clouds = {
            "before": tuned.held.cloud,
            "after": self.model.module(tuned.held.cloud),
            "train": self.model.module(tuned.train.cloud),
        }
        for where, cloud in clouds.items():
            measured |= {f"{where}.{name}": value for name, value in cloud_shape(cloud).items()}
        changed = before.argmax(1).cpu() != after.argmax(1).cpu()
        return measured | {"changed": float(changed.double().mean())}


def fine_tune(config: Mapping[str, Any], data: str | Path | None = None) -> FineTuned:
    """Phase 1 of a configuration, as in :func:`~isonb.lab.runs.settings.plan`."""
    run = prepare(dict(config) | {"method": "none"}, data)
    began = time.perf_counter()
    with work_folder(None) as folder:
        train(run, folder, resumable=False, progress=False)
    took = time.perf_counter() - began
    run.model.requires_grad_(False)
    return FineTuned(run, features(run, run.material.train), features(run, run.material.validation), took)


def cloud_shape(points: Tensor) -> dict[str, float]:
    """IsoScore, the unbiased one, and explained variance of 1 to 3 components, raw and centred, in float64."""
    x = points.double()
    shape = {"isoscore": float(isoscore(x)), "isoscore_unbiased": float(isoscore(x, unbiased=True))}
    for ending, center in (("", False), ("_centered", True)):
        shares = explained_variance(x, 3, center=center).tolist()
        shape |= {f"explained_variance_{k}{ending}": share for k, share in enumerate(shares, start=1)}
    return shape
