"""The map of claims: everything in it, in known colours, and no link that leads nowhere."""

from pathlib import Path

import pandas as pd
import pytest

from isonb import pages
from isonb.lab.studies.study import Study
from isonb.lab.studies.summary import claim_cells

figures = pages.figures("claims")
BOOK = Path(__file__).resolve().parents[3] / "book"
SEEN = {"mean": -0.0213, "low": -0.04, "high": -0.0026, "visible": 0.0312, "n": 5}
NOTHING = {"mean": None, "low": None, "high": None, "visible": None, "n": 0}


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


@pytest.fixture(scope="module")
def recorded():
    papers = ("shrink_the_longest", "istar", "softdecay", "isolayer")
    studies = [Study.load(name) for name in papers]
    return pd.concat([claim_cells(s.design, s.verdicts()).assign(paper=s.design.name) for s in studies])


def test_every_claim_and_cell_is_drawn_and_tells_its_numbers():
    heads, texts, verdicts, _, marks, _ = tables(figures.claims_map(FRAME, papers=["One", "Two"]))
    assert heads["text"].tolist() == ["One", "Two"]
    assert texts["text"].tolist() == ["1. It gains", "3. It gains (identity)"]
    assert verdicts["cells"].tolist() == ["1 for, 1 against, of 2", "1 for, 0 against, of 1"]
    assert marks["outcome"].tolist() == ["supported", "contradicted", "not testable", "supported"]
    told = marks[["mean", "95% interval", "minimum detectable effect", "n"]].to_numpy().tolist()
    assert told[0] == ["-0.0213", "-0.04 to -0.0026", "0.0312", "5"]
    assert told[2] == [*"––––"]
    assert marks["reason"].iloc[2] == "each setting that was tried failed"


def test_every_recorded_cell_has_a_mark_and_every_link_leads_to_a_label_in_a_chapter(recorded):
    _, texts, _, _, marks, _ = tables(figures.claims_map(recorded, papers=recorded["paper"].unique()))
    assert {int(text.split(".")[0]) for text in texts["text"]} == set(range(1, 26))
    assert len(marks) == len(recorded)
    assert len(marks["href"].unique()) == 4
    for href in marks["href"].unique():
        page, _, anchor = href.partition("#")
        source = (BOOK / "results" / page).resolve().with_suffix(".md")
        lines = source.read_text(encoding="utf-8").splitlines()
        place = lines.index(f"({anchor})=")
        assert lines[place + 1].startswith("**The claims.**")
        assert "{doc}`A map <../results/claims>`" in "\n".join(lines[place : place + 12])
        assert f"<{anchor}>`" in (BOOK / "results" / "claims_cells.md").read_text(encoding="utf-8"), "and back"
