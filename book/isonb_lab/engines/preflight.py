"""All that can fail in a run, told before any work is done: names, files, columns, sizes, lengths, precision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from isonb.errors import OptionError, fail
from isonb.models import catalogue, locate
from isonb.runtime.tables import SourceError
from isonb_lab.data import sources
from isonb_lab.data.labelled_pairs import pairs_task
from isonb_lab.data.reader_rows import splits_read
from isonb_lab.data.rows import conform, load_task, split_files
from isonb_lab.data.tasks import Task, TaskError, task_named
from isonb_lab.methods import Method
from isonb_lab.runs.settings import FINE_TUNING, Planned, plan

PEEK = 16  # rows of a file whose values are looked at


def preflight(run: Mapping[str, Any] | Planned, data: str | Path | None = None) -> Planned:
    """The run, written out, if nothing stands in its way; else the one typed error. What was checked isn't again.

    ``run`` as in :func:`~isonb_lab.runs.settings.plan`, ``data`` a folder in the hub's layout, "hub" or None. Checked,
    in this order: every option, task and method; that the rows are there; that the model can be loaded
    (:func:`isonb.models.locate.find`: no weights are read); that the method's layer can be made for its width;
    that lengths and precision are possible; that each split has the task's columns and enough rows. Of parquet files
    only the footer and the first rows are read; a set from the hub is downloaded, which the run would do next. Takes a
    second or two.

    >>> preflight({"task": "english_sentiment", "model": "tiny", "method": "none", "protocol": "smoke"}).checked
    True
    """
    planned = plan(run)
    if planned.checked:
        return planned
    if planned.experiment == "synthetic":
        from isonb_lab.engines.synthetic import check_sizes

        check_sizes(planned.settings)
        return replace(planned, checked=True)
    settings, task = planned.settings, task_named(planned.settings.task)
    tuned, splits = planned.experiment in FINE_TUNING, task.used_splits
    pairs = planned.method.pairs_task
    paired = None if pairs is None else pairs_task(pairs)
    read = splits_read(settings, pairs)  # rows that are nowhere are told of first: to look for them costs least
    folder = sources.data_folder(data) if any(part.hub for part, _ in read) else None
    for part, split in read:
        if part.hub is not None and folder is not None:
            split_files(part, folder, split)
    for hub in dict.fromkeys(part.hub for part, _ in read if part.hub and folder is None):
        sources.place_on_hub(hub)
    if paired is not None:
        _rows(paired, "train", data)
    model = locate.find(settings.model)
    if tuned or not planned.method.post_hoc:
        planned.method.layer(int(model.config.hidden_size))
    _check_lengths(settings, task, model)
    if tuned:
        _check_layers(settings, planned.method, model)
        if settings.batch_size % settings.accumulation:
            got = f"{settings.batch_size} and {settings.accumulation}"
            fail(OptionError, "batch_size must be a multiple of accumulation", got, "Change one of them.")
        _check_precision(settings.precision)
    rows = {split: _rows(task, split, data) for split in splits}
    if tuned:
        count = min(rows["train"], settings.train_examples or rows["train"])
        if count - round(settings.holdout * count) < settings.batch_size:
            must = f"{task.name} must leave at least one batch of {settings.batch_size} rows to train on"
            fix = "Lower batch_size or holdout, or raise train_examples."
            fail(TaskError, must, f"{count} rows, holdout {settings.holdout}", fix)
    _check_count(task, splits[-1], rows[splits[-1]], 2)
    return replace(planned, checked=True)


def _check_lengths(settings: Any, task: Task, model: locate.Source) -> None:
    from isonb_lab.data.batches import ROOM

    for name in ("max_length", "tuning_length"):
        if (length := getattr(settings, name, 0)) > model.max_length:
            must = f"{name} must not pass the longest input of {model.name}, {model.max_length} tokens"
            fail(OptionError, must, length, f"Try {name}: {model.max_length}.")
    if task.kind != "span":
        return
    if not model.tokenizer.is_fast:
        fix = "Save it with tokenizer.json (transformers converts it), or choose another model."
        fail(catalogue.ModelError, "a span task needs a tokenizer that tells characters of tokens", model.name, fix)
    if settings.max_length <= settings.doc_stride + ROOM:
        must = f"max_length must pass doc_stride by more than {ROOM} tokens"
        got = f"max_length {settings.max_length}, doc_stride {settings.doc_stride}"
        fail(OptionError, must, got, "Lower doc_stride, or raise max_length.")


def _check_layers(settings: Any, method: Method, model: locate.Source) -> None:
    depth = int(model.config.num_hidden_layers)
    for name in ("layers", "train_layers"):
        count = getattr(settings, name)
        if count is not None and count > depth:
            fail(OptionError, f"{name} must be at most the {depth} layers of {model.name}", count, "Lower it.")
        depth = count or depth
    if settings.train_layers is not None and getattr(method, "include_pads", False):
        must = "with train_layers the points must be real tokens, since states of padding aren't kept"
        fail(OptionError, must, f"include_pads of {method.name}", "Leave one of the two out.")


def _check_precision(precision: str) -> None:
    import torch

    cuda = torch.cuda.is_available()
    if precision == "float16" and not cuda:
        fail(OptionError, "precision float16 needs a GPU", "none", "Use bfloat16 or float32.")
    if precision == "bfloat16" and cuda and not torch.cuda.is_bf16_supported():
        fail(OptionError, "precision bfloat16 needs a GPU that has it", torch.cuda.get_device_name(), "Use float16.")


def _check_count(task: Task, split: str, rows: int, least: int) -> None:
    if rows < least:
        must = f"{task.name}, split {split!r} must have at least {least} rows"
        fail(SourceError, must, rows, "Copy the split again.")


def _rows(task: Task, split: str, data: str | Path | None) -> int:
    """How many rows a split has, its columns and first values checked."""
    folder = sources.data_folder(data) if task.hub else None
    if folder is None or split in task.parts:
        return len(load_task(task.name, data, split=split))
    table, rows = sources.peek_folder(folder, task.folder, split, PEEK)
    _check_count(task, split, rows, 1)
    conform(task, f"{task.name}, split {split!r}", table, list(range(len(table))))
    return rows
