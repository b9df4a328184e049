"""Claims of several studies as one table, and the needs behind what is open."""

import pandas as pd
import pytest

from isonb.lab.studies.claims_table import COLUMNS, NEEDS, claim_cells, open_needs
from isonb.lab.studies.design import UNTAUGHT, Design
from isonb.lab.studies.study import Study
from isonb.lab.studies.verdicts import DEPENDS, NO_SETTING, NOT_TESTABLE, Cell, Claim, Part, judge, judge_part

DESIGN = Design("made_up", "papers/made_up", (), lambda config: "none")


def part(what, **options):
    return Part(what, lambda study, suites: {}, "greater", **options)


def judged(number, *parts, kind="runs", remark=""):
    """A claim judged on (part, numbers by cell, the outcome and reason of cells that can't tell)."""
    claim = Claim(number, f"claim {number}", tuple(one for one, _, _ in parts), kind=kind, remark=remark)
    found = [
        judge_part(one, values, values, lambda cell, why=why: Cell(cell, *why) if why else None)
        for one, values, why in parts
    ]
    return judge(claim, found)


@pytest.fixture
def table():
    clear, open_, few = [0.1, 0.11, 0.12], [0.1, -0.2, 0.14], [0.1, 0.2]
    return claim_cells(
        DESIGN,
        [
            judged(1, (part("gain"), {"a": clear, "b": open_, "c": few}, None)),
            judged(2, (part("gain", gated=True), {"a": clear}, (NOT_TESTABLE, UNTAUGHT))),
            judged(3, (part("more (needs a larger encoder)"), {"a": []}, None)),
            judged(4, remark="It rained."),
            judged(5, (part("one is one"), {"a": open_}, None), kind="identity"),
            judged(6, (part("gain"), {"a": [-v for v in clear], "b": few}, None)),
            judged(7, (part("gain", gated=True), {"a": clear}, (NO_SETTING, "each setting of x that was tried ended"))),
            judged(8, (part("gain", depends="the encoder"), {"a": [-v for v in clear], "b": clear}, None)),
        ],
    )


def test_every_cell_of_every_claim_has_a_row(table):
    assert list(table.columns) == list(COLUMNS)
    assert table["claim"].tolist() == [1, 1, 1, 2, 3, 4, 5, 6, 6, 7, 8, 8]
    first = table.iloc[0]
    assert (first["page"], first["what"], first["cell"], first["n"]) == ("papers/made_up", "gain", "a", 3)
    assert first["low"] < first["mean"] < first["high"]
    assert first["mean"] == pytest.approx(0.11)
    assert (first["verdict"], first["outcome"]) == ("inconclusive", "supported")
    assert table.loc[table["claim"] == 2, "gated"].all()


def test_a_claim_says_what_it_depends_on(table):
    last = table[table["claim"] == 8].iloc[0]
    assert (last["verdict"], last["words"]) == (DEPENDS, "depends on the encoder")
    others = table[table["claim"] != 8]
    assert (others["verdict"] == others["words"]).all()
    assert table[table["claim"] == 7].iloc[0][["verdict", "outcome"]].tolist() == [NOT_TESTABLE, NO_SETTING]


def test_a_claim_without_parts_keeps_its_remark(table):
    (row,) = table[table["claim"] == 4].to_dict("records")
    assert (row["cell"], row["outcome"], row["reason"]) == ("", "not testable", "It rained.")


def test_needs_are_of_open_claims_about_methods(table):
    found = {row["need"]: (row["claims"], row["cells"]) for row in open_needs(table)}
    assert found == {
        "the paper's runs again, with models that learn their tasks": ([2], 1),
        "a larger encoder": ([3], 1),
        "It rained.": ([4], 1),
        "weaker or other settings of the method": ([7], 1),
        "more replicates: seeds, or encoders": ([1], 1),
        "more seeds or pairs, for a narrower interval": ([1], 1),
    }
    assert open_needs(table[table["claim"] == 6]) == [], "a contradicted claim is decided"


def test_the_commonest_need_comes_first(table):
    twice = pd.concat([table, table[table["claim"] == 3].assign(claim=9)])
    first = open_needs(twice)[0]
    assert (first["need"], first["claims"], first["cells"]) == ("a larger encoder", [3, 9], 2)


def test_the_recorded_studies_have_all_claims_and_only_known_reasons():
    studies = [Study.load(name) for name in ("shrink_the_longest", "istar", "softdecay", "isolayer")]
    cells = pd.concat([claim_cells(study.design, study.verdicts()) for study in studies], ignore_index=True)
    assert sorted(cells["claim"].unique()) == list(range(1, 26))
    stated = set(cells["remark"]) | {need for _, need in NEEDS}
    for row in open_needs(cells):
        assert row["need"] in stated or cells["what"].str.contains(f"(needs {row['need']})", regex=False).any()
