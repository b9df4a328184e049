"""The recipe of ``tiny``: it runs from text to a model in seconds, again to the same bits; and the model that ships."""

import csv
import random
import re

import pretrain
import pytest
import torch
import transformers
from pretraining import training
from safetensors.torch import load_file

from isonb.models import catalogue, loading

SMALL = {"layers": 1, "width": 16, "batch": 64, "length": 16, "vocabulary": 200, "steps": 12}


def story(paragraphs, seed=0):
    """A made-up text in which the last noun of a sentence repeats its first, so that context helps."""
    draw = random.Random(seed)
    nouns = ["cat", "gull", "farmer", "lantern", "river", "turnip", "bishop", "kettle"]
    verbs = ["follows", "paints", "forgets", "carries"]
    tell = "The old {0} {1} another {0}."
    return [" ".join(tell.format(draw.choice(nouns), draw.choice(verbs)) for _ in range(4)) for _ in range(paragraphs)]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    (folder / "train.txt").write_text("\n".join(story(120)))
    (folder / "validation.txt").write_text("\n".join(story(30, seed=1)))
    return folder


@pytest.fixture(scope="module")
def small(text):
    """Pretrains the smallest of models into a folder; options change what it does."""
    return lambda out, **changes: pretrain.pretrain(text, out, **{"progress": False} | SMALL | changes)


@pytest.fixture(scope="module")
def finished(small, tmp_path_factory):
    return small(tmp_path_factory.mktemp("run") / "toy", about="A made-up text, public domain.")


def weights(model):
    return load_file(model / "model.safetensors")


def points(model):
    rows = csv.DictReader((model / "curve.csv").read_text().splitlines())
    return [{name: float(value) for name, value in row.items()} for row in rows]


def test_the_command_gives_a_model_that_the_lab_loads(text, tmp_path, capfd):
    arguments = f"--text {text} --out {tmp_path} --batch 8 --learning-rate 0.02 --no-bfloat16".split()
    arguments += ["--layers", "1", "--width", "32", "--length", "16", "--steps", "80"]
    assert pretrain.main(arguments) == 0
    assert f"finished: {tmp_path / 'model'}" in capfd.readouterr().out
    encoder = loading.load(tmp_path / "model")
    assert (encoder.layers, encoder.dim, encoder.max_length) == (1, 32, 32)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "--batch 8 --length 16 --learning-rate 0.02 --no-bfloat16 --layers 1 --width 32" in card
    assert catalogue.weights_digest(tmp_path / "model") in card
    by_frequency = float(card.split("by frequency alone has loss ")[1].split()[0][:-1])
    reached = points(tmp_path / "model")[-1]["validation_loss"]
    assert reached < 0.6 * by_frequency  # it reads the first noun to guess the last
    assert pretrain.main([*arguments, "--seed", "9"]) == 2
    assert "error: a run is resumed with the settings it was started with; got seed 0 -> 9" in capfd.readouterr().err
    assert pretrain.main(["--text", str(tmp_path / "model"), "--out", str(tmp_path)]) == 2
    assert "no *.parquet or *.txt files" in capfd.readouterr().err


def test_the_same_seed_gives_the_same_weights_also_after_a_kill(small, finished, tmp_path, monkeypatch):
    """Killed while it writes a checkpoint in its first epoch, of 8 updates, and before it seals one in its second."""

    class Killed(Exception):
        pass

    def dying(plain, at):
        def dies(self, *args, **kwargs):
            state = self.state if isinstance(self, transformers.Trainer) else args[1]
            if state.global_step == at:
                raise Killed
            return plain(self, *args, **kwargs)

        return dies

    for owner, name, at in (
        (transformers.Trainer, "_save_optimizer_and_scheduler", 6),
        (training.CheckpointDigest, "on_save", 11),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, dying(getattr(owner, name), at))
            with pytest.raises(Killed):
                small(tmp_path / "same")
    again = weights(small(tmp_path / "same"))
    assert all(torch.equal(value, again[name]) for name, value in weights(finished).items())
    other = weights(small(tmp_path / "other", seed=1, steps=1))
    assert not all(torch.equal(value, other[name]) for name, value in again.items())


@pytest.fixture(scope="module")
def tiny():
    return catalogue.embedded_folder(catalogue.EMBEDDED["tiny"])


def test_tiny_is_small_and_as_its_card_says(tiny):
    folder, digest = tiny
    encoder, card = loading.load("tiny"), (folder / "README.md").read_text()
    assert encoder.revision == catalogue.fingerprint(folder)
    assert (encoder.layers, encoder.dim, encoder.max_length, len(encoder.tokenizer)) == (4, 128, 128, 8192)
    assert (folder / "model.safetensors").stat().st_size <= 8_000_000
    assert digest in card
    assert "CC BY-SA 3.0" in card
    reached = re.search(r"float16 weights\): loss ([0-9.]*[0-9])", " ".join(card.split()))[1]
    curve = points(folder)
    losses = [point["validation_loss"] for point in curve]
    assert curve[-1]["learning_rate"] == 0.0
    assert losses[-1] == min(losses) == pytest.approx(float(reached), abs=0.1)


def test_tiny_is_loaded_in_float32_whoever_loads_it(tiny):
    """In float16, AdamW's eps of 1e-8 is 0, and a training throws the weights."""
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tiny[0])
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    numbers = weights(tiny[0]).values()
    assert all(torch.equal(value.half().float(), value) for value in numbers), "the numbers that recorded runs had"
