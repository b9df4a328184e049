"""One matrix through every writer, with an id, a gap, a ragged row, mixed types, a decimal comma: equal, or refused."""

import base64
import csv
import io
import json

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from isonb.auditing.reading import matrix
from isonb.auditing.rows import numbers
from isonb.errors import InputError

# A writer takes a path, rows of Python floats (None: a row that is missing), an id a row or None, and the mark in
# decimal fractions. It returns the path, or an object in memory.


def names_of(rows):
    return [f"dim_{i}" for i in range(len(next(row for row in rows if row)))]


def letters(rows):
    return [chr(97 + i) for i in range(len(next(row for row in rows if row)))]


def frame(rows, ids, names):
    if len({len(row) for row in rows if row}) > 1:
        raise ValueError("pandas fills what is short")
    wide = pd.DataFrame([row or [None] * len(names) for row in rows], columns=names)
    if ids is not None:
        wide.insert(0, "id", ids)
    return wide


def records(rows, ids):
    return [
        {"id": i, "embedding": row} if ids else {"embedding": row} for i, row in zip(ids or rows, rows, strict=True)
    ]


def array(rows):
    return np.array([list(row) for row in rows], dtype="float64")  # raises for a ragged or a missing row


def keyed(rows):
    return {f"doc_{i}": torch.tensor(row) for i, row in enumerate(rows)}


def text(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def cells(show):
    def write(path, rows, ids, mark):
        with path.with_suffix(".csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["id", "embedding"])
            for i, row in zip(ids or range(len(rows)), rows, strict=True):
                out.writerow([i, "" if row is None else show(row).replace(".", mark)])
        return path.with_suffix(".csv")

    return write


def separated(sep, header, names=names_of):
    def write(path, rows, ids, mark):
        out = io.StringIO()
        if header:
            out.write(sep.join([*(["id"] if ids else []), *names(rows)]) + "\n")
        for i, row in zip(ids or rows, rows, strict=True):
            shown = [""] * len(names(rows)) if row is None else [repr(v).replace(".", mark) for v in row]
            out.write(sep.join([*([str(i)] if ids else []), *shown]) + "\n")
        return text(path.with_suffix(".csv"), out.getvalue())

    return write


def phrase(before, suffix=".txt", head=False):
    def write(path, rows, ids, mark):
        lines = [f"{len(rows)} {len(rows[0])}\n"] if head else []
        for number, (i, row) in enumerate(zip(ids or rows, rows, strict=True)):
            shown = [repr(v).replace(".", mark) for v in row or ()]
            lines.append(" ".join([*([before(number)] if before else []), *([str(i)] if ids else []), *shown]) + "\n")
        return text(path.with_suffix(suffix), "".join(lines))

    return write


def lines(record):
    def write(path, rows, ids, mark):
        results = [record(i, row) for i, row in zip(ids or range(len(rows)), rows, strict=True)]
        return text(path.with_suffix(".jsonl"), "\n".join(map(json.dumps, results)))

    return write


def value(make):
    return lambda path, rows, ids, mark: text(path.with_suffix(".json"), json.dumps(make(rows, ids)))


def oriented(orient, names=names_of):
    def write(path, rows, ids, mark):
        place = path.with_suffix(".json")
        frame(rows, ids, names(rows)).to_json(place, orient=orient, double_precision=15)
        return place

    return write


def packed(row):
    return base64.b64encode(np.array(row, "<f8").tobytes()).decode()


def openai_batch(i, row):
    body = {
        "data": [{"object": "embedding", "index": 0, "embedding": row}],
        "usage": {"prompt_tokens": i % 7, "total": 4},
    }
    return {"custom_id": f"doc-{i}", "response": {"status_code": 200, "body": body}, "error": None}


def table(rows, ids):
    columns = {"id": ids} if ids else {}
    return pa.table({**columns, "embedding": pa.array(rows, pa.list_(pa.float64()))})


def parquet(make):
    return to(".parquet", lambda p, r, i: pq.write_table(make(r, i), p, row_group_size=7))


def to(suffix, write):
    """A writer of a path that returns nothing."""

    def to_path(path, rows, ids, mark):
        write(path.with_suffix(suffix), rows, ids)
        return path.with_suffix(suffix)

    return to_path


WRITERS = {
    "npy": to(".npy", lambda p, r, i: np.save(p, array(r))),
    "npz": to(".npz", lambda p, r, i: np.savez(p, emb=array(r), ids=np.array(i or range(len(r))))),
    "npz, a vector an id": to(
        ".npz", lambda p, r, i: np.savez(p, **{f"doc_{j}": np.array(v) for j, v in enumerate(r)})
    ),
    "npz of columns": to(".npz", lambda p, r, i: np.savez(p, **dict(zip(names_of(r), array(r).T, strict=True)))),
    "records of numpy": to(".npy", lambda p, r, i: np.save(p, frame(r, i, letters(r)).to_records(index=False))),
    "torch": to(".pt", lambda p, r, i: torch.save({"emb": torch.tensor(r), "ids": i}, p)),
    "torch, a vector an id": to(".pt", lambda p, r, i: torch.save(keyed(r), p)),
    "safetensors, a vector an id": to(".safetensors", lambda p, r, i: save_file(keyed(r), p)),
    "CSV": separated(",", True),
    "CSV without names": separated(",", False),
    "CSV, semicolons": separated(";", True),
    "CSV, semicolons, without names": separated(";", False),
    "TSV": separated("\t", True, letters),
    "CSV of JSON": cells(json.dumps),
    "CSV of numpy's print": cells(lambda row: np.array2string(np.array(row), max_line_width=40)),
    "CSV of numpy 2's scalars": cells(lambda row: str([np.float64(v) for v in row])),
    "CSV of blanks": cells(lambda row: " ".join(map(repr, row))),
    "CSV of semicolons": cells(lambda row: "; ".join(map(repr, row))),
    "CSV of base64": cells(packed),
    "numbers": phrase(None),
    "words that are years": phrase(lambda i: f"{1900 + i * i}"),
    "word2vec": phrase(lambda i: f"w{i}", ".vec", head=True),
    "JSON lines of rows": lines(lambda i, row: row),
    "JSON lines of records": lines(lambda i, row: {"id": i, "embedding": row}),
    "JSON lines of base64": lines(lambda i, row: {"id": i, "embedding": row and packed(row)}),
    "JSON lines of places": lines(lambda i, row: [i, *row] if row else row),
    "OpenAI, batch": lines(openai_batch),
    "Vertex": lines(lambda i, row: {"predictions": [{"values": row, "statistics": {"tokens": i}}]}),
    "OpenAI": value(
        lambda r, i: {"data": [{"index": j, "embedding": row} for j, row in enumerate(r)], "usage": {"t": 3}}
    ),
    "Cohere": value(lambda r, i: {"embeddings": {"float": r}, "texts": ["t"] * len(r), "meta": {"v": 2}}),
    "Chroma": value(lambda r, i: {"ids": i or [*map(str, range(len(r)))], "embeddings": r, "documents": None}),
    "Chroma, a query": value(lambda r, i: {"ids": [["a"]], "embeddings": [r]}),
    "Pinecone": value(lambda r, i: {"vectors": {f"i{j}": {"id": f"i{j}", "values": row} for j, row in enumerate(r)}}),
    "JSON, a vector an id": value(lambda r, i: {f"doc{j}": row for j, row in enumerate(r)}),
    "JSON of columns": value(lambda r, i: dict(zip(names_of(r), map(list, zip(*r, strict=True)), strict=True))),
    "JSON of columns of vectors": value(
        lambda r, i: {"t": dict.fromkeys(map(str, range(len(r))), "a"), "e": {str(j): v for j, v in enumerate(r)}}
    ),
    **{f"pandas, JSON by {orient}": oriented(orient) for orient in ("columns", "index", "split", "table")},
    "pandas, JSON by letters": oriented("columns", letters),
    "parquet of lists": parquet(table),
    "parquet of structs": parquet(lambda r, i: pa.table({"p": [{"id": 3, "v": row} for row in r]})),
    "parquet of a record a row": parquet(lambda r, i: pa.table({"p": [[{"id": 3, "v": row}] for row in r]})),
    "parquet of lists of one list": parquet(lambda r, i: pa.table({"p": [row and [row] for row in r]})),
    "parquet of bytes": parquet(lambda r, i: pa.table({"p": [row and np.array(row).tobytes() for row in r]})),
    "parquet, wide": to(".parquet", lambda p, r, i: frame(r, i, names_of(r)).to_parquet(p)),
    "datasets": to("", lambda p, r, i: datasets.Dataset(table(r, i)).save_to_disk(p)),
    "a list": lambda p, r, i, m: r,
    "a list of pairs": lambda p, r, i, m: [(f"doc{j}", row) for j, row in enumerate(r)],
    "a list of arrays": lambda p, r, i, m: [row and np.array(row) for row in r],
    "a list of records": lambda p, r, i, m: records(r, i),
    "a dictionary": lambda p, r, i, m: {f"doc_{j}": row and np.array(row) for j, row in enumerate(r)},
    "a frame": lambda p, r, i, m: frame(r, i, names_of(r)),
    "a frame with an id of floats": lambda p, r, i, m: frame(r, i and [float(j) for j in i], letters(r)),
    "an Arrow table": lambda p, r, i, m: table(r, i),
    "a data set with a split": lambda p, r, i, m: datasets.DatasetDict({"train": datasets.Dataset(table(r, i))}),
    "polars": lambda p, r, i, m: pytest.importorskip("polars").from_pandas(frame(r, i, letters(r))),
}
REFUSED = {  # what holds vectors, or dimensions, in a way that nobody can be sure of
    *("npz of columns", "JSON of columns", "JSON of columns of vectors", "pandas, JSON by columns"),
    *("pandas, JSON by letters", "CSV of base64", "JSON lines of base64", "parquet of bytes"),
}
CAN_HAVE_A_COMMA = [name for name in WRITERS if name.startswith(("CSV", "TSV", "numbers", "word"))]


def matrices(n, d, seed):
    return np.random.default_rng(seed).normal(size=(n, d)).round(6)


def write(name, path, rows, ids=None, mark="."):
    """What a writer makes; a test is skipped where it can't write such rows."""
    try:
        return WRITERS[name](path / "vectors", rows, ids, mark)
    except (ValueError, TypeError, AttributeError, RuntimeError, OverflowError, pa.ArrowException) as error:
        pytest.skip(f"{name} doesn't write that: {error}")


def assert_equal_or_refused(thing, truth):
    """Whether it was read; equal then, in the precision of float32, if that is what the format has."""
    try:
        source = matrix(thing)
        got = numbers(source, slice(0, source.shape[0])).double().numpy()
    except InputError:
        return False
    assert got.shape == truth.shape, source.read
    assert source.read.shape == truth.shape
    np.testing.assert_allclose(got, truth, rtol=3e-7, atol=1e-9)
    return True


IDS = {
    "no": None,
    "rising": [1000 + 7 * i for i in range(30)],
    "any": np.random.default_rng(2).permutation(10**6)[:30].tolist(),
    "labels": [i % 3 for i in range(30)],
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("ids", IDS)
def test_a_matrix_is_read_as_it_was_and_an_id_is_no_dimension(name, ids, tmp_path):
    x = matrices(30, 8, 1)
    assert assert_equal_or_refused(write(name, tmp_path, x.tolist(), IDS[ids]), x) == (name not in REFUSED)


@pytest.mark.parametrize("name", WRITERS)
def test_a_missing_row_is_missing_or_refused(name, tmp_path):
    x = matrices(30, 8, 3)
    rows = x.tolist()
    rows[5], x[5] = None, np.nan
    assert_equal_or_refused(write(name, tmp_path, rows), x)


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("by", [-2, 3])
def test_a_row_of_another_length_is_refused(name, by, tmp_path):
    rows = matrices(30, 8, 4).tolist()
    rows[5] = rows[5][:by] if by < 0 else [*rows[5], *[0.5] * by]
    result = write(name, tmp_path, rows)
    with pytest.raises(InputError):
        matrix(result)


@pytest.mark.parametrize("name", WRITERS)
def test_numbers_of_several_kinds_are_those_that_went_in(name, tmp_path):
    """Small whole numbers first, then such as need all digits of float64, and large ones."""
    x = matrices(30, 8, 5)
    x[0], x[9:] = np.arange(8) / 2, 1e6 + x[9:]
    rows = [[int(v) if v == int(v) else v for v in row] for row in x.tolist()]
    assert_equal_or_refused(write(name, tmp_path, rows), x)


@pytest.mark.parametrize("name", CAN_HAVE_A_COMMA)
@pytest.mark.parametrize("ids", ["no", "rising"])
def test_decimal_commas_are_read_or_refused(name, ids, tmp_path):
    x = matrices(30, 8, 6)
    assert_equal_or_refused(write(name, tmp_path, x.tolist(), IDS[ids], ","), x)


@given(n=st.integers(20, 60), d=st.integers(2, 12), seed=st.integers(0, 99), name=st.sampled_from(sorted(WRITERS)))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_other_shapes_are_read_as_they_were_or_refused(n, d, seed, name, tmp_path_factory):
    x = matrices(n, d, seed)
    assert_equal_or_refused(write(name, tmp_path_factory.mktemp("w"), x.tolist(), [3 * i for i in range(n)]), x)
