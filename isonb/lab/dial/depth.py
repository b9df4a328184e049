"""The same encoders by depth: similarity of vectors as they are, the first token, and the spectra of token matrices."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isonb.lab.data.corpus import sentences
from isonb.lab.data.rows import load_task
from isonb.lab.dial.encode import POOLS, read_set
from isonb.lab.dial.readers import similarity
from isonb.lab.encoders.loading import Encoder, encode, hidden_states
from isonb.lab.measuring.token_spectra import layer_spectra
from isonb.measures.cosine import mean_cosine
from isonb.measures.first_token import first_token
from isonb.measures.isoscore import isoscore

__all__ = ["depth_rows", "spectra_rows"]

DEVELOPMENT = ("stsb_test", "stsb")


def depth_rows(encoder: Encoder, kind: str, cache: Path) -> Iterator[dict[str, Any]]:
    """One row a layer: Spearman on STS-B of both pools, the cloud's isotropy, and the first token's norm."""
    stored = {name: np.load(cache / kind / f"{name}.npy", mmap_mode="r") for name in DEVELOPMENT}
    rows = {name: read_set(name) for name in DEVELOPMENT}
    encoded = encode(encoder, [sentence.text for sentence in sentences()], progress=False)
    for layer, states in enumerate(encoded.hidden_states):
        effect = first_token(states, encoded.mask)
        row: dict[str, Any] = {"encoder": kind, "layer": layer, "first_token_ratio": effect.ratio}
        for number, pool in enumerate(POOLS):
            for name in DEVELOPMENT:
                x = np.asarray(stored[name][layer, number], dtype=np.float64)
                pairs = rows[name]["first"], rows[name]["second"], rows[name]["score"]
                row[f"{name} {pool}"] = similarity(x, *pairs, name).score
            points = torch.from_numpy(x)
            row[f"mean cosine {pool}"] = float(mean_cosine(points))
            row[f"isoscore {pool}"] = float(isoscore(points))
        yield row


def spectra_rows(encoder: Encoder, kind: str, examples: int = 256, batch: int = 32) -> Iterator[dict[str, Any]]:
    """Skewness, median, TokenUni and [CLS] uniformity by layer on validation examples of MRPC and CoLA, in batches."""
    for task, columns in (("mrpc", ("sentence1", "sentence2")), ("cola", ("sentence",))):
        rows = load_task(task, split="validation", limit=examples, seed=0)
        texts = list(zip(*(rows[column] for column in columns), strict=True))

        def batches(texts: list[tuple[str, ...]] = texts) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
            for start in range(0, len(texts), batch):
                sides = [list(side) for side in zip(*texts[start : start + batch], strict=True)]
                tokens = encoder.tokenizer(*sides, padding=True, truncation=True, max_length=128, return_tensors="pt")
                mask = tokens["attention_mask"].bool()
                yield hidden_states(encoder, tokens["input_ids"], mask), mask

        table, _ = layer_spectra(batches())
        for _, found in table.groupby("layer").mean().reset_index().iterrows():
            yield {"encoder": kind, "task": task, **{str(name): float(value) for name, value in found.items()}}
