"""All that can fail in a run, told before any work is done: names, files, columns, sizes, lengths, precision."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from isonb.errors import OptionError, fail
from isonb.models import catalogue, locate
from isonb_lab.data.rows import count_rows
from isonb_lab.data.sources import find_rows, rows_folder
from isonb_lab.data.task import Task, TaskError
from isonb_lab.methods import Method
from isonb_lab.runs.settings import FINE_TUNING, Planned

SCORED = ("validation", "rows")  # of a run's rows, those whose predictions are compared


def preflight(run: Planned, data: str | Path | None = None) -> Planned:
    """The run, if nothing stands in its way; else the one typed error. What was checked isn't again.

    ``data`` is a folder in the hub's layout, "hub" or None. Checked, in this order: that the rows are there, which
    costs least; that the model can be loaded (:func:`isonb.models.locate.find`: no weights are read); that the method's
    layer can be made for its width; that lengths, layers and precision are possible; that each split has the task's
    columns and enough rows. Of parquet files only the footer and the first rows are read; a set from the hub is
    downloaded, which the run would do next. Takes a second or two.

    >>> from isonb_lab.runs.settings import plan
    >>> preflight(plan({"task": "english_sentiment", "model": "tiny", "protocol": "smoke"})).checked
    True
    """
    if run.checked:
        return run
    if run.experiment == "synthetic":
        return replace(run, checked=True)
    settings, tuned = run.settings, run.experiment in FINE_TUNING
    selections = run.selections
    task = run.task
    folder = rows_folder(selections.values(), data)
    find_rows(selections.values(), folder)
    model = locate.find(settings.model)
    if tuned or not run.method.post_hoc:
        run.method.layer(int(model.config.hidden_size))
    _check_lengths(settings, task, model)
    depth = int(model.config.num_hidden_layers)
    if tuned:
        depth = _check_layers(settings, run.method, model, depth)
        if settings.batch_size % settings.accumulation:
            got = f"{settings.batch_size} and {settings.accumulation}"
            fail(OptionError, "batch_size must be a multiple of accumulation", got, "Change one of them.")
        _check_precision(settings.precision)
    if type(run.method).points is not Method.points:
        _check_points(run.method, depth, tuned)
    rows = {name: count_rows(selection, folder, 2 if name in SCORED else 1) for name, selection in selections.items()}
    if tuned:
        count = min(rows["train"], settings.train_examples or rows["train"])
        if count - round(settings.holdout * count) < settings.batch_size:
            must = f"{task.name} must leave at least one batch of {settings.batch_size} rows to train on"
            fix = "Lower batch_size or holdout, or raise train_examples."
            fail(TaskError, must, f"{count} rows, holdout {settings.holdout}", fix)
    return replace(run, checked=True)


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


def _check_layers(settings: Any, method: Method, model: locate.Source, depth: int) -> int:
    """The layers that are left of the ``depth`` of a model."""
    for name in ("layers", "train_layers"):
        count = getattr(settings, name)
        if count is not None and count > depth:
            fail(OptionError, f"{name} must be at most the {depth} layers of {model.name}", count, "Lower it.")
        depth = count or depth
    if settings.train_layers is not None and getattr(method, "include_pads", False):
        must = "with train_layers the points must be real tokens, since states of padding aren't kept"
        fail(OptionError, must, f"include_pads of {method.name}", "Leave one of the two out.")
    return int(depth)


def _check_points(method: Method, depth: int, tuned: bool) -> None:
    """That a penalty will find its points: in layers that the model has, of a module that there is."""
    from isonb.points import chosen_layers

    points = method.points()
    if points.module is None:
        chosen_layers(points.layers, depth + 1)
    elif not tuned:
        must = "the points of a similarity run must be the encoder's: it has no head"
        fail(OptionError, must, f"{points.module!r} of {method.name}", "Take others.")


def _check_precision(precision: str) -> None:
    import torch

    cuda = torch.cuda.is_available()
    if precision == "float16" and not cuda:
        fail(OptionError, "precision float16 needs a GPU", "none", "Use bfloat16 or float32.")
    if precision == "bfloat16" and cuda and not torch.cuda.is_bf16_supported():
        fail(OptionError, "precision bfloat16 needs a GPU that has it", torch.cuda.get_device_name(), "Use float16.")
