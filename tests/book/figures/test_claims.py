"""The table and the map of claims: every cell in it, what would decide it, and no link that leads nowhere."""

import pandas as pd
import pytest

from isonb_lab.claims.design import Design
from isonb_lab.claims.verdicts import Claim, Prediction, judge, judge_prediction
from isonb_lab.figures import claims as figures
from isonb_lab.figures import runs as pictures
from isonb_lab.papers.studies import design_of, load_study
from isonb_lab.places import BOOK

SEEN = {"mean": -0.0213, "low": -0.04, "high": -0.0026, "mde": 0.0312, "n": 5}
NOTHING = {"mean": None, "low": None, "high": None, "mde": None, "n": 0}


def row(cell, outcome, numbers=NOTHING, **other):
    head = {"paper": "One", "page": "papers/one_paper", "claim": 1, "statement": "It gains", "kind": "runs"}
    head |= {"verdict": "depends", "words": "depends on the encoder", "remark": "", "what": "score", "reason": ""}
    return head | {"cell": cell, "outcome": outcome} | numbers | other


FRAME = pd.DataFrame(
    [
        row("minilm", "supported", SEEN),
        row("tiny", "contradicted", SEEN),
        row("CoLA", "no working setting", reason="each setting that was tried failed"),
        row("", "supported", paper="Two", claim=3, kind="identity", verdict="supported", words="supported"),
    ]
)


def tables(chart):
    """The data of the map: names of papers, statements, verdicts, marks."""
    spec = chart.to_dict()
    return [pd.DataFrame(spec["datasets"][layer["data"]["name"]]) for layer in spec["layer"]]


def test_every_claim_and_cell_is_drawn_and_tells_its_numbers():
    heads, texts, verdicts, _, marks, _ = tables(figures.claims_map(FRAME, papers=["One", "Two"]))
    assert heads["text"].tolist() == ["One", "Two"]
    assert texts["text"].tolist() == ["1. It gains", "3. It gains (identity)"]
    assert verdicts["cells"].tolist() == ["1 for, 1 against, of 2", "1 for, 0 against, of 1"]
    assert marks["outcome"].tolist() == ["supported", "contradicted", "not testable", "supported"]
    report = marks[["mean", "95% interval", "minimum detectable effect", "n"]].to_numpy().tolist()
    assert report[0] == ["-0.0213", "-0.04 to -0.0026", "0.0312", "5"]
    assert report[2] == [*"––––"]
    assert marks["reason"].iloc[2] == "each setting that was tried failed"


@pytest.mark.parametrize("paper", ["shrink_the_longest", "istar", "softdecay", "isolayer"])
def test_a_link_of_the_map_leads_to_the_claims_of_a_paper_and_back(paper):
    page, _, anchor = figures.claims_href(design_of(paper).page).partition("#")
    lines = (BOOK / "results" / page).resolve().with_suffix(".md").read_text(encoding="utf-8").splitlines()
    place = lines.index(f"({anchor})=")
    assert lines[place + 1] == "## The claims"
    assert "{doc}`A map <../results/claims>`" in "\n".join(lines[place : place + 12])
    assert f"<{anchor}>`" in (BOOK / "results" / "ledger.md").read_text(encoding="utf-8"), "and back"


MADE_UP = Design("made_up", "papers/made_up", (), lambda settings: "none")


def gain(**options):
    return Prediction("gain", lambda study, suites: {}, "greater", **options)


def judged(number, *tested, **options):
    """A claim judged on predictions with their numbers by cell."""
    claim = Claim(number, f"claim {number}", tuple(prediction for prediction, _ in tested), **options)
    return judge(claim, [judge_prediction(prediction, cells, cells, {}) for prediction, cells in tested])


def test_every_cell_of_every_claim_has_a_row():
    clear, few = [0.1, 0.11, 0.12], [0.1, 0.2]
    cells = {"a": clear, "b": [0.1, -0.2, 0.14], "c": few}
    claims = [judged(1, (gain(), cells)), judged(2, (gain(trained=True), {"a": clear}))]
    table = figures.claim_cells(MADE_UP, [*claims, judged(4, remark="It rained.", needs="sun")])
    assert table["claim"].tolist() == [1, 1, 1, 2, 4]
    first = table.iloc[0]
    assert (first["page"], first["what"], first["cell"], first["n"]) == ("papers/made_up", "gain", "a", 3)
    assert first["low"] < first["mean"] < first["high"]
    assert first["mean"] == pytest.approx(0.11)
    assert (first["verdict"], first["outcome"]) == ("inconclusive", "supported")
    assert table["trained"].tolist()[3]
    last = table.iloc[4]
    assert (last["cell"], last["outcome"], last["reason"]) == ("", "not testable", "It rained."), "without parts"


@pytest.mark.parametrize("name", ["head_to_head", "plain_encoders"])
def test_every_recorded_run_stands_there_once_in_the_order_of_the_grid(name):
    study = load_study(name)
    rows = pd.DataFrame(pictures.run_rows(study)).set_index("run")
    runs = study.recorded.set_index("run_id")
    assert sorted(rows.index) == sorted(runs.index)
    runs = runs.loc[rows.index]
    assert (rows["task"] == runs["suite"]).all()
    scored = runs["score"].notna()
    assert (rows["score"][scored] == runs["score"][scored]).all()
    means = runs[~scored & (runs["metric"] == "spearman")]
    assert rows["score"][means.index].tolist() == means.get("metric.spearman.mean", pd.Series()).tolist()
    assert list(rows["task"].unique()) == [suite for suite in study.suites if suite in set(rows["task"])]
    for _, task in rows.groupby("task"):
        assert list(task["arm"].unique()) == [arm for arm in study.arms if arm in set(task["arm"])]
        assert all(seeds.is_monotonic_increasing for _, seeds in task.groupby("arm")["seed"])
