"""Every suite of the benchmarks at its smallest size: it runs, and all results agree. Nothing is measured here."""

import json
import re
from collections import Counter

import pytest
import torch

from isonb import api, losses
from tests.benchmarks import scaling
from tests.benchmarks.__main__ import PUBLISHED, SUITES, PublishError, main, publish, timed
from tests.benchmarks.cards import CARD_SUITES
from tests.benchmarks.functions import ROW_OF
from tests.benchmarks.harness import Comparison, Peak, Peer, Piece, Row, write

ERRORS = (Exception, Warning)
ON_CPU = [  # the kernels have a test of their own
    pytest.param(lambda suite=suite: suite(True), id=name) for name, suite in SUITES.items() if name != "kernels"
]
OF_CARDS = [pytest.param(lambda suite=suite: suite(True, "cpu"), id=name) for name, suite in CARD_SUITES.items()]


@pytest.mark.filterwarnings("ignore")  # the peers' own
@pytest.mark.parametrize("suite", ON_CPU + OF_CARDS)
def test_suite_runs_and_agrees(suite):
    agreed(suite())


def agreed(suite):
    """What a suite found, where all results agree."""
    found = list(timed("some", suite, small=True))
    assert found
    assert all(one.error <= one.allowed and one.verdict != "WRONG" for one in found)
    return found


def test_every_public_function_has_a_row_in_the_record_of_the_book():
    public = {name for name, item in vars(api).items() if callable(item) and name not in ("Transform", "strict")}
    public = {name for name in public if not (isinstance(item := vars(api)[name], type) and issubclass(item, ERRORS))}
    public |= {"audit"}
    recorded = {row["what"] for row in json.loads(PUBLISHED[False].read_text(encoding="utf-8"))["rows"]}
    bare = {re.sub(r"[^a-z0-9]", "", what.lower()) for what in recorded}
    named = {name for name in public if any(name.lower().replace("_", "") in what for what in bare)}
    assert {*ROW_OF} <= public
    assert {name for name in public - named if ROW_OF.get(name) not in recorded} == set()


def test_each_loss_of_points_has_a_row_and_waits_for_no_value():
    readings = {reading.values["what"]: reading.values for reading in agreed(scaling.kernels(small=True))}
    classes = {type(loss).__name__ for loss, _ in scaling.losses(16).values()}
    assert classes == {name for name in losses.__all__ if name.endswith("Loss")} - {"JointLoss"}  # of two numbers
    assert {name for name, row in readings.items() if row["waits"]} == {"spectrum control"}  # of singular values
    assert readings["I-STAR"]["operators"] <= 60


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a card")
def test_without_a_card_one_line_says_so(tmp_path, capsys):
    assert main(["--card", "--out", str(tmp_path / "bench.json")]) == 1
    assert "no CUDA card" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_ours_the_peers_and_the_pieces_take_turns_and_least_times_are_recorded(tmp_path):
    calls = []
    ours, theirs, first, second = (lambda name=name: calls.append(name) for name in "abcd")
    pieces = [Piece("first", first, True), Piece("second", second)]
    one = Comparison("what", "1", ours, [Peer("peer", theirs, 0.0)], 1.0, 3, lambda: pieces, least=0.0)
    (row,) = one.rows()
    assert calls == list("abcd") * 3
    assert len(row.ours) == len(row.theirs) == 3
    write({"rows": [row.record()]}, {}, tmp_path / "bench.json")
    (entry,) = json.loads((tmp_path / "bench.json").read_text(encoding="utf-8"))["rows"]
    assert [(part["what"], part["needed"]) for part in entry["parts"]] == [("first", True), ("second", False)]
    assert entry["parts"][0]["ms"] == pytest.approx(row.parts[0]["ms"], rel=1e-5)
    assert row.parts[0]["ms"] > 0
    assert row.record()["ours_ms"] == min(row.ours)


@pytest.mark.parametrize(("error", "verdict"), [(0.0, "reached"), (2.0, "WRONG"), (float("nan"), "WRONG")])
def test_a_fast_row_with_another_result_is_wrong(error, verdict):
    assert Row("a", "1", "b", (1.0, 3.0), (2.0,), 2.0, error, 1.0).verdict == verdict
    assert Peak("a", "1", 5.0, 10.0, error, 1.0).verdict == verdict


def test_a_record_says_what_it_lacks_is_not_published_and_a_suite_that_runs_again_replaces_its_rows(tmp_path, capsys):
    out = tmp_path / "bench.json"

    def record_of(*suites):
        assert main([*suites, "--small", "--out", str(out)]) == 0
        return json.loads(out.read_text(encoding="utf-8"))

    first = record_of("two_nn", "uniformity_value")
    assert first["missing"] == [name for name in SUITES if name not in ("two_nn", "uniformity_value")]
    assert (first["sizes"], first["threads"]) == ("small", 1)
    assert "TwoNN" in capsys.readouterr().out
    for suites, match in ((list(SUITES), "every suite must have run"), (["two_nn"], "sizes must be full")):
        with pytest.raises(PublishError, match=match):
            publish(out, tmp_path / "book.json", suites)
    assert not (tmp_path / "book.json").exists()
    again = record_of("two_nn")
    assert Counter(row["suite"] for row in again["rows"]) == Counter(row["suite"] for row in first["rows"])
    out.write_text(json.dumps(again | {"torch": "1.0"}), encoding="utf-8")
    assert {row["suite"] for row in record_of("two_nn")["rows"]} == {"two_nn"}


def test_only_a_whole_record_that_agrees_is_published(tmp_path):
    out, target = tmp_path / "bench.json", tmp_path / "book.json"
    row = {"suite": "a", "what": "H0", "size": "1 x 1", "verdict": "reached"}
    out.write_text(json.dumps({"sizes": "full", "rows": [row], "memory": []}), encoding="utf-8")
    assert publish(out, target, ["a"]) == target
    assert target.read_bytes() == out.read_bytes()
    out.write_text(json.dumps({"sizes": "full", "rows": [row | {"verdict": "WRONG"}], "memory": []}), encoding="utf-8")
    with pytest.raises(PublishError, match="all results must agree"):
        publish(out, target, ["a"])
    with pytest.raises(PublishError, match="readable JSON"):
        publish(tmp_path / "none.json", target, ["a"])
