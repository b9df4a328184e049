"""Audit a model on texts: is it sound, then its vectors as any others, and the shape layer by layer."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from isonb.auditing.embedding import POOLS, Embedded, Embedder, embed_to
from isonb.auditing.parts import Finding, Layer, Reading
from isonb.auditing.reading.rows import rows_of
from isonb.auditing.remedies import next_steps
from isonb.auditing.report import Audit
from isonb.auditing.shape import BY_LAYER, readings
from isonb.auditing.soundness import check_model
from isonb.auditing.texts import check_texts, distinct_rows, text_findings
from isonb.auditing.thresholds import Pairs
from isonb.auditing.vectors import Asked, audit_vectors, check_sample, worst_first
from isonb.auditing.words import clipped
from isonb.errors import InputError, ShapeError, fail, needs

__all__ = ["Encoding", "audit_model", "encoded", "is_model"]

LAYER_ROWS = 2000  # texts that the shape by layer is measured on
TWO_NN = "TwoNN dimension"
UNKNOWN = 0.05  # of the tokens that the model doesn't know before it is worth a warning


@dataclass(frozen=True)
class Encoding:
    """How a model is used: see :func:`isonb.audit`."""

    pool: str = "auto"
    max_length: int = 256
    batch_size: int = 32
    device: Any = "cpu"
    work: str | Path | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            fail(InputError, f"pool must be one of {', '.join(POOLS)}", repr(self.pool), "The default is auto.")
        for name in ("max_length", "batch_size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                fail(InputError, f"{name} must be an integer from 1", repr(value), "Leave it out.")


def is_model(thing: Any) -> bool:
    """Whether it is a name, a folder or a loaded encoder of the lab."""
    return isinstance(thing, str | Path) or (hasattr(thing, "tokenizer") and hasattr(thing, "model"))


def audit_model(model: Any, texts: Any, asked: Asked, how: Encoding, pairs: Any = None, queries: Any = None) -> Audit:
    """The audit of a model on texts. ``pairs``: (first texts, second texts, labels); ``queries``: texts."""
    check_sample(asked.sample)
    every = check_texts(texts)
    kept = distinct_rows(every)
    if len(kept) < 20:
        got = f"{len(kept)} of {len(every)}"
        fail(ShapeError, "at least 20 different texts must not be empty", got, "Give those the model is used on.")
    embedder = _embedder(model, how)
    used = [every[i] for i in kept]
    checks, faults = check_model(embedder, used)
    with _folder(how.work) as folder:
        draw = torch.Generator().manual_seed(asked.seed)
        sampled = torch.randperm(len(used), generator=draw)[: min(asked.sample, LAYER_ROWS)].sort().values.tolist()
        found = embed_to(folder, embedder, used, sampled, "texts", how.progress)
        known = None if pairs is None else _pairs(folder, embedder, pairs, how.progress)
        asking = None if queries is None else _encoded(folder, embedder, queries, "queries", how.progress)
        base = audit_vectors(found.vectors, asked, pairs=known, queries=asking, quote=lambda row: clipped(used[row]))
        layers = tuple(_layers(found.layers, len(sampled), draw))
    findings = [_of_texts(one, kept, base.d) for one in base.findings if one.name != "duplicates"]
    findings = [*faults, *text_findings(every, kept), *_inputs(found, len(used), embedder.max_length), *findings]
    sound = not faults
    return dataclasses.replace(
        base,
        findings=worst_first(findings),
        source=f"{embedder.encoder.name}, {embedder.pool} pooling, {len(every):,} texts",
        checks=checks,
        layers=layers,
        next_steps=base.next_steps if sound else next_steps((), False, sound=False),
    )


def _embedder(model: Any, how: Encoding) -> Embedder:
    with needs("isonb.audit of a model", "lab", "transformers", "tqdm"):
        from isonb.lab.encoders.loading import load
        from isonb.lab.encoders.text_models import is_decoder

    encoder = load(model, device=how.device) if isinstance(model, str | Path) else model
    pool = how.pool
    if pool == "auto":
        usual = "last" if is_decoder(encoder.model.config) else "mean"
        pool = _own_pooling(str(encoder.name)) or usual
    return Embedder(encoder, pool, min(how.max_length, encoder.max_length), how.batch_size)


def _own_pooling(name: str) -> str | None:
    """The pooling that a folder of Sentence Transformers asks for, if it is one of ours."""
    from isonb.lab.encoders.locate import find

    try:
        told = json.loads((find(name).folder / "1_Pooling" / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):  # no such file; a model that was loaded from elsewhere
        return None
    flags = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token", "last": "pooling_mode_lasttoken"}
    asked = [pool for pool, flag in flags.items() if isinstance(told, dict) and told.get(flag) is True]
    return asked[0] if len(asked) == 1 else None


@contextlib.contextmanager
def _folder(work: str | Path | None) -> Iterator[Path]:
    """The folder of the vectors: the one named, which stays, or one that is gone after the audit."""
    if work is not None:
        place = Path(work).expanduser()
        if place.exists() and not place.is_dir():
            fail(InputError, "work must be a folder", str(place), "Name another; it is made if it isn't there.")
        from isonb.runtime.locks import held  # what it needs is not on every system

        with held([place / "audit.lock"], wait=False) as lock:
            if lock is None:
                got, fix = f"{place}, where one is at work", "Wait for it, or name another folder."
                fail(InputError, "work must be the folder of one audit at a time", got, fix)
            yield place
        return
    with tempfile.TemporaryDirectory(prefix="isonb-audit-") as name:
        yield Path(name)


def encoded(model: Any, texts: Any) -> torch.Tensor:
    """The vectors (n, d) of a model on texts, each text encoded once."""
    with tempfile.TemporaryDirectory(prefix="isonb-compare-") as folder:
        return _encoded(Path(folder), _embedder(model, Encoding()), texts, "texts", progress=True)


def _encoded(folder: Path, embedder: Embedder, texts: Any, name: str, progress: bool) -> torch.Tensor:
    """The vectors of further texts, each text encoded once."""
    texts = check_texts(texts, name)
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    if any(not text.strip() for text in place):
        fail(InputError, f"texts of {name} must not be empty", "an empty one", "Leave it out.")
    found = embed_to(folder, embedder, list(place), [], name, progress)
    return rows_of(found.vectors, torch.tensor([place[text] for text in texts]))


def _pairs(folder: Path, embedder: Embedder, pairs: Any, progress: bool) -> Pairs:
    first, second, labels = pairs
    first, second = check_texts(first, "pairs"), check_texts(second, "pairs")
    vectors = _encoded(folder, embedder, [*first, *second], "pairs", progress)
    return Pairs(vectors[: len(first)], vectors[len(first) :], labels)


def _layers(states: Any, rows: int, draw: torch.Generator) -> Iterator[Layer]:
    """The readings of each layer. A round cloud of the same size reads the same for all of them, so it is read once."""
    count, _, d = states.shape
    cloud = torch.randn(rows, d, generator=draw)
    usual = {name: float(measure(cloud)) for name, measure in BY_LAYER.items()}
    for number in range(count):
        x = torch.from_numpy(states[number, :rows].astype("float32"))
        if bool(x.isfinite().all()):
            group = torch.Generator().manual_seed(0)
            known = readings(x, usual, group, BY_LAYER)
            yield Layer(number, rows, tuple(one for one in known if one.name != TWO_NN or _enough(one)))


def _enough(reading: Reading) -> bool:
    """Whether there are texts enough: the interval is no wider than the value."""
    return reading.high - reading.low <= reading.value


def _inputs(found: Embedded, n: int, limit: int) -> Iterator[Finding]:
    """Texts that are longer than the input, and words that the model doesn't know."""
    if found.cut:
        severity = "warning" if found.cut > n / 20 else "note"
        text = f"As long as the input of {limit} tokens, or cut there: {found.cut:,} of {n:,} texts."
        yield Finding("cut texts", severity, text, "Split long texts, or raise max_length if the model allows it.")
    if found.unknown > UNKNOWN * found.tokens:
        text = f"Not in the vocabulary: {found.unknown / found.tokens:.0%} of all tokens."
        yield Finding("unknown tokens", "warning", text, "The model can't read these texts; is it another language?")


def _of_texts(finding: Finding, kept: Sequence[int], d: int) -> Finding:
    """A finding of vectors in terms of the texts given."""
    if finding.name == "few rows":
        return dataclasses.replace(finding, advice=f"Give {2 * d:,} texts or more.")
    return dataclasses.replace(finding, rows=tuple(kept[row] for row in finding.rows))
