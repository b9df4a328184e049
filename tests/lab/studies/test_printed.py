"""The printed numbers: all there, parsed, and beside ours in the same unit."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from isonb.lab.runs.record import Record
from isonb.lab.runs.table import table
from isonb.lab.studies import printed as module
from isonb.lab.studies.printed import PAPERS, PrintedError, beside, hyperparameters, long, printed, tables

COUNTS = {"isolayer": 139, "istar": 163, "shrink_the_longest": 165, "softdecay": 237}
NAMES = {"method": {"I-STAR": "istar", "Base": "none", "CosReg": "cosreg"}}


def ours() -> pd.DataFrame:
    runs = [
        Record(
            {"task": task, "method": method, "model": "minilm", "seed": seed},
            {"accuracy": 0.6 + seed / 100, "isoscore": 0.1},
            status="complete" if seed < 3 else "failed",
        )
        for task in ("rte", "own suite")
        for method in ("none", "istar")
        for seed in (1, 2, 3)
    ]
    return table(runs)


@pytest.mark.parametrize("paper", PAPERS)
def test_everything_is_there(paper):
    found = printed(paper)
    assert len(found) == COUNTS[paper]
    assert set(found["paper"]) == {paper}
    assert set(hyperparameters(paper)["paper"]) == {paper}
    assert found["value"].dtype == found["std"].dtype == "float64"
    unread = set(found.loc[found["value"].isna(), "text"])
    assert unread <= {
        "", "less than 5%", "last 30% of training", "10,6,4,4,1,...,1", "0.12 to 0.0397", "around 2-3%", "70/30",
    }  # fmt: skip


def test_known_numbers():
    row = printed("istar", "Table 1", model="ALBERT", task="SST-2", method="I-STAR").iloc[0]
    assert (row["value"], row["std"], row["text"]) == (93.08, 0.32, "93.08")
    bars = printed("shrink_the_longest", "Table 3", model="bert-base-uncased", task="MRPC", metric="raw_anisotropy_1")
    assert bars["value"].tolist() == [0.679, 0.485, 0.541]
    sts = printed("softdecay", "Table 1", model="bert-base", task=["STS-B", "STS-12"], method="BERT")
    assert sts["value"].tolist() == [59.05, 57.72]
    assert printed("isolayer", "Table 2", metric="accuracy relative change")["value"].iloc[0] == 5.8
    assert hyperparameters("istar", model="ALBERT", task="SST-2", parameter="zeta")["value"].tolist() == ["0.2"]


def test_table_averages_follow_from_the_rows():
    found = printed("softdecay", "Table 1", metric="spearman_x100")
    for (_, method), rows in found.groupby(["model", "method"]):
        scores = rows.set_index("task")["value"]
        if "Avg" in scores and not method.startswith("-"):
            assert scores.drop("Avg").mean() == pytest.approx(scores["Avg"], abs=0.03)


def test_fractions():
    percent, fraction = printed("istar", "Table 1"), printed("istar", "Table 1", percent=False)
    assert (percent["value"] > 1).all()
    assert fraction["value"].between(-1, 1).all()
    assert fraction["std"].tolist() == pytest.approx((percent["std"] / 100).tolist())
    assert set(fraction["metric"]) == {"accuracy", "exact_match", "f1", "matthews_corrcoef", "pearson"}
    bars = printed("shrink_the_longest", "Table 3")
    assert bars.equals(printed("shrink_the_longest", "Table 3", percent=False))  # shares stay shares


@pytest.mark.parametrize("paper", PAPERS)
def test_every_score_called_a_percentage_is_one(paper):
    found = printed(paper)
    scores = found[found["metric"].isin(module.PERCENT) | found["metric"].str.endswith("_x100")]
    assert (scores["value"] > 5).all()
    assert not found["metric"].isin(["spearman", "pearson", "matthews_corrcoef"]).any()


@pytest.mark.parametrize(
    ("text", "value"),
    [("3.5", 3.5), ("-0.2", -0.2), ("+390.2%", 390.2), ("~6", 6), ("250k", 250_000), ("75,000", 75_000), ("1e-7", 1e-7),
     ("", math.nan), ("70/30", math.nan), ("around 2-3%", math.nan), ("10,6,4,4,1,...,1", math.nan)],
)  # fmt: skip
def test_number(text, value):
    assert module.number(text) == pytest.approx(value, nan_ok=True)


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: printed("bert"), "istar"),
        (lambda: tables("bert"), "softdecay"),
        (lambda: hyperparameters("bert"), "isolayer"),
        (lambda: printed("istar", "Table 9"), "Table 1"),
        (lambda: printed("istar", colour="red"), "method"),
        (lambda: printed("istar", task="RTF"), "RTE"),
        (lambda: printed("istar", "Table 1", task=["RTE", 3]), "RTE"),
        (lambda: hyperparameters("istar", parameter="magic"), "zeta"),
        (lambda: beside(ours(), "istar", on=["colour"]), "method"),
        (lambda: beside(ours().drop(columns="task"), "istar"), "'task'"),
        (lambda: beside(ours(), "istar", names={"colour": {}}), "method"),
        (lambda: long(pd.DataFrame({"a": [1]})), "metric"),
    ],
)
def test_errors_name_what_there_is(call, names):
    with pytest.raises(PrintedError, match=names):
        call()


def test_long():
    found = long(ours())
    assert len(found) == 24
    assert set(found["metric"]) == {"accuracy", "isoscore"}
    assert long(found) is found


def test_beside():
    found = beside(ours(), "istar", table="Table 1", names=NAMES)
    assert list(found.columns) == ["task", "method", "metric", "model", "source", "value", "std", "n", "note"]
    mine = found[found["source"] == "isonb"].set_index(["task", "method", "metric"])
    assert len(mine) == 8
    assert mine.loc[("rte", "istar", "accuracy"), "value"] == pytest.approx(0.615)
    assert mine.loc[("rte", "istar", "accuracy"), "std"] == pytest.approx(math.sqrt(0.5) / 100)
    assert set(mine["n"]) == {2}  # the failed runs don't count
    theirs = found[found["source"] == "istar Table 1"]
    assert set(zip(theirs["task"], theirs["method"], strict=True)) == {("rte", "none"), ("rte", "istar")}
    assert sorted(theirs["model"].unique()) == ["ALBERT", "BERT", "DistilBERT"]
    bert = theirs[(theirs["model"] == "BERT") & (theirs["method"] == "istar")]
    assert bert["value"].tolist() == pytest.approx([0.6253])
    assert theirs["n"].isna().all()


def test_beside_with_the_same_model_only():
    mine = ours().assign(model="BERT")
    found = beside(mine, "istar", on=["model", "task", "method", "metric"], table="Table 1", names=NAMES)
    assert set(found["model"]) == {"BERT"}
    assert (found["source"] != "isonb").sum() == 2


def test_beside_speaks_as_the_lab_does():
    mine = pd.DataFrame({"task": ["cola", "stsb", "sst2"], "metric": ["matthews", "pearson", "accuracy"], "value": 0.5})
    found = beside(mine.assign(method="istar"), "istar", table="Table 1", names=NAMES)
    theirs = found[found["source"] != "isonb"]
    assert theirs.groupby("task")["value"].count().to_dict() == {"cola": 3, "sst2": 3, "stsb": 3}
    named = beside(mine.assign(task="CoLA", method="istar"), "istar", names={**NAMES, "task": {}})
    assert set(named["task"]) == {"CoLA"}
    assert (named["source"] != "isonb").sum() == 3


def test_beside_does_not_mix_fine_tuned_and_untrained_similarity():
    mine = pd.DataFrame({"task": ["stsb", "stsb_test"], "method": "SoftDecay", "metric": "spearman", "value": 0.5})
    found = beside(mine, "softdecay", table="Table 1")
    assert found.groupby("task")["source"].count().to_dict() == {"stsb": 1, "stsb_test": 5}
    squad = pd.DataFrame({"task": "squad", "method": "istar", "metric": ["squad_f1", "f1"], "value": 0.5})
    assert set(beside(squad, "istar", names=NAMES).query("source != 'isonb'")["metric"]) <= {"squad_f1"}


def test_beside_without_a_match_keeps_ours():
    found = beside(ours(), "softdecay")
    assert set(found["source"]) == {"isonb"}


def test_nothing_in_the_data_points_outside():
    folder = Path(module.__file__).parents[1] / "data" / "printed"
    assert (folder / "README.md").exists()
    for path in folder.glob("*.csv"):
        text = path.read_text(encoding="utf-8")
        assert "METHODS" not in text
        assert not text.startswith("00")
