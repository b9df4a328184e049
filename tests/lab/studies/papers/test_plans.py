"""Every hypothesis of every plan has a row, and says why where it has no answer."""

import re

import pytest

from isonb_lab.papers import plans
from isonb_lab.places import EXPERIMENTS_FOLDER


@pytest.fixture(scope="module")
def answers(verdicts):
    return plans.answers(verdicts)


def test_every_plan_of_the_book_is_asked():
    assert sorted(plans.PLANS) == sorted(path.stem for path in EXPERIMENTS_FOLDER.glob("*_plan.md"))


def test_every_row_of_a_plans_tables_is_a_hypothesis():
    """By another reading of the same tables: the first cell of a row of hypotheses or of claims."""
    for plan in plans.PLANS:
        cells = [line.split("|")[1].strip() for line in plans.text_of(plan).splitlines() if line.startswith("| ")]
        names = [cell for cell in cells if re.fullmatch(r"[A-BD-Z]\d", cell)]
        result = plans.hypotheses(plan)
        assert [name for name in result if not name.startswith("claim")] == names
        numbers = {
            int(k) for cell in cells for k in re.findall(r"^(\d+)(?= to|,|$)| to (\d+)", cell)[0:1] for k in k if k
        }
        claims = {int(name.split()[1]) for name in result if re.fullmatch(r"claim \d+", name)}
        assert numbers <= claims, plan


def test_what_was_known_before_is_told_of_every_answer(answers):
    """A plan that says so has no blind hypothesis; each name of the list is one of the plan."""
    for plan, known in plans.KNOWN.items():
        assert set(known) <= {name.split()[0] for name in plans.hypotheses(plan)}
    assert {row.known for row in answers} == {plans.BLIND, plans.REPEAT, plans.CHANGED}
    silent = {plan for plan in plans.PLANS if "none of the hypotheses is blind" in plans.text_of(plan)}
    assert silent == {"dial_plan"}
    assert not [row for row in answers if row.plan in silent and row.known == plans.BLIND]
    blind = {row.hypothesis for row in answers if row.known == plans.BLIND and row.status == plans.ANSWERED}
    assert {"M6", "F2"} <= blind <= {"R1", "R2", "R3", "R4", "F2", "H3", "M6"}
    of = {(row.plan, row.hypothesis): row.known for row in answers}
    assert (of["dial_plan", "H6"], of["real_models_plan", "M4"]) == (plans.CHANGED,) * 2


def test_each_has_an_answer_or_a_reason(answers):
    assert {(row.plan, row.hypothesis) for row in answers} == {(p, h) for p in plans.PLANS for h in plans.hypotheses(p)}
    assert all(item.why and item.asks and item.status in plans.STATUSES for item in answers)
    partly = {plan for plan in (*plans.GRIDS, "deployed_plan") if plans.price(plan)}  # recorded whole: no price
    waiting = [entry for entry in answers if entry.plan in partly and entry.status != plans.ANSWERED]
    assert waiting
    assert all(re.search(r"about \d+ hours? of one core", element.why) for element in waiting)
    assert not [row.why for row in answers if re.search(r"_|\b1 (hours|runs)\b|is depends", row.why)]
    of = {(row.plan, row.hypothesis): row for row in answers}
    assert {of["read_where_plan", name].status for name in ("F1", "F2")} == {"answered"}
    assert {of["evidence_plan", name].status for name in ("I1", "I2", "I3", "I4", "H3")} == {"not run"}
    assert [of["evidence_plan", name].status for name in ("H2", "H1", "D5")] == ["answered", "open", "open"]
    assert "contradicted" in of["evidence_plan", "H2"].why, "F1 asked it again"


def test_a_claim_is_answered_by_the_runs_of_the_plan_that_asks_it(answers):
    """Not by runs at other weights, nor by those of another plan; and an open verdict answers nothing."""
    rows = {(row.plan, row.hypothesis): row for row in answers if row.hypothesis.startswith("claim")}
    undecided = re.compile("inconclusive|not testable|not tested|^no part")
    for row in rows.values():
        assert (row.status == plans.OPEN) == bool(undecided.match(row.why) or row.why.startswith("only a part")), row
    weak = [row for (plan, _), row in rows.items() if plan == "evidence_plan"]
    assert not [row for row in weak if re.search("weight -[1-9]|MRPC|CoLA|^supported|^contradicted", row.why)]
    assert all("SST-5 (tiny); n = 10" in row.why for row in weak if row.status == plans.ANSWERED)


def test_a_claim_whose_planned_runs_lack_a_record_is_answered_in_part(answers):
    of = {row.hypothesis: row for row in answers if row.plan == "own_cells_plan"}
    lacking = [row for name, row in of.items() if name.startswith("claim") and "unrecorded run" in row.why]
    assert lacking
    assert not [row for row in lacking if row.status == plans.ANSWERED]
    assert "tiny, minilm; SST-2 with test rows, STS-B" in of["claim 12"].why, "the plan asks more tasks and encoders"
