"""The table of formats: what each tool writes is read as the numbers that went in, or refused with words that help."""

import gzip
import io
import json
import pickle
import re

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import torch

import isonb
from isonb import cli
from isonb.auditing.reading import matrix
from isonb.auditing.rows import numbers
from isonb.errors import InputError

N, D = 60, 16
X = np.random.default_rng(0).normal(size=(N, D)).round(4).astype("float32")
IDS = [f"doc{i}" for i in range(N)]
ROWS = X.tolist()
CELLS = [json.dumps([round(v, 4) for v in row]) for row in ROWS]
LATE = np.concatenate([np.full((5000, D), np.nan, "f4"), X[:1]])
LETTERS = "abcdefghijklmnop"
NAMES = [f"dim_{i}" for i in range(D)]  # sorted, dim_10 stands before dim_2


def plain(source):
    return numbers(source, slice(0, source.shape[0])).numpy()


def polars():
    return pytest.importorskip("polars")


def listed(**more):
    return pa.table({"id": IDS, "vector": pa.array(ROWS, type=pa.list_(pa.float32())), **more})


def wide(names=NAMES, **more):
    return pd.DataFrame(X, columns=names).assign(**more)


# What writes an object to a path, for the tables below.
def npy(array):
    return lambda path: np.save(path, array)


def text(content):
    return lambda path: path.write_text(content, encoding="utf-8")


def jsonl(records):
    return text("\n".join(map(json.dumps, records)) + "\n")


def parquet(result):
    return lambda path: pq.write_table(result() if callable(result) else result, path)


def ml_dtypes(kind):
    return lambda path: np.save(path, X.astype(getattr(pytest.importorskip("ml_dtypes"), kind)))


def shards(path):
    path.mkdir()
    for i in range(12):  # number 10 comes after number 2
        np.save(path / f"img_emb_{i}.npy", X[5 * i : 5 * i + 5])


def folders(path):
    for i in range(12):
        (path / f"part-{i}").mkdir(parents=True)
        np.save(path / f"part-{i}/x.npy", X[5 * i : 5 * i + 5])


def tables(*frames, header=True):
    def make(path):
        path.mkdir()
        for i, frame in enumerate(frames):
            frame.to_csv(path / f"{i}.csv", index=False, header=header or i == 0)

    return make


def splits(path):
    data = datasets.Dataset.from_dict({"embedding": ROWS})
    datasets.DatasetDict({"train": data, "test": data.select(range(30))}).save_to_disk(path)


def phrase(names, head=""):
    lines = [f"{w} {' '.join(map(str, row))}\n" for w, row in zip(names, ROWS, strict=True)]
    return text(head + "".join(lines))


def word2vec_binary(path):
    rows = [f"w{i} ".encode() + X[i].tobytes() + b"\n" for i in range(N)]
    path.write_bytes(f"{N} {D}\n".encode() + b"".join(rows))


TENSORS = pa.FixedShapeTensorArray.from_numpy_ndarray
# What is written under which name; which part; the numbers that should come.
READ = {
    "numpy big-endian": ("a.npy", npy(X.astype(">f4"))),
    "numpy int32": ("a.npy", npy((X * 100).astype("i4")), None, (X * 100).astype("i4")),
    "ml_dtypes bfloat16": ("a.npy", ml_dtypes("bfloat16"), None, torch.from_numpy(X).bfloat16().float().numpy()),
    "npz compressed": ("a.npz", lambda path: np.savez_compressed(path, x=X, y=X[:, :3]), "x", X),
    "pandas parquet wide, sorted": ("a.parquet", wide()[sorted(NAMES)].to_parquet),
    "csv in gzip": ("a.csv.gz", lambda p: p.write_bytes(gzip.compress(wide(id=IDS).to_csv().encode()))),
    "arrow tensors": ("a.parquet", parquet(lambda: pa.table({"v": TENSORS(np.ascontiguousarray(X))}))),
    "arrow floats beside token ids": ("a.parquet", parquet(lambda: listed(ids=[[1, 2]] * N))),
    "pgvector copy": ("a.tsv", text("".join(f"{i}\t{cell}\n" for i, cell in enumerate(CELLS)))),
    "Postgres arrays": ("a.tsv", text("v\n" + "".join("{" + cell[1:-1] + "}\n" for cell in CELLS))),
    "JSON lines that are long": ("a.json", jsonl({"note": "x" * 2**17, "v": row} for row in ROWS)),
    "JSON lines, missing for long": ("a.jsonl", jsonl({"v": r} for r in [None] * 5000 + ROWS[:1]), None, LATE),
    "datasets with splits": ("set", splits, "train.embedding", X),
    "word2vec binary": ("a.bin", word2vec_binary),
    "GloVe": ("a.txt", phrase([". . .", "7", "naïve", *IDS[3:]])),  # words with blanks, words that are numbers
    "word2vec text of Windows": ("a.vec", phrase(IDS, f"\ufeff{N} {D}\n")),
    "points of two dimensions": ("a.txt", lambda p: np.savetxt(p, X[:, :2]), None, X[:, :2]),
    "blank lines above a header": ("a.csv", text("\n \n" + wide().to_csv(index=False))),
    "blank lines above aligned numbers": ("a.csv", text("\n \n" + wide().to_csv(index=False).replace(",", "  "))),
    "a table that was split": ("cs", tables(wide([*LETTERS])[:30], wide([*LETTERS])[30:], header=False)),
    "aligned numbers": ("a.txt", lambda p: np.savetxt(p, X, fmt="%10.4f")),
    "folder of npy shards": ("shards", shards),
    "folder of folders": ("shards", folders),
}


@pytest.mark.parametrize("case", READ)
def test_what_tools_write_is_read(case, tmp_path):
    name, make, *more = READ[case]
    part, want = more or (None, X)
    make(tmp_path / name)
    got = plain(matrix(tmp_path / name, name=part))
    assert got.shape == want.shape
    assert np.allclose(got, want, rtol=1e-6, atol=1e-7, equal_nan=True)


def test_a_pattern_names_shards(tmp_path):
    shards(tmp_path / "shards")
    (tmp_path / "shards/metadata.parquet").write_bytes(b"PAR1")
    joined, rows = matrix(tmp_path / "shards" / "*.npy"), torch.tensor([59, 0, 12, 13])
    assert np.array_equal(plain(joined), X)
    assert np.array_equal(numbers(joined, rows).numpy(), X[rows.numpy()])
    assert np.array_equal(numbers(joined, slice(3, 27)).numpy(), X[3:27])


def in_bytes():
    file = io.BytesIO()
    np.save(file, X)
    return file.getvalue()


class Odd:
    """What only pickle can save."""


def folder_of(*names):
    def make(path):
        path.mkdir()
        for name in names:
            (path / name).mkdir()

    return make


def numbered(path):
    path.mkdir()
    for i, step in enumerate((1, -1)):
        wide([*map(str, range(D))]).iloc[:, ::step].to_parquet(path / f"{i}.parquet")


def twice():
    return pa.Table.from_arrays([pa.array(column) for column in X.T[:3]], names=["a", "a", "b"])


def mixed(path):
    shards(path)
    pq.write_table(listed(), path / "metadata.parquet")


REFUSED = {
    "float8 of ml_dtypes": ("a.npy", ml_dtypes("float8_e4m3fn"), "without a type"),
    "text": ("a.npy", npy(np.array([["a", "b"]] * N)), "<U1"),
    "tokens": ("a.npy", npy(np.ones((N, 5, D), "f4")), "(60, 5, 16)"),
    "pickled objects in an archive": ("a.npz", lambda p: np.savez(p, x=np.array([Odd()] * N)), "never loaded"),
    "a pickle": ("a.pkl", lambda p: p.write_bytes(pickle.dumps(ROWS)), "must be one of .npy"),
    "a pickled model": ("a.pt", lambda p: torch.save({"model": Odd()}, p), "never loaded"),
    "cut by numpy": ("a.csv", text("v\n" + '"[0.1 0.2 ... 0.3]"\n' * N), "numpy has cut it"),
    "two columns": ("a.parquet", parquet(pa.table({"title": ROWS, "body": ROWS})), "title: list"),
    "a table of texts": ("a.csv", text("text,label\nhello,1\nyou,0\n"), "text: text"),
    "shards of two kinds": ("mixed", mixed, "12 .npy, 1 .parquet"),
    "shards in two orders": (
        "cs",
        tables(wide([*LETTERS]), wide([*LETTERS])[sorted(LETTERS)[::-1]]),
        "a in 0.csv and p",
    ),
    "shards of numbered columns in two orders": ("cs", numbered, "0 in 0.parquet and 15 in 1.parquet"),
    "shards with a gap each": (
        "cs",
        tables(wide().drop(columns="dim_3"), wide().drop(columns="dim_4")),
        "dim_4 in 0.csv",
    ),
    "a column of a table twice": ("a.csv", text("a,a,b\n0.5,1.5,2.5\n"), "must have each name once; got 'a' twice"),
    "a column of parquet twice": ("a.parquet", parquet(twice), "must have each name once; got 'a' twice"),
    "an empty folder": ("nothing", folder_of(), "nothing"),
    "no file": ("none.npy", lambda p: None, "no file"),
    "the folder of a model": ("m", folder_of("config.json"), "--texts"),
    "torn npy": ("a.npy", lambda p: p.write_bytes(b"\x93NUMPY\x01"), "must be readable"),
    "torn JSON lines": ("a.jsonl", text('{"v": [1.0, 2.0]}\n{"v": [1'), "line 2"),
    "npy in gzip": ("a.npy.gz", lambda p: p.write_bytes(gzip.compress(in_bytes())), "bytes of no format"),
    "two arrays in a file": ("a.npy", lambda p: p.write_bytes(2 * in_bytes()), "as its header says"),
    "text in another encoding": ("a.csv", lambda p: p.write_bytes("größe\n1\n".encode("latin-1")), "Save it as UTF-8"),
    "several vectors a row": ("a.jsonl", jsonl({"r": [{"e": r}, {"e": r}], "t": 4.5, "u": 3.5} for r in ROWS), "of 2"),
    "counts beside a code": (
        "a.jsonl",
        jsonl({"e": "ab" * 99 + "!", "x": i / 7, "y": i / 3} for i in range(N)),
        "e: text",
    ),
    "padded tokens": ("a.jsonl", jsonl({"input_ids": [1, 2, 3]} for _ in ROWS), "input_ids"),
    "rows or columns": ("a.json", text(json.dumps({f"dim_{c}": ROWS[0] for c in range(3)})), "rows or dimensions"),
    "words, a row cut off": ("a.vec", text("3 2\na 1.0 2.0\nb 1.0 2.0\n"), "3 rows"),
    "no rows": ("a.npz", lambda p: np.savez(p, x=X[:0]), "rows"),
    "ragged after many": ("a.jsonl", jsonl({"v": [0.5] * (2 - i // 5000)} for i in range(5001)), "one length"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_holds_no_vectors_is_refused(case, tmp_path, capsys):
    name, make, says = REFUSED[case]
    make(tmp_path / name)
    assert cli.main(["audit", str(tmp_path / name)]) == 2
    output, *lines = capsys.readouterr().err.splitlines()
    assert output.startswith("error: audit: ")
    assert says in " ".join([output, *lines])


def stored():
    return {
        "masked": np.ma.masked_invalid(X),
        "parameter": torch.nn.Parameter(torch.from_numpy(X)),
        "polars series": polars().Series(ROWS),
        "arrow column": listed()["vector"],
        "array of text": np.array(CELLS),
        "text without brackets": [cell.strip("[]") for cell in CELLS],
        "scipy coo": scipy.sparse.coo_array(X),
        "torch coo": torch.from_numpy(X).to_sparse(),
        "stream": datasets.IterableDataset.from_generator(lambda: ({"id": 1, "v": row} for row in ROWS)),
        "objects": np.array([*ROWS, None], dtype=object)[:-1],
    }


@pytest.mark.parametrize("case", stored())
def test_what_is_in_memory_is_read(case):
    got = matrix(stored()[case])
    assert got.shape == (N, D)
    assert not getattr(got, "requires_grad", False)
    assert np.allclose(plain(got), X, rtol=1e-6, atol=1e-7)
    assert np.allclose(numbers(got, torch.tensor([4, 1])).numpy(), X[[4, 1]], rtol=1e-6, atol=1e-7)


def test_masked_numbers_are_missing():
    x = np.ma.masked_array(X, mask=np.zeros_like(X, dtype=bool))
    x[7, 2] = np.ma.masked
    assert isonb.audit(x).findings[0].rows == (7,)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (object(), "has no rows of numbers"),
        ([np.array(1.0)] * N, "got numbers"),
        ([[i, *row] for i, row in enumerate(ROWS)] + [[N, 0.5]], "must have 17 places"),
        ({"a": {"v": X, "id": [1, 2]}, "b": {"v": X, "id": [1, 2]}}, "a.v: float32"),
        ([[1.0, 2.0], [1.0]], "1 of length 1, the first in row 1"),
        (pd.DataFrame({"text": IDS}), "text: "),
        (pd.DataFrame(X[:, :3], columns=["a", "a", "b"]), "Duplicate column names found"),
        (pd.DataFrame.sparse.from_spmatrix(scipy.sparse.csr_array(X)), "Sparse pandas data"),
        (pd.DataFrame(X * 1j), "Arrow can hold, each of one type and with a name of its own; got"),
        (pd.Categorical(IDS), "Arrow can hold"),
        (twice(), "must have each name once; got 'a' twice"),
        ({1: ROWS[0], "1": ROWS[1], "2": ROWS[2]}, "must have each name once; got '1' twice"),
        ([[]], "got missing values alone"),
        ({"a": [[[]]]}, "got a.[0]: missing values alone"),
        (datasets.IterableDataset.from_generator(lambda: iter(())), "got nothing"),
        (["good morning"] * N, "must hold vectors, one a row; got text"),
    ],
)
def test_what_is_in_memory_and_holds_none_is_refused(bad, says):
    with pytest.raises(InputError, match=f"^audit: .*{re.escape(says)}"):
        isonb.audit(bad)


def test_one_reader_serves_every_door(tmp_path, monkeypatch, capsys):
    """--queries, --compare and their names, in files of several arrays."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    passages, queries = rng.normal(size=(300, 8)).astype("f4"), rng.normal(size=(60, 8)).astype("f4")
    np.savez("run.npz", passages=passages, queries=queries)
    pd.DataFrame({"v": list(passages)}).to_parquet("again.parquet")
    arguments = ["audit", "run.npz", "--name", "passages"]
    assert cli.main([*arguments, "--queries", "run.npz", "--json", "a.json"]) == 0
    assert cli.main([*arguments, "--queries", "run.npz", "--queries-name", "queries", "--json", "b.json"]) == 0
    assert cli.main([*arguments, "--compare", "again.parquet", "--compare-name", "v"]) == 0
    assert "The rows are the same" in capsys.readouterr().out
    first, second = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert first["matches"] == second["matches"]
    assert first["matches"] == json.loads(isonb.audit(passages, queries=queries).to_json())["matches"]
    assert cli.main([*arguments, "--queries-name", "queries"]) == 2


def test_queries_of_a_model_name_their_column(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    texts = [f"The {animal} sees {n} trees." for animal in ("cat", "dog", "cow") for n in range(20)]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    pd.DataFrame({"title": texts[:30], "query": texts[30:]}).to_csv("asked.csv", index=False)
    arguments = ["audit", "tiny", "--texts", "texts.txt", "--queries", "asked.csv"]
    assert cli.main(arguments) == 2
    assert "--queries-name must name a column of text in asked.csv" in capsys.readouterr().err
    assert cli.main([*arguments, "--queries-name", "query"]) == 0


def test_more_than_two_to_the_thirty_one_numbers(tmp_path):
    """A sparse file: only the rows that are asked for are read."""
    d = 4096
    n = 2**31 // d + 100
    with (tmp_path / "big.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (n, d)})
        file.truncate(file.tell() + 4 * n * d)
        file.seek(-4 * d, 2)
        file.write(np.arange(d, dtype="f4").tobytes())
    big = matrix(tmp_path / "big.npy")
    assert big.shape[0] * big.shape[1] > 2**31
    assert np.array_equal(numbers(big, torch.tensor([n - 1])).numpy()[0], np.arange(d))


# What a report says was read, of these files and objects.
SAID = {
    "columns": (
        lambda p: wide([*LETTERS], id=range(N)),
        "60 x 16 from vectors, columns a to p; id left out",
    ),
    "a column": (lambda p: listed(text=IDS), "60 x 16 from vectors, column vector; id, text left out"),
    "a gap": (lambda p: wide().drop(columns="dim_3"), "60 x 15 from vectors, columns dim_0 to dim_15 (15 of them)"),
    "an archive": (lambda p: np.savez(p / "a.npz", emb=X, ids=range(N)), "60 x 16 from a.npz, array emb; ids left out"),
    "shards": (lambda p: shards(p / "a.npz"), "60 x 16 from a.npz (12 files)"),
    "row numbers": (
        lambda p: np.column_stack([np.arange(N), X]),
        "60 x 16 from vectors; dimension 0 (numbers of rows) left out",
    ),
    "an axis": (lambda p: X[:, None], "60 x 16 from vectors; axis of length 1 of (60, 1, 16) left out"),
    "letters that a terminal obeys": (
        lambda p: pa.table({"\x1b[2Kid": IDS, "v": ROWS}),
        "60 x 16 from vectors, column v; \\x1b[2Kid left out",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_the_first_line_says_what_was_read(case, tmp_path):
    make, says = SAID[case]
    result = make(tmp_path)
    report = isonb.audit(next(map(str, tmp_path.iterdir()), None) or result)
    assert repr(report).splitlines()[0].startswith(f"{says} (")
    read = json.loads(report.to_json())["read"]
    assert read["shape"] == [report.read.shape[0], report.read.shape[1]] == [N, report.d]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_text_of_windows_is_read(encoding, tmp_path):
    content = wide(id=range(N)).to_csv(index=False, sep="\t")
    mark = "\ufeff" if encoding.endswith("be") else ""
    (tmp_path / "a.csv").write_bytes((mark + content).encode(encoding))
    assert np.allclose(plain(matrix(tmp_path / "a.csv")), X, rtol=1e-6)


def test_braces_in_the_name_of_a_file(tmp_path):
    np.savez(tmp_path / "x{v2}{1}.npz", a=X, b=IDS)
    assert np.array_equal(plain(matrix(tmp_path / "x{v2}{1}.npz")), X)
