"""The way in: ``isonb.audit`` of vectors, or of a model and texts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from isonb.auditing.choosing import OF_MODELS, Encoding, is_model
from isonb.auditing.fixing import check_path
from isonb.auditing.measured import Pairs, groups_of_pairs
from isonb.auditing.models import audit_model
from isonb.auditing.reading import matrix
from isonb.auditing.reading.cells import as_numpy
from isonb.auditing.report import Audit
from isonb.auditing.rows import rows_of, usable
from isonb.auditing.soundness import check_texts
from isonb.auditing.vectors import RATE, SAMPLE, AuditOptions, audit_vectors
from isonb.checks import tensor_of, usual_device
from isonb.errors import DtypeError, InputError, ShapeError, fail, with_name
from isonb.runtime.told import clipped


def audit(
    vectors: Any,
    texts: Sequence[str] | None = None,
    *,
    name: str | None = None,
    sample: int = SAMPLE,
    seed: int = 0,
    pairs: tuple[Any, Any, Any] | None = None,
    queries: Any = None,
    false_match_rate: float = RATE,
    pool: str = "auto",
    max_length: int | None = None,
    batch_size: int = 32,
    device: str | torch.device = "cpu",
    work: str | Path | None = None,
    progress: bool = True,
    tokenizer: Any = None,
    prompt: str | None = None,
    fix: str | Path | None = None,
) -> Audit:
    """Say what a cloud of vectors, or a model on some texts, is like: defects, the floor of scores, shape, remedies.

    ``audit(vectors)``: every row is read once, in pieces, so that an array on disk needs little memory. Rows that are
    zero or not finite are named and left out. Intervals are 95%, by a jackknife over ten groups of rows; beside each
    measure stands what an isotropic Gaussian of as many rows and dimensions reads. With fewer than 2 d rows in the
    sample the shape isn't judged.

    ``audit(model, texts)``: a model is checked first: a text twice, alone and in a batch with longer ones, the empty
    text. Then come its vectors, each different text once, and the shape by layer. Where a folder is one of
    sentence-transformers, the vectors are those of its own ``encode``: pooling, default prompt, every module,
    truncation; its layers are those of the first module, pooled alike. A model with two sides, by its prompts or by the
    routes of a Router, encodes texts by ``encode_document`` and queries by ``encode_query``.

    Args:
        vectors: an array, tensor, frame, table, data set or list, dense or sparse, (n, d) of numbers, or the path of a
            file or a folder. Of a model: its embedded name, folder or hub id; a ``SentenceTransformer``; a transformers
            model with its tokenizer, ``(model, tokenizer)``, of whose encoder and decoder the encoder is taken; or a
            function from a list of texts to vectors.
        texts: what a model is audited on; of vectors one a row, to name the rows that stand out.
        name: which array or column, where there are several.
        sample: rows at most, 100 or more, that the shape, the neighbours and the pairs come from.
        seed: of the sample.
        pairs: three columns (first, second, labels), 20 or more. The first two hold texts for a model, row numbers for
            vectors. Of a model with two sides the first texts are queries, the second ones documents. A label is 1 for
            a match and 0 for none, or a grade of three or more. Pairs score each remedy; labels 0 and 1 also give a
            threshold, chosen on one half and measured on the other.
        queries: vectors, or texts of a model, 20 or more: they give such a threshold without labels, where unrelated
            pairs of a query and a row stand out from related ones.
        false_match_rate: the share of false matches at the threshold; it needs 2 / ``false_match_rate`` pairs labelled
            0 (200 by default).
        pool: "mean", "cls" or "last"; where none is told, "last" is assumed for a decoder and "mean" for others, and
            the report says so.
        max_length: cuts texts at fewer tokens than the model takes; without it, at its own limit, or at 256 where no
            pooling is saved.
        batch_size: texts at a time.
        device: where a model that is named runs; others run where they lie.
        work: a folder that the vectors of a model are written into in pieces, by its name or folder: an audit that was
            cut short goes on from there. They are kept under a fingerprint of all that makes them (weights,
            configuration, tokenizer, pooling). Without it they lie in a folder that is gone at the end.
        progress: shows a bar on a terminal.
        tokenizer: of a transformers model that comes without.
        prompt: the name of a prompt of the model, for all texts; "" for none. Without it, each side has its own.
        fix: a .npy file that gets the vectors with what the report advises done: broken rows and dimensions left out
            and, with ``pairs``, the remedy that helps on them. The report then says before and after, on rows and pairs
            that weren't used for the choice or the fit; beside the file lies ``.map.npz``, which does the same to
            queries. Without pairs no row is changed.

    There must be 20 rows or more that count, of 2 dimensions or more: otherwise :class:`~isonb.errors.ShapeError`; for
    what isn't numbers :class:`~isonb.errors.DtypeError`, for too few pairs or queries, and for an option that would
    have no effect, :class:`~isonb.errors.InputError`. A model needs the extra ``audit``
    (:class:`~isonb.errors.DependencyError`), and raises what loading it raises.

    >>> import torch
    >>> shifted = audit(torch.randn(500, 64, generator=torch.Generator().manual_seed(0)) + 1.0)
    >>> [finding.name for finding in shifted.findings], shifted.ok
    (['hubs', 'shift'], False)
    """
    with named("audit"):
        path = None if fix is None else check_path(fix, vectors, queries)
        options = AuditOptions(sample, seed, false_match_rate, path)
        labelled = None if pairs is None else _labelled(pairs)
        how = Encoding(pool, max_length, batch_size, device, work, progress, tokenizer, prompt)
        read = isinstance(vectors, str | Path) and (texts is None or os.path.isfile(os.path.expanduser(vectors)))
        if false_match_rate != RATE and pairs is None and queries is None:
            fix = "Leave it out, or pass them."
            fail(InputError, "false_match_rate must come with pairs or queries", repr(false_match_rate), fix)
        if is_model(vectors) and not read:
            if name is not None:
                fail(InputError, "name must be left out of a model", repr(name), "It is an option of vectors.")
            return audit_model(vectors, texts, options, how, labelled, queries)
        how.refuse(OF_MODELS, "of vectors", "It is an option of a model.")
        source = matrix(vectors, name=name)
        quote = None
        if texts is not None:
            every = check_texts(texts)
            if len(every) != source.shape[0]:
                got = f"{len(every)} texts and {source.shape[0]} rows"
                fail(ShapeError, "there must be one text a row", got, "Pass the texts in the order of the rows.")
            quote = lambda row: clipped(every[row])  # noqa: E731
        known = None if labelled is None else _row_pairs(source, labelled)
        asking = None if queries is None else _queries(queries, source.shape[1])
        origin = ", ".join([repr(str(vectors)) if read else "vectors", *([f"name={name!r}"] if name else [])])
        return audit_vectors(source, options, pairs=known, queries=asking, quote=quote, origin=origin)


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Put a function's name in front of the input errors inside the block, whose tensors are on the CPU by default."""
    try:
        with usual_device():
            yield
    except InputError as error:
        if error.named:
            raise
        raise with_name(error, name) from error.__cause__


def _labelled(pairs: Any) -> tuple[Any, Any, torch.Tensor]:
    """Three columns of one length, the last one as labels: at least 20, 0 and 1 or grades, and not all the same."""
    try:
        lengths = {len(part) for part in pairs}
    except TypeError:
        lengths = set()
    if not isinstance(pairs, list | tuple) or len(pairs) != 3 or len(lengths) != 1:
        fix = "Of a list of triples it is [*zip(*triples)]."
        fail(ShapeError, "pairs must be (first, second, labels), of one length", type(pairs).__name__, fix)
    labels = _column(pairs[2], "labels must be numbers", "1 is a match, 0 is none.")
    values = sorted(set(labels.tolist()))
    if len(labels) < 20 or len(values) < 2:
        got = f"{len(labels)} labels, {len(values)} different"
        fail(InputError, "there must be 20 pairs or more with different labels", got, "Add pairs that don't match.")
    if len(values) == 2 and values != [0, 1]:
        got = f"{values[0]:g} and {values[1]:g} alone"
        fail(InputError, "labels must be 0 and 1, or grades of three values or more", got, "1 is a match, 0 is none.")
    return pairs[0], pairs[1], labels


def _column(values: Any, must: str, fix: str) -> torch.Tensor:
    """One number a pair (m,), in float64."""
    try:
        column = torch.as_tensor(tensor_of(as_numpy(values)), dtype=torch.float64)
    except (InputError, TypeError, ValueError, RuntimeError):
        fail(DtypeError, must, clipped(str(values)), fix)
    if column.ndim != 1:
        fail(ShapeError, f"{must}, one a pair", f"shape {tuple(column.shape)}", "Flatten them.")
    if not bool(column.isfinite().all()):
        fail(InputError, must, "some that are missing or infinite", fix)
    return column


def _row_pairs(source: Any, pairs: tuple[Any, Any, torch.Tensor]) -> Pairs:
    must = "pairs of vectors must be row numbers"
    rows = torch.stack([_column(part, must, "For texts, audit a model.") for part in pairs[:2]])
    if not bool(((rows >= 0) & (rows < source.shape[0]) & (rows == rows.floor())).all()):
        got = f"{rows.min():g} to {rows.max():g}"
        fail(InputError, f"pairs must be row numbers from 0 to {source.shape[0] - 1}", got, "Count from 0.")
    sides = [rows_of(source, side.long()) for side in rows]
    return Pairs(_finite(sides[0], "pairs"), _finite(sides[1], "pairs"), pairs[2], groups_of_pairs(*rows.tolist()))


def _queries(queries: Any, d: int) -> torch.Tensor:
    source = matrix(queries, "queries")
    if source.shape[1] != d:
        fail(ShapeError, f"queries must have the {d} dimensions of the vectors", source.shape[1], "Use one model.")
    return _finite(rows_of(source, torch.arange(source.shape[0])), "queries")


def _finite(x: torch.Tensor, name: str) -> torch.Tensor:
    bad = int((~usable(x)).sum())
    if bad:
        fail(InputError, f"{name} must be finite and not zero", f"{bad} rows that aren't", "Leave them out.")
    return x
