"""What chapters do with models while they run: small trainings, layers behind trained models, pairs that are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from isonb.errors import fail
from isonb.measures.registry import measure_all
from isonb.models.loading import Encoder, TokenizedSentences, hidden_states
from isonb_lab.claims.comparing import ALIKE, direction_of
from isonb_lab.claims.verdicts import FEWEST
from isonb_lab.data.task import TaskError
from isonb_lab.data.tasks import task_named
from isonb_lab.encoders.vectors import Pool, distinct, embed
from isonb_lab.engines.finetune import prepare
from isonb_lab.engines.second_phase import Features, SecondModel, features, fit_second
from isonb_lab.engines.stages import Finetuning, Series, work_folder
from isonb_lab.engines.trainer import train
from isonb_lab.methods import SecondPhase, method_from
from isonb_lab.runs.protocols import protocol_of
from isonb_lab.runs.record import Record
from isonb_lab.sweeps.inline import run_all

LENGTH = 128  # tokens of a sentence or a pair
SHAPE = ("isoscore", "isoscore_unbiased", *(f"explained_variance_{k}{end}" for end in ("", "_centered") for k in "123"))
SMALL = {"validations": 1, "track_every": 0, "max_length": 32, "precision": "float32", "batch_size": 16}
SPANS = {"max_length": 128, "doc_stride": 32}  # a question and its context are longer than a sentence


def small_runs(methods: Iterable[Mapping[str, Any] | str], *, seeds: Iterable[int], **settings: Any) -> list[Record]:
    """The records of each method at each seed, small enough to be made while a chapter runs; nothing is written.

    Raises :class:`~isonb.OptionError` for a task of similarity, which isn't learned.

    Args:
        methods: names, or names with options.
        seeds: a run of each method has each.
        settings: of :class:`~isonb_lab.runs.settings.FinetuneSettings`, in place of :data:`SMALL`.
    """
    start = {"experiment": "finetune", "protocol": protocol_of(settings.get("model")), **SMALL}
    start |= (SPANS if task_named(settings["task"]).kind == "span" else {}) | settings
    return run_all([start | {"method": method, "seed": seed} for seed in seeds for method in methods])


def direction(changes: Sequence[float], margin: float = ALIKE) -> str:
    """Which way a value went in live runs at the same seeds, for a sentence: by more than the margin.

    >>> direction([0.10, 0.12, 0.11]), direction([0.1, -0.2, 0.1])
    ('rose', 'did not change significantly')
    >>> direction([0.1])  # one difference can't be tested
    "isn't tested (seeds: 1; at least 3 are needed)"
    """
    if len(changes) < FEWEST:
        return f"isn't tested (seeds: {len(changes)}; at least {FEWEST} are needed)"
    return direction_of(changes, margin) or "did not change significantly"


@dataclass(frozen=True)
class FineTuned:
    """A model that has learned its task, frozen, and what its head reads of the training and the validation rows."""

    run: Finetuning
    train: Features
    validation: Features

    def layered(self, options: Mapping[str, Any], *, trained: bool = True, **changes: Any) -> Layered:
        """The module of a method with two phases behind the frozen model, trained unless it needs no training.

        ``options``: the method's name and options; ``changes`` replace fields of its
        :class:`~isonb_lab.methods.base.SecondPhase`.
        """
        seed, cloud = self.run.settings.seed, self.train.cloud
        phase: SecondPhase = replace(method_from(dict(options)).second(cloud, seed), **changes)
        model = SecondModel(self.run.model, phase, cloud.shape[-1], self.run.task.outputs)
        series = fit_second(model, phase, self.train, seed=seed) if trained else {}
        return Layered(self, model, series)


@dataclass(frozen=True)
class Layered:
    """A fine-tuned model with a module behind it, and the losses of each update."""

    tuned: FineTuned
    model: SecondModel
    series: Series

    @torch.no_grad()
    def measured(self) -> dict[str, float | None]:
        """Score and shape of the validation cloud ("before.", "after."), of the training cloud ("train.", after).

        ``changed`` is the share of validation rows whose answer is another one.
        """
        tuned, module = self.tuned, self.model.module
        split, main = tuned.run.splits["validation"], tuned.run.task.metrics[0]
        before, after = tuned.run.model.head(tuned.validation.cloud), self.model.logits(tuned.validation)
        measured: dict[str, float | None] = {
            "before.score": split.score(before)[main],
            "after.score": split.score(after)[main],
            "changed": float((before.argmax(1).cpu() != after.argmax(1)).double().mean()),
        }
        clouds = {
            "before": tuned.validation.cloud,
            "after": module(tuned.validation.cloud),
            "train": module(tuned.train.cloud),
        }
        for where, cloud in clouds.items():
            measured |= {f"{where}.{name}": value for name, value in measure_all(cloud.double(), SHAPE).items()}
        return measured


def fine_tune(config: Mapping[str, Any]) -> FineTuned:
    """Fine-tune a configuration, as in :func:`~isonb_lab.runs.settings.plan`, without a method.

    Raises :class:`~isonb_lab.data.task.TaskError` for a task without classes, whose answers don't change by kind.
    """
    run = prepare(dict(config) | {"method": "none"}, None)
    if run.task.kind != "classification":
        fix = "Choose one with classes: `isonb list tasks` has them."
        fail(TaskError, "the task must be one of classification", f"{run.task.name} ({run.task.kind})", fix)
    with work_folder(None) as folder:
        train(run, folder, resumable=False, progress=False)
    run.model.requires_grad_(False)
    learned_from, validation = (features(run, run.splits[name]) for name in ("train", "validation"))
    return FineTuned(run, learned_from, validation)


def pair_batches(encoder: Encoder, *sides: Sequence[str], batch_size: int = 32) -> Iterator[tuple[Tensor, Tensor]]:
    """Hidden states (L+1, B, T, d) and masks (B, T) of sentences, or of pairs as one input each, in batches."""
    for start in range(0, len(sides[0]), batch_size):
        texts = (list(side[start : start + batch_size]) for side in sides)
        tokens = encoder.tokenizer(*texts, padding=True, truncation=True, max_length=LENGTH, return_tensors="pt")
        mask = tokens["attention_mask"].bool()
        yield hidden_states(encoder, tokens["input_ids"], mask), mask


def embed_pairs(encoder: Encoder, first: Sequence[str], second: Sequence[str], vector: Pool) -> tuple[Tensor, Tensor]:
    """The vectors (n, d) of the first and of the second sentence of each pair; each sentence is encoded once."""
    texts, item, other = distinct(first, second)
    (vectors,) = embed(encoder, TokenizedSentences.read(encoder, texts, LENGTH), [vector], 64, progress=False)
    return vectors[item], vectors[other]
