"""The settings of a run: what may be set, the protocols, and one way to write a run out in full.

A run is written out once (:func:`plan`) and handed on as it is, a :class:`Planned`, also to other processes. Its id
follows from the settings written out, so the same run has one id whichever grid or chapter asks for it. What can't
change a result (folders, devices, progress bars) is no setting. The defaults are the protocol ``first``.

>>> config = resolve({"task": "english_sentiment", "model": "tiny", "method": "none", "protocol": "smoke"})
>>> config["experiment"], config["method"], config["train_examples"], config["learning_rate"]
('finetune', {'name': 'none'}, 64, 5e-05)
"""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from isonb.errors import OptionError, fail
from isonb.models.locate import spelled
from isonb.options import Options, build, declared, describe, known_name, option, shown
from isonb_lab.data.labelled_pairs import pairs_task
from isonb_lab.data.reader_rows import READERS
from isonb_lab.data.task import Selection
from isonb_lab.data.tasks import Task, task_named, task_spelled
from isonb_lab.methods import Method, control_of, label, method_class, method_from, plain_value, resolved
from isonb_lab.runs.protocols import PROTOCOLS, protocol_of, start
from isonb_lab.runs.run_ids import run_id

USUAL_MODEL = "tiny"
PRECISION = "autocast of forward passes; a processor without bfloat16 computes in float32 instead"
POOLINGS = ("cls", "mean", "mean_after_first")
# Hidden states that are averaged; "cls" takes the first token of the last one (a decoder: the last token) instead.
LAYERS = {"last": (-1,), "first_last": (0, -1), "one_last": (1, -1), "last_two": (-2, -1), "cls": (-1,)}


@dataclass(frozen=True)
class FinetuneSettings(Options):
    """Fine-tuning on a classification, regression or span task. ``batch_size`` counts all processes."""

    task: str = option("english_acceptability", "task, by name, or a file of one's own")
    model: str = option(USUAL_MODEL, "encoder: an embedded name, a hub id or a folder")
    seed: int = option(0, "of the head, the order of the rows and dropout", low=0, high=10**6)
    train_examples: int | None = option(2000, "training examples, drawn by sample_seed", low=2, high=10**8)
    eval_examples: int | None = option(None, "validation examples, drawn by sample_seed; None: all", low=2, high=10**8)
    sample_seed: int = option(0, "seed for subsampling the examples", low=0, high=10**6)
    holdout: float = option(0.0, "share of the training examples held out for early stopping", low=0, high=0.9)
    patience: int | None = option(
        None,
        "validations without improvement before training stops; the best state is put back, by the rows held out, or "
        "without holdout by those that are reported",
        low=1,
        high=1000,
    )
    epochs: int = option(3, "passes over the training examples", low=1, high=1000)
    max_steps: int | None = option(None, "updates, if fewer than the epochs give", low=1, high=10**8)
    batch_size: int = option(32, "examples an update", low=2, high=65536)
    accumulation: int = option(1, "gradient accumulation steps", low=1, high=4096)
    learning_rate: float = option(5e-5, "peak learning rate of AdamW", low=0, high=1)
    weight_decay: float = option(0.0, "weight decay of AdamW", low=0, high=1)
    warmup: float = option(0.1, "share of the updates over which the learning rate rises", low=0, high=0.99)
    schedule: str = option("linear", "course of the learning rate after that", choices=("linear", "cosine", "constant"))
    max_grad_norm: float = option(1.0, "gradients are cut at this norm; 0: not at all", low=0, high=1e6)
    max_length: int = option(128, "tokens an example", low=4, high=8192)
    doc_stride: int = option(64, "tokens that windows of a long context share (span tasks)", low=0, high=4096)
    precision: str = option("bfloat16", PRECISION, choices=("bfloat16", "float16", "float32"))
    group_by_length: bool = option(True, "whether a batch holds examples of like length")
    dropout: float | None = option(None, "dropout everywhere; None: the model's own", low=0, high=0.9)
    head: str = option("pooler", "between sentence vector and classifier", choices=("pooler", "linear"))
    validations: int = option(2, "validations an epoch", low=1, high=100)
    track_every: int = option(10, "updates between measurements of the training batch; 0: never", low=0, high=10**6)
    cloud_examples: int = option(500, "validation examples whose clouds are measured; 0: none", low=0, high=10**6)
    layers: int | None = option(None, "so many first layers are the model; None: all", low=1, high=1000)
    train_layers: int | None = option(
        None, "so many last ones of these are trained, on states computed once; None: the whole model", low=1, high=1000
    )
    pooling: str = option(
        "cls", "sentence vector: first token (a decoder: last), mean, or mean without the first", choices=POOLINGS
    )
    readers: bool = option(False, "whether other readers score the trained vectors, too (isonb_lab.engines.readers)")


@dataclass(frozen=True)
class SimilaritySettings(Options):
    """Sentence similarity by cosine, without labels. Methods that need a loss are tuned on the task's sentences.

    Tuning compares the vectors that are scored: ``layers: cls`` is SimCSE as published.
    """

    task: str = option("english_sts", "similarity task, by name, or a file of one's own")
    model: str = option(USUAL_MODEL, "encoder: an embedded name, a hub id or a folder")
    seed: int = option(0, "of everything a method draws", low=0, high=10**6)
    eval_examples: int | None = option(None, "pairs, drawn by sample_seed; None: all", low=10, high=10**8)
    sample_seed: int = option(0, "seed for subsampling the pairs", low=0, high=10**6)
    layers: str = option(
        "first_last", "hidden states that are averaged; cls: the first token of the last", choices=tuple(LAYERS)
    )
    max_length: int = option(128, "tokens a sentence", low=4, high=8192)
    batch_size: int = option(64, "sentences a forward pass", low=1, high=65536)
    tuning_steps: int = option(100, "updates of contrastive tuning, for methods that need it", low=1, high=10**7)
    tuning_batch: int = option(64, "sentences an update of tuning", low=4, high=65536)
    tuning_rate: float = option(3e-5, "learning rate of tuning", low=0, high=1)
    tuning_length: int = option(32, "tokens a sentence while tuning", low=4, high=8192)
    temperature: float = option(0.05, "of the contrastive loss", low=1e-4, high=100)


@dataclass(frozen=True)
class SyntheticSettings(Options):
    """IsoScore* of small samples of a cloud with a known covariance (I-STAR, Figure 2)."""

    seed: int = option(0, "of the points", low=0, high=10**6)
    dim: int = option(768, "dimensions", low=5, high=16384)
    spectrum: str = option("figure2", "variances: figure2 is 10, 6, 4, 4, then ones", choices=("figure2", "isotropic"))
    tail: str = option(
        "gaussian", "distribution of the points; student5 has heavy tails", choices=("gaussian", "student5")
    )
    sample_rows: int = option(250_000, "points in all", low=100, high=10**8)
    shrinkage_rows: int = option(75_000, "points of S, behind the shrinkage covariance", low=4, high=10**8)
    sizes: str = option("16 32 64 128 256 500 700 1000 2000 5000 10000", "sizes of X, rising, separated by spaces")
    zetas: str = option("0 0.2 0.4 0.6 0.8 1", "shrinkage weights, rising, separated by spaces")
    repeats: int = option(5, "disjoint samples of each size, at least", low=1, high=1000)
    size_rows: int = option(10_000, "points each size is given, for small samples in many repeats", low=4, high=10**8)

    def __post_init__(self) -> None:
        """Refuses sizes and weights that aren't numbers rising in their range, and too few points for all samples."""
        super().__post_init__()
        _check_rising(self.sizes, "sizes", 4, 10**8)
        _check_rising(self.zetas, "zetas", 0, 1)
        if self.sizes != " ".join(map(str, self.sample_sizes)):
            must = "sizes of a synthetic run must be whole numbers"
            fail(OptionError, must, repr(self.sizes), "Drop the fractions.")
        needed = self.shrinkage_rows + sum(size * self.samples(size) for size in self.sample_sizes)
        if needed > self.sample_rows:
            fix = "Lower shrinkage_rows, size_rows, repeats or the largest size."
            fail(OptionError, f"sample_rows must hold S and all samples, {needed} points", self.sample_rows, fix)

    @property
    def sample_sizes(self) -> list[int]:
        """The sizes as numbers."""
        return [int(float(size)) for size in self.sizes.split()]

    @property
    def weights(self) -> list[float]:
        """The shrinkage weights as numbers."""
        return [float(weight) for weight in self.zetas.split()]

    def samples(self, size: int) -> int:
        """How many samples of a size are drawn."""
        return max(self.repeats, self.size_rows // size)


def _check_rising(text: str, name: str, low: float, high: float) -> None:
    """Refuse what isn't the one spelling of rising numbers, so that a run has one id."""
    try:
        values = [float(word) for word in text.split()]
    except ValueError:
        values = []
    rising = values == sorted(set(values)) and values and low <= values[0] and values[-1] <= high
    if not rising or text != " ".join(f"{number:.10g}" for number in values):
        must = f"{name} of a synthetic run must be numbers in {low:g}..{high:g}, rising, separated by one space"
        fail(OptionError, must, repr(text), "An example: '16 700 5000' or '0 0.5 1'.")


EXPERIMENTS: dict[str, type[Options]] = {
    "finetune": FinetuneSettings,
    "doses": FinetuneSettings,
    "similarity": SimilaritySettings,
    "synthetic": SyntheticSettings,
}

FINE_TUNING = ("finetune", "doses")  # the experiments that begin with fine-tuning

NON_SETTING_KEYS = ("experiment", "protocol", "method")  # what a run is given besides its settings
INPUTS = re.compile(r"inputs-[0-9a-f]{12}")


@dataclass(frozen=True)
class Planned:
    """A run that is written out: every option has been resolved and is only read from here on. :func:`plan` makes it.

    ``checked``: whether :func:`~isonb_lab.engines.preflight.preflight` has let it pass. ``plan``: sha256 of the plan
    that its grid cites, for its manifest.
    """

    config: Mapping[str, Any]
    run_id: str
    checked: bool = False
    plan: str = ""

    @property
    def experiment(self) -> str:
        """A name of :data:`EXPERIMENTS`."""
        return str(self.config["experiment"])

    @cached_property
    def settings(self) -> Any:
        """The settings of its experiment, typed."""
        kind = EXPERIMENTS[self.experiment]
        return kind(**{name: self.config[name] for name in declared(kind) if name in self.config})

    @cached_property
    def method(self) -> Method:
        """The method; a synthetic run has none, and gets the one that does nothing."""
        return method_from(self.config.get("method", "none"))

    @property
    def label(self) -> str:
        """The method and its options that aren't at their defaults."""
        return label(self.config["method"])

    @property
    def control(self) -> Planned:
        """The run of its matched control."""
        return plan({**self.config, "method": control_of(self.config)})

    @property
    def task(self) -> Task:
        """The task as it is now: the files of one's own may change. A synthetic run has none."""
        return task_named(self.settings.task)

    @property
    def selections(self) -> dict[str, Selection]:
        """The rows that it reads: ``train`` and ``validation`` of its task, or in similarity ``rows``.

        And, where there are some, the ``pairs`` that its method learns from before, and those of :data:`READERS`.
        """
        if self.experiment == "synthetic":
            return {}
        task, settings = self.task, self.settings
        if self.experiment == "similarity":
            rows = {"rows": Selection(task, task.splits[0], settings.eval_examples, settings.sample_seed)}
        else:
            limits = {"train": settings.train_examples, "validation": settings.eval_examples}
            rows = {name: Selection(task, name, limit, settings.sample_seed) for name, limit in limits.items()}
        if (pairs := self.method.pairs_task) is not None:
            rows["pairs"] = Selection(pairs_task(pairs), "train")
        return rows | READERS if getattr(settings, "readers", False) else rows

    def with_inputs(self, word: str) -> Planned:
        """The same run of other rows or weights, with the word that tells them."""
        config = {**self.config, "inputs": word}
        return replace(self, config=config, run_id=run_id(identity(config)))

    def to_dict(self) -> dict[str, Any]:
        """The run as plain JSON values, for another process."""
        return asdict(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return Planned, (self.config, self.run_id, self.checked, self.plan)


def plan(request: Mapping[str, Any] | Planned) -> Planned:
    """The run that ``request`` describes: a configuration as in :func:`resolve`, or a run that is written out already.

    >>> run = plan({"task": "english_sts"})
    >>> run.settings.layers, run.method, plan(run) is run, plan(run.to_dict()) == run
    ('first_last', Method(), True, True)
    """
    if isinstance(request, Planned):
        return request
    if "config" in request:  # the frozen form, from another process
        return Planned(**request)
    config = resolve(request)
    return Planned(config, run_id(identity(config)))


def identity(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a configuration its id is made of (:func:`counted`).

    One that names no experiment isn't written out, and counts as it is.
    """
    experiment, method = config.get("experiment"), config.get("method")
    if experiment not in EXPERIMENTS:
        return dict(config)
    counting = counted(experiment, config, EXPERIMENTS[experiment])
    if method is not None:
        counting["method"] = {"name": method["name"]} | counted(method["name"], method, method_class(method["name"]))
    return counting


def counted(name: str, values: Mapping[str, Any], kind: type[Options]) -> dict[str, Any]:
    """What counts for an id of the options ``values`` to an experiment or method.

    The options that each had when the first records were kept stand in ``first_options.json``: they count whatever
    their value. One that came later counts where it isn't at its default, and so renames no earlier run. Of a kind that
    isn't listed, every option counts.

    >>> counted("finetune", {"seed": 0, "readers": False}, FinetuneSettings)
    {'seed': 0}
    """
    first = _first_options().get(name, list(values))
    usual = {option: entry.default for option, entry in declared(kind).items() if option not in first}
    return {option: value for option, value in values.items() if option not in usual or value != usual[option]}


@functools.cache
def _first_options() -> dict[str, list[str]]:
    return dict(json.loads(Path(__file__).with_name("first_options.json").read_text(encoding="utf-8")))


def resolve(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration written out: experiment, method with its options, every setting; checked, defaults filled in.

    ``protocol`` names values to start from (:func:`~isonb_lab.runs.protocols.start`), without it those of the model
    (:func:`~isonb_lab.runs.protocols.protocol_of`); what is given beside it wins.
    ``experiment`` may be left out where the task tells it. ``inputs`` stands in the configuration of a run whose rows
    or weights are others than those of an earlier run with the same settings (:mod:`isonb_lab.runs.inputs`). Raises
    :class:`~isonb.errors.OptionError`, :class:`~isonb_lab.methods.MethodError` or
    :class:`~isonb_lab.data.tasks.TaskError` before any work starts.
    """
    request = dict(config)
    method, inputs, task = request.pop("method", None), request.pop("inputs", None), request.get("task")
    protocol = request.pop("protocol", None)
    usual = protocol_of(request.get("model", USUAL_MODEL))
    protocol = usual if protocol is None else _one_of(PROTOCOLS, "protocol", protocol)
    experiment = request.pop("experiment", None)
    if experiment is None:
        experiment = "similarity" if task is not None and task_named(task).kind == "similarity" else "finetune"
    experiment = _one_of(EXPERIMENTS, "experiment", experiment)
    request = start(protocol, experiment, str(task)) | request
    settings = build(EXPERIMENTS[experiment], request, f"a {experiment} run", also=NON_SETTING_KEYS)
    written = {"experiment": experiment, **describe(settings)}
    if experiment == "synthetic":
        if method is not None:
            fail(OptionError, "a synthetic run has no method", shown(method), "Leave it out.")
        return written
    kind = task_named(written["task"]).kind
    if (kind == "similarity") != (experiment == "similarity"):
        fix = f"Use experiment: {'similarity' if kind == 'similarity' else 'finetune'}."
        fail(OptionError, f"a {experiment} run needs a task of its kind", f"{written['task']} ({kind})", fix)
    chosen = method_from("none" if method is None else method)
    if experiment == "doses" and (not chosen.two_phases or chosen.post_hoc):  # what is fitted has no loss to dose
        fail(OptionError, "a doses run needs a method with a second phase that trains", chosen.name, "Use isolayer.")
    if experiment == "similarity" and (epochs := chosen.penalty_delay_epochs()):
        got = f"{epochs} in {chosen.name}"
        fail(OptionError, "epochs before a penalty are for fine-tuning: similarity has none", got, "Leave them out.")
    for name in (*chosen.idle.get(experiment, ()), *chosen.idle.get(kind, ())):
        if (given := getattr(chosen, name)) != declared(type(chosen))[name].default:
            must = f"{name} of method {chosen.name} must be left out of a {experiment} run of a {kind} task"
            fail(OptionError, f"{must}: it does nothing there", shown(given), f"Leave {name} out.")
    if getattr(settings, "readers", False) and (experiment == "doses" or kind == "span"):
        got = f"a {experiment} run of a {kind} task"
        fail(OptionError, "other readers are for finetune runs with one vector a text", got, "Leave readers out.")
    places = {"task": task_spelled(written["task"]), "model": spelled(written["model"])}
    written |= places | {"method": resolved(chosen)}
    if inputs is not None and not (isinstance(inputs, str) and INPUTS.fullmatch(inputs)):
        fail(OptionError, "inputs is written by isonb, not by hand", shown(inputs), "Leave it out.")
    return written if inputs is None else written | {"inputs": inputs}


def check_names(names: Iterable[object], where: str) -> None:
    """Raise :class:`~isonb.errors.OptionError`, with the nearest one, for a name that no run has a setting of."""
    available = dict.fromkeys(name for kind in EXPERIMENTS.values() for name in declared(kind))
    for name in names:
        known_name(name, [*NON_SETTING_KEYS, *available], where)


def _one_of(available: Mapping[str, Any], what: str, request: object) -> str:
    if not isinstance(request, str) or request not in available:
        fail(OptionError, f"{what} must be one of {', '.join(available)}", shown(request), "Choose one of these.")
    return request


def command(config: Mapping[str, Any]) -> str:
    """``isonb run ...`` for a configuration that :func:`~isonb_lab.runs.settings.resolve` has written out.

    Only what the model's protocol and the method's defaults don't say is named.

    >>> config = resolve({"task": "sst2", "model": "minilm", "method": {"name": "istar", "weight": -0.3}, "seed": 2})
    >>> command(config)
    'isonb run --task sst2 --model minilm --method istar -o weight=-0.3 --seed 2'
    """
    experiment, method = config["experiment"], dict(config.get("method", {}))
    named = {key: config[key] for key in ("task", "model") if key in config}
    name = method.pop("name", None)
    chosen = {} if name is None else {"method": name}
    inferred = resolve(named | chosen)["experiment"] == experiment  # by the task
    kind = {} if inferred else {"experiment": experiment}
    usual = resolve(named | chosen | kind)
    flags = [f"--{key} {_word(value)}" for key, value in (kind | named).items()]
    if name is not None:
        flags.append(method_flags(config["method"], [key for key in method if method[key] != usual["method"][key]]))
    separate = (*named, "seed", "method", "inputs", "experiment")
    others = [f"--set {k}={_word(v)}" for k, v in config.items() if k not in separate and v != usual[k]]
    return " ".join(["isonb run", *flags, f"--seed {config['seed']}", *others])


def method_flags(method: Mapping[str, Any], options: Iterable[str]) -> str:
    """A method with some of its options, as the command line reads it.

    >>> method_flags({"name": "istar", "weight": -3.0, "zeta": 0.2}, ["weight"])
    '--method istar -o weight=-3'
    """
    return " ".join([f"--method {_word(method['name'])}", *(f"-o {name}={_word(method[name])}" for name in options)])


def _word(value: object) -> str:
    """A value as the command line reads it."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else f"{plain_value(value)}"
    return shlex.quote(text)
