"""Every piece of Python that an error names is run, on an input that is told it, until an audit reads what it gives."""

import base64
import re
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import isonb
from isonb import cli
from isonb.auditing.reading import matrix
from isonb.auditing.reading.members import UNCLEAR
from isonb.errors import CODE, InputError

N, D = 60, 16
X = np.random.default_rng(0).normal(size=(N, D)).round(4).astype("float32")
BITS = np.packbits(X > 0, axis=-1)


def gaps():
    return np.concatenate([X, np.full((N, 25), np.nan)], -1)


def float8():
    return X.astype(pytest.importorskip("ml_dtypes").float8_e4m3fn)


ARRAYS = {
    "bool": (lambda: X > 0, D),
    "bits": (lambda: (X > 0).astype("u1"), D),
    "uint8": (lambda: np.concatenate([BITS, BITS], -1), 2 * D),
    "int8": (lambda: (X * 30).astype("i1"), D),
    "uint16": (lambda: (X.view("u4") >> 16).astype("u2"), D),
    "complex": (lambda: X + 1j * X, 2 * D),
    "float8": (float8, D),
    "empty dimensions": (gaps, D),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_what_is_to_be_taken_of_an_array_gives_vectors(case):
    make, d = ARRAYS[case]
    x = make()
    with pytest.raises(InputError) as refused:
        isonb.audit(x)
    (code,) = re.findall(r"(?:take|Take|out:) (.*?)\.$", str(refused.value))
    assert isonb.audit(eval(code, {"x": x, "numpy": np})).read.shape == (N, d)


CELLS = {
    "bytes": [row.tobytes() for row in X],
    "base64": [base64.b64encode(row.tobytes()).decode() for row in X],
    "8-bit vectors": pa.array(BITS.tolist(), pa.list_(pa.uint8())),
    "arrays": [[row, row] for row in X.tolist()],
}


@pytest.mark.parametrize("kind", CELLS)
def test_what_is_to_be_taken_of_a_cell_gives_a_vector(kind):
    cells = CELLS[kind]
    with pytest.raises(InputError, match=re.escape(UNCLEAR[kind])):
        matrix(pa.table({"v": cells}))
    for code in re.findall(r"numpy\.frombuffer.*'\)", UNCLEAR[kind]):
        assert np.array_equal(eval(code, {"cell": cells[1], "numpy": np, "base64": base64}), X[1])


def hdf5(path):
    with pytest.importorskip("h5py").File(path, "w") as file:
        file["NAME"] = X


def faiss(path):
    library = pytest.importorskip("faiss")
    index = library.IndexFlatIP(D)
    index.add(X)
    library.write_index(index, str(path))


def in_rows(path):
    path.write_bytes(b"".join(np.int32(D).tobytes() + row.tobytes() for row in X))


FILES = {
    ".h5": hdf5,
    ".faiss": faiss,
    ".feather": lambda path: pyarrow.feather.write_feather(pa.table({"v": X.tolist()}), path),
    ".fvecs": in_rows,
    ".fbin": lambda path: path.write_bytes(np.array(X.shape, "<u4").tobytes() + X.tobytes()),
}


@pytest.mark.parametrize("suffix", FILES)
def test_the_lines_for_files_of_other_programs_save_their_vectors(suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"it's two words{suffix}"
    FILES[suffix](path)
    with pytest.raises(InputError, match=rf"must be one of \.npy, .*got .*, a file of \{suffix}\.") as refused:
        isonb.audit(path)
    exec("\n".join(str(refused.value).split(CODE)[1:]), {})
    (saved,) = tmp_path.glob("vectors.*")
    assert isonb.audit(saved).read.shape == (N, D)


def in_parquet(path):
    pq.write_table(pa.table({"title": X.tolist(), "body": X.tolist()}), path / "a.parquet")
    return "a.parquet", f"{N} x {D} from "


def texts(path):
    animals = [f"The {animal} sees {n} trees." for animal in ("cat", "dog") for n in range(N // 2)]
    (path / "a.txt").write_text("\n".join(animals))
    return "a.txt", "60 texts of a.txt through minilm, "


@pytest.mark.parametrize("make", [in_parquet, texts])
def test_the_commands_of_an_error_run(make, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name, first = make(tmp_path)
    assert cli.main(["audit", name]) == 2
    command = capsys.readouterr().err.split("\n    ")[1]
    assert cli.main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out.startswith(first)


def test_the_line_for_what_is_in_memory_names_its_argument():
    vectors = {"it's": X, "other": X}
    with pytest.raises(InputError) as refused:
        isonb.audit(vectors)
    exec(str(refused.value).split(CODE)[1], {"isonb": isonb, "vectors": vectors})
