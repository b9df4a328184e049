"""Every way in which a run can't be carried out is one typed error before any work."""

import pytest
import torch
from cola import cola_rows, save_cola, write_rows

from isonb.errors import InputError, OptionError, ShapeError
from isonb.models import catalogue
from isonb.models.catalogue import ModelError
from isonb.runtime.tables import SourceError
from isonb_lab.data import sources
from isonb_lab.data.tasks import TaskError
from isonb_lab.engines.preflight import preflight
from isonb_lab.runs.settings import plan
from tests.lab import random_models

SMOKE = {"task": "english_sentiment", "model": "tiny", "method": "none", "protocol": "smoke"}
PADDED = {"name": "istar", "include_pads": True}
FEATURES = {"name": "log_isoscore", "place": "features"}
ROWS = cola_rows()


@pytest.fixture
def data(tmp_path):
    return save_cola(tmp_path)


def test_all_is_well(data, tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "_file_digest", lambda *_: pytest.fail("weights were read"))
    monkeypatch.setattr(sources, "read_folder", lambda *_: pytest.fail("a whole split was read"))
    preflight(plan(SMOKE | {"task": "cola"}), data)
    preflight(plan({"task": "english_sts", "model": "tiny", "protocol": "smoke"}))
    preflight(plan({"experiment": "synthetic", "protocol": "smoke"}))
    preflight(plan(SMOKE | {"method": FEATURES}))
    preflight(plan(SMOKE | {"task": "english_span", "model": str(random_models.save("roberta", tmp_path / "roberta"))}))
    preflight(plan(SMOKE | {"model": str(random_models.save("gpt2", tmp_path / "gpt2"))}))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"model": "no-such-model"}, ModelError, "got 'no-such-model': no such folder and not in the local cache"),
        ({"method": {"name": "sbert", "pairs": "cola"}}, TaskError, "pairs must name a classification task of two"),
        ({"max_length": 4096}, OptionError, "max_length must not pass the longest input of tiny"),
        ({"accumulation": 3}, OptionError, "batch_size must be a multiple of accumulation"),
        ({"train_examples": 15}, TaskError, "at least one batch of 16 rows to train on; got 15 rows"),
        ({"train_examples": 20, "holdout": 0.5}, TaskError, "got 20 rows, holdout 0.5"),
        ({"experiment": "similarity"}, InputError, "similarity"),
        ({"task": "english_span", "doc_stride": 48}, OptionError, "max_length must pass doc_stride"),
        ({"layers": 5}, OptionError, "layers must be at most the 4 layers of tiny; got 5"),
        ({"layers": 2, "train_layers": 3}, OptionError, "train_layers must be at most the 2 layers of tiny; got 3"),
        ({"train_layers": 1, "method": PADDED}, OptionError, "the points must be real tokens"),
        ({"method": {"name": "istar", "layers": 5}}, ShapeError, "some of the 5 hidden states; got layers 5"),
        ({"layers": 2, "method": {"name": "cosreg", "layers": 3}}, ShapeError, "some of the 3 hidden states"),
        ({"task": "english_sts", "method": {"name": "istar", "layers": 5}}, ShapeError, "got layers 5"),
        ({"task": "english_sts", "method": FEATURES}, OptionError, "got 'features' of log_isoscore"),
    ],
)
def test_what_is_wrong_with_a_configuration(changes, kind, message):
    with pytest.raises(kind, match=message):
        preflight(plan(SMOKE | changes))


def test_folder_of_data(data):
    cola = SMOKE | {"task": "cola"}
    with pytest.raises(SourceError, match=r"split 'train' must be at .*rte/train.parquet"):
        preflight(plan(SMOKE | {"task": "rte"}), data)
    file = data / "glue/cola/validation.parquet"
    for rows, message in (
        (ROWS[:1], "split 'validation' must have at least 2 rows; got 1"),
        ([{"text": "A.", "label": 0}], "must have the columns sentence, label; got text, label. Add sentence"),
        ([row | {"label": "good"} for row in ROWS], "must hold values of the hub's types"),
    ):
        write_rows(file, rows)
        with pytest.raises(SourceError, match=message):
            preflight(plan(cola), data)
    file.write_bytes(b"no parquet")
    with pytest.raises(SourceError, match=r"validation.parquet must be a readable parquet file"):
        preflight(plan(cola), data)


def test_precision_of_the_device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(OptionError, match="float16 needs a GPU"):
        preflight(plan(SMOKE | {"precision": "float16"}))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "old")
    with pytest.raises(OptionError, match=r"needs a GPU that has it; got old\. Use float16"):
        preflight(plan(SMOKE))
