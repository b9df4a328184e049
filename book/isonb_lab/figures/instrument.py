"""The instrument: a cloud in the page, its bars and its readers, and a slider that turns it; the page computes.

Values equal isonb's on the same rows; a browser test compares them.
"""

from __future__ import annotations

import base64
import html
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import RidgeCV
from torch import Tensor
from torch.nn import functional

from isonb.auditing.measured import pair_score
from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore
from isonb.models.loading import encode, load
from isonb.numerics.nearest import nearest_by_cosine
from isonb.numerics.rows import unit_rows
from isonb.points import mean_pool
from isonb.transforms import PartialWhitening
from isonb_lab.data.corpus import sentences
from isonb_lab.figures.browser import scripts
from isonb_lab.places import RECORDINGS_FOLDER

SCRIPTS = ("ml_matrix.js", "cloud.js", "readers.js", "instrument.js")
TWINS, STRANGERS = 50, 2000  # pairs at most: that say the same, and about two topics
RIDGE, TIES = 0.01, 9  # of the classifier, times the mean squared singular value; digits in which cosines tie
READINGS = {
    "isoscore": ("IsoScore", "1 where every direction has the same variance"),
    "mean_cosine": ("mean cosine", "0 where the vectors share no direction"),
    "cosine": ("a cosine", "how often a paraphrase is more alike than two other topics"),
    "search": ("a search", "how often a paraphrase is found first"),
    "classifier": ("a classifier", "topics told right by a ridge classifier, each sentence left out once"),
}
BARS = "Bars of the variance along each direction, on a logarithmic scale; a round cloud lies on the line at 1."
MEAN = "The cloud as a circle, the origin as a cross, and the mean as an arrow between them."


@dataclass(frozen=True)
class Cloud:
    """Vectors (n, d) of the sentences, and those without each sentence's first token where these are known.

    ``dims``: of the space, where the vectors are coordinates along the directions that their points span.
    """

    vectors: Tensor
    without: Tensor | None = None
    dims: int | None = None

    def packed(self) -> dict[str, Any]:
        """What the script reads: rows in float32, or in float16 where they are that, as base64."""
        n, width = self.vectors.shape
        clouds = {"vectors": self.vectors, "without": self.without}
        rows = {name: x if x.dtype == torch.float16 else x.float() for name, x in clouds.items() if x is not None}
        packed = {name: base64.b64encode(x.contiguous().numpy().tobytes()).decode() for name, x in rows.items()}
        kind = "f2" if rows["vectors"].dtype == torch.float16 else "f4"
        return {"n": n, "width": width, "d": self.dims or width, "type": kind, **packed}


def pooled(encoder: str, texts: Sequence[str], layer: int = -1) -> Cloud:
    """Means of the tokens of one layer of an encoder, with the first token and without it."""
    states = encode(load(encoder), texts, progress=False)
    later = states.mask.clone()
    later[:, 0] = False
    hidden = states.hidden_states[layer]
    return Cloud(mean_pool(hidden, states.mask), mean_pool(hidden, later))


def loud() -> Cloud:
    """The book's sentences in the middle layer of ``smollm2``, whose first token is loud: recorded, in float16."""
    stored = np.load(RECORDINGS_FOLDER / "loud_token.npz")
    vectors, without = (torch.from_numpy(stored[name]) for name in ("vectors", "without"))
    return Cloud(vectors, without, dims=int(stored["dims"]))


class Instrument:
    """Clouds of the same sentences, to be turned in a notebook or a page."""

    def __init__(self, clouds: Mapping[str, Cloud], corpus: Sequence[Any] | None = None, pick: int = 0) -> None:
        """``clouds``: by the name in the menu, a row a sentence of ``corpus`` (default: the book's).

        ``pick``: the sentence whose neighbours are shown first.
        """
        self.clouds, self.corpus, self.pick = dict(clouds), list(corpus or sentences()), pick

    def pairs(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Pairs of sentences that say the same, and pairs about two topics, drawn with a fixed seed."""
        row = {sentence.id: at for at, sentence in enumerate(self.corpus)}
        twins = [(row[s.paraphrase_of], at) for at, s in enumerate(self.corpus) if s.paraphrase_of in row]
        draw = random.Random(0)
        drawn = [(draw.randrange(len(row)), draw.randrange(len(row))) for _ in range(2 * STRANGERS)]
        return twins[:TWINS], [(i, j) for i, j in drawn if self.corpus[i].topic != self.corpus[j].topic][:STRANGERS]

    def readings(self, name: str, p: float, *, keeps: bool = True) -> dict[str, float]:
        """What the page reads of a cloud after a turn by ``p``, its mean kept or not, by isonb and scikit-learn."""
        cloud = self.clouds[name]
        x = functional.pad(cloud.vectors.double(), (0, (cloud.dims or cloud.vectors.shape[1]) - cloud.vectors.shape[1]))
        around = PartialWhitening(p=p).fit(x).transform(x)
        rows = around + x.mean(0) if keeps else around
        twins, strangers = self.pairs()
        pairs = torch.tensor([*twins, *strangers])
        unit = unit_rows(rows)
        cosines = (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(-1).round(decimals=TIES)
        nearest, alike = nearest_by_cosine(rows, 2)
        first = [(i, j) for a, b in twins for i, j in ((a, b), (b, a)) if int(nearest[i, 0]) == j]
        results = [i for i, _ in first if alike[i, 0] > alike[i, 1] + 10**-TIES]
        return {
            "isoscore": float(isoscore(rows)),
            "mean_cosine": float(mean_cosine(rows)),
            "cosine": pair_score(cosines, (torch.arange(len(pairs)) < len(twins)).double(), True),
            "search": len(results) / (2 * len(twins)),
            "classifier": self._topics_right(around),
        }

    def _topics_right(self, around: Tensor) -> float:
        """The share of topics that a ridge classifier tells right, each sentence left out of its fit once."""
        topics = np.array(self.data()["topics"])
        squares = torch.linalg.svdvals(around).square()
        alpha = RIDGE * float(squares[squares > 1e-12 * squares[0]].mean())
        ridge = RidgeCV(alphas=[alpha], scoring="r2", store_cv_results=True)
        left_out = ridge.fit(around.numpy(), np.eye(topics.max() + 1)[topics]).cv_results_[..., 0]
        return float((left_out.argmax(-1) == topics).mean())

    def data(self) -> dict[str, Any]:
        """What the script reads."""
        topics = sorted({sentence.topic for sentence in self.corpus})
        twins, strangers = self.pairs()
        return {
            "texts": [sentence.text for sentence in self.corpus],
            "topics": [topics.index(sentence.topic) for sentence in self.corpus],
            "twins": twins,
            "strangers": strangers,
            "clouds": [cloud.packed() for cloud in self.clouds.values()],
        }

    def _repr_html_(self) -> str:
        data = json.dumps(self.data(), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
        names = "".join(f'<option value="{at}">{html.escape(name)}</option>' for at, name in enumerate(self.clouds))
        texts = "".join(
            f'<option value="{at}"{" selected" * (at == self.pick)}>{html.escape(sentence.text)}</option>'
            for at, sentence in enumerate(self.corpus)
        )
        rows = "".join(
            f'<tr><th scope="row">{name}</th><td><b data-reading="{key}"></b></td><td>{meaning}</td></tr>'
            for key, (name, meaning) in READINGS.items()
        )
        return (
            '<div class="isonb-instrument" role="group" aria-label="A cloud of sentences, turned">'
            f'<p><label>Vectors of <select name="encoder">{names}</select></label>'
            '<label><input type="checkbox" name="token"> leave the first token out</label>'
            '<label><input type="checkbox" name="off"> take the mean off</label></p>'
            "<label>Turn, from a needle (−1) over as it is (0) to round (1) and beyond "
            '<input type="range" name="p" min="-1" max="2" step="0.05" value="0"> <output></output></label>'
            f'<div class="isonb-panels"><svg viewBox="0 0 430 190" role="img" aria-label="{BARS}"></svg>'
            f'<svg viewBox="0 0 190 160" role="img" aria-label="{MEAN}"></svg></div>'
            f'<table aria-live="polite"><tbody>{rows}</tbody></table>'
            f'<label>Nearest to <select name="sentence">{texts}</select></label><ol></ol>'
            f'<script type="application/json">{data}</script>{scripts(*SCRIPTS)}</div>'
        )

    def __repr__(self) -> str:
        return f"Instrument of {len(self.corpus)} sentences as {', '.join(self.clouds)}: a slider turns their cloud"
