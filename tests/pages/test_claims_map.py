"""The map of claims: everything in it, in known colours, and no link that leads nowhere."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from isonb.lab.studies.study import Study
from isonb.lab.studies.summary import claim_cells
from isonb.pages.claims_map import ACROSS, OUTCOME_SHAPES, claims_anchor, claims_map, slots
from isonb.pages.evidence import OUTCOME_COLORS

BOOK = Path(__file__).resolve().parents[2] / "book"
NOTHING = {"mean": None, "low": math.nan, "high": None, "visible": None, "n": 0}
SEEN = {"mean": -0.0213, "low": -0.04, "high": -0.0026, "visible": 0.0312, "n": 5}


def row(claim, what, cell, outcome, numbers=NOTHING, **other):
    head = {"paper": "One", "page": "papers/one_paper", "claim": claim, "statement": "It gains", "kind": "runs"}
    head |= {"verdict": outcome, "words": outcome, "remark": ""}
    return head | {"what": what, "cell": cell, "outcome": outcome} | numbers | other


FRAME = pd.DataFrame(
    [
        row(1, "score", "CoLA", "supported", SEEN | {"mean": 0.2, "low": 0.1, "high": 0.3}),
        row(1, "score", "MRPC", "not testable", reason="no runs"),
        row(2, "shape", "CoLA", "contradicted", SEEN, paper="Two", page="papers/two", reason="on the other side"),
        row(3, "", "", "supported", paper="Two", page="papers/two", kind="identity", remark="By hand."),
    ]
).fillna({"reason": ""})


def tables(chart):
    """The data of the map: names of papers, statements, verdicts, marks."""
    spec = chart.to_dict()
    return [pd.DataFrame(spec["datasets"][layer["data"]["name"]]) for layer in spec["layer"]]


@pytest.fixture(scope="module")
def recorded():
    papers = ("shrink_the_longest", "istar", "softdecay", "isolayer")
    studies = [Study.load(name) for name in papers]
    return pd.concat([claim_cells(s.design, s.verdicts()).assign(paper=s.design.name) for s in studies])


def test_every_claim_and_cell_is_drawn():
    heads, texts, verdicts, _, marks, _ = tables(claims_map(FRAME, papers=["One", "Two"]))
    assert heads["text"].tolist() == ["One", "Two"]
    assert texts["text"].tolist() == ["1. It gains", "2. It gains", "3. It gains (identity)"]
    assert verdicts["verdict"].tolist() == ["supported", "contradicted", "supported"]
    assert verdicts["cells"].tolist() == ["1 for, 0 against, of 1", "0 for, 1 against, of 1", "1 for, 0 against, of 1"]
    assert marks["cell"].tolist() == ["CoLA", "MRPC", "CoLA", "–"]
    assert texts["y"].is_monotonic_increasing
    assert marks.groupby("y").x.nunique().tolist() == [2, 1, 1]


def test_a_mark_tells_its_numbers():
    marks = tables(claims_map(FRAME, papers=["One", "Two"]))[4].set_index("claim")
    seen = marks.loc["2. It gains"]
    assert seen[["mean", "95% interval", "minimum detectable effect", "n"]].tolist() == [
        "-0.0213",
        "-0.04 to -0.0026",
        "0.0312",
        "5",
    ]
    unseen = marks.loc["1. It gains"].iloc[1]
    assert unseen[["mean", "95% interval", "minimum detectable effect", "n", "reason"]].tolist() == [*"––––", "no runs"]


def test_colours_and_shapes_tell_outcomes_apart():
    for layer in claims_map(FRAME, papers=["One", "Two"]).to_dict()["layer"][2:]:
        color, shape = layer["encoding"]["color"]["scale"], layer["encoding"]["shape"]["scale"]
        assert color["domain"] == shape["domain"] == list(OUTCOME_COLORS)
        assert color["range"] == list(OUTCOME_COLORS.values())
        assert shape["range"] == list(OUTCOME_SHAPES.values())
    assert len(set(OUTCOME_SHAPES.values())) == len(OUTCOME_COLORS)


def test_what_is_no_evidence_is_hollow():
    layers = claims_map(FRAME, papers=["One", "Two"]).to_dict()["layer"][2:]
    filters = [(layer["transform"][0]["filter"], layer["mark"]["filled"]) for layer in layers]
    assert filters == [("datum.kind == 'runs'", True), ("datum.kind != 'runs'", False)] * 2


def test_no_line_is_longer_than_the_map():
    for parts in (["a"] * 40, ["a"] * 14 + ["b"] * 56, list("abcde") * 4, ["a"]):
        places = slots(parts)
        assert len(set(places)) == len(parts)
        assert max(column for column, _ in places) <= ACROSS - 1
        assert places == sorted(places, key=lambda place: place[::-1])


def test_the_map_compiles(recorded):
    vl_convert = pytest.importorskip("vl_convert")
    chart = claims_map(recorded, papers=recorded["paper"].unique(), step=8)
    drawn = json.dumps(vl_convert.vegalite_to_vega(chart.to_json(), vl_version="6.4"))
    assert '"href"' in drawn
    numbers = {int(text.split(".")[0]) for text in tables(chart)[1]["text"]}
    assert numbers == set(range(1, 26))
    assert len(tables(chart)[4]) == len(recorded)


def test_every_link_leads_to_a_label_in_a_chapter(recorded):
    *_, marks = tables(claims_map(recorded, papers=recorded["paper"].unique()))
    assert len(marks["href"].unique()) == 4
    for href in marks["href"].unique():
        page, _, anchor = href.partition("#")
        source = (BOOK / "results" / page).resolve().with_suffix(".md")
        lines = source.read_text(encoding="utf-8").splitlines()
        place = lines.index(f"({anchor})=")
        assert lines[place + 1].startswith("**The claims.**")
        assert anchor == claims_anchor(page.removesuffix(".html")), "sphinx keeps an anchor without underscores"
        assert "{doc}`A map <../results/claims>`" in "\n".join(lines[place : place + 12])
        assert f"<{anchor}>`" in (BOOK / "results" / "claims.md").read_text(encoding="utf-8"), "and back"


def test_the_map_tells_what_a_claim_depends_on_and_where_no_setting_works():
    """A cell without a working setting can't tell, and has the colour of those; it names itself on pointing."""
    part = {"verdict": "depends", "words": "depends on the encoder"}
    rows = [
        row(1, "score", "minilm", "supported", SEEN, reason="", **part),
        row(1, "score", "tiny", "contradicted", SEEN, reason="", **part),
        row(1, "score", "CoLA", "no working setting", reason="each setting that was tried failed", **part),
    ]
    _, _, verdicts, _, marks, _ = tables(claims_map(pd.DataFrame(rows), papers=["One"]))
    assert verdicts[["outcome", "verdict", "cells"]].to_numpy().tolist() == [
        ["depends", "depends on the encoder", "1 for, 1 against, of 2"]
    ]
    assert marks["outcome"].tolist() == ["supported", "contradicted", "not testable"]
    assert set(marks["outcome"]) | set(verdicts["outcome"]) <= set(OUTCOME_COLORS)
    assert marks["reason"].iloc[2] == "each setting that was tried failed"
