"""Audit a model on texts: is it sound, then its vectors as any others, and the shape layer by layer."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isonb.auditing.encoding import Counts, Embedder, FunctionEmbedder
from isonb.auditing.encoding.sentences import SentenceEmbedder
from isonb.auditing.encoding.tokens import POOLS, TokenEmbedder
from isonb.auditing.encoding.vector_files import embed_to, writing
from isonb.auditing.first_token import first_token_findings
from isonb.auditing.parts import Finding, Layer, Reading
from isonb.auditing.reading.rows import rows_of
from isonb.auditing.remedies import next_steps
from isonb.auditing.report import Audit
from isonb.auditing.shape import BY_LAYER, TWO_NN, readings
from isonb.auditing.soundness import check_model
from isonb.auditing.texts import check_texts, distinct_rows, text_findings
from isonb.auditing.thresholds import Pairs
from isonb.auditing.vectors import Asked, audit_vectors, check_sample, worst_first
from isonb.auditing.words import clipped
from isonb.errors import InputError, ShapeError, fail, needs
from isonb.measures.registry import MEASURES

__all__ = ["Encoding", "audit_model", "encoded", "is_model"]

LAYER_ROWS = 2000  # texts that the shape by layer is measured on
UNKNOWN = 0.05  # of the tokens that the model doesn't know before it is worth a warning
USUAL = 256  # tokens that are read of a text by a model whose folder doesn't say


@dataclass(frozen=True)
class Encoding:
    """How a model is used: see :func:`isonb.audit`."""

    pool: str = "auto"
    max_length: int | None = None
    batch_size: int = 32
    device: Any = "cpu"
    work: str | Path | None = None
    progress: bool = True
    tokenizer: Any = None

    def __post_init__(self) -> None:
        if self.pool not in POOLS:
            fail(InputError, f"pool must be one of {', '.join(POOLS)}", repr(self.pool), "The default is auto.")
        for name in ("max_length", "batch_size"):
            value = getattr(self, name)
            if value is None and name == "max_length":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                fail(InputError, f"{name} must be an integer from 1", repr(value), "Leave it out.")


def is_model(thing: Any) -> bool:
    """Whether texts go in and vectors come out: a name or folder, a module, a model with its tokenizer, a function."""
    if isinstance(thing, str | Path | nn.Module) or (hasattr(thing, "tokenizer") and hasattr(thing, "model")):
        return True
    if isinstance(thing, tuple | list):
        return any(isinstance(part, nn.Module) for part in thing)
    return callable(thing) or callable(getattr(thing, "encode", None))


def audit_model(model: Any, texts: Any, asked: Asked, how: Encoding, pairs: Any = None, queries: Any = None) -> Audit:
    """The audit of a model on texts. ``pairs``: (first texts, second texts, labels); ``queries``: texts."""
    check_sample(asked.sample)
    every = check_texts(texts)
    kept = distinct_rows(every)
    if len(kept) < 20:
        got = f"{len(kept)} of {len(every)}"
        fail(ShapeError, "at least 20 different texts must not be empty", got, "Give those the model is used on.")
    embedder, assumed = _embedder(model, how)
    used = [every[i] for i in kept]
    key = "" if how.work is None else embedder.fingerprint()
    with _folder(how.work) as folder:
        checks, faults = check_model(embedder, used)
        draw = torch.Generator().manual_seed(asked.seed)
        sampled = torch.randperm(len(used), generator=draw)[: min(asked.sample, LAYER_ROWS)].sort().values.tolist()
        found = embed_to(folder, embedder, used, sampled, "texts", how.progress, key)
        known = None if pairs is None else _pairs(folder, embedder, pairs, how.progress, key)
        asking = None if queries is None else _encoded(folder, embedder, queries, "queries", how.progress, key)
        base = audit_vectors(found.vectors, asked, pairs=known, queries=asking, quote=lambda row: clipped(used[row]))
        layers = () if found.layers is None else tuple(_layers(found.layers, len(sampled), draw))
    findings = [_of_texts(one, kept, base.d) for one in base.findings if one.name != "duplicates"]
    ours = [*faults, *text_findings(every, kept), *_inputs(found.counts, len(used), embedder.max_length), *assumed]
    ours += first_token_findings(embedder, used)
    sound = not faults
    return dataclasses.replace(
        base,
        findings=worst_first([*ours, *findings]),
        source=f"{embedder.name}, {embedder.told}, {len(every):,} texts",
        checks=checks,
        layers=layers,
        next_steps=base.next_steps if sound else next_steps((), False, sound=False),
    )


def _embedder(model: Any, how: Encoding) -> tuple[Embedder, list[Finding]]:
    """What encodes, and what had to be assumed for it."""
    if isinstance(model, str | Path):
        return _named(model, how)
    if isinstance(model, nn.Sequential) and callable(getattr(model, "encode", None)):
        if not hasattr(model, "default_prompt_name") or "sparse" in type(model).__name__.lower():
            fix = "Pass a function from texts to vectors: isonb.audit(function, texts)."
            fail(InputError, "the model must give dense vectors", type(model).__name__, fix)
        if how.pool != "auto":
            fix = "Leave pool out: its modules say how it pools."
            fail(InputError, "pool must be that of the model itself", repr(how.pool), fix)
        return SentenceEmbedder(model, _called(model), how.max_length, how.batch_size, None), []
    parts = list(model) if isinstance(model, tuple | list) else [model, how.tokenizer]
    if not isinstance(model, nn.Module | tuple | list) and hasattr(model, "tokenizer") and hasattr(model, "model"):
        parts = [model.model, model.tokenizer]  # an encoder of the lab, a pipeline
    if any(isinstance(part, nn.Module) for part in parts):
        return _tokenwise(_together(model, parts), how)
    if not callable(model):
        fix = "Pass its method: isonb.audit(model.encode, texts)."
        fail(InputError, "the model must be one of sentence-transformers or a function", type(model).__name__, fix)
    return FunctionEmbedder(model, how.batch_size), []


def _named(name: str | Path, how: Encoding) -> tuple[Embedder, list[Finding]]:
    with needs("isonb.audit of a model", "lab", "transformers", "tqdm"):
        from isonb.lab.encoders.loading import load
        from isonb.lab.encoders.sentences import load_sentences

    found = load_sentences(name, device=how.device) if how.pool == "auto" else None
    if found is not None:
        return SentenceEmbedder(found[0], str(name), how.max_length, how.batch_size, found[1]), []
    return _tokenwise(load(name, device=how.device), how, from_name=True)


def _tokenwise(encoder: Any, how: Encoding, from_name: bool = False) -> tuple[Embedder, list[Finding]]:
    from isonb.lab.encoders.text_models import is_decoder

    pool, assumed = how.pool, []
    if pool == "auto":
        pool = "last" if is_decoder(encoder.model.config) else "mean"
        text = f"No pooling is saved with the model: {pool} is assumed."
        assumed = [Finding("pooling", "note", text, "Name the one that you use: pool, or --pool.")]
    limit = min(how.max_length or USUAL, encoder.max_length)
    return TokenEmbedder(encoder, pool, limit, how.batch_size, from_name), assumed


def _together(given: Any, parts: Sequence[Any]) -> Any:
    """A transformers model and its tokenizer, in either order, as an encoder of the lab."""
    with needs("isonb.audit of a model", "lab", "transformers", "tqdm"):
        from isonb.lab.encoders.loading import Encoder, as_encoder

    if isinstance(given, Encoder):
        return given
    model = next(part for part in parts if isinstance(part, nn.Module))
    tokenizer = next((part for part in parts if callable(part) and hasattr(part, "pad_token_id")), None)
    if tokenizer is None or len(parts) != 2:
        fix = "isonb.audit((model, tokenizer), texts); of any other model pass a function from texts to vectors."
        fail(InputError, "a model must come with its tokenizer", type(model).__name__, fix)
    return as_encoder(model, tokenizer, _called(model))


def _called(model: Any) -> str:
    """A model's name: where it came from, or its class."""
    card = getattr(getattr(model, "model_card_data", None), "base_model", None)
    told = getattr(getattr(model, "config", None), "_name_or_path", None) or card
    return f"{type(model).__name__} {told}" if told else type(model).__name__


@contextlib.contextmanager
def _folder(work: str | Path | None) -> Iterator[Path]:
    """The folder of the vectors: the one named, which stays, or one that is gone after the audit."""
    with contextlib.ExitStack() as stack:
        if work is None:
            with writing(Path(tempfile.gettempdir())):
                name = stack.enter_context(tempfile.TemporaryDirectory(prefix="isonb-audit-"))
            yield Path(name)
            return
        place = Path(work).expanduser()
        if place.exists() and not place.is_dir():
            fail(InputError, "work must be a folder", str(place), "Name another; it is made if it isn't there.")
        from isonb.runtime.locks import held  # what it needs is not on every system

        with writing(place):
            lock = stack.enter_context(held([place / "audit.lock"], wait=False))
        if lock is None:
            got, fix = f"{place}, where one is at work", "Wait for it, or name another folder."
            fail(InputError, "work must be the folder of one audit at a time", got, fix)
        yield place


def encoded(model: Any, texts: Any) -> Tensor:
    """The vectors (n, d) of a model on texts, each text encoded once."""
    embedder, _ = _embedder(model, Encoding())
    with tempfile.TemporaryDirectory(prefix="isonb-compare-") as folder:
        return _encoded(Path(folder), embedder, texts, "texts", True, "")


def _encoded(folder: Path, embedder: Embedder, texts: Any, name: str, progress: bool, key: str) -> Tensor:
    """The vectors of further texts, each text encoded once."""
    texts = check_texts(texts, name)
    place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    if any(not text.strip() for text in place):
        fail(InputError, f"texts of {name} must not be empty", "an empty one", "Leave it out.")
    found = embed_to(folder, embedder, list(place), [], name, progress, key)
    return rows_of(found.vectors, torch.tensor([place[text] for text in texts]))


def _pairs(folder: Path, embedder: Embedder, pairs: Any, progress: bool, key: str) -> Pairs:
    first, second, labels = pairs
    first, second = check_texts(first, "pairs"), check_texts(second, "pairs")
    vectors = _encoded(folder, embedder, [*first, *second], "pairs", progress, key)
    return Pairs(vectors[: len(first)], vectors[len(first) :], labels)


def _layers(states: Any, rows: int, draw: torch.Generator) -> Iterator[Layer]:
    """The readings of each layer. A round cloud of the same size reads the same for all of them, so it is read once."""
    count, _, d = states.shape
    cloud = torch.randn(rows, d, generator=draw)
    usual = {name: float(MEASURES[name](cloud)) for name in BY_LAYER}
    for number in range(count):
        x = torch.from_numpy(states[number, :rows].astype("float32"))
        if bool(x.isfinite().all()):
            group = torch.Generator().manual_seed(0)
            known = readings(x, usual, group, BY_LAYER)
            yield Layer(number, rows, tuple(one for one in known if one.measure != TWO_NN or _enough(one)))


def _enough(reading: Reading) -> bool:
    """Whether there are texts enough: the interval is no wider than the value."""
    return reading.high - reading.low <= reading.value


def _inputs(found: Counts, n: int, limit: int) -> Iterator[Finding]:
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
