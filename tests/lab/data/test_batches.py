"""Rows to batches: padding, labels, windows, and orders that several processes share."""

import pytest
import torch

from isonb.models import loading
from isonb_lab.data.batches import (
    LengthGrouped,
    LongestFirst,
    Tokens,
    Window,
    accepted_inputs,
    answers,
    batched,
    tokenize,
    windows,
)
from isonb_lab.data.rows import load_task
from isonb_lab.data.tasks import TASKS


@pytest.fixture(scope="module")
def encoder():
    return loading.load("tiny")


def lengths_of(most=100):
    return torch.randint(1, most, (203,), generator=torch.Generator().manual_seed(0)).tolist()


def test_length_grouped_takes_each_row_once_and_groups_lengths():
    lengths = lengths_of()
    order = LengthGrouped(lengths, 8, seed=3)
    rows = list(order)
    assert len(rows) == len(order) == len(set(rows)) == 200
    batches = torch.tensor([lengths[row] for row in rows]).view(25, 8)
    assert (batches.amax(1) - batches.amin(1)).float().mean() < 10  # random batches of eight spread over about 78


def test_orders_depend_on_seed_and_epoch_alone():
    def order(seed, epoch):
        result = LengthGrouped(list(range(50)), 8, seed)
        result.set_epoch(epoch)
        return list(result)

    assert order(0, 0) == order(0, 0)
    assert len({tuple(order(seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4


def test_longest_first_pads_less_on_the_right_and_gives_values_back_in_the_order_of_the_rows(encoder):
    lengths = lengths_of(most=60)
    passed = LongestFirst(Tokens([{"input_ids": [5] * n, "attention_mask": [1] * n, "labels": n} for n in lengths]))
    batches = list(batched(Tokens([passed[i] for i in range(203)]), encoder.tokenizer, 16, "cpu"))
    assert sum(batch["input_ids"].numel() for batch in batches) < 1.1 * sum(lengths)
    row, size = batches[0]["input_ids"][-1], int(batches[0]["labels"][-1])
    assert row.tolist() == [5] * size + [encoder.tokenizer.pad_token_id] * (len(row) - size)
    assert batches[0]["attention_mask"][-1].sum() == size < len(row)
    values = torch.cat([batch["labels"] for batch in batches])
    assert values.tolist() == sorted(lengths, reverse=True)
    assert passed.back(values).tolist() == lengths
    assert passed.back(values[:, None].expand(-1, 2)).shape == (203, 2)


@pytest.mark.parametrize("name", ["english_acceptability", "english_entailment", "english_similarity"])
def test_tokenize_keeps_rows_and_labels(encoder, name):
    rows = load_task(name, split="validation", limit=20)
    tokens = tokenize(TASKS[name], rows, encoder.tokenizer, 32, accepted_inputs(encoder.model))
    assert [row["labels"] for row in tokens.rows] == list(rows[TASKS[name].target])
    assert max(tokens.lengths) <= 32
    assert max(tokens[0]["token_type_ids"]) == (len(TASKS[name].inputs) == 2)


def test_windows_cover_the_answers_and_their_labels_as_scores_give_them_back(encoder):
    rows = load_task("english_span", split="validation", limit=30)
    tokens = windows(rows, encoder.tokenizer, 40, 8, accepted_inputs(encoder.model))
    assert len(tokens) > 30
    logits = torch.zeros(len(tokens), max(tokens.lengths), 2)
    for i, row in enumerate(tokens.rows):
        first, last = row["labels"]
        if last:
            logits[i, first, 0] = logits[i, last, 1] = 9.0
    assert answers(rows, tokens.windows, logits) == [answer["text"][0] for answer in rows["answers"]]


def test_answers_stay_inside_the_context_in_order_and_short():
    text = " ".join("w" * 2 for _ in range(60))
    places = [None, *[(3 * i, 3 * i + 2) for i in range(60)]]
    logits = torch.zeros(1, 61, 2)
    logits[0, 0] = 99.0  # a special token
    logits[0, 50, 0] = logits[0, 5, 1] = 5.0  # the end before the start
    logits[0, 1, 0], logits[0, 45, 1] = 4.0, 6.0  # 45 tokens, more than an answer may have
    assert answers({"context": [text]}, [Window(0, places)], logits) == ["ww ww ww ww ww"]
