"""The study of the dial: turned vectors are those of the transforms, cells are read again as recorded, verdicts."""

import numpy as np
import pandas as pd
import pytest
import torch

from isonb import AllButTheTop, MeanShift, PartialWhitening
from isonb.errors import InputError
from isonb.lab.dial import record, verdicts
from isonb.lab.dial.readers import ReaderScore
from isonb.lab.dial.study import PARTS, PLACES, RAW, SHORT, Cell, Turned, best_place, parts_of, plan_digest, rows_of

FIRST_PLAN = "31811706939a6f3fd8c42abd73d7dac18e4bcd45f0e053585763be79043e1da3"
RECORDED = ("scores", "best", "parts", "turned", "depth", "spectra")


@pytest.fixture
def points():
    rng = np.random.default_rng(5)
    return rng.normal(size=(80, 12)) * np.linspace(5, 0.5, 12) + 2.0


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
def test_what_is_read_is_the_transform_up_to_a_rotation(points):
    x = torch.from_numpy(points)
    turned = Turned(points).read(points)
    for turn, transform in (
        (("whitening", 0.75), PartialWhitening(p=0.75)),
        (("dropped", 3.0), AllButTheTop(D=3)),
        (("mean", 3.0), MeanShift(s=3.0)),
    ):
        want = transform.fit_transform(x)
        got = turned(turn)
        np.testing.assert_allclose(got @ got.T, (want @ want.T).numpy(), rtol=1e-4, atol=1e-4)


def test_all_parts_done_are_one_turn_and_none_is_as_it_is(points):
    fitted = Turned(points)
    for done, want in ((frozenset(), points), (frozenset(PARTS), None)):
        got = fitted.parts(points, done)
        if want is None:
            fitted.dial.p = 0.75
            want = fitted.dial.transform(torch.from_numpy(points)).numpy()
            got = got * np.linalg.norm(want) / np.linalg.norm(got)
        np.testing.assert_allclose(got @ got.T, want @ want.T, rtol=1e-4, atol=1e-4)


def outcome(score, spread=0.01):
    return ReaderScore(score, score + spread * np.random.default_rng(1).normal(size=300))


def test_gains_and_the_best_place_are_paired():
    made = Cell()
    for turn in SHORT:
        score = 0.5 if turn == RAW else 0.7 - abs(turn[1] - 0.5) / 5
        made.outcomes["mean", "own", *turn] = {("retrieval", "squad"): outcome(score)}
    rows = pd.DataFrame(rows_of(made)).set_index(["turn", "strength", "set"])
    half = rows.loc["whitening", 0.5, "squad"]
    assert half["gain"] == pytest.approx(0.2)
    assert half["gain_low"] == pytest.approx(0.2) == half["gain_high"]  # the same draws on both sides
    best = best_place(made, "mean", "own", "retrieval")
    assert (best["best"], best["best_low"], best["best_high"]) == (0.5, 0.5, 0.5)
    assert best["over"] == pytest.approx(-0.1)
    assert best_place(made, "mean", "own", "similarity") is None


def test_parts_add_up_to_the_whole_gain_in_both_orders():
    made = Cell()
    for order, scores in (("first token first", (0.1, 0.4, 0.4, 0.5, 0.5, 0.6, 0.6)), ("first token last", range(7))):
        for count, score in enumerate(scores):
            made.outcomes["parts", order, count] = {("retrieval", "squad"): outcome(score)}
    rows = pd.DataFrame(parts_of(made, "retrieval"))
    assert rows.groupby("order")["gain"].sum().to_dict() == pytest.approx(
        {"first token first": 0.5, "first token last": 6}
    )
    assert rows.loc[0, ["order", "part"]].tolist() == ["first token first", "first token"]


def test_the_plan_of_the_records_is_the_plan():
    plan = record.manifest()["plan"]
    assert plan in (plan_digest(), FIRST_PLAN)
    assert all(record.read(name)["plan"].unique().tolist() == [plan] for name in RECORDED)
    assert record.manifest()["tables"] == {name: len(record.read(name)) for name in RECORDED}


@pytest.mark.parametrize(("encoder", "layer"), [("tiny", 4), ("minilm", 6)])
def test_end_points_read_again_are_those_that_were_recorded(encoder, layer, tmp_path):
    again = record.read_again(encoder, layer, ["own topics"], tmp_path)
    compared = record.differences(again, encoder, layer)
    assert sorted(set(compared["turn"])) == ["raw", "whitening"]
    assert len(compared) == 2 * 2 * len(record.ENDS)
    assert compared["difference"].abs().max() < 0.01
    assert (compared["difference"] == 0).mean() > 0.5


def test_a_table_or_a_reader_that_is_not_there_is_told():
    with pytest.raises(InputError, match="must be one of best, depth, parts"):
        record.read("nothing")
    with pytest.raises(InputError, match="readers must be some of similarity"):
        record.read_again("tiny", 4, ["taste"], None)


def test_every_hypothesis_is_judged_and_a_verdict_follows_its_numbers():
    tables = {name: record.read(name) for name in ("scores", "best", "parts")}
    judged = verdicts.judge(tables)
    assert [verdict.name for verdict in judged] == list(verdicts.HYPOTHESES)
    best = tables["best"].copy()
    best["gain_low"] = 0.01
    assert verdicts.judge({**tables, "best": best})[0].word == "as expected"
    best["gain_low"] = -0.01
    assert verdicts.judge({**tables, "best": best})[0].word == "contradicted"
    best["best_high"] = 1.0
    assert verdicts.judge({**tables, "best": best})[1].word == "contradicted"
    assert PLACES[0] < 0 < PLACES[-1]
