"""What models that aren't shipped make of the book's sentences: read with the model, recorded, and shown without it.

``python book/recipes/models/read_sentences.py`` makes the recording.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import torch

import isonb
from isonb.models.loading import encode, load
from isonb.numerics.rows import unit_rows
from isonb_lab.data.corpus import sentences
from isonb_lab.places import RECORDINGS_FOLDER

FILE = RECORDINGS_FOLDER / "fetched_models.json"
DIGITS = 4


def recorded(path: Path = FILE) -> dict[str, dict[str, Any]]:
    """The recorded :func:`reading` of each model by its name.

    >>> sorted(recorded())
    ['mpnet', 'smollm2']
    """
    readings: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["models"]
    return readings


def texts_digest() -> str:
    """sha256 of the book's sentences, a line each."""
    return hashlib.sha256("\n".join(sentence.text for sentence in sentences()).encode()).hexdigest()


def reading(name: str) -> dict[str, Any]:
    """Size of an encoder, the cosines of its mean vectors of sentences about different topics, and what its audit says.

    ``fingerprint`` (of the folder), ``parameters``, ``layers``, ``width``; ``half`` and ``top``: the quantiles 0.5 and
    0.99 of the cosine over all pairs of different topics; ``audit``: ``headline``, ``floor`` (the ends between which it
    lies) and ``above`` (per cent of random pairs below a cosine of 0.6).
    """
    corpus = sentences()
    encoder = load(name)
    texts = [sentence.text for sentence in corpus]
    states = encode(encoder, texts, progress=False)
    unit = unit_rows(isonb.mean_pool(states.hidden_states[-1], states.mask).double())
    apart = torch.tensor([[a.topic != b.topic for b in corpus] for a in corpus])
    half, top = (unit @ unit.mT)[apart].quantile(torch.tensor([0.5, 0.99], dtype=torch.float64)).tolist()
    report = isonb.audit(name, texts, progress=False)
    assert report.unrelated is not None  # an encoder of texts
    return {
        "fingerprint": encoder.revision,
        "parameters": sum(weight.numel() for weight in encoder.model.parameters()),
        "layers": encoder.layers,
        "width": encoder.dim,
        "half": round(half, DIGITS),
        "top": round(top, DIGITS),
        "audit": {
            "headline": report.headline,
            "floor": [round(float(end), DIGITS) for end in (report.unrelated.low, report.unrelated.high)],
            "above": round(float(report.percentile(0.6)), 1),
        },
    }
