"""The texts of the dial, drawn once by seed, and their vectors: each text is read once, for all layers and both pools.

Vectors lie in a cache folder outside the repository, ``<encoder>/<set>.npy`` (layers, pools, n, d) in float32: a set
that is there isn't encoded again, so a run that was stopped goes on where it stood.
"""

from __future__ import annotations

import functools
import io
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dial import plan
from isonb.errors import InputError, fail
from isonb.models.loading import Encoder
from isonb.runtime.files import replace
from isonb_lab.data.corpus import sentences
from isonb_lab.data.rows import load_task
from isonb_lab.data.sources import DATA_VARIABLE, data_folder, read_folder, sample
from isonb_lab.encoders.vectors import States, TokenizedSentences, forward

SEED = 43
AT_ONCE = 1024  # tokens of a pass
TIMES = "times.tsv"
EVERY_LAYER = ("stsb_test", "stsb", "corpus")  # small sets whose every layer is kept
SIMILARITY = ("stsb_test", "stsb", "sts12", "sts13", "sts14", "sts15", "sts16", "sickr")


@dataclass(frozen=True)
class TextSet:
    """Which rows of a task are read, how many are drawn, and after how many tokens a text is cut."""

    task: str
    split: str
    limit: int | None
    tokens: int = 64


SETS: dict[str, TextSet] = {
    "corpus": TextSet("corpus", "all", None),
    "stsb_test": TextSet("stsb_test", "test", None),
    "stsb": TextSet("stsb", "validation", None),
    "wikipedia": TextSet("wikipedia", "train", 3000, tokens=32),
    "sst2_train": TextSet("sst2", "train", 3000),
    "sst2_test": TextSet("sst2", "validation", None),
    "cola_train": TextSet("cola", "train", 3000),
    "cola_test": TextSet("cola", "validation", None),
    **{name: TextSet(name, "test", None) for name in ("sts12", "sts13", "sts14", "sts15", "sts16", "sickr")},
    "squad": TextSet("squad", "validation", 1000, tokens=40),
    "mrpc_train": TextSet("mrpc", "train", 1000),
    "mrpc_test": TextSet("mrpc", "validation", None),
    "qqp_test": TextSet("qqp", "validation", 1000),
    "qnli_train": TextSet("qnli", "train", 600),
    "qnli_test": TextSet("qnli", "validation", 600),
}


@functools.cache
def read_set(name: str) -> dict[str, Any]:
    """The drawn rows of a set: ``texts`` (distinct), and by column where each row's text stands among them.

    Other columns (``label``, ``score``, ``topic``) come as arrays.
    """
    text_set = SETS[name]
    if text_set.task == "corpus":
        rows = sentences()
        return {"texts": [s.text for s in rows], "topic": np.array([s.topic for s in rows])}
    if text_set.task == "wikipedia":
        texts = read_folder(texts_folder(), "text", text_set.split)["text"].to_pylist()
        return {"texts": [texts[row] for row in sample(len(texts), text_set.limit, SEED)]}
    if text_set.task == "squad":
        return _squad(text_set)
    rows = load_task(text_set.task, split=text_set.split, limit=text_set.limit, seed=SEED)
    columns = [column for column in rows.column_names if column not in ("label", "score", "subset")]
    texts = list(dict.fromkeys(text for column in columns for text in rows[column]))
    place = {text: number for number, text in enumerate(texts)}
    read: dict[str, Any] = {"texts": texts}
    for column, side in zip(columns, ("first", "second"), strict=False):
        read[side] = np.array([place[text] for text in rows[column]])
    for column in set(rows.column_names) - set(columns) - {"subset"}:
        read["label" if text_set.task != "stsb" and column == "label" else "score"] = np.array(rows[column])
    return read


def _squad(text_set: TextSet) -> dict[str, Any]:
    """Questions, each with its paragraph among all; the topic of a paragraph is its article."""
    table = read_folder(texts_folder(), "squad", text_set.split)
    contexts, questions, titles = (table[column].to_pylist() for column in ("context", "question", "title"))
    title_of = dict(zip(contexts, titles, strict=True))
    paragraphs = list(title_of)
    place = {text: number for number, text in enumerate(paragraphs)}
    paragraph_of = {question: place[context] for context, question in zip(contexts, questions, strict=True)}
    chosen = [list(paragraph_of)[row] for row in sample(len(paragraph_of), text_set.limit, SEED)]
    return {
        "texts": [*paragraphs, *chosen],
        "first": np.arange(len(chosen)) + len(paragraphs),
        "second": np.array([paragraph_of[question] for question in chosen]),
        "topic": np.array([title_of[text] for text in paragraphs]),
    }


def texts_folder() -> Path:
    """The folder of texts that the environment names."""
    folder = data_folder(None)
    if folder is None:
        fail(InputError, f"the dial's texts must lie in a folder that {DATA_VARIABLE} names", "none", "Set it.")
    return folder


def pooled(states: States, layers: Sequence[int]) -> Tensor:
    """Vectors (layers, pools, B, d) of a batch: means over the real tokens, and over those but the first.

    A text of one token keeps it in both.
    """
    after = states.mask.clone()
    after[:, 0] = after.sum(-1) == 1
    weights = torch.stack([states.mask, after]).to(states.hidden)  # (pools, B, T)
    weights = weights / weights.sum(-1, keepdim=True)
    return torch.einsum("pbt,lbtd->lpbd", weights, states.hidden[list(layers)])


@torch.no_grad()
def vectors_of(encoder: Encoder, texts: Sequence[str], layers: Sequence[int], tokens: int) -> Tensor:
    """The vectors (layers, pools, n, d) of texts, in batches of about :data:`AT_ONCE` tokens, longest texts first."""
    read = TokenizedSentences.read(encoder, texts, tokens)
    order = sorted(range(len(read)), key=lambda row: -len(read.ids[row]))
    parts, start = [], 0
    while start < len(order):
        rows = order[start : start + max(1, AT_ONCE // len(read.ids[order[start]]))]
        parts.append(pooled(forward(encoder.model, read.batch(rows, "cpu")), layers))
        start += len(rows)
    return torch.cat(parts, dim=2)[:, :, torch.tensor(order).argsort()].float()


def layers_of(kind: str, name: str, count: int) -> tuple[int, ...]:
    """The layers of a set that are kept, where the encoder has ``count`` hidden states."""
    return tuple(range(count)) if name in EVERY_LAYER else plan.LAYERS[kind]


def encode_set(encoder: Encoder, kind: str, name: str, cache: Path) -> None:
    """Encode a set into the cache, unless it is there."""
    target = cache / kind / f"{name}.npy"
    if not target.exists():
        texts, layers = read_set(name)["texts"], layers_of(kind, name, encoder.layers + 1)
        encode_into(target, encoder, texts, layers, SETS[name].tokens, cache, f"{kind} {name}")


def encode_into(
    target: Path, encoder: Encoder, texts: Sequence[str], layers: Sequence[int], tokens: int, cache: Path, what: str
) -> None:
    """Encode texts into a file, which appears when it is whole; ``cache`` notes what it took."""
    began = time.process_time()
    np.save(content := io.BytesIO(), vectors_of(encoder, texts, layers, tokens).numpy())
    replace(target, content.getvalue())
    note_time(cache, f"{what}: {len(texts)} texts", began)


def note_time(cache: Path, what: str, began: float) -> None:
    """Note in the cache the CPU seconds since ``began``, so that a study made in several goes knows what it took."""
    line = f"{what}\t{time.process_time() - began:.1f}"
    print(line, flush=True)
    with (cache / TIMES).open("a", encoding="utf-8") as file:
        file.write(line + "\n")


def minutes(cache: Path, encoders: Iterable[str]) -> float:
    """The CPU minutes of what lies in the cache of some encoders; of what was done twice, those of the last time."""
    times = dict(line.split("\t") for line in (cache / TIMES).read_text(encoding="utf-8").splitlines())
    return sum(float(seconds) for what, seconds in times.items() if re.split("[ :]", what)[0] in encoders) / 60


def versions() -> dict[str, str]:
    """Versions of the packages that make vectors and readers."""
    return {name: version(name) for name in ("torch", "transformers", "numpy", "scipy", "scikit-learn")}
