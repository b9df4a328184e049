"""What an audit says, piece by piece: findings, readings, checks, remedies and thresholds."""

from __future__ import annotations

from dataclasses import dataclass

SEVERITIES = ("fault", "warning", "note")
Numbers = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Finding:
    """Something to know about the vectors: what was seen, and what to do.

    ``rows`` and ``dims`` name the culprits, ``examples`` quotes their texts where these are known.
    """

    name: str
    severity: str
    text: str
    advice: str = ""
    rows: tuple[int, ...] = ()
    dims: tuple[int, ...] = ()
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """A measure with its 95% interval, and what it is compared with.

    ``measure``: its name in the registry of measures, ``name``: its title there. ``gaussian``: what an isotropic
    Gaussian of as many points and dimensions reads. ``fewer``: the value of half of the rows; a measure that moves with
    their number says less about the model.
    """

    measure: str
    name: str
    value: float
    low: float
    high: float
    gaussian: float
    fewer: float


@dataclass(frozen=True)
class Check:
    """Whether a model measures the same thing twice. ``state``: "ok", "fault" or "skipped"."""

    name: str
    state: str
    text: str


@dataclass(frozen=True)
class Layer:
    """The readings of the vectors that one layer gives; layer 0 is the embedding output."""

    number: int
    rows: int
    readings: tuple[Reading, ...]


@dataclass(frozen=True)
class Remedy:
    """A transform fitted on one half of the rows and judged on the other.

    ``before`` and ``after``: readings of the other half. ``gain``: of the score of labelled pairs, with its 95%
    interval, or None. ``verdict``: what to expect of it, in words.
    """

    name: str
    code: str
    before: Numbers
    after: Numbers
    verdict: str
    gain: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Match:
    """A threshold chosen at a rate of false matches on one half, and what the other half says of it.

    ``false_matches`` and ``recall`` are (share, low, high) with a 95% interval: of the half of the pairs that don't
    match (or of the queries) that weren't used for the choice, and of all pairs that match; ``recall`` is None without
    labels. ``percentile``: how many in a hundred random pairs aren't above the threshold.
    """

    cloud: str
    rate: float
    threshold: float
    percentile: float
    false_matches: tuple[float, float, float]
    recall: tuple[float, float, float] | None = None
