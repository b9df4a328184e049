"""The study of the dial: turned vectors are those of the transforms, cells are read again as recorded, plan."""

import json

import make_dial
import numpy as np
import pandas as pd
import pytest
import torch
from dial import plan, record
from dial.study import KEYS, RAW, SHORT, Cell, Turned, best_place, parts_of, rows_of

from isonb import AllButTheTop, MeanTranslation, PartialWhitening
from isonb.errors import InputError

RECORDED = ("scores", "best", "parts", "turned", "depth", "spectra", "classes")


@pytest.fixture
def points():
    rng = np.random.default_rng(5)
    return rng.normal(size=(80, 12)) * np.linspace(5, 0.5, 12) + 2.0


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
@pytest.mark.parametrize(
    ("turn", "transform"),
    [
        (RAW, MeanTranslation(s=0.0)),
        (("whitening", 0.75), PartialWhitening(p=0.75)),
        (("dropped", 3.0), AllButTheTop(D=3)),
        (("mean", 3.0), MeanTranslation(s=3.0)),
        (("first token first", 1.0), MeanTranslation(s=0.0)),  # no part of the turn itself is done
        (("first token first", 2.0), MeanTranslation(s=-1.0)),
        (("first token first", 6.0), PartialWhitening(p=0.75)),
        (("first token last", 6.0), PartialWhitening(p=0.75)),
    ],
)
def test_what_is_read_is_the_transform_up_to_a_rotation_and_one_factor(points, turn, transform):
    want = transform.fit_transform(torch.from_numpy(points)).numpy()
    got = Turned(points).read(points)(turn)
    got = got * (np.linalg.norm(want) / np.linalg.norm(got) if "token" in turn[0] else 1)
    np.testing.assert_allclose(got @ got.T, want @ want.T, rtol=1e-4, atol=1e-4)


def outcome(score):
    return score + 0.01 * np.r_[0, np.random.default_rng(1).normal(size=300)]


def test_gains_and_the_best_place_are_paired():
    scores = {("mean", "own", *turn): 0.5 if turn == RAW else 0.7 - abs(turn[1] - 0.5) / 5 for turn in SHORT}
    result = Cell({(key, "retrieval", "squad"): outcome(score) for key, score in scores.items()})
    rows = pd.DataFrame(rows_of(result)).set_index(["turn", "strength", "set"])
    half = rows.loc["whitening", 0.5, "squad"]
    assert half["gain"] == pytest.approx(0.2)
    assert half["gain_low"] == pytest.approx(0.2) == half["gain_high"]  # the same draws on both sides
    best = best_place(result, "mean", "own", "retrieval")
    assert (best["best"], best["best_low"], best["best_high"]) == (0.5, 0.5, 0.5)
    assert best["over"] == pytest.approx(-0.1)
    assert best_place(result, "mean", "own", "similarity") is None


def test_parts_add_up_to_the_whole_gain_in_both_orders():
    scores = {"first token first": (0.1, 0.4, 0.4, 0.5, 0.5, 0.6, 0.6), "first token last": range(7)}
    steps = {key: scores[key[2]][int(key[3])] for key in KEYS if key[2] in scores}
    result = Cell({(key, "retrieval", "squad"): outcome(score) for key, score in steps.items()})
    rows = pd.DataFrame(parts_of(result, "retrieval"))
    sums = rows.groupby("order")["gain"].sum().to_dict()
    assert sums == pytest.approx({"first token first": 0.5, "first token last": 6})
    assert rows.loc[0, ["order", "part"]].tolist() == ["first token first", "first token"]


def test_the_plan_of_the_records_is_the_plan():
    latest = plan.manifest()["plan"]
    for name in RECORDED:
        rows = plan.read(name)
        digests = {encoder: set(some["plan"]) for encoder, some in rows.groupby("encoder")}
        assert digests.pop("mpnet", {latest}) == {latest}  # read last
        assert {latest}.union(*digests.values()) <= plan.plan_versions()
    assert plan.manifest()["tables"] == {name: len(plan.read(name)) for name in RECORDED}


def test_end_points_read_again_are_those_that_were_recorded(tmp_path, monkeypatch):
    monkeypatch.delenv("ISONB_DATA", raising=False)  # the book's own sentences need none
    again = record.read_again("tiny", ["own topics"], tmp_path, [4])
    compared = record.differences(again, plan.read("scores"))
    assert sorted(set(compared["turn"])) == ["raw", "whitening"]
    assert len(compared) == 2 * 2 * 3  # pools, the set and the mean over sets, ends
    assert compared["allowed"].unique() == pytest.approx([1 / 310])  # one sentence of the book
    assert (compared["difference"].abs() <= compared["allowed"]).all()
    assert (compared["difference"] == 0).mean() > 0.5


@pytest.mark.parametrize(("moved", "code"), [(0.0032, 0), (0.0033, 1)])
def test_a_score_may_move_by_one_row_of_its_set(moved, code, monkeypatch, capsys):
    rows = plan.read("scores").query("encoder == 'tiny' and layer == 4 and reader == 'own topics'")
    monkeypatch.setattr(make_dial, "read_again", lambda *options: rows.assign(score=rows["score"] + moved))
    monkeypatch.setattr("sys.argv", ["dial", "again", "tiny"])
    assert make_dial.main() == code
    assert f"{code * len(rows)} further away than a row" in capsys.readouterr().out


def test_a_reader_that_is_not_there_is_told():
    with pytest.raises(InputError, match="readers must be some of similarity"):
        record.read_again("tiny", ["taste"], None)


def test_every_hypothesis_is_judged_and_a_verdict_follows_its_numbers():
    tables = {name: plan.read(name) for name in ("scores", "best", "parts")}
    judged = plan.judge(tables)
    assert [verdict.name for verdict in judged] == list(plan.HYPOTHESES)
    for place, change, word in (
        (0, {"gain_low": 0.01}, "as expected"),
        (0, {"gain_low": -0.01}, "contradicted"),
        (1, {"best_high": 1.0}, "contradicted"),
    ):
        assert plan.judge(tables | {"best": tables["best"].assign(**change)})[place].outcome == word


def test_an_encoder_is_published_beside_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "SETS", {"corpus": record.SETS["corpus"]})

    def publish(encoder, score, minutes):
        table = pd.DataFrame({"encoder": [encoder], "score": [score]})
        record.publish({"scores": table}, tmp_path, cpu_minutes=minutes)
        return plan.read("scores", tmp_path).set_index("encoder")["score"].to_dict(), json.loads(
            (tmp_path / "manifest.json").read_text()
        )

    assert publish("tiny", 0.1, 5)[0] == {"tiny": 0.1}
    assert publish("mpnet", 0.2, 7)[1]["cpu_minutes"] == 12
    scores, about = publish("mpnet", 0.3, 8)  # once more: in the place of the first
    assert scores == {"tiny": 0.1, "mpnet": 0.3}
    assert (about["cpu_minutes"], about["tables"]) == (13, {"scores": 2})


def test_a_layer_that_was_read_is_not_read_again(tmp_path, monkeypatch):
    (tmp_path / "tiny").mkdir()
    monkeypatch.setattr(record, "read_layer", lambda *_, **__: None)
    tables = {name: pd.DataFrame({"encoder": ["tiny"], "score": [0.5]}) for name in ("scores", "best", "parts")}
    monkeypatch.setattr(record, "tables_of", lambda *_: tables)
    record.layer_tables(None, "tiny", 2, tmp_path)
    monkeypatch.setattr(record, "read_layer", lambda *_, **__: pytest.fail("read again"))
    again = record.layer_tables(None, "tiny", 2, tmp_path)
    for name, table in tables.items():
        pd.testing.assert_frame_equal(again[name], table)
