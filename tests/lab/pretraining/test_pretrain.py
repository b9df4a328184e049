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
WORDS = "bert.embeddings.word_embeddings.weight"


def weights(model: Path) -> dict[str, Tensor]:
    return load_file(model / "model.safetensors")


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


def test_a_killed_run_ends_as_an_undisturbed_one(small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of writing a checkpoint, and later in its second epoch: the same bits at the end."""
    monkeypatch.setattr(training, "POINTS", 4)  # a checkpoint after steps 3, 6, 9 and 12; an epoch has 8
    undisturbed, out, begun = weights(small(tmp_path / "a", batch=64)), tmp_path / "b", []
    opened = training.Budget.on_train_begin

    def begins(self: Any, args: Any, state: Any, *rest: Any, **kwargs: Any) -> None:
        begun.append(state.global_step)
        opened(self, args, state, *rest, **kwargs)

    monkeypatch.setattr(training.Budget, "on_train_begin", begins)
    for where, name, at in (
        (training.BudgetTrainer, "_save_optimizer_and_scheduler", 6),
        (training.Budget, "on_step_end", 11),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(where, name, dying(getattr(where, name), at))
            with pytest.raises(Killed):
                small(out, batch=64)
    again = small(out, batch=64)
    assert begun == [0, 3, 9]
    assert all(torch.equal(value, undisturbed[name]) for name, value in weights(again).items())
    assert [point[0] for point in curve(again)] == [0, 3, 6, 9, 12]


def test_a_finished_run_is_exported_again_or_goes_on_with_a_longer_budget(
    small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = weights(small(tmp_path, steps=2))
    with monkeypatch.context() as patch:
        patch.setattr(training.BudgetTrainer, "train", lambda *_, **__: pytest.fail("it was trained"))
        model = small(tmp_path, steps=2, about="Known now.")
    assert "Known now." in (model / "README.md").read_text()
    assert all(torch.equal(value, before[name]) for name, value in weights(model).items())
    assert [point[0] for point in curve(small(tmp_path, steps=3))] == [0, 1, 2, 3]
    assert re.search(r"\| 2 steps \|\n.*\| 3 steps \|", (model / "README.md").read_text())


def test_a_budget_of_time_ends_the_run(small: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "POINTS", 2)
    last = curve(small(tmp_path, steps=None, minutes=0.005))[-1]
    assert last[2] >= 0.005
    assert last[3] == 0.0


def test_a_damaged_checkpoint_is_refused_and_the_one_before_serves(small: Run, tmp_path: Path) -> None:
    first, checkpoint = weights(small(tmp_path, steps=2)), tmp_path / "checkpoint-2"
    for name, damage in (("optimizer.pt", b"?"), ("model.safetensors", b""), ("run.json", b"")):
        whole = (checkpoint / name).read_bytes()
        (checkpoint / name).write_bytes(damage and whole[:500] + damage + whole[501:])
        with pytest.raises(CheckpointError, match=rf"that it wrote; got other bytes in .*{name}.*--no-resume"):
            small(tmp_path, steps=2)
        (checkpoint / name).write_bytes(whole)
    shutil.rmtree(checkpoint)
    assert all(torch.equal(value, first[name]) for name, value in weights(small(tmp_path, steps=2)).items())
    small(tmp_path, steps=1, resume=False)
    assert not checkpoint.exists()


def test_a_checkpoint_of_other_settings_or_text_is_refused(
    small: Run, finished: Path, continued: Path, tmp_path: Path, tell: Callable[..., list[str]]
) -> None:
    with pytest.raises(CheckpointError, match=r"got seed 0 -> 3, width 16 -> 32\. Use the old settings"):
        small(finished.parent, seed=3, width=32)
    with pytest.raises(CheckpointError, match=r"start '[0-9a-f]{64}' -> ''"):
        small(continued.parent, seed=1, layers=3, vocabulary=64)
    (tmp_path / "train.txt").write_text("\n".join(tell(120, seed=7)))
    with pytest.raises(CheckpointError, match=r"got text '[0-9a-f]{64}' ->"):
        small(finished.parent, text=tmp_path)


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
    model = small(tmp_path, steps=80, learning_rate=0.02, width=32)
    by_frequency = float((model / "README.md").read_text().split("by frequency alone has loss ")[1].split()[0][:-1])
    assert curve(model)[-1][5] < 0.6 * by_frequency


# a finished model to begin with


def test_it_begins_where_the_first_ended(finished: Path, continued: Path) -> None:
    assert curve(continued)[0][5] == pytest.approx(curve(finished)[-1][5], abs=2e-3)  # rounded to float16 between
    assert weights(continued).keys() == weights(finished).keys()
    assert not torch.equal(weights(finished)[WORDS], weights(continued)[WORDS])
    tokenizers = [transformers.AutoTokenizer.from_pretrained(folder) for folder in (finished, continued)]
    assert tokenizers[0].get_vocab() == tokenizers[1].get_vocab()


def test_heads_that_the_first_model_lacks_follow_from_the_seed(finished: Path, tmp_path: Path) -> None:
    whole = weights(finished)
    kept = {name: value for name, value in whole.items() if not re.search("pooler|seq_relationship", name)}
    save_file(kept, tmp_path / "model.safetensors", metadata={"format": "pt"})
    shutil.copy(finished / "config.json", tmp_path)
    one, same, other = (training.read(tmp_path, seed).state_dict() for seed in (0, 0, 1))
    for name in whole:
        assert torch.equal(one[name], same[name])
        assert torch.equal(one[name], whole[name].float()) == (name in kept)
    assert not torch.equal(one["bert.pooler.dense.weight"], other["bert.pooler.dense.weight"])


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
    card = (tmp_path / "model" / "README.md").read_text()
    assert "--learning-rate 0.001 --no-follow --layers 1" in card
    assert "had no task" in card
    assert "Held-out pairs" not in card
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
