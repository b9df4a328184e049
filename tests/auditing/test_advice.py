"""Every line of advice is run, on an input that is told it, until an audit reads what it leaves."""

import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import isonb
from isonb import cli
from isonb.auditing.reading.advice import LINES
from isonb.errors import CODE, InputError

N, D = 60, 16
X = np.random.default_rng(0).normal(size=(N, D)).round(4).astype("float32")
BITS = np.packbits(X > 0, axis=-1)
TOKENS = [np.tile(row, (1 + i % 3, 1)) for i, row in enumerate(X)]


def saved(array, name="a.npy"):
    np.save(name, array)
    return name


def in_parquet(**columns):
    pq.write_table(pa.table(columns), "a.parquet")
    return "a.parquet"


def texts():
    with open("a.txt", "w") as file:
        file.writelines(f"The {animal} sees {n} trees.\n" for animal in ("cat", "dog") for n in range(N // 2))
    return "a.txt"


def gaps():
    x = X.copy()
    x[:, 3] = np.nan
    return x


# What is told each of them; files and objects, and several of a kind.
TOLD = {
    "bool": [lambda: saved(X > 0), lambda: X > 0, lambda: torch.from_numpy(X) > 0],
    "packed bits": [
        lambda: saved(np.concatenate([BITS, BITS], -1)),
        lambda: np.concatenate([BITS, BITS], -1),
        lambda: in_parquet(v=pa.array([[*row, *row] for row in BITS.tolist()], pa.list_(pa.uint8()))),
    ],
    "int8": [lambda: saved((X * 30).astype("i1")), lambda: {"emb": (X * 30).astype("i1"), "ids": np.arange(N)}],
    "bfloat16": [lambda: saved((X.view("u4") >> 16).astype("u2"))],
    "complex": [lambda: saved(X + 1j * X), lambda: torch.from_numpy(X + 1j * X)],
    "float8": [lambda: X.astype(pytest.importorskip("ml_dtypes").float8_e4m3fn)],
    "tokens": [
        lambda: saved(np.stack([X, X], 1)),
        lambda: torch.from_numpy(np.stack([X, X], 1)),
        lambda: TOKENS,
        lambda: [torch.from_numpy(token) for token in TOKENS],
        lambda: [[item.tolist()] for item in TOKENS],
        lambda: in_parquet(v=[entry.tolist() for entry in TOKENS], text=["a"] * N),
    ],
    "empty dimensions": [lambda: saved(gaps()), gaps, lambda: torch.from_numpy(gaps())],
    "name": [lambda: in_parquet(title=X.tolist(), body=X.tolist())],
    "name in memory": [lambda: {"it's": X, "other": X}, lambda: pa.table({"a": X.tolist(), "b": X.tolist()})],
    "texts": [texts],
}


def test_each_line_has_an_input_that_is_told_it():
    assert set(TOLD) == set(LINES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "number"), [(name, i) for name, result in TOLD.items() for i in range(len(result))])
def test_the_lines_lead_to_vectors(name, number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    vectors = TOLD[name][number]()
    with pytest.raises(InputError) as refused:
        isonb.audit(vectors)
    lines = str(refused.value).split(CODE)[1:]
    assert len(lines) == len(LINES[name])
    if lines[0].startswith("isonb audit "):
        assert cli.main(shlex.split(lines[0])[1:]) == 0
        first = "60 texts of a.txt through minilm, " if name == "texts" else f"{N} x {D} from "
        assert capsys.readouterr().out.startswith(first)
        return
    shown = []
    audit = isonb.audit
    monkeypatch.setattr(isonb, "audit", lambda *args, **text: shown.append(audit(*args, **text)))
    exec("\n".join(lines), {"vectors": vectors, "isonb": isonb})
    monkeypatch.undo()
    saved_file = tmp_path / "vectors.npy"
    report = audit(str(saved_file)) if saved_file.is_file() else shown[0]
    width = {"empty dimensions": D - 1, "complex": 2 * D, "packed bits": 2 * D}.get(name, D)
    assert report.read.shape == (N, width)
