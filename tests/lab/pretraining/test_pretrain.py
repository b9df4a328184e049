"""A run can be stopped at any moment, refuses what isn't its own, and can begin with a finished model."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

transformers = pytest.importorskip("transformers")

from isonb.cli import main  # noqa: E402
from isonb.lab.options import OptionError  # noqa: E402
from isonb.lab.pretraining import PretrainSettings, training  # noqa: E402
from isonb.lab.pretraining.pretrain import CheckpointError  # noqa: E402
from isonb.lab.pretraining.text import TextError, sentences_of  # noqa: E402

Run = Callable[..., Path]


def weights(model: Path) -> dict[str, Tensor]:
    return load_file(model / "model.safetensors")


def same(one: Path, other: Path) -> bool:
    """Whether two models have the same parameters, bit by bit."""
    a, b = weights(one), weights(other)
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def curve(model: Path) -> list[list[float]]:
    return [[float(value) for value in line.split(",")] for line in (model / "curve.csv").read_text().splitlines()[1:]]


# interruptions


class Killed(Exception):
    """Stands for a kill."""


def dying(plain: Callable[..., Any], at: int) -> Callable[..., Any]:
    """A method of a Trainer or of a callback that never returns from its call after update ``at``."""

    def dies(self: Any, *args: Any, **kwargs: Any) -> Any:
        state = self.state if isinstance(self, training.BudgetTrainer) else args[1]
        if state.global_step == at:
            raise Killed
        return plain(self, *args, **kwargs)

    return dies


def test_a_run_killed_three_times_ends_as_an_undisturbed_one(
    small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between checkpoints, in the middle of writing one, and in its second epoch: the same bits at the end."""
    monkeypatch.setattr(training, "POINTS", 4)  # a checkpoint after steps 3, 6, 9 and 12; an epoch has 8
    undisturbed = small(tmp_path / "a", batch=64)
    assert not same(undisturbed, small(tmp_path / "b", batch=64, seed=1))
    out, begun = tmp_path / "c", []
    opened = training.Budget.on_train_begin

    def begins(self: Any, args: Any, state: Any, *rest: Any, **kwargs: Any) -> None:
        begun.append(state.global_step)
        opened(self, args, state, *rest, **kwargs)

    monkeypatch.setattr(training.Budget, "on_train_begin", begins)
    for where, name, at in (
        (training.Budget, "on_step_end", 8),
        (training.BudgetTrainer, "_save_optimizer_and_scheduler", 9),
        (training.Budget, "on_step_end", 11),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, dying(getattr(where, name), at))
            with pytest.raises(Killed):
                small(out, batch=64)
    assert same(small(out, batch=64), undisturbed)
    assert begun == [0, 6, 6, 9]
    assert [point[0] for point in curve(out / "model")] == [0, 3, 6, 9, 12]


def test_a_finished_run_is_exported_again_without_an_update(
    small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights(small(tmp_path, steps=2))
    monkeypatch.setattr(training.BudgetTrainer, "train", lambda *_, **__: pytest.fail("it was trained"))
    model = small(tmp_path, steps=2, about="Known now.")
    assert "Known now." in (model / "README.md").read_text()
    assert all(torch.equal(value, before[name]) for name, value in weights(model).items())


def test_a_longer_budget_takes_a_finished_run_further(small: Run, tmp_path: Path) -> None:
    small(tmp_path, steps=2)
    model = small(tmp_path, steps=3)
    assert [point[0] for point in curve(model)] == [0, 1, 2, 3]
    assert re.search(r"\| 2 steps \|\n.*\| 3 steps \|", (model / "README.md").read_text())


def test_a_budget_of_time_ends_the_run(small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "POINTS", 2)
    last = curve(small(tmp_path, steps=None, minutes=0.005))[-1]
    assert last[2] >= 0.005
    assert last[3] == 0.0


def test_a_damaged_checkpoint_is_refused_and_the_one_before_serves(small: Run, tmp_path: Path) -> None:
    model = small(tmp_path, steps=4)
    first, checkpoint = weights(model), tmp_path / "checkpoint-4"
    for name in ("model.safetensors", "optimizer.pt", "trainer_state.json", "tokenizer.json", "run.json"):
        whole = (checkpoint / name).read_bytes()
        middle = len(whole) // 2
        for bad in (whole[:-20], whole[:middle] + b"?" + whole[middle + 1 :], b""):
            (checkpoint / name).write_bytes(bad)
            if name == "run.json" and bad.startswith(whole[:middle]) and len(bad) == len(whole):
                continue  # it may be a setting that changed, which has an error of its own
            with pytest.raises(CheckpointError, match=rf"that it wrote; got other bytes in .*{name}.*--no-resume"):
                small(tmp_path, steps=4)
        (checkpoint / name).write_bytes(whole)
    shutil.rmtree(checkpoint)
    assert all(torch.equal(value, first[name]) for name, value in weights(small(tmp_path, steps=4)).items())
    small(tmp_path, steps=2, resume=False)
    assert not checkpoint.exists()


def test_a_checkpoint_of_other_settings_or_text_is_refused(
    small: Run, tmp_path: Path, tell: Callable[..., list[str]]
) -> None:
    small(tmp_path / "run", steps=1)
    with pytest.raises(CheckpointError, match=r"got seed 0 -> 3, width 16 -> 32\. Use the old settings"):
        small(tmp_path / "run", steps=1, seed=3, width=32)
    (tmp_path / "train.txt").write_text("\n".join(tell(120, seed=7)))
    with pytest.raises(CheckpointError, match=r"got text '[0-9a-f]{64}' ->"):
        small(tmp_path / "run", steps=1, text=tmp_path)


# what can't be done


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, r"steps of pretraining must be int 1\.\.1e\+09 or nothing; got 0"),
        ({"minutes": float("nan")}, "minutes of pretraining must be .*; got nan"),
        ({"heads": 3}, "multiple of heads; got 16, 3"),
        ({"length": 4}, "length of pretraining must be"),
        ({"device": "toaster"}, "device of pretraining must be one of cpu, cuda; got 'toaster'"),
        ({"lenght": 8}, "Did you mean 'length'"),
    ],
)
def test_options_that_cannot_be_used(small: Run, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        small(tmp_path / "out", **change)
    assert not (tmp_path / "out").exists()


def test_a_device_must_be_there(small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(OptionError, match="device must be present; got 'cuda'"):
        small(tmp_path, device="cuda")


def test_pairs_need_paragraphs_of_several_sentences(small: Run, tmp_path: Path, tell: Callable[..., list[str]]) -> None:
    (tmp_path / "train.txt").write_text("\n".join(sentence for told in tell(120) for sentence in sentences_of(told)))
    with pytest.raises(TextError, match=r"room for two segments, 16 tokens; got none\. Use --no-follow"):
        small(tmp_path / "run", text=tmp_path, steps=1)


# learning


def test_a_longer_run_learns_from_context(small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the made-up text both nouns of a sentence are the same, so far less than their frequency's entropy is left."""
    monkeypatch.setattr(training, "POINTS", 2)
    model = small(tmp_path, steps=200, learning_rate=0.01, layers=2, width=32)
    by_frequency = float((model / "README.md").read_text().split("by frequency alone has loss ")[1].split()[0][:-1])
    assert curve(model)[-1][5] < 0.6 * by_frequency


# a finished model to begin with


@pytest.fixture(scope="module", params=["both heads", "words alone"])
def first(finished: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A finished model, or one without a pooler and its classifier."""
    if request.param == "both heads":
        return finished
    folder = tmp_path_factory.mktemp("first") / "model"
    shutil.copytree(finished, folder)
    kept = {name: value for name, value in weights(finished).items() if not re.search("pooler|seq_relationship", name)}
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_it_begins_where_the_first_ended(small: Run, tmp_path: Path, first: Path) -> None:
    options = {"start": str(first), "seed": 1, "steps": 2, "layers": 3, "vocabulary": 64}
    again = small(tmp_path / "run", **options)
    assert curve(again)[0][5] == pytest.approx(curve(first)[-1][5], abs=2e-3)  # the weights were rounded to float16
    assert weights(again).keys() >= weights(first).keys()
    tokenizers = [transformers.AutoTokenizer.from_pretrained(folder) for folder in (first, again)]
    assert tokenizers[0].get_vocab() == tokenizers[1].get_vocab()
    words = "bert.embeddings.word_embeddings.weight"
    assert not torch.equal(weights(first)[words], weights(again)[words])
    with pytest.raises(CheckpointError, match=r"start '[0-9a-f]{64}' -> ''"):
        small(tmp_path / "run", **options | {"start": ""})


def test_what_cannot_be_gone_on_from(small: Run, tmp_path: Path, finished: Path) -> None:
    with pytest.raises(OptionError, match=r"positions for twice the length; got 32\. Use a length of at most 16"):
        small(tmp_path / "long", start=str(finished), length=32)
    with pytest.raises(ValueError, match="the model must be an embedded name"):
        small(tmp_path / "unknown", start="no/such/model/here")
    shutil.copytree(finished, tmp_path / "model")
    settings = (tmp_path / "model" / "config.json").read_text()
    (tmp_path / "model" / "config.json").write_text(settings.replace('"bert"', '"distilbert"'))
    with pytest.raises(OptionError, match="start must be a BERT encoder"):
        small(tmp_path / "kind", start=str(tmp_path / "model"))


# the command line


def test_command_line(text: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["pretrain", "--text", str(text), "--out", str(tmp_path), "--batch", "2", "--length", "8", "--no-follow"]
    words += ["--layers", "1", "--learning-rate", "1e-3", "--steps", "1"]
    assert main(words) == 0
    out = capfd.readouterr().out
    assert "step 1 " in out
    assert f"finished: {tmp_path / 'model'}" in out
    assert "--learning-rate 0.001 --no-follow --layers 1" in (tmp_path / "model" / "README.md").read_text()
    assert main([*words, "--seed", "9"]) == 2
    assert "error: a run is resumed" in capfd.readouterr().err
    assert main([*words, "--heads", "many"]) == 2
    assert "error: heads of pretraining must be int 1..64; got 'many'" in capfd.readouterr().err


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["pretrain", "--help"])
    named = {name.replace("-", "_") for name in re.findall(r"--([a-z][a-z0-9-]*)", capsys.readouterr().out)}
    wanted = set(PretrainSettings.__dataclass_fields__) | {"text", "out", "resume", "help"}
    assert {name for name in named if not name.startswith("no_")} == wanted


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_gpu_run(small: Run, tmp_path: Path) -> None:
    assert weights(small(tmp_path, device="cuda"))["bert.pooler.dense.weight"].shape == (16, 16)
