"""Rows that waste nothing, pairs that only what they say can tell, tokens hidden the same way again."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("transformers")

from isonb.lab.pretraining.text import (  # noqa: E402
    NOT_ASKED,
    SPECIAL,
    Hiding,
    Rows,
    TextError,
    read_folder,
    train_tokenizer,
)

CLS, SEP, MASK = 2, 3, 4
FIRST = 100  # the id of the first word of a counted text
Tell = Callable[..., list[str]]

# folders


def test_parquet_and_lines_are_read_and_held_out_files_kept_apart(text: Path, tell: Tell) -> None:
    found = read_folder(text)
    assert (found.train, found.validation) == (tell(120), tell(30, seed=1))


def test_without_a_held_out_file_some_paragraphs_are(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n\n".join(f"Line {i}." for i in range(100)))
    (tmp_path / "test.txt").write_text("Never read.")
    found = read_folder(tmp_path)
    assert found.validation == ["Line 49.", "Line 99."]
    assert len(found.train) == 98


def test_fingerprint_names_the_text_and_the_split(tmp_path: Path) -> None:
    prints = set()
    for number, (train, held) in enumerate([("a\nb", "c"), ("a", "b\nc"), ("a\nb", "d")]):
        place = tmp_path / str(number)
        place.mkdir()
        (place / "train.txt").write_text(train)
        (place / "dev.txt").write_text(held)
        prints.add(read_folder(place).fingerprint)
    assert len(prints) == 3


def table(**columns: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table(columns), path / "train.parquet")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (Path.rmdir, "must be a folder; got .*Check the path"),
        (lambda path: None, r"got none in .* \(no \*\.parquet or \*\.txt files\)"),
        (table(body=["a"]), "train.parquet must be a parquet file with a column 'text' of strings; got .*text"),
        (table(text=[1, 2]), "column 'text' of strings; got "),
        (table(text=pa.array([None, "  "], pa.string())), r"train text must hold .*got none in .*\(train.parquet\)"),
        (lambda path: (path / "a.parquet").write_bytes(b"no table"), "a.parquet must be a parquet file .*; got "),
        (lambda path: (path / "a.txt").write_bytes("café".encode("latin-1")), "a.txt must be UTF-8 lines; got "),
    ],
)
def test_text_that_cannot_be_used(tmp_path: Path, write: Any, message: str) -> None:
    place = tmp_path / "text"
    place.mkdir()
    write(place)
    with pytest.raises(TextError, match=message):
        read_folder(place)


# tokenizer


def test_tokenizer_round_trip_and_the_same_again(tell: Tell) -> None:
    tokenizer, *others = (train_tokenizer(tell(50), 120, 32) for _ in range(3))
    assert {other.backend_tokenizer.to_str() for other in others} == {tokenizer.backend_tokenizer.to_str()}
    sentence = "the old turnip paints another turnip."
    ids = tokenizer(sentence.upper()).input_ids
    assert (ids[0], ids[-1]) == (CLS, SEP)
    assert tokenizer.decode(ids, skip_special_tokens=True).replace(" .", ".") == sentence
    assert tokenizer.unk_token_id not in ids
    assert tokenizer("the cat", "a gull").token_type_ids[-2:] == [1, 1]
    assert [tokenizer.convert_tokens_to_ids(name) for name in SPECIAL] == [0, 1, 2, 3, 4]
    assert (tokenizer.mask_token_id, tokenizer.model_max_length) == (MASK, 32)


# rows


class Counting:
    """Stands for a tokenizer: word number n of a text gets the id n + 100, so that a row tells where it is from."""

    cls_token_id, sep_token_id = CLS, SEP

    @property
    def backend_tokenizer(self) -> Counting:
        return self

    def encode_batch_fast(self, sentences: list[str], add_special_tokens: bool) -> list[Any]:
        return [SimpleNamespace(ids=[FIRST + int(n) for n in re.findall(r"\d+", one)]) for one in sentences]


def counted(paragraphs: int, sentences: int = 10, words: int = 5, **options: Any) -> Rows:
    """Rows of a text of so many paragraphs, sentences a paragraph and words a sentence."""
    count = itertools.count()
    told = [
        " ".join(" ".join(f"W{next(count)}" for _ in range(words)) + "." for _ in range(sentences))
        for _ in range(paragraphs)
    ]
    return Rows(Counting(), told, **{"length": 16, "follow": True} | options)


def batch(rows: Rows, which: Any) -> dict[str, Tensor]:
    examples = rows.__getitems__(which)
    return {name: torch.stack([example[name] for example in examples]) for name in examples[0]}


def test_rows_know_where_sentences_begin_and_paragraphs_end(tell: Tell) -> None:
    tokenizer = train_tokenizer(tell(50), 120, 32)
    rows = Rows(tokenizer, ["The old cat. A gull.", "  ", "The river carries.", *tell(8)], 16, follow=True)
    parts = [rows.ids[a:b].tolist() for a, b in zip(rows.starts, rows.ends, strict=True)]
    assert [tokenizer.decode(part).replace(" .", ".") for part in parts[:4]] == [
        *("the old cat. a gull.", "a gull.", "the river carries."),
        tell(8)[0].lower(),
    ]
    assert rows.starts[-1] <= len(rows.ids) - 32
    with pytest.raises(TextError, match=r"at least one row of 32 tokens; got 7\. Add text"):
        Rows(tokenizer, ["The old cat.", "A gull."], 16, follow=True)


@pytest.mark.parametrize("length", [8, 16, 31])
def test_pairs_are_two_cuts_of_paragraphs_half_of_them_of_one(length: int) -> None:
    found = batch(counted(100, length=length), range(980))
    labels = found["next_sentence_label"]
    firsts = set()
    for sentence, (row, kind, apart, label) in enumerate(zip(*found.values(), strict=True)):
        parts = [row[(apart == 0) & (kind == number)] - FIRST for number in (0, 1)]
        assert (row[0], row[-1]) == (CLS, SEP)
        assert apart.sum() == (2 if label == NOT_ASKED else 3)
        assert parts[0][0] == 5 * sentence
        if label == NOT_ASKED:
            assert not kind.any()
            assert parts[0].tolist() == list(range(5 * sentence, 5 * sentence + length - 2))
            continue
        assert kind.tolist() == [0] * (len(parts[0]) + 2) + [1] * (len(parts[1]) + 1)
        assert row[len(parts[0]) + 1] == SEP
        assert all((part.diff() == 1).all() and part[0] % 5 == 0 for part in parts)  # whole, from a sentence on
        assert all(part[0] // 50 == part[-1] // 50 for part in parts)  # each of one paragraph
        firsts.add(len(parts[0]))
        assert (parts[0][0] // 50 == parts[1][0] // 50) == (label == 0)
        assert label == 1 or 0 < parts[1][0] - parts[0][-1] <= 5  # the next sentence after the cut
    asked = labels[labels != NOT_ASKED]
    assert len(firsts) == 1
    assert 300 < len(asked) < 980
    assert asked.double().mean().item() == pytest.approx(0.5, abs=0.06)


def test_without_the_task_the_second_segment_is_what_follows() -> None:
    found = batch(counted(100, follow=False), range(980))
    assert (found["next_sentence_label"] == NOT_ASKED).all()
    pairs = found["input_ids"][found["token_type_ids"].any(-1)]
    contents = pairs[pairs >= FIRST].reshape(len(pairs), 13)
    assert len(pairs) > 300
    assert ((contents.diff() >= 1) & (contents.diff() <= 5)).all()


@pytest.mark.parametrize(("paragraphs", "sentences", "words"), [(60, 1, 30), (1, 400, 5)])
def test_no_row_is_asked_without_room_or_another_paragraph(paragraphs: int, sentences: int, words: int) -> None:
    rows = counted(paragraphs, sentences, words)
    assert (batch(rows, range(40))["next_sentence_label"] == NOT_ASKED).all()


def test_neither_length_nor_cut_tells_what_is_from_elsewhere() -> None:
    """Second segments are as long, and as often cut inside a sentence, whether they follow or not."""
    rows = counted(500, sentences=40, length=32)
    clues: list[list[Tensor]] = [[], []]
    for which in torch.randperm(len(rows), generator=torch.Generator().manual_seed(1)).split(64):
        found = batch(rows, which)
        size = found["token_type_ids"].sum(-1) - 1
        cut = (found["input_ids"][:, -2] - FIRST) % 5 == 4
        for label in (0, 1):
            mine = found["next_sentence_label"] == label
            clues[label].append(torch.stack([size[mine], (size[mine] - 15) ** 2, cut[mine]]).double())
    follows, foreign = (torch.cat(part, dim=1) for part in clues)
    assert follows.shape[1] > 5_000
    for one, other in zip(follows, foreign, strict=True):
        error = (one.var() / len(one) + other.var() / len(other)).sqrt()
        assert abs(one.mean() - other.mean()) < 6 * error  # rows of a batch share their cut: fewer than they seem
    assert 0.15 < follows[2].mean() < 0.25


def test_a_batch_in_four_has_rows_of_twice_the_length() -> None:
    rows = counted(100, doubled=True)
    shapes = [tuple(batch(rows, which)["input_ids"].shape) for which in torch.randperm(960).reshape(-1, 4)]
    assert set(shapes) == {(4, 16), (2, 32)}
    assert 35 < shapes.count((2, 32)) < 85
    assert {tuple(batch(counted(20), [n, n + 1])["input_ids"].shape) for n in range(20)} == {(2, 16)}


# hidden tokens


def test_hidden_tokens_are_a_fixed_share_treated_80_10_10(tell: Tell) -> None:
    tokenizer = train_tokenizer(tell(50), 8192, 128)
    examples = Rows(tokenizer, tell(1200), 64, follow=True).__getitems__(range(2000))
    rows = torch.stack([example["input_ids"] for example in examples])
    found, again = Hiding(tokenizer)(examples), Hiding(tokenizer)(examples)
    assert all(torch.equal(found[name], again[name]) for name in found)
    hidden = found["labels"] != NOT_ASKED
    assert torch.equal(found["labels"][hidden], rows[hidden])
    assert torch.equal(found["input_ids"][~hidden], rows[~hidden])
    assert not (hidden & (rows < len(SPECIAL))).any()
    assert hidden.sum() / (rows >= len(SPECIAL)).sum() == pytest.approx(0.15, abs=0.005)
    there = found["input_ids"][hidden]
    assert (there == MASK).double().mean().item() == pytest.approx(0.8, abs=0.015)
    assert (there == rows[hidden]).double().mean().item() == pytest.approx(0.1, abs=0.015)
