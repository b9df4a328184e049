"""Rows to batches: padding, labels, and orders that several processes share."""

import pytest
import torch

from isonb.lab.data.batches import (
    LONGEST,
    Collator,
    LengthGrouped,
    LongestFirst,
    Tokens,
    Window,
    accepted_inputs,
    answers,
    tokenize,
    windows,
)
from isonb.lab.data.rows import load_task
from isonb.lab.data.tasks import TASKS
from isonb.lab.encoders import loading


@pytest.fixture(scope="module")
def encoder():
    return loading.load("tiny")


def test_length_grouped_takes_each_row_once_and_groups_lengths():
    lengths = torch.randint(1, 100, (203,), generator=torch.Generator().manual_seed(0)).tolist()
    order = LengthGrouped(lengths, 8, seed=3)
    rows = list(order)
    assert len(rows) == len(order) == 200
    assert len(set(rows)) == 200
    spread = [max(part) - min(part) for part in ([lengths[r] for r in rows[i : i + 8]] for i in range(0, 200, 8))]
    assert sum(spread) / 25 < 10  # random batches of eight spread over about 78


def test_orders_depend_on_seed_and_epoch_alone():
    def order(seed: int, epoch: int) -> list[int]:
        made = LengthGrouped(list(range(50)), 8, seed)
        made.set_epoch(epoch)
        return list(made)

    assert order(0, 0) == order(0, 0)
    assert len({tuple(order(seed, epoch)) for seed in (0, 1) for epoch in (0, 1)}) == 4


def test_longest_first_pads_less_and_gives_values_back_in_the_order_of_the_rows(encoder):
    lengths = torch.randint(1, 60, (203,), generator=torch.Generator().manual_seed(0)).tolist()
    tokens = Tokens([{"input_ids": [5] * n, "attention_mask": [1] * n, "labels": n} for n in lengths])
    passed = LongestFirst(tokens)
    loader = torch.utils.data.DataLoader(passed, batch_size=16, collate_fn=Collator(encoder.tokenizer))
    batches = list(loader)
    assert sum(batch["input_ids"].numel() for batch in batches) < 1.1 * sum(lengths)
    seen = torch.cat([batch["labels"] for batch in batches])
    assert seen.tolist() == sorted(lengths, reverse=True)
    assert passed.back(seen).tolist() == lengths
    assert passed.back(seen[:, None].expand(-1, 2)).shape == (203, 2)


def test_collator_pads_on_the_right(encoder):
    rows = [{"input_ids": ids, "attention_mask": [1] * len(ids), "labels": len(ids)} for ids in ([5, 6], [7])]
    batch = Collator(encoder.tokenizer)(rows)
    assert batch["input_ids"].tolist() == [[5, 6], [7, encoder.tokenizer.pad_token_id]]
    assert batch["attention_mask"].tolist() == [[1, 1], [1, 0]]
    assert batch["labels"].tolist() == [2, 1]


@pytest.mark.parametrize("name", ["english_acceptability", "english_entailment", "english_similarity"])
def test_tokenize_keeps_rows_and_labels(encoder, name):
    rows = load_task(name, split="validation", limit=20)
    tokens = tokenize(TASKS[name], rows, encoder.tokenizer, 32, accepted_inputs(encoder.model))
    assert [row["labels"] for row in tokens.rows] == list(rows[TASKS[name].target])
    assert max(tokens.lengths) <= 32
    pair = len(TASKS[name].inputs) == 2
    assert max(tokens[0]["token_type_ids"]) == pair


def test_windows_label_the_answer_and_cover_the_context(encoder):
    rows = load_task("english_span", split="validation", limit=30)
    tokens = windows(rows, encoder.tokenizer, 40, 8, accepted_inputs(encoder.model))
    seen = set()
    for row, window in zip(tokens.rows, tokens.windows, strict=True):
        first, last = row["labels"]
        if (first, last) != (0, 0):
            text = rows[window.row]["context"][window.characters[first][0] : window.characters[last][1]]
            assert text == rows[window.row]["answers"]["text"][0]
            seen.add(window.row)
    assert seen == set(range(30))  # each answer stands whole in some window


def test_gold_scores_give_the_gold_answers(encoder):
    rows = load_task("english_span", split="validation", limit=30)
    tokens = windows(rows, encoder.tokenizer, 40, 8, accepted_inputs(encoder.model))
    width = max(tokens.lengths)
    logits = torch.zeros(len(tokens), width, 2)
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
    logits[0, 1, 0], logits[0, 45, 1] = 4.0, 4.0  # 45 tokens apart
    found = answers({"context": [text]}, [Window(0, places)], logits)[0]
    assert found
    assert len(found.split()) <= LONGEST
