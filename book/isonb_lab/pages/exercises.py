"""Answers to exercises, held against properties that the right one has: ``pages.check("ex-n-rounder", answer)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import isonb
from isonb.errors import in_one_line
from isonb_lab.pages.errors import PageError
from isonb_lab.statistics.seeds import minimum_detectable

Property = tuple[str, Callable[[Any], bool]]


@dataclass(frozen=True)
class Grade:
    """What :func:`check` says: in a notebook a sentence, to nbgrader the points, as the text of a cell's result."""

    label: str
    right: bool
    text: str

    def __repr__(self) -> str:
        return str(int(self.right))

    def _repr_markdown_(self) -> str:
        return f"**{self.label}: {'right' if self.right else 'not yet'}.** {self.text}"


def check(label: str, answer: Any) -> Grade:
    """Hold an answer against the properties of an exercise; the first that it lacks is named.

    Args:
        label: the exercise's label, ``ex-...``.
        answer: a number, a set or a function, as the exercise asks; ``...`` while there is none.

    Raises :class:`~isonb_lab.pages.errors.PageError` for an exercise that has no check.

    >>> check("ex-n-rounder", lambda n: n / (n + 384))._repr_markdown_()
    '**ex-n-rounder: right.** 100 and 1000 points in 384 dimensions read so.'
    >>> check("ex-n-rounder", lambda n: 1.0), check("ex-n-rounder", ...)._repr_markdown_()
    (0, '**ex-n-rounder: not yet.** There is no answer.')
    """
    if label not in CHECKS:
        raise PageError(f"an exercise must have a check; got {label!r}. There are: {', '.join(CHECKS)}.")
    if answer is ...:
        return Grade(label, False, "There is no answer.")
    for text, has in CHECKS[label]:
        try:
            right = bool(has(answer))
        except Exception as error:  # of the answer's own code
            return Grade(label, False, f"{text} should hold; got {in_one_line(error)}.")
        if not right:
            return Grade(label, False, f"Must hold: {text}")
    return Grade(label, True, " ".join(text for text, _ in CHECKS[label]))


def _ball(n: int, d: int) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def _with_constant(c: float) -> float:
    x = _ball(5000, 384)
    return float(isonb.mean_cosine(torch.cat([x, torch.full((5000, 1), float(c), dtype=x.dtype)], -1)))


def _half(d: int) -> float:
    return float(isonb.isoscore_from_cov(torch.cat([torch.ones(d // 2), torch.zeros(d - d // 2)]).double().diag()))


def _bars(x: torch.Tensor) -> torch.Tensor:
    bars: torch.Tensor = torch.linalg.eigvalsh(torch.cov(x.T))
    return bars


def _is_linear(f: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Whether a cloud comes out as a linear map of what it was, and a shift."""
    x, y = (rows - rows.mean(0) for rows in (NARROW, f(NARROW)))
    return bool((x @ torch.linalg.lstsq(x, y).solution - y).norm() < 1e-6 * y.norm())


def _spread(ratios: torch.Tensor) -> float:
    return float((ratios / ratios.mean() - 1).abs().max())


def _steps(rounded: Any) -> int:
    return max(len(row.unique()) for row in torch.as_tensor(rounded).double().round(decimals=9))


ROWS = _ball(20, 384)
NARROW = _ball(2000, 6) * torch.tensor([9.0, 4.0, 2.0, 1.0, 0.5, 0.1], dtype=torch.float64)
NARROW @= torch.linalg.qr(_ball(6, 6)).Q  # its directions aren't the axes
SIMPLEX = torch.eye(8, dtype=torch.float64)  # eight points as far from each other as can be
COSINE_READINGS = {"mean_cosine", "cosine", "search"}  # readings of cosines
CHECKS: dict[str, tuple[Property, ...]] = {
    "ex-cones-constant": (("The mean cosine of such a cloud is 0.6.", lambda c: abs(_with_constant(c) - 0.6) < 0.01),),
    "ex-measuring-half": (
        (
            "IsoScore agrees for 4, 128 and 768 dimensions.",
            lambda f: all(abs(f(d) - _half(d)) < 1e-6 for d in (4, 128, 768)),
        ),
    ),
    "ex-n-rounder": (
        (
            "100 and 1000 points in 384 dimensions read so.",
            lambda f: all(abs(f(n) - float(isonb.isoscore(_ball(n, 384)))) < 0.02 for n in (100, 1000)),
        ),
    ),
    "ex-readers-mean": (
        ("No reading of the cloud around its mean is named.", lambda names: set(names) <= COSINE_READINGS),
        ("Each reading of a cosine is named.", lambda names: set(names) >= COSINE_READINGS),
    ),
    "ex-recipes-bars": (
        ("All bars are equal.", lambda f: _spread(_bars(f(NARROW))) < 0.01),
        ("No point is lost.", lambda f: f(NARROW).shape == NARROW.shape),
        ("It is a linear map of the points.", _is_linear),
    ),
    "ex-dial-root": (
        (
            "Each variance is the root of what it was, up to one factor.",
            lambda f: _spread(_bars(f(NARROW)) / _bars(NARROW).sqrt()) < 0.01,
        ),
        ("No point is lost.", lambda f: f(NARROW).shape == NARROW.shape),
        ("It is a linear map of the points.", _is_linear),
    ),
    "ex-dose-directions": (
        ("It is the unweighted count where all variances are alike.", lambda f: abs(f([2.0] * 7) - 7) < 1e-6),
        ("A loud direction takes the others' part.", lambda f: abs(f([9.0, 1.0, 1.0, 1.0]) - 12**2 / 84) < 1e-6),
        ("Nothing changes where all variances grow.", lambda f: abs(f([30.0, 10.0]) - f([3.0, 1.0])) < 1e-6),
    ),
    "ex-versus-seeds": (
        (
            "With so many seeds the effect would show.",
            lambda f: minimum_detectable(0.02, f(0.02, 0.05), alpha=0.05) <= 0.01,
        ),
        ("With one less it would not.", lambda f: minimum_detectable(0.02, f(0.02, 0.05) - 1, alpha=0.05) > 0.01),
        ("A stricter level needs more.", lambda f: f(0.02, 0.001) > f(0.02, 0.05)),
    ),
    "ex-audit-int8": (
        ("A row has at most 256 values.", lambda f: _steps(f(ROWS.numpy())) <= 256),
        (
            "A value moves by half a step at most.",
            lambda f: bool(
                ((torch.as_tensor(f(ROWS.numpy())) - ROWS).abs().amax(1) <= (ROWS.amax(1) - ROWS.amin(1)) / 509.9).all()
            ),
        ),
    ),
    "ex-training-ceiling": (
        ("No cloud of eight points passes it.", lambda f: float(isonb.isoscore(_ball(8, 384))) <= f(8, 384)),
        (
            "Corners of a simplex in 8 dimensions reach it, with 4, 5 and 8 points.",
            lambda f: all(abs(f(n, 8) - float(isonb.isoscore(SIMPLEX[:n]))) < 1e-6 for n in (4, 5, 8)),
        ),
    ),
}
