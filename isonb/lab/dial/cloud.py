"""The package's own sentences at each place of the dial, seen from one side, and the nearest of some of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from isonb.lab.data.corpus import sentences
from isonb.lab.dial.study import SHORT, Array, Load, Turned
from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore

__all__ = ["NEAR", "PICKS", "picks", "turned_clouds"]

NEAR = 5
PICKS = 20
FRAME = 1000  # half the width of the frame


def picks() -> list[int]:
    """The rows of the sentences that a menu offers: those of which another one is a paraphrase or a near miss.

    >>> len(picks()), sentences()[picks()[0]].text
    (20, 'The soup needs more salt.')
    """
    rows = sentences()
    place = {sentence.id: row for row, sentence in enumerate(rows)}
    asked = [place[name] for s in rows for name in (s.paraphrase_of, s.near_miss_of) if name]
    often = sorted(set(asked), key=lambda row: (-asked.count(row), row))
    return sorted(often[:PICKS])


def turned_clouds(load: Load, encoder: str) -> Iterator[dict[str, Any]]:
    """One row a place: coordinates along the two leading directions, where the origin is, and the nearest sentences.

    Turns are fitted on the sentences of STS-B, which are as short. Each picture is scaled so that it fills its frame.
    """
    fitted, x = Turned(load("stsb_test")[0]), load("corpus")[0]
    turned = fitted.read(x)
    for turn in SHORT:
        y = turned(turn).astype(np.float64)
        seen = (y @ fitted.axes.numpy() if turn[0] == "raw" else y)[:, :2]
        zero = np.zeros(2)
        middle = (np.concatenate([seen, zero[None]]).max(0) + np.concatenate([seen, zero[None]]).min(0)) / 2
        size = np.abs(np.concatenate([seen, zero[None]]) - middle).max() / FRAME
        points = torch.from_numpy(y)
        at = np.rint((seen - middle) / size).astype(int)
        yield {
            "encoder": encoder,
            "turn": turn[0],
            "strength": turn[1],
            "x": at[:, 0].tolist(),
            "y": at[:, 1].tolist(),
            "zero": np.rint((zero - middle) / size).astype(int).tolist(),
            "near": _nearest(y).ravel().tolist(),
            "isoscore": round(float(isoscore(points)), 4),
            "mean_cosine": round(float(mean_cosine(points)), 4),
        }


def _nearest(y: Array) -> Array:
    unit = y / np.linalg.norm(y, axis=1, keepdims=True)
    cosine = unit[picks()] @ unit.T
    cosine[np.arange(PICKS), picks()] = -np.inf
    return np.argsort(-cosine, axis=1)[:, :NEAR]
