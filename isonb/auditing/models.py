"""Audit a model on texts: is it sound, then its vectors as any others, and the shape layer by layer."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from isonb.auditing.choosing import Encoding, embedder_of
from isonb.auditing.defects import Finding, Quote
from isonb.auditing.embedders import Counts, Embedder, SentenceEmbedder
from isonb.auditing.fixing import save
from isonb.auditing.measured import BY_LAYER, TWO_NN, Layer, Pairs, Reading, groups_of_pairs, readings, shape_of
from isonb.auditing.report import Audit
from isonb.auditing.rows import Read, joined, rows_of
from isonb.auditing.sides import sides_finding
from isonb.auditing.soundness import (
    check_model,
    check_texts,
    distinct_rows,
    first_token_findings,
    repairs,
    text_findings,
)
from isonb.auditing.vectors import AuditOptions, audit_vectors, worst_first
from isonb.errors import InputError, ShapeError, fail
from isonb.numerics.rows import unit_rows
from isonb.runtime.told import clipped

PIECE = 512  # texts between two notes of how far it is
LAYER_ROWS = 2000  # texts that the shape by layer is measured on
UNKNOWN = 0.05  # of the tokens that the model doesn't know before it is worth a warning


def audit_model(
    model: Any, texts: Any, options: AuditOptions, how: Encoding, pairs: Any = None, queries: Any = None
) -> Audit:
    """The audit of a model on texts. ``pairs``: (first texts, second texts, labels); ``queries``: texts."""
    every = check_texts(texts)
    distinct = distinct_rows(every)
    if len(distinct) < 20:
        got = f"{len(distinct)} of {len(every)}"
        fail(ShapeError, "at least 20 different texts must not be empty", got, "Give those the model is used on.")
    embedder, assumed = embedder_of(model, how)
    used = [every[i] for i in distinct]
    key = "" if how.work is None else embedder.fingerprint()
    work = None if how.work is None else Path(how.work).expanduser()
    with contextlib.nullcontext(work) if work else tempfile.TemporaryDirectory(prefix="isonb-audit-") as folder:
        store = Store(Path(folder), embedder, how.progress, key)
        checks, faults = check_model(embedder, used)
        if faults and options.fix is not None:
            fail(InputError, "fix needs a sound model", faults[0].text.removesuffix("."), faults[0].advice)
        draw = torch.Generator().manual_seed(options.seed)
        sampled = torch.randperm(len(used), generator=draw)[: min(options.sample, LAYER_ROWS)].sort().values.tolist()
        vectors, states, counts = store.embed(used, "texts", sampled)
        known = None if pairs is None else _pairs(store, *pairs)
        asking = None if queries is None else store.of_queries().vectors(queries, "queries")
        quote: Quote = lambda row: clipped(used[row])  # noqa: E731
        base = audit_vectors(
            vectors, options, pairs=known, queries=asking, quote=quote, origin="encoder, texts", names=distinct
        )
        layers = () if states is None else tuple(_layers(states, draw))
        layers_note = ""
        if states is not None:
            last = torch.from_numpy(states[:, -1].astype("float32"))
            layers_note = _layers_note(last, rows_of(vectors, torch.tensor(sampled)).float())
    findings = [
        _of_texts(item, distinct, base.d)
        for item in base.findings
        if item.name != "duplicates" or item.severity == "fault"
    ]
    ours = [*faults, *text_findings(every, distinct), *_inputs(counts, len(used), embedder), *assumed]
    if isinstance(embedder, SentenceEmbedder):
        ours += sides_finding(embedder.model, how.prompt, queries is not None or pairs is not None)
    ours += first_token_findings(embedder, used)
    source = f"{text_count(every, texts)} through {embedder.name}, {embedder.description}, {base.d} dimensions"
    return dataclasses.replace(
        base,
        findings=worst_first([*ours, *findings]),
        source=source,
        read=Read((len(used), base.d), embedder.name),
        checks=checks,
        layers=layers,
        layers_note=layers_note,
        next_steps=repairs(faults) if faults else base.next_steps,
    )


def encoded(model: Any, texts: Sequence[str], how: Encoding, count: str) -> tuple[Tensor, str, list[Finding]]:
    """The vectors of a model, what they are of (``count`` texts), and what was assumed of how it makes them."""
    embedder, assumed = embedder_of(model, how)
    with tempfile.TemporaryDirectory(prefix="isonb-compare-") as folder:
        vectors = Store(Path(folder), embedder).vectors(texts, "texts")
    source = f"{count} through {embedder.name}, {embedder.description}, {vectors.shape[1]} dimensions"
    return vectors, source, list(assumed)


def text_count(every: Sequence[str], texts: Any) -> str:
    """How many texts there are, and of what: they may come with the name of their file, or of their column."""
    name = getattr(texts, "name", None)
    return f"{len(every):,} texts" + (f" of {name}" if name else "")


def _pairs(store: Store, first: Any, second: Any, labels: Tensor) -> Pairs:
    """The vectors of pairs of texts: a model with two sides takes the first ones for queries."""
    first, second = check_texts(first, "pairs"), check_texts(second, "pairs")
    group = groups_of_pairs(first, second)
    return Pairs(store.of_queries().vectors(first, "pairs"), store.vectors(second, "pairs"), labels, group)


def _layers(states: Any, draw: torch.Generator) -> Iterator[Layer]:
    """The readings of each layer; an isotropic Gaussian of the same size is measured once for all of them."""
    rows, count, d = states.shape
    cloud = torch.randn(rows, d, generator=draw)
    usual = shape_of(cloud, BY_LAYER)
    for number in range(count):
        x = torch.from_numpy(states[:, number].astype("float32"))
        if bool(x.isfinite().all()):
            group = torch.Generator().manual_seed(0)
            known = readings(x, usual, group, BY_LAYER)
            yield Layer(number, rows, tuple(item for item in known if item.measure != TWO_NN or _enough(item)))


def _enough(reading: Reading) -> bool:
    """Whether there are texts enough: the interval is no wider than the value, and half of them read the same."""
    return reading.steady and reading.high - reading.low <= reading.value


def _layers_note(last: Tensor, vectors: Tensor) -> str:
    """How the last layer, pooled, becomes the vectors: (s, d) and (s, c) of the same texts."""
    if last.shape != vectors.shape:
        why = "they are cut to these, or more modules follow"
        return f"Layers have {last.shape[1]} dimensions, the vectors {vectors.shape[1]}: {why}."
    if torch.allclose(last, vectors, rtol=1e-3, atol=1e-5):
        return "The last layer gives the vectors."
    if torch.allclose(unit_rows(last), unit_rows(vectors), rtol=1e-3, atol=1e-4):
        same = "The vectors are those of the last layer, each divided by its length; layers are as they come."
        return f"{same} Cosines are the same, measures of the spread differ."
    return "More modules follow the last layer, so its measures are not those of the vectors."


def _inputs(counts: Counts, n: int, embedder: Embedder) -> Iterator[Finding]:
    """Texts that are longer than the input, and words that the model doesn't know."""
    if counts.cut:
        severity = "warning" if counts.cut > n / 20 else "note"
        text = f"As long as the input of {embedder.max_length} tokens, or cut there: {counts.cut:,} of {n:,} texts."
        yield Finding("cut texts", severity, text, f"Split long texts, or {embedder.longer}.")
    if counts.unknown > UNKNOWN * counts.tokens:
        text = f"Not in the vocabulary: {counts.unknown / counts.tokens:.0%} of all tokens."
        yield Finding("unknown tokens", "warning", text, "The model can't read these texts; is it another language?")


def _of_texts(finding: Finding, distinct: Sequence[int], d: int) -> Finding:
    """A finding of vectors in terms of the texts given."""
    if finding.name == "few rows":
        return dataclasses.replace(finding, advice=f"Give {2 * d:,} texts or more.")
    return dataclasses.replace(finding, rows=tuple(distinct[row] for row in finding.rows))


@dataclasses.dataclass(frozen=True)
class Store:
    """A folder with the vectors of a model; ``key``: the fingerprint of all that makes them, so that none is stale."""

    folder: Path
    embedder: Embedder
    progress: bool = True
    key: str = ""

    def of_queries(self) -> Store:
        """The store of what encodes queries."""
        asking = self.embedder.of_queries()
        return dataclasses.replace(self, embedder=asking, key=f"{self.key} {asking.description}")

    def vectors(self, texts: Any, name: str) -> Tensor:
        """The vectors of further texts, each text encoded once."""
        texts = check_texts(texts, name)
        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        if not all(text.strip() for text in place):
            fail(InputError, f"texts of {name} must not be empty", "an empty one", "Leave it out.")
        return rows_of(self.embed(list(place), name)[0], torch.tensor([place[text] for text in texts]))

    def embed(self, texts: Sequence[str], name: str, sampled: Sequence[int] = ()) -> tuple[Any, Any, Counts]:
        """Vectors (n, d) of texts, and by layer (s, L+1, d) of the ``sampled`` ones or None; the counts.

        They lie in pieces of some hundred texts, each written whole: what is there already isn't made again. The folder
        is called ``name`` with a digest of the key and the texts.
        """
        import numpy as np
        from tqdm import tqdm

        digest = hashlib.sha256(json.dumps([self.key, sampled, texts]).encode()).hexdigest()[:16]
        place, chosen = self.folder / f"{name}-{digest}", set(sampled)
        vectors, layers, counts = [], [], Counts()
        quiet = None if self.progress else True  # None: the bar shows on a terminal only
        with tqdm(total=len(texts), desc=f"encode {name}", unit="text", leave=False, disable=quiet) as bar:
            for start in range(0, len(texts), PIECE):
                words = texts[start : start + PIECE]
                files = place / f"{start:09d}.npz", place / f"{start:09d}.npy"
                if not files[1].is_file():
                    batch, states = self.embedder.encode(words, [i for i in range(len(words)) if start + i in chosen])
                    more = {} if states is None else {"layers": states.transpose(0, 1).float().numpy()}
                    save(files[0], np.savez, counts=self.embedder.counts(words), **more)
                    save(files[1], np.save, batch.float().numpy())
                vectors.append(np.load(files[1], mmap_mode="r"))
                with np.load(files[0]) as counted_file:
                    counts = Counts(*(a + int(b) for a, b in zip(counts, counted_file["counts"], strict=True)))
                    layers += [counted_file["layers"]] if "layers" in counted_file else []
                if vectors[-1].shape[1] != vectors[0].shape[1]:
                    got = f"{vectors[-1].shape[1]} after others"
                    fail(ShapeError, "every text must give a vector of one length", got, "Look at the model.")
                bar.update(len(words))
        return joined(vectors), np.concatenate(layers) if layers else None, counts
