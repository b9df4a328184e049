"""Four views of the same vectors: turned clouds for the picture, layers by depth, spectra of tokens, turns by class."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dial import plan, readers
from dial.encode import read_set
from dial.study import MEASURED, SHORT, Array, Load, Turn, Turned, gain
from isonb.measures.cosine import mean_cosine
from isonb.measures.first_token import first_token
from isonb.measures.isoscore import isoscore
from isonb.models.loading import Encoder, encode
from isonb_lab.data.corpus import sentences
from isonb_lab.data.rows import load_task
from isonb_lab.papers import token_spectra
from isonb_lab.papers.live import pair_batches

FRAME = 1000  # half the width of the frame
CLASS_TURNS: tuple[Turn, ...] = tuple(("whitening", p) for p in (0.5, 0.75, 1.0))


def turned_clouds(load: Load, encoder: str) -> Iterator[dict[str, Any]]:
    """One row a place: coordinates along the two leading directions, where the origin is, and the nearest sentences.

    Turns are fitted on the sentences of STS-B, which are as short. Each picture is scaled so that it fills its frame.
    """
    fitted = Turned(load("stsb_test")[0])
    turned = fitted.read(load("corpus")[0])
    for turn in SHORT:
        y = turned(turn).astype(np.float64)
        shown = np.vstack([y @ fitted.axes.numpy() if turn[0] == "raw" else y, np.zeros(y.shape[1])])[:, :2]
        middle = (shown.max(0) + shown.min(0)) / 2
        at = np.rint((shown - middle) / np.abs(shown - middle).max() * FRAME).astype(int)
        unit = y / np.linalg.norm(y, axis=1, keepdims=True)
        cosine = unit[plan.picks()] @ unit.T
        cosine[np.arange(plan.PICKS), plan.picks()] = -np.inf
        points = torch.from_numpy(y)
        yield {
            "encoder": encoder,
            "turn": turn[0],
            "strength": turn[1],
            "x": at[:-1, 0].tolist(),
            "y": at[:-1, 1].tolist(),
            "zero": at[-1].tolist(),
            "near": np.argsort(-cosine, axis=1)[:, : plan.NEAR].ravel().tolist(),
            "isoscore": round(float(isoscore(points)), 4),
            "mean_cosine": round(float(mean_cosine(points)), 4),
        }


def depth_rows(encoder: Encoder, kind: str, cache: Path) -> Iterator[dict[str, Any]]:
    """One row a layer: Spearman on STS-B of both pools, the cloud's isotropy, and the first token's norm."""
    sets = {
        name: (np.load(cache / kind / f"{name}.npy", mmap_mode="r"), read_set(name)) for name in ("stsb_test", "stsb")
    }
    encoded = encode(encoder, [sentence.text for sentence in sentences()], progress=False)
    for layer, states in enumerate(encoded.hidden_states):
        row: dict[str, Any] = {"encoder": kind, "layer": layer}
        row["first_token_ratio"] = first_token(states, encoded.mask).ratio
        for number, pool in enumerate(plan.POOLS):
            for name, (vectors, rows) in sets.items():
                x = np.asarray(vectors[layer, number], dtype=np.float64)
                pairs = rows["first"], rows["second"], rows["score"]
                row[f"{name} {pool}"] = readers.similarity(x, *pairs, name)[0]
            row[f"mean cosine {pool}"] = float(mean_cosine(torch.from_numpy(x)))
            row[f"isoscore {pool}"] = float(isoscore(torch.from_numpy(x)))
        yield row


def spectra_rows(encoder: Encoder, kind: str) -> Iterator[dict[str, Any]]:
    """Skewness, median, TokenUni and [CLS] uniformity by layer on validation examples of MRPC and CoLA, in batches."""
    for task, columns in (("mrpc", ("sentence1", "sentence2")), ("cola", ("sentence",))):
        rows = load_task(task, split="validation", limit=256, seed=0)
        table, _ = token_spectra.layer_spectra(pair_batches(encoder, *(rows[column] for column in columns)))
        for _, frames in table.groupby("layer").mean().reset_index().iterrows():
            yield {"encoder": kind, "task": task, **{str(name): float(value) for name, value in frames.items()}}


def class_rows(load: Load, encoder: str, layer: int) -> Iterator[dict[str, Any]]:
    """What turns reach and give when fitted on all points and within classes: one row a set, fit and place of p.

    Within classes each point is taken less the mean of its class. SST-2 and CoLA are read on their test rows by
    neighbours, SQuAD paragraphs by neighbours within every other article; the fit has seen none of those.
    """
    for name in ("sst2", "cola", "squad"):
        if name == "squad":
            x, label = load(name)[0], np.unique(read_set(name)["topic"], return_inverse=True)[1]
            x, odd = x[: len(label)], label % 2 == 1
            train, label, test, truth = x[~odd], label[~odd], x[odd], label[odd]
        else:
            rows = [read_set(f"{name}_{split}") for split in ("train", "test")]
            (train, label), (test, truth) = (
                (load(f"{name}_{split}")[0][first["first"]], first["label"])
                for split, first in zip(("train", "test"), rows, strict=True)
            )
        raw = None
        for fit, fitted in (("all points", Turned(train)), ("within classes", Turned(_centred(train, label)))):
            reading, memory = fitted.read(test), fitted.read(train)
            for turn in (("raw", 0.0), *CLASS_TURNS):
                y = reading(turn)
                if name == "squad":
                    outcome = readers.topics(y, truth, "articles")
                else:
                    outcome = readers.neighbours(memory(turn), label, y, truth, name)
                raw = outcome if raw is None else raw
                yield {
                    "encoder": encoder,
                    "layer": layer,
                    "set": name,
                    "fit": fit,
                    "turn": turn[0],
                    "strength": turn[1],
                    "score": outcome[0],
                    **gain(outcome, raw),
                    "isoscore": float(isoscore(torch.from_numpy(y[:MEASURED]).double())),
                    "isoscore within": float(isoscore(torch.from_numpy(_centred(y, truth)[:MEASURED]).double())),
                }


def _centred(x: Array, label: Array) -> Array:
    """Points less the mean of their class."""
    number = np.unique(label, return_inverse=True)[1]
    sums = np.zeros((number.max() + 1, x.shape[1]))
    np.add.at(sums, number, x)
    return np.asarray(x - (sums / np.bincount(number)[:, None])[number])
