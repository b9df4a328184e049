"""The command on files: what can't be read is one clear error, what can gives what the object gives."""

import csv
import dataclasses
import json
import os
import shlex

import numpy as np
import pandas as pd
import pytest
import torch
from one_line import assert_one_line
from processes import python

import isonb
from isonb import cli
from isonb.auditing.embedders import TokenEmbedder
from isonb.cli.audits import read_pairs, read_texts
from isonb.errors import InputError
from isonb.models.loading import load
from isonb_lab.data import corpus

TEXTS = [sentence.text for sentence in corpus.sentences()][:60]


def write(path, texts=TEXTS):
    if path.suffix == ".txt":
        path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps({"id": i, "text": text}) for i, text in enumerate(texts)))
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["id", "text"], *enumerate(texts)])
    else:
        pd.DataFrame({"id": range(len(texts)), "text": texts}).to_parquet(path)
    return path


@pytest.mark.parametrize("suffix", ["txt", "jsonl", "csv", "parquet"])
def test_every_kind_of_file_gives_the_same_texts(here, suffix):
    odd = [*TEXTS, "a, b", 'she said "no"', "na\u00efve \u4f60\u597d", "line\u2028separator"]
    assert read_texts(write(here / f"texts.{suffix}", odd)) == odd


def test_windows_lines_marks_and_empty_lines(here):
    (here / "t.txt").write_bytes("\ufeffone\r\n\r\ntwo\r\n".encode())
    assert read_texts("t.txt") == ["one", "", "two"]
    (here / "t.csv").write_text("\n\ntext;note\na, b;c\n")
    assert read_texts("t.csv") == ["a, b"]


@pytest.mark.parametrize("more", [["score"], ["sentence1", "sentence2"]])
def test_columns_of_pairs_that_may_both_be_meant_are_asked_about(here, more):
    pairs = pd.DataFrame({name: ["1"] for name in ("text1", "text2", "label", *more)})
    pairs.to_csv("pairs.csv", index=False)
    with pytest.raises(InputError, match=r"text1, text2 .* and label \(or score\), not both; got text1"):
        read_pairs("pairs.csv", rows=False)
    pairs.drop(columns=more).to_csv("pairs.csv", index=False)
    assert read_pairs("pairs.csv", rows=False) == (["1"], ["1"], [1.0])


def test_a_column_is_named_or_the_only_one(here):
    frame = pd.DataFrame({"title": ["a"] * 3, "body": ["b", None, "c"]})
    frame.to_parquet("two.parquet")
    assert read_texts("two.parquet", "body") == ["b", "", "c"]
    frame[["title"]].to_csv("one.csv", index=False)
    assert read_texts("one.csv") == ["a"] * 3
    frame.assign(title=pd.Categorical(frame.title), text=[["a"]] * 3).drop(columns="body").to_parquet("lists.parquet")
    assert read_texts("lists.parquet") == ["a"] * 3
    with pytest.raises(InputError, match="--column must name a column of text"):
        read_texts("lists.parquet", "text")
    for column in (None, "nothing"):
        with pytest.raises(InputError, match="--column must name a column of text"):
            read_texts("two.parquet", column)


def test_the_command_says_what_the_object_says(here, bert, capsys):
    write(here / "t.txt")
    arguments = ["audit", bert, "--texts", "t.txt", "--max-length", "64", "--work", "w"]
    assert cli.main([*arguments, "--json", "r.json", "--html", "r.html"]) == 0
    output = capsys.readouterr().out
    first = " ".join(output.split())
    assert first.startswith(f"{len(TEXTS)} texts of t.txt through {bert}, mean pooling, ")
    command = shlex.join(["isonb", *arguments, "--pairs", "pairs.csv"])  # for a terminal
    steps = (f"{command}  # a table of yours: text1, text2 and label, 1 for a match, 0 for none",)
    report = isonb.audit(bert, read_texts("t.txt"), max_length=64)
    assert output.strip() == repr(dataclasses.replace(report, commands=steps)).strip()
    assert json.loads((here / "r.json").read_text())["layers"]
    assert "Is the instrument sound?" in (here / "r.html").read_text()
    assert list((here / "w").glob("texts-*/*.npy"))
    assert cli.main(["audit", bert, "--texts", "t.txt", "--fail-on", "layer 1 IsoScore<2"]) == 1


def test_no_report_is_written_over_an_input_or_another_report(here, capsys):
    np.savetxt("v.csv", np.random.default_rng(0).normal(size=(60, 4)), delimiter=",")
    os.symlink("v.csv", "link.csv")
    before = (here / "v.csv").read_bytes()
    for words in (["--rows", "v.csv"], ["--json", "link.csv"], ["--json", "new", "--html", "./new"]):
        assert_one_line(capsys, here, ["audit", "v.csv", *words], "must name a file of its own; got ")
    (here / "shards").mkdir()
    (here / "shards" / "a.csv").write_bytes(before)
    assert_one_line(capsys, here, ["audit", "shards", "--rows", "shards/a.csv"], "must name a file of its own; got ")
    assert (here / "v.csv").read_bytes() == (here / "shards" / "a.csv").read_bytes() == before
    assert cli.main(["audit", "v.csv", "--json", "/dev/null", "--rows", "/dev/null"]) == 0


def test_texts_name_the_rows_of_a_file_of_vectors(here, capsys):
    x = np.random.default_rng(0).normal(size=(300, 8))
    x[7] = x[5] * (1 + 1e-9)
    np.save("x.npy", x)
    (here / "t.txt").write_text("\n".join(f"text {row}" for row in range(300)))
    pd.DataFrame([(i, i + 1, i % 3) for i in range(60)], columns=["row1", "row2", "label"]).to_csv("p.csv")
    assert cli.main(["audit", "x.npy", "--texts", "t.txt", "--pairs", "p.csv", "--queries", "x.npy"]) == 0
    assert '"text 5" and "text 7", 1.000' in capsys.readouterr().out
    with pytest.raises(InputError, match="pool must be left out of vectors"):
        isonb.audit("x.npy", read_texts("t.txt"), pool="mean")


def test_texts_may_come_from_the_standard_input(here, bert):
    with write(here / "t.txt").open() as file:
        for content in ({"input": "\n".join(TEXTS)}, {"stdin": file}):
            report = python("-m", "isonb", "audit", bert, "--texts", "/dev/stdin", cwd=here, **content)
            assert report.startswith(f"{len(TEXTS)} texts of stdin through ")


def test_what_to_do_next_keeps_the_rate_and_the_sample(here, capsys):
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(300, 8)) + 1
    lines = {"shifted": "--pairs pairs.csv  # a table of yours: row1, row2", "broken": "--fix fixed.npy\n"}
    for name, line in lines.items():
        np.save(f"{name}.npy", rows)
        rows[5] = np.nan
        assert cli.main(["audit", f"{name}.npy", "--sample", "200", "--seed", "3"]) == 0
        assert f"isonb audit {name}.npy --sample 200 --seed 3 {line}" in capsys.readouterr().out
    topics = draw.normal(size=(30, 24)).repeat(10, 0) + 0.5 * draw.normal(size=(300, 24))
    topics[:, 0] = 20 * draw.normal(size=300)
    np.save("loud.npy", topics)
    pairs = [(row, row ^ 1 if row % 2 else (row + 150) % 300, row % 2) for row in range(200)]
    pd.DataFrame(pairs, columns=["row1", "row2", "label"]).to_csv("p.csv", index=False)
    assert cli.main(["audit", "loud.npy", "--pairs", "p.csv", "--false-match-rate", "0.1"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "--fix" in line)
    assert cli.main(shlex.split(line)[1:]) == 0


def test_pairs_and_queries_by_file(here, bert, capsys):
    write(here / "t.txt")
    pairs = [(a, b, float(i % 4 == 0)) for i, (a, b) in enumerate(zip(TEXTS * 8, TEXTS[3:] * 9, strict=False))]
    pd.DataFrame(pairs, columns=["text1", "text2", "label"]).to_csv("pairs.csv", index=False)
    assert read_pairs("pairs.csv", rows=False)[2][:5] == [1.0, 0.0, 0.0, 0.0, 1.0]
    arguments = ["audit", bert, "--texts", "t.txt", "--false-match-rate", "0.1"]
    assert cli.main([*arguments, "--pairs", "pairs.csv", "--queries", "t.txt"]) == 0
    output = capsys.readouterr().out
    assert "AUC over 480 pairs" in output
    assert "Queries give none" in output  # in so few dimensions their answers don't stand out
    np.save("x.npy", torch.randn(300, 8, generator=torch.Generator().manual_seed(0)).numpy())
    rows = [(i % 300, (i * 7 + 1) % 300, i % 2) for i in range(900)]
    pd.DataFrame(rows, columns=["row1", "row2", "label"]).to_csv("rows.csv", index=False)
    assert cli.main(["audit", "x.npy", "--pairs", "rows.csv", "--queries", "x.npy"]) == 0
    assert "false matches" in capsys.readouterr().out


def test_no_module_of_the_folder_that_is_audited_is_run(here):
    """What is in the current folder has names that we and our libraries import."""
    for name in ("torch", "numpy", "json", "argparse", "pyarrow", "pandas", "isonb_lab", "sentence_transformers"):
        (here / f"{name}.py").write_text(f"open('ran_{name}', 'w')")
    np.save(here / "x.npy", np.random.default_rng(0).normal(size=(200, 8)))
    assert python("-m", "isonb", "audit", ".", cwd=here).startswith("200 x 8 from x.npy")
    assert not list(here.glob("ran_*"))


BAD = {
    "empty.txt": b"",
    "blank.txt": b"\n \n",
    "binary.txt": b"\x00\x01\x02",
    "mixed.txt": "caf\u00e9\n".encode() + "caf\u00e9\n".encode("latin-1"),
    "torn.jsonl": b'{"text": "a"}\n{"text": ',
    "good.txt": "\n".join(TEXTS).encode(),
    "other.csv": b"a,b\n1,2\n",
    "words.csv": b"text1,text2,label\na,b,yes\n",
}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (["--texts", "nothing.txt"], "no file"),
        (["--texts", "empty.txt"], "must hold texts"),
        (["--texts", "blank.txt", "--html", "nowhere/report.html"], "must exist"),
        (["--texts", "binary.txt"], "zero byte"),
        (["--texts", "mixed.txt"], "byte 0xe9 in line 2"),
        (["--texts", "torn.jsonl"], "line 2"),
        (["--texts", "other.csv"], "--column"),
        (["--texts", "good.txt", "--pairs", "other.csv"], "text1, text2 (or sentence1, sentence2) and label"),
        (["--texts", "good.txt", "--pairs", "words.csv"], "'yes'"),
        (["--texts", "good.txt", "--pairs", "nothing.csv"], "no file"),
        (["--texts", "good.txt", "--pool", "max"], "pool must be"),
        (["--work", "w"], "--work must come with --texts"),
        (["--column", "text"], "--column must come with --texts"),
        (["--compare", "x", "--false-match-rate", "0.3"], "must come with --pairs or --queries; got 0.3"),
    ],
)
def test_a_bad_file_is_one_line(here, bert, capsys, text, says):
    for name, content in BAD.items():
        (here / name).write_bytes(content)
    assert_one_line(capsys, here, ["audit", bert, *text], says)


def test_changes_to_a_mapped_file_are_read_and_kept(here):
    np.save("x.npy", torch.randn(5000, 300, generator=torch.Generator().manual_seed(0)).numpy())
    for mode in ("c", "r+"):
        changed = np.load("x.npy", mmap_mode=mode)
        changed[7] = 0
        assert isonb.audit(changed, sample=200).findings[0].rows == (7,)
        assert not changed[7].any()


def test_a_line_of_ten_megabytes_is_read_as_far_as_the_model_reads(bert):
    embedder = TokenEmbedder(load(bert), "mean", 64)
    line = " ".join(TEXTS)
    many = line * (10**7 // len(line))
    assert embedder.read([many]).ids == embedder.read([line * 50]).ids
    assert list(map(len, embedder.readable([many]))) == [64_000]
