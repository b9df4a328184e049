"""What a grid needs from outside and what it will cost, before it starts, from the configurations alone.

An estimate, right within a factor of two or so. Arithmetic is counted for the encoder's matrix products: a training
step takes three forward passes' worth, so about 6 x parameters x tokens. Besides training it counts validations, the
measurements before and after, shrinkage passes, contrastive tuning and the pass that makes features of a second phase.
The methods' own work (bars, singular values, covariances) is not counted, and early stopping is taken not to happen.

Time is the larger of two: arithmetic at the speed a device sustains, and the launching of kernels, which bounds short
batches on a fast GPU. Sizes and mean lengths of the tasks, sizes of the encoders and speeds of the GPUs are data
(``data/tasks.csv``, ``encoders.csv``, ``accelerators.csv``); lengths were measured with minilm's tokenizer. The
speeds below are assumptions.
"""

from __future__ import annotations

import contextlib
import csv
import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from isonb.errors import DependencyError, InputError, fail
from isonb.models.catalogue import EMBEDDED
from isonb.models.locate import find
from isonb_lab.data import sources
from isonb_lab.data.own import OwnTask
from isonb_lab.data.tasks import task_named, task_size
from isonb_lab.methods import Method
from isonb_lab.runs.settings import FINE_TUNING, FinetuneSettings, Planned, SimilaritySettings

START_SECONDS = 45.0  # a GPU run besides the encoder's work: loading, tokenizing, spectra, the notebook
CPU_START_SECONDS = 20.0  # the same on one core, whose models are small
CPU_FLOPS = {False: 60e9, True: 120e9}  # one core of a server; 16-bit (True) is no faster where the CPU lacks it
TRAIN_LAUNCH = 0.002  # seconds a layer for forward, backward and update of one batch: kernels of a GPU
FORWARD_LAUNCH = 0.0006  # seconds a layer for a forward pass alone
PADDING = {True: 1.05, False: 1.9}  # tokens with padding over real ones: by length; at random, 1.4 to 2.7 in GLUE
SHRINKAGE_ROWS = 250_000  # token vectors of all layers behind a shrinkage matrix, at each epoch's start
QUESTION = 12  # tokens of a question, which each window of a long context begins with
READERS_TEXTS, READERS_LENGTH = 9200, 14  # what the other readers of a run read, and its mean tokens
SYNTHETIC_PASSES = 3  # covariances that each point of a synthetic run takes part in, about


class EncoderSize(NamedTuple):
    """Layers, width and inner width of an encoder."""

    layers: int
    width: int
    inner: int

    def forward(self, length: float) -> float:
        """Floating-point operations a token of a forward pass over sequences of ``length`` tokens.

        2 for each of the 4 d^2 + 2 d f weights of a layer, and 4 d for each token attended to. Embeddings cost none;
        shared layers cost as often as they are run.

        >>> EncoderSize(12, 768, 3072).forward(128) / (2 * 85e6)  # 85 million weights in BERT's layers
        1.03
        """
        d = self.width
        return self.layers * (2 * (4 * d * d + 2 * d * self.inner) + 4 * d * length)


class Passes(NamedTuple):
    """Passes of an encoder over examples of so many tokens, ``batch`` at a time."""

    examples: float
    length: float
    batch: float = 64
    training: bool = False


class Work(NamedTuple):
    """What a run asks of a device. ``launches``: seconds that no GPU undercuts; ``half``: 16-bit arithmetic."""

    flops: float
    launches: float
    half: bool


@dataclass(frozen=True)
class Estimate:
    """``gpu_hours`` on one GPU of the named kind; ``cpu_hours`` on one core. ``assumed``: encoders of unknown size."""

    runs: int
    flops: float
    gpu_hours: float
    cpu_hours: float
    gpu: str
    assumed: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = (
            f"{self.runs} runs, {self.flops / 1e15:.3g} PFLOP: about {_hours(self.gpu_hours)} on one {self.gpu}, "
            f"or {_hours(self.cpu_hours)} of one CPU core (within a factor of two or so)"
        )
        return text + (f"; size unknown, taken for BERT base: {', '.join(self.assumed)}" if self.assumed else "")


def _hours(hours: float) -> str:
    return f"{hours:,.0f} h" if hours >= 10 else f"{hours:.1f} h" if hours >= 1 else f"{max(1.0, 60 * hours):.0f} min"


def estimate(runs: Iterable[Planned], gpu: str = "a100") -> Estimate:
    """The cost of all ``runs``, one after the other on one device.

    ``gpu`` is a name of :data:`ACCELERATORS`. Raises :class:`~isonb.errors.InputError` for another one.

    >>> from isonb_lab.runs.settings import plan
    >>> cost = estimate([plan({"task": "cola", "model": "google-bert/bert-base-uncased", "protocol": "full"})])
    >>> cost.runs, 1e14 < cost.flops < 1e15, cost.cpu_hours > cost.gpu_hours
    (1, True, True)
    """
    if gpu not in ACCELERATORS:
        fail(InputError, f"the GPU must be one of {', '.join(ACCELERATORS)}", repr(gpu), "Choose the nearest one.")
    description, speed = ACCELERATORS[gpu]
    count, flops, gpu_seconds, cpu_seconds = 0, 0.0, 0.0, 0.0
    unknown: set[str] = set()
    for run in runs:
        cost = work(run)
        if run.config.get("model") and encoder_size(run.config["model"]) is None:
            unknown.add(run.config["model"])
        count, flops = count + 1, flops + cost.flops
        gpu_seconds += START_SECONDS + max(cost.launches, cost.flops / speed[cost.half])
        cpu_seconds += CPU_START_SECONDS + cost.flops / CPU_FLOPS[cost.half]
    return Estimate(count, flops, gpu_seconds / 3600, cpu_seconds / 3600, description, tuple(sorted(unknown)))


def work(run: Planned) -> Work:
    """The work of one run."""
    settings = run.settings
    if run.experiment == "synthetic":
        return Work(SYNTHETIC_PASSES * 2.0 * settings.sample_rows * settings.dim**2, 0.0, False)
    encoder = encoder_size(settings.model) or BASE
    encoder = encoder._replace(layers=_trained(settings, encoder.layers))
    passes = [*(_finetune if run.experiment in FINE_TUNING else _similarity)(settings, run.method, encoder)]
    flops = sum((3 if p.training else 1) * p.examples * p.length * encoder.forward(p.length) for p in passes)
    launches = sum(p.examples / p.batch * (TRAIN_LAUNCH if p.training else FORWARD_LAUNCH) for p in passes)
    half = getattr(settings, "precision", "float32") != "float32"
    return Work(flops, launches * encoder.layers, half)


def _trained(settings: Any, layers: int) -> int:
    """The layers that a run passes: those below the ones that are trained are passed once, for all runs together."""
    if not isinstance(settings, FinetuneSettings):
        return layers
    return settings.train_layers or settings.layers or layers


def _finetune(settings: FinetuneSettings, method: Method, encoder: EncoderSize) -> Iterator[Passes]:
    from isonb.integrations.union import asked  # it loads torch, for which no mistake should wait

    size = task_size(settings.task)
    train: float = min(size.train, settings.train_examples or size.train)
    windows = _windows(settings, size.tokens)
    held_out = windows * train * settings.holdout
    train = windows * train - held_out
    length = min(size.tokens, settings.max_length)
    evaluated = windows * min(size.evaluation, settings.eval_examples or size.evaluation)
    epochs: float = settings.epochs
    trained_on: float = train * epochs
    if settings.max_steps:
        trained_on = min(trained_on, settings.max_steps * settings.batch_size)
        epochs = min(epochs, trained_on / train)
    yield from _contrast(method, min(size.tokens / 2, settings.max_length))
    padded = length * PADDING[settings.group_by_length]
    yield Passes(trained_on, padded, settings.batch_size / settings.accumulation, training=True)
    yield Passes(max(1.0, epochs * settings.validations) * (held_out or evaluated) + evaluated, length)
    yield Passes(2 * min(settings.cloud_examples, evaluated), length)
    penalty = method.penalty()
    if penalty is not None and asked(penalty, shrinkage_cov=None):
        rows = train * length * encoder.layers
        yield Passes(epochs * train * min(1.0, SHRINKAGE_ROWS / rows), length, settings.batch_size)
    if method.two_phases:
        yield Passes(train + evaluated, length)
    if settings.readers:
        yield Passes(READERS_TEXTS, READERS_LENGTH)


def _windows(settings: FinetuneSettings, tokens: float) -> float:
    """How many windows a row of so many tokens is cut into, about, where the task is one of spans."""
    with contextlib.suppress(InputError):
        if task_named(settings.task).kind == "span":
            fresh = max(settings.max_length / 4, settings.max_length - settings.doc_stride - QUESTION)
            return 1 + max(0.0, tokens - settings.max_length) / fresh
    return 1


def _similarity(settings: SimilaritySettings, method: Method, encoder: EncoderSize) -> Iterator[Passes]:
    size = task_size(settings.task)
    pairs = min(size.evaluation, settings.eval_examples or size.evaluation)
    length = min(size.tokens, settings.max_length)
    yield from _contrast(method, length)
    acts = method.penalty() is not None or method.layer(encoder.width) is not None
    if acts and not method.post_hoc:
        batch = settings.tuning_batch
        yield Passes(2 * settings.tuning_steps * batch, min(length, settings.tuning_length), batch, training=True)
    yield Passes(2 * pairs * (2 if method.token_fit else 1), length, settings.batch_size)


def _contrast(method: Method, length: float) -> Iterator[Passes]:
    """Contrastive tuning: two views, or two models, of every sentence."""
    if (tuning := method.contrast()) is not None:
        examples = 2 * tuning.steps * tuning.batch_size
        yield Passes(examples, min(length, tuning.max_length), tuning.batch_size, training=True)


def _rows(name: str) -> list[dict[str, str]]:
    with (files("isonb_lab.data") / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


@functools.cache
def encoder_size(name: str) -> EncoderSize | None:
    """The size of an encoder: from the table, else from its configuration; None where that can't be had."""
    for row in _rows("encoders.csv"):
        if row["model"] == name:
            return EncoderSize(*(int(row[key]) for key in ("layers", "width", "inner")))
    try:
        config = find(name).config
    except InputError:
        return None
    inner = getattr(config, "intermediate_size", None) or getattr(config, "hidden_dim", None) or 4 * config.hidden_size
    return EncoderSize(config.num_hidden_layers, config.hidden_size, inner)


BASE = EncoderSize(12, 768, 3072)
HALVES = ((True, "half"), (False, "single"))
# By name: what it is, and operations a second by whether arithmetic is 16-bit.
ACCELERATORS = {
    row["name"]: (row["description"], {half: 1e12 * float(row[f"{bits}_teraflops"]) for half, bits in HALVES})
    for row in _rows("accelerators.csv")
}


@dataclass(frozen=True)
class Need:
    """A model or data set by name, how many runs want it, where it is, or why it can't be had."""

    kind: str
    name: str
    runs: int
    where: str
    there: bool = True


def needs(runs: Iterable[Planned], data: str | Path | None = None) -> list[Need]:
    """Models, then data sets, each once, of some runs; ``data`` as in ``load_task``.

    A model on the hub costs one question and its small files; of a data set on the hub only the hub's answer is asked.
    """
    count: Counter[tuple[str, str]] = Counter()
    splits: dict[str, set[str]] = {}
    for run in runs:
        read = _splits(run)
        count.update([("data", name) for name in read] + ([("model", run.config["model"])] if read else []))
        for name, some in read.items():
            splits.setdefault(name, set()).update(some)
    requirements = []
    for (kind, name), wanted in sorted(count.items(), key=lambda item: (item[0][0] != "model", item[0][1])):
        try:
            where = _model(name) if kind == "model" else _data(name, sorted(splits[name]), data)
            requirements.append(Need(kind, name, wanted, where))
        except (InputError, DependencyError) as error:
            why = str(error).partition(f"; got {name!r}: ")
            requirements.append(Need(kind, name, wanted, why[2] or why[0], there=False))
    return requirements


def _splits(run: Planned) -> dict[str, set[str]]:
    """The splits that a run reads, by task: its own, and what its method and other readers learn from."""
    try:
        selections = run.selections.values()
    except InputError:  # one's own data that are gone
        return {run.config["task"]: set()}
    splits: dict[str, set[str]] = {}
    for rows in selections:
        splits.setdefault(rows.task.name, set()).add(rows.split)
    return splits


def _model(name: str) -> str:
    source = find(name)
    if name in EMBEDDED:
        return "embedded"
    if source.missing:
        return "on the hub, to be downloaded"
    return f"in {source.folder}" if source.commit is None else "in the hub's cache"


def _data(name: str, splits: Iterable[str], data: str | Path | None) -> str:
    task = task_named(name)
    if task.hub is None:
        return f"in {task.place}" if isinstance(task, OwnTask) else "generated"
    folder = sources.data_folder(data)
    if folder is None:
        return sources.place_on_hub(str(task.hub))
    for split in splits:
        sources.split_files(task, split, folder)
    return f"in {folder / task.folder}"
