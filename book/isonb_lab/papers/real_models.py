"""Methods by readers on models that people use: what ``real_models_plan.md`` fixes, and its choices on held-out rows.

The plan's runs come in three steps, each from the records of the one before: depth and rate of plain training, then one
option for each method and the second task, then the arms with their seeds. :func:`next_blocks` writes the next step as
blocks of ``real_models.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from isonb.errors import InputError, fail
from isonb_lab.data.tasks import task_named
from isonb_lab.runs.record import Record, read_record
from isonb_lab.runs.settings import plan

TASK, EQUAL = "sst2_joint", 0.01  # what is tuned on; held-out scores that count as equal
POOLING = {"smollm2": "mean_after_first", "mpnet": "mean"}
COMMON: Mapping[str, Any] = {
    "task": TASK,
    "head": "linear",
    "protocol": "first",
    "train_examples": 2500,
    "holdout": 0.2,
    "epochs": 2,
    "validations": 1,
    "track_every": 0,
    "cloud_examples": 0,
    "max_length": 64,
    "precision": "float32",
}
PASSES = {"cola": 4, "mrpc": 2, "stsb": 2}  # over a second task
RATES = (1e-4, 3e-4, 1e-3)
DEPTHS = {"smollm2": ((12, 1), (16, 1), (16, 2)), "mpnet": ((12, 1), (12, 2))}  # layers, trained layers
ISTAR = tuple({"name": "istar", "weight": weight} for weight in (1, 0.1, -0.1, -1))
# each method's options, the strongest first
OPTIONS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "entropy": tuple({"weight": weight} for weight in (1, 0.1, 0.01)),
    "softdecay": tuple({"alpha": alpha} for alpha in (-0.8, -0.4, -0.2)),
    "isolayer": tuple({"learning_rate": rate} for rate in (1e-3, 1e-4, 1e-5)),
    "isobn": tuple({"beta": beta} for beta in (1, 0.5, 0.25)),
    "cosreg": tuple({"weight": weight} for weight in (1, 0.3, 0.1)),
    "spectrum_control": tuple({"weight": weight} for weight in (1e-2, 1e-3, 1e-4)),
    "whitening": tuple({"k": k} for k in (None, 256, 64)),
}
ARMS = 1 + len(ISTAR) + len(OPTIONS)
FIRST_TOKEN = ("cosreg", "spectrum_control", "whitening")  # part B, beside plain training
SEEDS, SECOND_SEEDS = tuple(range(1, 11)), tuple(range(1, 7))
LEARNED = {"cola": 0.20, "mrpc": 0.03}  # Matthews correlation; accuracy above the majority
Block = dict[str, Any]


def held_out(record: Record) -> float:
    """The main score on the rows held out of training: after the last pass, or of the second stage's best state."""
    main = task_named(record.config["task"]).metrics[0]
    second = [score for _, score in (record.series.get(f"step.second.{main}") or ()) if score is not None]
    scores = second or [score for _, score in list(record.series[f"step.validation.{main}"])[-1:] if score is not None]
    return float(max(scores))


def chosen(scores: Sequence[tuple[Any, float]]) -> Any:
    """The first of the choices whose score lies within a point of the best; they come in the order of preference.

    >>> chosen([("strong", 0.79), ("mild", 0.82), ("mildest", 0.825)])
    'mild'
    """
    best = max(score for _, score in scores)
    return next(choice for choice, score in scores if score >= best - EQUAL)


def second_task(scores: Mapping[str, float], majority: Mapping[str, float]) -> str:
    """The second task of a model, from plain training's held-out scores: CoLA, MRPC, or STS-B where neither is learned.

    >>> second_task({"cola": 0.1, "mrpc": 0.75}, {"cola": 0.0, "mrpc": 0.68})
    'mrpc'
    """
    return next((task for task, least in LEARNED.items() if scores[task] - majority[task] >= least), "stsb")


def depth_blocks() -> list[Block]:
    """Step 1: plain training at each depth and rate."""
    return [
        _block(model, layers=layers, train_layers=trained, learning_rate=list(RATES), method="none")
        for model, depths in DEPTHS.items()
        for layers, trained in depths
    ]


def next_blocks(records: str | Path) -> list[Block]:
    """The blocks of the next step, from the folder of the records of the steps before; they join the grid as they are.

    Step 2 belongs to size small, step 3 to size full. Raises :class:`~isonb.errors.InputError` where records are
    missing.
    """
    read = {record.run_id: record for record in map(read_record, sorted(Path(records).glob("*.json")))}
    depth = {model: _depth(model, read) for model in DEPTHS}
    tuning = [block for model in DEPTHS for block in _tuning_blocks(model, depth[model])]
    if any(plan(run).run_id not in read for block in tuning for run in _runs(block)):
        return tuning
    arms: dict[str, list[dict[str, Any]]] = {
        model: [{"name": "none"}, *ISTAR, *_methods(model, depth[model], read)] for model in DEPTHS
    }
    first = [arm for arm in arms["smollm2"] if arm["name"] in ("none", *FIRST_TOKEN)]
    second = {model: _second(model, depth[model], read) for model in DEPTHS}
    read_by_all = [_block(model, **depth[model], **READ, method=arms[model]) for model in DEPTHS]
    with_first = _block("smollm2", **depth["smollm2"], **READ, method=first, pooling="mean")
    head_alone = [_on_second(model, depth[model], second[model], method=arms[model]) for model in DEPTHS]
    parts = ((read_by_all, SEEDS), ([with_first], SEEDS), (head_alone, SECOND_SEEDS))
    return [{**block, "seed": seed} for part, seeds in parts for seed in seeds for block in part]


READ = {"readers": True}


def _block(model: str, **settings: Any) -> Block:
    return {**COMMON, "model": model, "pooling": POOLING[model], "seed": 0, **settings}


def _on_second(model: str, depth: Mapping[str, Any], task: str, **settings: Any) -> Block:
    more = {"task": task, "epochs": PASSES[task], "max_length": 128}
    return _block(model, **depth, **more, **settings)


def _runs(block: Block) -> Iterable[Block]:
    """The runs of a block with lists of methods and rates, and one seed."""
    methods = block["method"] if isinstance(block["method"], list) else [block["method"]]
    rates = block["learning_rate"] if isinstance(block["learning_rate"], list) else [block["learning_rate"]]
    return [{**block, "method": method, "learning_rate": rate} for method in methods for rate in rates]


def _tuning_blocks(model: str, depth: Mapping[str, Any]) -> list[Block]:
    """Step 2: each method's options on SST-2, and plain training on the tasks that may be the second."""
    methods = [{"name": name, **option} for name, options in OPTIONS.items() for option in options]
    tasks = [_on_second(model, depth, task, method="none") for task in LEARNED]
    return [_block(model, **depth, method=methods), *tasks]


def _depth(model: str, read: Mapping[str, Record]) -> dict[str, Any]:
    names = ("train_layers", "layers", "learning_rate")
    runs = [run for block in depth_blocks() if block["model"] == model for run in _runs(block)]
    ordered = sorted(runs, key=lambda run: tuple(run[name] for name in names))
    picked: Block = chosen([(run, held_out(_record(run, read))) for run in ordered])
    return {name: picked[name] for name in names}


def _methods(model: str, depth: Mapping[str, Any], read: Mapping[str, Record]) -> list[dict[str, Any]]:
    picked = []
    for name, options in OPTIONS.items():
        arms = [{"name": name, **option} for option in options]
        scores = [(arm, held_out(_record(_block(model, **depth, method=arm), read))) for arm in arms]
        picked.append(chosen(scores))
    return picked


def _second(model: str, depth: Mapping[str, Any], read: Mapping[str, Record]) -> str:
    records = {task: _record(_on_second(model, depth, task, method="none"), read) for task in LEARNED}
    majority = {"cola": 0.0, "mrpc": float(records["mrpc"].metrics["baseline.accuracy"] or 0.0)}
    return second_task({task: held_out(record) for task, record in records.items()}, majority)


def _record(run: Block, read: Mapping[str, Record]) -> Record:
    name = plan(run).run_id
    if name not in read:
        fail(InputError, "the records of the step before must be whole", f"no {name}", "Run size small to its end.")
    return read[name]
