"""The states below the trained layers: the same training as with frozen layers, once computed, and bounded on disk."""

import copy
import os

import numpy as np
import pandas as pd
import pytest
import torch

from isonb.errors import InputError, OptionError
from isonb.models.catalogue import CACHE_VARIABLE
from isonb.models.loading import load
from isonb_lab.encoders import lower_layers, state_files
from isonb_lab.encoders.lower_layers import first_layers, layer_list, trained_above
from isonb_lab.encoders.task_model import TaskModel
from isonb_lab.engines import finetune
from isonb_lab.methods import method_from
from tests.lab.random_models import save

CUT = {"layers": 3, "train_layers": 1, "precision": "float32", "dropout": 0.0, "head": "linear"}
RUN = {"protocol": "smoke", "task": "english_paraphrase", "model": "tiny", "track_every": 1, "learning_rate": 1e-4}
RUN |= CUT


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path / "states"


def frozen(encoder, count):
    """What the cache stands for: the whole model, of which the last layers alone are trained."""
    encoder.model.requires_grad_(False)
    layer_list(encoder.model)[-count:].requires_grad_(True)
    return encoder, type("Nothing", (), {"read": lambda self, rows, progress: None})()


def rounded(encoder, count):
    """The same, with the states below in half precision, as they lie on the disk."""

    def round_output(module, args, output):
        half = (output[0] if isinstance(output, tuple) else output).half().float()
        return (half, *output[1:]) if isinstance(output, tuple) else half

    layer_list(encoder.model)[-count - 1].register_forward_hook(round_output)
    return frozen(encoder, count)


def trained(config, table):
    """The losses of a run, its accuracy and its predictions."""
    record = finetune.run(RUN | config, progress=False, predictions=table)
    losses = [value for _, value in record.series["step.train.loss"]]
    return losses, record.metrics["accuracy"], pd.read_csv(table)["predicted"].tolist()


SEES = {  # runs, and what states from the disk are to equal: those of frozen layers, or these in half precision
    "cosreg": (frozen, {"method": {"name": "cosreg", "weight": 1.0}}),
    "softdecay": (rounded, {"method": "softdecay"}),
    "istar": (rounded, {"method": {"name": "istar", "layers": -1}}),
    **{kind: (frozen, {"model": kind, "layers": 2}) for kind in ("distilbert", "gpt2", "roberta")},
}


@pytest.mark.parametrize(("reference", "config"), SEES.values(), ids=SEES)
def test_training_is_that_with_frozen_layers(monkeypatch, tmp_path, reference, config):
    if "model" in config:
        config = config | {"model": str(save(config["model"], tmp_path / "model"))}
    losses, *ends = trained(config, tmp_path / "cached.csv")
    monkeypatch.setattr(finetune, "trained_above", reference)
    expected, *other_ends = trained(config, tmp_path / "other.csv")
    np.testing.assert_allclose(losses, expected, atol=1e-5)
    assert len(losses) == 4
    if reference is frozen and "model" not in config:
        assert ends == other_ends


def test_a_model_that_shares_its_layers_is_refused(tmp_path):
    folder = save("albert", tmp_path / "albert")
    with pytest.raises(OptionError, match="must name its 2 layers one by one to be cut; got AlbertModel"):
        first_layers(load(str(folder)), 1)


def test_hidden_states_begin_with_the_layer_below():
    whole, (upper, _) = load("tiny"), trained_above(first_layers(load("tiny"), 3), 2)
    tokens = whole.tokenizer(["A cone is no needle.", "Wool."], padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = whole.model(**tokens, output_hidden_states=True).hidden_states
        result = upper.model(**tokens, output_hidden_states=True).hidden_states
    real = tokens["attention_mask"].bool()
    assert len(result) == upper.layers + 1 == 3
    for item, other in zip(result, expected[1:4], strict=True):
        torch.testing.assert_close(item[real], other[real], atol=2e-3, rtol=2e-3)


def test_training_holds_neither_the_states_nor_the_lower_layers_in_memory_and_a_copy_reads_the_same():
    upper, lower = trained_above(load("tiny"), 1)
    tokens = upper.tokenizer(["A cone."], return_tensors="pt")
    lower.read([{"input_ids": tokens["input_ids"][0].tolist()}], progress=False)
    ((states, _, _),) = lower._places.values()
    assert isinstance(states, np.memmap)
    assert states.dtype == np.float16
    assert lower._lower is None
    with torch.no_grad():
        first, again = (model(**tokens).last_hidden_state for model in (upper.model, copy.deepcopy(upper.model)))
    assert torch.equal(first, again)


def test_states_are_computed_once_for_all_seeds_and_methods(monkeypatch, cache):
    finetune.run(RUN | {"max_steps": 1}, progress=False)
    files = sorted(cache.glob("*.npy"))
    assert len(files) == 2  # training and validation rows
    monkeypatch.setattr(lower_layers.LowerStates, "_pass", lambda *_: pytest.fail("computed again"))
    finetune.run(RUN | {"seed": 1, "method": {"name": "istar", "weight": 1.0}, "max_steps": 1}, progress=False)
    assert sorted(cache.glob("*.npy")) == files


def test_the_layers_alone_are_trained_and_the_words_are_not_in_checkpoints():
    encoder, _ = trained_above(load("tiny"), 1)
    model = TaskModel(encoder.model, "classification", 2, method_from("none"), "linear", 0.0)
    model.unfreeze()
    trained = {name.split(".layer.0.")[0] for name, weight in model.named_parameters() if weight.requires_grad}
    assert trained == {"encoder.encoder", "classifier.weight", "classifier.bias"}
    assert not [name for name in model.state_dict() if "word_embeddings" in name]


def test_all_files_together_stay_below_the_limit(monkeypatch, cache):
    def write(name, tokens=800):
        batch = ([0], np.full((tokens, 10), len(name), dtype=np.float16))
        state_files.states(name, [tokens], 10, lambda: [batch])
        return sorted(path.stem for path in cache.glob("*.npy"))

    monkeypatch.setenv(state_files.LIMIT_VARIABLE, str(4e-5))  # 40,000 bytes
    for age, name in enumerate("abc"):
        left = write(name)
        os.utime(cache / f"{name}.npy", (age, age))
    assert left == write("b") == ["b", "c"]  # b is read again, so that c is the older one
    assert write("d") == ["b", "d"]
    with pytest.raises(InputError, match=r"must fit into 4e-05 GB; got 3,000 tokens of 10 numbers, 0.0 GB. Set ISONB"):
        write("e", 3000)
    assert write("b") == ["b", "d"]
    monkeypatch.setenv(state_files.LIMIT_VARIABLE, "much")
    with pytest.raises(InputError, match="must be a number of gigabytes above 0; got much"):
        write("f")


def test_a_file_that_was_cut_short_is_not_there(cache):
    def stopped():
        yield [0], np.zeros((2, 4), dtype=np.float16)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        state_files.states("x", [2, 2], 4, stopped)
    assert [path.name for path in cache.iterdir()] == ["x.lock"]


def test_states_beyond_half_precision_are_refused():
    _, lower = trained_above(load("tiny"), 4)
    lower._lower = first_layers(load("tiny"), 1)
    lower._lower.model.embeddings.LayerNorm.weight.data *= 1e6
    with pytest.raises(OptionError, match="must lie in the range of float16, up to 65504"):
        lower.read([{"input_ids": [2, 5, 3]}], progress=False)
