"""Pretraining: rows that waste nothing, a rate that ends at zero, a run that can be stopped, a model that loads."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from isonb.checks import InputError
from isonb.lab.encoders import catalogue, loading
from isonb.lab.pretraining import checkpoints, masking, mlm, pretrain, segments, text, training
from isonb.lab.pretraining.checkpoints import CheckpointError
from isonb.lab.pretraining.masking import CLS, MASK, SEP, Stream
from isonb.lab.pretraining.segments import NO_PAIR
from isonb.lab.pretraining.text import TextError
from isonb.lab.pretraining.training import PretrainConfig

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("transformers")

SMALL = {"layers": 1, "width": 16, "heads": 2, "batch": 8, "length": 16, "vocabulary": 200}


def story(paragraphs: int, seed: int = 0) -> list[str]:
    """A made-up text in which the last noun of a sentence repeats its first, so that context helps."""
    draw = random.Random(seed)
    nouns = ["cat", "gull", "farmer", "lantern", "river", "turnip", "bishop", "kettle"]
    verbs = ["follows", "paints", "forgets", "carries"]
    tell = "The old {0} {1} another {0}."
    return [" ".join(tell.format(draw.choice(nouns), draw.choice(verbs)) for _ in range(4)) for _ in range(paragraphs)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text")
    pq.write_table(pa.table({"text": story(120)}), path / "train.parquet")
    (path / "validation.txt").write_text("\n".join(story(30, seed=1)))
    return path


def settings(folder: Path, out: Path, **changes: Any) -> PretrainConfig:
    return PretrainConfig(folder, out, **({"steps": 12, "progress": False} | SMALL | changes))


def weights(out: Path) -> dict[str, Tensor]:
    return load_file(out / "model" / "model.safetensors")


@pytest.fixture(scope="module")
def finished(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "toy"
    assert pretrain.pretrain(settings(folder, out, about="A made-up text, public domain.")) == out / "model"
    return out


# text


def test_parquet_and_lines_are_read_and_held_out_files_kept_apart(folder: Path) -> None:
    found = text.read_folder(folder)
    assert (found.train, found.validation) == (story(120), story(30, seed=1))


def test_without_a_held_out_file_some_paragraphs_are(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n\n".join(f"Line {i}." for i in range(100)))
    (tmp_path / "test.txt").write_text("Never read.")
    found = text.read_folder(tmp_path)
    assert found.validation == ["Line 49.", "Line 99."]
    assert len(found.train) == 98


def test_fingerprint_names_the_text_and_the_split(tmp_path: Path) -> None:
    prints = set()
    for number, (train, held) in enumerate([("a\nb", "c"), ("a", "b\nc"), ("a\nb", "d")]):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "train.txt").write_text(train)
        (place / "dev.txt").write_text(held)
        prints.add(text.read_folder(place).fingerprint)
    assert len(prints) == 3


def write_no_column(path: Path) -> None:
    pq.write_table(pa.table({"body": ["a"], "id": [1]}), path / "train.parquet")


def write_numbers(path: Path) -> None:
    pq.write_table(pa.table({"text": [1, 2]}), path / "train.parquet")


def write_nulls(path: Path) -> None:
    pq.write_table(pa.table({"text": pa.array([None, "  "], pa.string())}), path / "train.parquet")


def write_bytes(path: Path) -> None:
    (path / "train.parquet").write_bytes(b"not a table")


def write_latin(path: Path) -> None:
    (path / "train.txt").write_bytes("café".encode("latin-1"))


def write_short(path: Path) -> None:
    (path / "train.txt").write_text("One short line.\nAnother one.")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (Path.rmdir, "must be a folder; got .*Check the path"),
        (lambda path: None, r"\*\.parquet or \*\.txt files; got none"),
        (write_no_column, "train.parquet must have a column 'text'; got body, id"),
        (write_numbers, "must hold strings"),
        (write_nulls, "train text must hold at least one paragraph; got none"),
        (write_bytes, "must be a parquet file; got"),
        (write_latin, "readable UTF-8; got"),
        (write_short, r"at least one row of 32 tokens; got \d+"),
    ],
)
def test_text_that_cannot_be_used(tmp_path: Path, write: Any, message: str) -> None:
    place = tmp_path / "text"
    place.mkdir()
    write(place)
    with pytest.raises(TextError, match=message):
        pretrain.pretrain(settings(place, tmp_path / "out"))


# tokenizer and rows


def test_tokenizer_round_trip(finished: Path) -> None:
    tokenizer = loading.load(finished / "model").tokenizer
    sentence = "the old turnip paints another turnip."
    ids = tokenizer(sentence.upper()).input_ids
    assert (ids[0], ids[-1]) == (CLS, SEP)
    assert tokenizer.decode(ids, skip_special_tokens=True).replace(" .", ".") == sentence
    assert tokenizer.unk_token_id not in ids
    pair = tokenizer("the cat", "a gull", padding="max_length", max_length=12)
    assert pair.token_type_ids[: sum(pair.attention_mask)][-2:] == [1, 1]
    assert [tokenizer.convert_tokens_to_ids(name) for name in masking.SPECIAL] == [0, 1, 2, 3, 4]
    assert (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id) == (CLS, SEP, MASK)
    assert tokenizer.model_max_length == 32


def test_same_text_gives_the_same_tokenizer() -> None:
    one, *others = (masking.train_tokenizer(story(50), 120).to_str() for _ in range(4))
    assert others == [one] * 3


def counting(sentences: int, words: int, paragraph: int = 10) -> Stream:
    """A stream in which every token is its own offset + 100, so that a row tells where it came from."""
    starts, size = torch.arange(sentences - 20) * words, paragraph * words
    return Stream(torch.arange(sentences * words, dtype=torch.int32) + 100, starts, (starts // size + 1) * size)


def shown(source: Stream, which: Tensor, length: int, cut: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Ids, segments, special places and labels of rows with nothing hidden."""
    parts = cut(source.starts, source.ends, which, length, torch.Generator().manual_seed(0))
    return (*masking._rows(source.ids, parts, length), parts.elsewhere)


def test_the_stream_knows_where_sentences_begin_and_paragraphs_end(finished: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(finished / "tokenizer.json"))
    paragraphs = ["The old cat. A gull.", "  ", "The river carries.", *story(8)]
    source = masking.stream(tokenizer, paragraphs, 32)
    decoded = [
        tokenizer.decode(source.ids[a:b].tolist()).replace(" .", ".")
        for a, b in zip(source.starts.tolist(), source.ends.tolist(), strict=True)
    ]
    assert decoded[:4] == ["the old cat. a gull.", "a gull.", "the river carries.", story(8)[0].lower()]


def test_rows_are_full_contiguous_and_begin_at_a_sentence() -> None:
    source = counting(100, 5)
    which = torch.arange(64)
    ids, kinds, special, elsewhere = shown(source, which, 16, segments.first_and_rest)
    assert (elsewhere == NO_PAIR).all()
    pairs = 0
    for row, kind, apart, first in zip(ids, kinds, special, which, strict=True):
        content = row[~apart].tolist()
        assert content == list(range(100 + 5 * int(first), 100 + 5 * int(first) + len(content)))
        assert row[0] == CLS
        assert row[-1] == SEP
        assert int((row == SEP).sum()) == (2 if kind.any() else 1)
        if kind.any():
            pairs += 1
            assert int((kind == 0).sum()) == 7  # [CLS], the first sentence, [SEP]
    assert 16 < pairs < 48


def test_a_sentence_longer_than_the_row_stays_one_segment() -> None:
    for cut in (segments.first_and_rest, segments.cut_pairs):
        ids, kinds, _, elsewhere = shown(counting(40, 30, paragraph=1), torch.arange(8), 16, cut)
        assert not kinds.any()
        assert (elsewhere == NO_PAIR).all()
        assert (ids[:, 1:-1].diff() == 1).all()


@pytest.mark.parametrize("length", [8, 16, 31])
def test_pairs_are_two_cuts_of_paragraphs_half_of_them_of_one(length: int) -> None:
    source = counting(1000, 5)
    which = torch.arange(980)
    ids, kinds, special, elsewhere = shown(source, which, length, segments.cut_pairs)
    firsts = set()
    for row, kind, apart, label, sentence in zip(ids, kinds, special, elsewhere.tolist(), which.tolist(), strict=True):
        parts = [row[~apart & (kind == number)] - 100 for number in (0, 1)]
        assert (row[0], row[-1]) == (CLS, SEP)
        assert apart.sum() == (2 if label == NO_PAIR else 3)
        assert parts[0][0] == 5 * sentence
        if label == NO_PAIR:
            assert (kind == 0).all()
            assert parts[0].tolist() == list(range(5 * sentence, 5 * sentence + length - 2))
            continue
        assert kind.tolist() == [0] * (len(parts[0]) + 2) + [1] * (len(parts[1]) + 1)
        assert row[len(parts[0]) + 1] == SEP
        assert all((part.diff() == 1).all() and part[0] % 5 == 0 for part in parts)  # whole, from a sentence on
        assert all(part[0] // 50 == part[-1] // 50 for part in parts)  # each of one paragraph
        firsts.add(len(parts[0]))
        if label == 0:
            assert 0 < parts[1][0] - parts[0][-1] <= 5  # the next sentence after the cut
        assert (parts[0][0] // 50 == parts[1][0] // 50) == (label == 0)
    assert len(firsts) == 1
    asked = elsewhere[elsewhere != NO_PAIR]
    assert 300 < len(asked) < 980
    assert asked.double().mean().item() == pytest.approx(0.5, abs=0.06)


def test_pairs_of_one_paragraph_are_never_called_foreign() -> None:
    _, _, _, elsewhere = shown(counting(400, 5, paragraph=400), torch.arange(300), 16, segments.cut_pairs)
    assert (elsewhere == NO_PAIR).all()


def test_neither_length_nor_cut_tells_what_is_from_elsewhere() -> None:
    """Second segments are as long, and as often cut inside a sentence, whether they follow or not."""
    source = counting(20_020, 5, paragraph=40)
    clues: list[list[Tensor]] = [[], []]
    for which in torch.randperm(20_000, generator=torch.Generator().manual_seed(1)).split(64):
        parts = segments.cut_pairs(source.starts, source.ends, which, 32, torch.Generator().manual_seed(int(which[0])))
        for label in (0, 1):
            mine = parts.elsewhere == label
            size = 29 - parts.size[mine]
            last = parts.second[mine] + size - 1
            clues[label].append(torch.stack([size, (size - 15) ** 2, last % 5 == 4]).double())
    follows, foreign = (torch.cat(part, dim=1) for part in clues)
    assert follows.shape[1] > 5_000
    for one, other in zip(follows, foreign, strict=True):
        error = (one.var() / len(one) + other.var() / len(other)).sqrt()
        assert abs(one.mean() - other.mean()) < 6 * error  # rows of a batch share their cut: fewer than they seem
    assert 0.15 < follows[2].mean() < 0.25


def test_hidden_tokens_are_a_fixed_share_treated_80_10_10() -> None:
    source = counting(3000, 5)
    size = 15_200
    rows = masking.masked_rows(source, torch.arange(2000), 64, size, torch.Generator().manual_seed(0))
    there = rows.input_ids.flatten()[rows.positions]
    assert len(rows.labels) == 2000 * round(0.15 * 62)
    assert (rows.labels >= 100).all()  # never [CLS] or [SEP]
    assert len(set(rows.positions.tolist())) == len(rows.positions)
    hidden, kept = (there == MASK).double().mean().item(), (there == rows.labels).double().mean().item()
    assert (hidden, kept) == (pytest.approx(0.8, abs=0.01), pytest.approx(0.1, abs=0.01))
    restored = rows.input_ids.flatten().scatter(0, rows.positions, rows.labels).reshape(2000, 64)
    assert (restored[:, 1:7].diff()[:, :3] == 1).all()


def test_loss_is_that_of_the_whole_output_at_the_hidden_positions() -> None:
    model = mlm.bert(2, 16, 2, 300, 32, seed=0)
    rows = masking.masked_rows(counting(40, 5), torch.arange(8), 16, 300, torch.Generator().manual_seed(0))
    found = mlm.losses(model, rows, half=False)
    logits = model(input_ids=rows.input_ids, token_type_ids=rows.token_type_ids).logits.flatten(0, 1)[rows.positions]
    want = -torch.log_softmax(logits.double(), -1)[torch.arange(len(rows.labels)), rows.labels].mean()
    assert found.words.item() == pytest.approx(want.item(), rel=1e-5)
    assert int(found.hits) == int((logits.argmax(-1) == rows.labels).sum())
    assert (found.follow, found.pairs) == (0, 0)


def test_follow_loss_is_that_of_the_pairs_alone() -> None:
    model = mlm.bert(2, 16, 2, 600, 32, seed=0, follow=True)
    source, draw = counting(80, 5), torch.Generator().manual_seed(0)
    rows = masking.masked_rows(source, torch.arange(40), 16, 600, draw, follow=True)
    found = mlm.losses(model, rows, half=False)
    asked = rows.elsewhere != NO_PAIR
    out = model(input_ids=rows.input_ids, token_type_ids=rows.token_type_ids).seq_relationship_logits[asked]
    want = -torch.log_softmax(out.double(), -1).gather(-1, rows.elsewhere[asked, None]).mean()
    assert 0 < int(found.pairs) == int(asked.sum()) < 40
    assert found.follow.item() == pytest.approx(want.item(), rel=1e-5)
    assert int(found.follow_hits) == int((out.argmax(-1) == rows.elsewhere[asked]).sum())
    none = mlm.losses(model, dataclasses.replace(rows, elsewhere=torch.full_like(rows.elsewhere, NO_PAIR)), half=False)
    (none.words + none.follow).backward()
    assert none.follow == 0
    assert not model.bert.pooler.dense.weight.grad.any()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_every_sentence_begins_a_row_once_an_epoch() -> None:
    config = PretrainConfig("", "", steps=1, batch=8)
    run = training.Run(config, None, counting(84, 5), None, "", None, None, None)  # type: ignore[arg-type]
    seen: list[list[int]] = []
    for run.step in range(16):
        seen.append(training._order(run).tolist())
    for epoch in (seen[:8], seen[8:]):
        assert sorted(itertools.chain(*epoch)) == list(range(64))
    assert seen[:8] != seen[8:]


# the run


def test_learning_rate_ends_at_zero_and_loss_falls(finished: Path) -> None:
    head, *lines = (finished / "curve.csv").read_text().splitlines()
    assert head.split(",") == list(training.CURVE)
    rows = [dict(zip(training.CURVE, map(float, line.split(",")), strict=True)) for line in lines]
    assert [row["step"] for row in rows] == list(range(13))
    assert rows[-1]["learning_rate"] == 0.0
    assert rows[-1]["tokens"] == 12 * 8 * 16
    assert rows[-1]["validation_loss"] < rows[0]["validation_loss"]
    assert all(0 < row["follow_loss"] < 2 and 0 <= row["follow_accuracy"] <= 1 for row in rows)


def test_a_longer_run_learns_from_context(folder: Path, tmp_path: Path) -> None:
    """In the made-up text both nouns of a sentence are the same, so far less than their frequency's entropy is left."""
    run = settings(folder, tmp_path, steps=300, learning_rate=0.01, layers=2, width=32)
    pretrain.pretrain(run)
    last = (tmp_path / "curve.csv").read_text().splitlines()[-1].split(",")
    card = (tmp_path / "model" / "README.md").read_text()
    by_frequency = float(card.split("by frequency alone has loss ")[1].split()[0].rstrip("."))
    assert float(last[5]) < 0.6 * by_frequency


def test_what_follows_can_be_learnt() -> None:
    """Rows seen again and again: the classifier on the pooler comes to tell them, and the words are learnt beside."""
    model, draw = mlm.bert(2, 32, 2, 600, 32, seed=0, follow=True), torch.Generator().manual_seed(0)
    rows = masking.masked_rows(counting(80, 5), torch.arange(40), 16, 600, draw, follow=True)
    optimizer = mlm.tune(model, 0.003, 0.0)
    seen = []
    for _ in range(60):
        found = mlm.losses(model, rows, half=False)
        seen.append((found.words.item(), found.follow.item(), int(found.follow_hits) / int(found.pairs)))
        (found.words + found.follow).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert seen[-1][0] < seen[0][0] / 2
    assert seen[-1][1] < 0.2 < 0.5 < seen[0][1]
    assert seen[-1][2] == 1.0


def test_the_exported_pooler_and_classifier_are_the_trained_ones(finished: Path, folder: Path) -> None:
    from transformers import AutoModelForPreTraining

    card = " ".join((finished / "model" / "README.md").read_text().split())
    said = float(card.split("a guess: 0.693), ")[1].split("%")[0]) / 100
    model = AutoModelForPreTraining.from_pretrained(finished / "model", dtype=torch.float32).eval()
    encoder = loading.load(finished / "model")
    held = masking.stream(encoder.tokenizer.backend_tokenizer, text.read_folder(folder).validation, 32)
    score = mlm.validate(model, held, 16, "cpu", half=False, sample=None)
    assert score.follow_hits == pytest.approx(said, abs=1e-3)
    draw = torch.Generator().manual_seed(3)
    rows = masking.masked_rows(held, torch.arange(60), 16, len(encoder.tokenizer), draw, follow=True)
    found = mlm.losses(model, rows, half=False)
    with torch.no_grad():  # the plain encoder's pooler, and the classifier on it
        pooled = encoder.model(input_ids=rows.input_ids, token_type_ids=rows.token_type_ids).pooler_output
        right = (model.cls.seq_relationship(pooled).argmax(-1) == rows.elsewhere)[rows.elsewhere != NO_PAIR]
    assert 0 < int(right.sum()) == int(found.follow_hits)


def test_pairs_need_paragraphs_of_several_sentences(tmp_path: Path) -> None:
    lines = "\n".join(itertools.chain(*map(text.sentences_of, story(120))))
    (tmp_path / "train.txt").write_text(lines)
    run = settings(tmp_path, tmp_path / "run", steps=1)
    with pytest.raises(TextError, match=r"room for two segments, 16 tokens; got none\. Use --no-follow"):
        pretrain.pretrain(run)
    pretrain.pretrain(dataclasses.replace(run, follow=False))


def test_same_seed_same_weights(folder: Path, tmp_path: Path, finished: Path) -> None:
    pretrain.pretrain(settings(folder, tmp_path))
    again, first = weights(tmp_path), weights(finished)
    assert again.keys() == first.keys()
    assert all(torch.equal(again[name], first[name]) for name in first)
    pretrain.pretrain(settings(folder, tmp_path / "other", seed=1))
    assert not torch.equal(weights(tmp_path / "other")["bert.embeddings.word_embeddings.weight"], first[WORDS])


WORDS = "bert.embeddings.word_embeddings.weight"


class Stopped(Exception):
    """Stands for a kill."""


def test_resumed_run_equals_the_uninterrupted_one(
    folder: Path, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after a step that no checkpoint holds, so that it is taken again: the same bits at the end."""
    step = training._one_step
    monkeypatch.setattr(training, "POINTS", 4)  # a checkpoint after steps 3, 6, 9 and 12

    def stop(run: training.Run) -> None:
        step(run)
        if run.step == 8:
            raise Stopped

    monkeypatch.setattr(training, "_one_step", stop)
    with pytest.raises(Stopped):
        pretrain.pretrain(settings(folder, tmp_path))
    assert checkpoints.load_state(tmp_path / "checkpoint.safetensors")[1]["step"] == 6
    taken: list[int] = []

    def count(run: training.Run) -> None:
        taken.append(run.step)
        step(run)

    monkeypatch.setattr(training, "_one_step", count)
    pretrain.pretrain(settings(folder, tmp_path))
    assert taken == list(range(6, 12))
    again, first = weights(tmp_path), weights(finished)
    assert all(torch.equal(again[name], first[name]) for name in first)
    lines = (tmp_path / "curve.csv").read_text().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in lines] == [0, 3, 6, 9, 12]


def test_finished_run_is_exported_again_without_a_step(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretrain.pretrain(settings(folder, tmp_path, steps=2))
    before = weights(tmp_path)
    assert "budget was changed" not in (tmp_path / "model" / "README.md").read_text()
    monkeypatch.setattr(training, "_one_step", lambda run: pytest.fail("a step was taken"))
    pretrain.pretrain(settings(folder, tmp_path, steps=2, about="Known now."))
    assert "Known now." in (tmp_path / "model" / "README.md").read_text()
    assert all(torch.equal(value, before[name]) for name, value in weights(tmp_path).items())


def test_a_budget_changed_under_way_is_told(folder: Path, tmp_path: Path) -> None:
    pretrain.pretrain(settings(folder, tmp_path, steps=2))
    pretrain.pretrain(settings(folder, tmp_path, steps=3))
    card = " ".join((tmp_path / "model" / "README.md").read_text().split())
    assert "(2 steps from step 0 on, 3 steps from step 2 on)" in card


def test_budget_of_time_ends_the_run(folder: Path, tmp_path: Path) -> None:
    pretrain.pretrain(settings(folder, tmp_path, steps=None, minutes=0.02))
    last = (tmp_path / "curve.csv").read_text().splitlines()[-1].split(",")
    assert float(last[2]) >= 0.02
    assert float(last[3]) == 0.0


def test_a_budget_does_not_end_while_a_checkpoint_is_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, save = 0.0, checkpoints.save_state

    def slowly(*what: Any) -> None:
        nonlocal now
        save(*what)
        now += 0.5

    monkeypatch.setattr(mlm.time, "thread_time", lambda: now)
    monkeypatch.setattr(training.checkpoints, "save_state", slowly)
    pretrain.pretrain(settings(folder, tmp_path, steps=None, minutes=0.02))
    lines = (tmp_path / "curve.csv").read_text().splitlines()[1:]
    step, _, minutes, rate, *_ = map(float, lines[-1].split(","))
    assert (step, minutes, rate) == (3, 0.025, 0.0)  # 1.2 s are used up by the third writing, and step 3 says so


def test_clock_does_not_count_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(mlm.time, "monotonic", lambda: now)
    clock = mlm.Clock("cuda", elapsed=5.0, cap=10.0)
    for now in (1.0, 3.0, 1000.0):  # noqa: B007 (read by the clock)
        clock.tick()
    assert clock.elapsed == 5.0 + 1.0 + 2.0 + 10.0


def test_clock_on_the_cpu_counts_work_alone() -> None:
    clock = mlm.Clock()
    mlm.time.sleep(0.2)
    assert clock.tick() < 0.1


def test_rate_rises_and_falls_to_zero() -> None:
    assert mlm.rate(0.0, 0.1) == 0.0
    assert mlm.rate(1.0, 0.1) == 0.0
    assert max(mlm.rate(i / 1000, 0.1) for i in range(1001)) == 1.0


# checkpoints


def test_damaged_checkpoints_are_refused(folder: Path, tmp_path: Path) -> None:
    saved = tmp_path / "checkpoint.safetensors"
    run = settings(folder, tmp_path, steps=2)
    pretrain.pretrain(run)
    whole = saved.read_bytes()
    flipped = bytearray(whole)
    flipped[-100] ^= 1
    for bad in (whole[:-500], bytes(flipped), b"", b"garbage" * 99):
        saved.write_bytes(bad)
        with pytest.raises(CheckpointError, match=r"the files that it wrote; got .*Begin again with --no-resume"):
            pretrain.pretrain(run)
    save_file({"model.x": torch.ones(2)}, saved)
    with pytest.raises(CheckpointError, match="KeyError"):
        pretrain.pretrain(run)
    pretrain.pretrain(dataclasses.replace(run, resume=False))
    assert checkpoints.load_state(saved)[1]["step"] == 2


def test_resume_keeps_the_tokenizer_it_began_with(folder: Path, tmp_path: Path) -> None:
    run = settings(folder, tmp_path, steps=2)
    pretrain.pretrain(run)
    file = tmp_path / "tokenizer.json"
    file.write_text(file.read_text().replace('"cat"', '"cow"'))
    with pytest.raises(CheckpointError, match=r"another checksum in .*tokenizer\.json"):
        pretrain.pretrain(run)
    file.unlink()
    with pytest.raises(CheckpointError, match=r"No such file"):
        pretrain.pretrain(run)


def test_checkpoint_of_other_settings_or_text_is_refused(folder: Path, tmp_path: Path) -> None:
    run = settings(folder, tmp_path / "run", steps=1)
    pretrain.pretrain(run)
    with pytest.raises(CheckpointError, match=r"got seed 0 -> 3, width 16 -> 32\. Use the old settings"):
        pretrain.pretrain(dataclasses.replace(run, seed=3, width=32))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.txt").write_text("\n".join(story(120, seed=7)))
    with pytest.raises(CheckpointError, match=r"got text '[0-9a-f]{64}' ->"):
        pretrain.pretrain(dataclasses.replace(run, text=tmp_path / "other"))


def test_checkpoint_from_before_there_was_a_task_for_pairs_is_refused(folder: Path, tmp_path: Path) -> None:
    run, saved = settings(folder, tmp_path, steps=1), tmp_path / "checkpoint.safetensors"
    pretrain.pretrain(run)
    with pytest.raises(CheckpointError, match="got follow True -> False"):
        pretrain.pretrain(dataclasses.replace(run, follow=False))
    tensors, record = checkpoints.load_state(saved)
    del record["settings"]["follow"]
    save_file(tensors, saved, {"record": json.dumps(record), "sha256": checkpoints._digest(tensors, record)})
    for follow in (True, False):
        with pytest.raises(CheckpointError, match=rf"got follow unknown \(an older run\) -> {follow}\. Use the old"):
            pretrain.pretrain(dataclasses.replace(run, follow=follow))


def test_a_failed_write_leaves_the_old_checkpoint(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = settings(folder, tmp_path, steps=2)
    pretrain.pretrain(run)
    before = (tmp_path / "checkpoint.safetensors").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(checkpoints.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        pretrain.pretrain(dataclasses.replace(run, resume=False))
    assert (tmp_path / "checkpoint.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": None}, "a budget must be given; got neither"),
        ({"steps": 0}, r"steps must lie in \[1, "),
        ({"minutes": float("nan")}, "minutes must lie in .*; got nan"),
        ({"heads": 3}, "multiple of heads; got 16, 3"),
        ({"length": 4}, "length must lie in"),
        ({"seed": -1}, "seed must lie in"),
        ({"device": "cuda:99"}, "device must be present; got 'cuda:99'"),
        ({"device": "toaster"}, "device must be present; got 'toaster'"),
    ],
)
def test_settings_out_of_range(folder: Path, tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        pretrain.pretrain(settings(folder, tmp_path / "out", **change))
    assert not (tmp_path / "out").exists()


# the finished model


def test_export_loads_as_an_encoder(finished: Path) -> None:
    encoder = loading.load(finished / "model")
    assert (encoder.layers, encoder.dim, encoder.max_length) == (1, 16, 32)
    assert {value.dtype for value in weights(finished).values()} == {torch.float16}
    assert {p.dtype for p in encoder.model.parameters()} == {torch.float32}
    states = loading.encode(encoder, ["The old cat.", "A gull follows the lantern."], progress=False)
    assert torch.isfinite(states.hidden_states).all()
    tensors, _ = checkpoints.load_state(finished / "checkpoint.safetensors")
    for name, parameter in encoder.model.pooler.named_parameters():
        assert torch.equal(parameter, tensors[f"model.bert.pooler.{name}"].half().float())


def test_without_the_task_for_pairs_the_pooler_is_a_rotation(folder: Path, tmp_path: Path) -> None:
    pretrain.pretrain(settings(folder, tmp_path, steps=2, follow=False))
    pooled = [loading.load(tmp_path / "model").model.pooler.dense.weight for _ in range(2)]
    assert torch.equal(*pooled)
    torch.testing.assert_close(pooled[0] @ pooled[0].T, torch.eye(16), atol=2e-3, rtol=0)
    assert json.loads((tmp_path / "model" / "config.json").read_text())["architectures"] == ["BertForMaskedLM"]
    card = " ".join((tmp_path / "model" / "README.md").read_text().split())
    assert "fixed random rotation" in card
    assert "--no-follow" in card
    assert "follows: loss" not in card


def test_exported_weights_are_the_trained_ones(finished: Path) -> None:
    from transformers import AutoModelForMaskedLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    model = AutoModelForMaskedLM.from_pretrained(finished / "model", dtype=torch.float32)
    assert model.cls.predictions.decoder.weight is model.bert.embeddings.word_embeddings.weight
    tensors, _ = checkpoints.load_state(finished / "checkpoint.safetensors")
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, tensors[f"model.{name}"].half().float()), name


def test_card_says_what_was_done(finished: Path) -> None:
    card = (finished / "model" / "README.md").read_text()
    assert "{" not in card
    for part in ("A made-up text, public domain.", "--steps 12 --seed 0", "12 steps", "not good for"):
        assert part in card
    for part in ("next sentence prediction", "| follows: loss | right |", "a guess: 50%"):
        assert part in card
    assert "rotation" not in card
    assert loading.load(finished / "model").revision in card
    assert str(finished.parent) not in card
    assert max(map(len, card.split("\n\n    python")[0].splitlines())) <= 120
    assert (finished / "model" / "curve.csv").read_bytes() == (finished / "curve.csv").read_bytes()
    perplexity = float(card.split("perplexity ")[1].split(",")[0])
    loss = float(card.split("float16 weights): loss ")[1].split(" ")[0])
    assert perplexity == pytest.approx(math.exp(loss), rel=2e-3)


def test_full_size_fits_in_five_megabytes() -> None:
    config = PretrainConfig("", "", steps=1)
    size = (config.layers, config.width, config.heads, config.vocabulary, 2 * config.length)
    model = mlm.bert(*size, seed=0, follow=config.follow)
    count = sum(p.numel() for p in model.parameters())
    assert 2 * count < 4.5e6


# the model that ships


@pytest.fixture(scope="module")
def tiny() -> loading.Encoder:
    return loading.load("tiny")


def test_tiny_is_small_checked_and_complete(tiny: loading.Encoder) -> None:
    folder, digest = catalogue.embedded_folder(catalogue.EMBEDDED["tiny"])
    assert tiny.revision == digest == catalogue.weights_digest(folder)
    assert (tiny.layers, tiny.dim, tiny.max_length, len(tiny.tokenizer)) == (4, 128, 128, 8192)
    assert {p.dtype for p in tiny.model.parameters()} == {torch.float32}
    assert (folder / "model.safetensors").stat().st_size <= 5_000_000
    card = (folder / "README.md").read_text()
    assert digest in card
    assert "CC BY-SA 3.0" in card


def test_tiny_splits_common_words_not_at_all_and_keeps_every_word(tiny: loading.Encoder) -> None:
    sentence = "the film was shown in the united states in 2010, but it was not a success."
    pieces = tiny.tokenizer.tokenize(sentence.title())
    assert "film" in pieces
    assert "states" in pieces
    assert tiny.tokenizer.unk_token not in pieces
    decoded = tiny.tokenizer.decode(tiny.tokenizer(sentence).input_ids, skip_special_tokens=True)
    assert decoded.replace(" ", "") == sentence.replace(" ", "")


@pytest.mark.parametrize(
    ("sentence", "word"),
    [
        ("He was born in London and died in New [MASK] .", "york"),
        ("She [MASK] born on 3 May 1950 in Paris, France.", "was"),
        ("The album was released [MASK] 5 June 2015.", "on"),
        ("It is a species of beetle in the [MASK] Cerambycidae.", "family"),
    ],
)
def test_tiny_guesses_hidden_words(sentence: str, word: str) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    folder, _ = catalogue.embedded_folder(catalogue.EMBEDDED["tiny"])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
    coded = tokenizer(sentence, return_tensors="pt")
    with torch.no_grad():
        scores = model(**coded).logits[0, coded.input_ids[0] == tokenizer.mask_token_id][0]
    assert word in tokenizer.convert_ids_to_tokens(scores.topk(5).indices.tolist())


def test_tiny_curve_reaches_what_the_card_says() -> None:
    folder, _ = catalogue.embedded_folder(catalogue.EMBEDDED["tiny"])
    lines = (folder / "curve.csv").read_text().splitlines()[1:]
    curve = [[float(value) for value in line.split(",")] for line in lines]
    card = (folder / "README.md").read_text()
    reached = float(card.split("float16 weights): loss ")[1].split()[0])
    frequency = float(card.split("by frequency alone has loss ")[1].split(". ")[0].split(".\n")[0])
    assert curve[-1][3] == 0.0  # the learning rate at the end
    assert curve[-1][5] == min(point[5] for point in curve) == pytest.approx(reached, abs=0.1)
    assert reached < 0.6 * frequency


# the command line


def test_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--text", str(folder), "--out", str(tmp_path), "--batch", "2", "--length", "8"]
    assert pretrain.main([*common, "--steps", "1"]) == 0
    out = capsys.readouterr().out
    assert "step 1 " in out
    assert f"finished: {tmp_path / 'model'}" in out
    with pytest.raises(SystemExit) as stop:
        pretrain.main([*common, "--steps", "1", "--seed", "9"])
    assert stop.value.code == 2
    assert "error: a run is resumed" in capsys.readouterr().err


def test_help_has_examples() -> None:
    command = [sys.executable, "-m", "isonb.lab.pretraining.pretrain", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "examples:" in shown
    options = {field.name for field in dataclasses.fields(PretrainConfig)}
    named = {name.replace("-", "_") for name in re.findall(r"--([a-z-]+)", shown)}
    assert named - {"help", "no_resume", "no_follow"} <= options


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_gpu_run(folder: Path, tmp_path: Path) -> None:
    pretrain.pretrain(settings(folder, tmp_path, device="cuda"))
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["hidden_size"] == 16
    assert loading.load(tmp_path / "model", device="cuda").layers == 1
