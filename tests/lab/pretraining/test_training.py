"""The loss is BERT's own, the budget counts work alone, and the learning rate ends at zero with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

transformers = pytest.importorskip("transformers")

from isonb.lab.pretraining import PretrainSettings, training  # noqa: E402
from isonb.lab.pretraining.text import NOT_ASKED, Hiding, Rows, train_tokenizer  # noqa: E402
from isonb.lab.pretraining.training import Budget, curve, fresh  # noqa: E402

SMALL = PretrainSettings(layers=2, width=32, length=16)


@pytest.fixture
def batch(tell: Callable[..., list[str]]) -> tuple[int, dict[str, torch.Tensor]]:
    """The size of a vocabulary, and 40 rows with hidden tokens, most of them pairs."""
    tokenizer = train_tokenizer(tell(50), 200, 32)
    found = dict(Hiding(tokenizer)(Rows(tokenizer, tell(50), 16, follow=True).__getitems__(range(40))))
    assert 10 < (found["next_sentence_label"] != NOT_ASKED).sum() < 40
    return len(tokenizer), found


def test_loss_and_counts_are_those_of_the_whole_output(batch: tuple[int, dict[str, torch.Tensor]]) -> None:
    size, rows = batch
    model = fresh(SMALL, size).eval()
    plain = transformers.BertForPreTraining(model.config).eval()
    plain.load_state_dict(model.state_dict())
    with torch.no_grad():
        found, whole = model(**rows), plain(**rows)
    assert found["loss"].item() == pytest.approx(whole.loss.item(), rel=1e-5)
    asked, hidden = rows["next_sentence_label"] != NOT_ASKED, rows["labels"] != NOT_ASKED
    right = (whole.seq_relationship_logits.argmax(-1) == rows["next_sentence_label"]).sum()
    hits = (whole.prediction_logits.argmax(-1) == rows["labels"]).sum()
    loss, *counts = found["counts"].squeeze(0).tolist()
    assert [*counts[:2], *counts[3:]] == [hits, hidden.sum(), right, asked.sum()]
    assert (loss / counts[1] + counts[2] / counts[4]) == pytest.approx(whole.loss.item(), rel=1e-5)


def test_without_a_pair_only_the_words_have_a_loss(batch: tuple[int, dict[str, torch.Tensor]]) -> None:
    size, rows = batch
    model = fresh(SMALL, size)
    found = model(**rows | {"next_sentence_label": torch.full((40,), NOT_ASKED)})
    found["loss"].backward()
    counts = found["counts"].squeeze(0)
    assert found["loss"].item() == pytest.approx((counts[0] / counts[2]).item())
    assert not model.bert.pooler.dense.weight.grad.any()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_fresh_weights_follow_from_the_seed_and_leave_the_generator_alone() -> None:
    before = torch.get_rng_state()
    one, same, other = (fresh(PretrainSettings(layers=1, width=16, seed=seed), 50) for seed in (0, 0, 1))
    assert torch.equal(before, torch.get_rng_state())
    weights = [model.bert.embeddings.word_embeddings.weight for model in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])
    assert not any(part.p for part in one.modules() if isinstance(part, torch.nn.Dropout))


def test_the_default_model_fits_in_five_megabytes() -> None:
    settings = PretrainSettings()
    assert 2 * fresh(settings, settings.vocabulary).num_parameters() < 4.5e6


# the budget


def budget(**options: Any) -> Budget:
    made = Budget(PretrainSettings(**options), {}, [], progress=False)
    made.on_train_begin(None, None, None)
    return made


def test_rate_rises_and_falls_to_zero() -> None:
    made = budget(steps=1000, warmup=0.1)
    rates = [made.rate(step) for step in range(1001)]
    assert rates[0] == rates[-1] == 0.0
    assert max(rates) == rates[100] == 1.0
    assert rates[50] == pytest.approx(0.5) == rates[550]


def test_the_time_of_a_point_is_counted_with_the_next_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """So a budget never ends between a point and its writing, and the last point has a learning rate of zero."""
    now = 0.0
    monkeypatch.setattr(training.time, "thread_time", lambda: now)
    made, asked = budget(minutes=0.02), []
    for step, now in enumerate((0.6, 1.1, 1.3), start=1):
        rate, control = made.rate(step), SimpleNamespace()
        now += 0.15  # the point is measured and written
        made.on_step_end(None, None, control)
        asked.append((control.should_save, control.should_training_stop, rate == 0.0))
    assert asked == [(True, False, False), (True, False, False), (True, True, True)]


def test_a_stop_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(training.time, "monotonic", lambda: now)
    on_gpu = budget(device="cuda", minutes=1.0)
    for now in (1.0, 3.0, 1000.0):  # noqa: B007 (read by the clock)
        on_gpu.tick()
    assert on_gpu.elapsed == 1.0 + 2.0 + 10.0
    on_cpu = budget(minutes=1.0)
    time.sleep(0.2)
    on_cpu.tick()
    assert on_cpu.elapsed < 0.1


def test_the_sooner_of_two_budgets_ends_the_run_and_an_hour_is_the_default() -> None:
    both = budget(minutes=1.0, steps=10)
    both.elapsed = 30.0
    assert (both.used(2), both.used(7), both.used(20)) == (0.5, 0.7, 1.0)
    assert PretrainSettings().budget == (60.0, None)
    assert PretrainSettings(steps=5).budget == (None, 5)
    assert (PretrainSettings(steps=5).words, both.settings.words) == ("5 steps", "1 minutes or 10 steps")


def test_the_curve_joins_what_the_log_says_of_a_step() -> None:
    point = {"eval_validation_loss": 2.0, "minutes": 0.5, "tokens": 64, "learning_rate": 0.0, "budget": "4 steps"}
    log = [{"step": 0, **point}, {"step": 4, "loss": 3.0, "learning_rate": 0.1}, {"step": 4, **point}]
    log.append({"step": 4, "train_runtime": 1.0})
    found = curve(log)
    assert found["step"].tolist() == [0, 4]
    assert found["train_loss"].tolist() == [pytest.approx(float("nan"), nan_ok=True), 3.0]
    assert found["learning_rate"].tolist() == [0.0, 0.0]
    assert found["validation_loss"].tolist() == [2.0, 2.0]


def test_points_and_a_falling_loss(finished: Path) -> None:
    head, *lines = (finished.parent / "curve.csv").read_text().splitlines()
    assert head.split(",") == list(training.CURVE)
    rows = [dict(zip(training.CURVE, map(float, line.split(",")), strict=True)) for line in lines]
    assert [row["step"] for row in rows] == list(range(13))
    assert rows[-1]["learning_rate"] == 0.0
    assert 0.8 * 12 * 8 * 16 < rows[-1]["tokens"] <= 12 * 8 * 16
    assert rows[-1]["validation_loss"] < rows[0]["validation_loss"]
    assert all(0 < row["follow_loss"] < 2 and 0 <= row["follow_accuracy"] <= 1 for row in rows)
