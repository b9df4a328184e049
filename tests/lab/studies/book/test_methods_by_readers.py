"""Methods by readers, judged on made-up runs whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isonb.errors import InputError
from isonb_lab import pages
from isonb_lab.claims.design import PLAIN
from isonb_lab.figures import methods_by_readers as figures
from isonb_lab.pages.chapters import Book
from isonb_lab.papers import methods_by_readers as study
from isonb_lab.papers import plans, real_models
from isonb_lab.places import EXPERIMENTS_FOLDER
from isonb_lab.runs.publishing import publish
from isonb_lab.runs.record import Record, write_record
from isonb_lab.runs.settings import plan

PLACE = {arm: place for place, arm in enumerate(study.METHODS)}


def simulated(gain=lambda part, reader, arm: 0.0, spread=0.2):
    """Runs of all parts, where an arm gains ``gain`` points for a reader with that ``spread``."""
    draw = np.random.default_rng(3)
    rows = []
    for part in study.PARTS:
        for seed in range(1, part.seeds + 1):
            for arm in part.arms:
                row = {"model": part.model, "arm": arm, "kind": "one", "seed": seed, "layers": 12, "train_layers": 2}
                row["pooling"] = "mean" if part.letter == "B" else real_models.POOLING[part.model]
                row["task"] = "cola" if part.letter == "C" else real_models.TASK
                row |= {"majority": 0.5, "metric": "accuracy", "rows": 2693}
                for reader in part.readers:
                    column = study.READERS[reader]
                    points = 0.0 if arm == PLAIN else gain(part, reader, arm)
                    row[column] = 0.9 + 0.01 * (seed % 3 + points + draw.normal(0, spread))
                    row[study.MEASURED[reader]] = 10.0 + PLACE.get(arm, 0) if reader == study.HEAD else 20.0
                rows.append(row)
    return pd.DataFrame(rows)


UP, DOWN, TWO = PLACE.get, lambda arm: -PLACE[arm], lambda arm: 2.0


def of_reader(*readers, by=UP, letters="A", arms=study.METHODS):
    """A gain of these readers and arms alone."""
    return lambda part, reader, arm: by(arm) if reader in readers and arm in arms and part.letter in letters else 0.0


COSINES = of_reader(study.COSINE)


def cosines_and(second):
    return lambda *cell: COSINES(*cell) + second(*cell)


def judged(frame):
    return {answer.name: answer for answer in study.answers(study.parts(frame))}


@pytest.mark.parametrize(
    ("gain", "spread", "expected"),
    [
        (of_reader(), 0.2, {"M1": "holds", "M2": "holds", "M3": "contradicted", "M6": "open"}),  # nothing gains
        (of_reader(study.HEAD, by=TWO, arms=["CosReg"]), 0.2, {"M1": "contradicted", "M2": "holds"}),
        (of_reader(study.HEAD, by=TWO, letters="C", arms=["CosReg"]), 0.2, {"M1": "holds", "M2": "contradicted"}),
        (of_reader(), 4.0, dict.fromkeys(("M1", "M2", "M3", "M4", "M5", "M6"), "open")),
        (of_reader(study.COSINE, by=TWO, arms=study.ROUNDER), 0.2, {"M3": "holds"}),
        (cosines_and(of_reader(study.HEAD, by=DOWN)), 0.2, {"M4": "holds"}),
        (cosines_and(of_reader(study.HEAD, by=UP)), 0.2, {"M4": "contradicted"}),
        (cosines_and(of_reader(study.SEARCH, study.NEIGHBOURS)), 0.2, {"M5": "holds"}),
        (cosines_and(of_reader(study.SEARCH)), 0.2, {"M5": "open"}),  # one reader is not both
        (cosines_and(of_reader(study.SEARCH, by=DOWN)), 0.2, {"M5": "contradicted"}),
        (of_reader(study.COSINE, by=TWO, letters="B"), 0.2, {"M6": "holds"}),
        (of_reader(study.COSINE, by=TWO, letters="B", arms=["CosReg"]), 0.2, {"M6": "open"}),
        (of_reader(study.COSINE, by=TWO, arms=["CosReg"]), 0.2, {"M6": "contradicted"}),
    ],
)
def test_hypotheses_follow_the_truth(gain, spread, expected):
    results = judged(simulated(gain, spread))
    assert {name: results[name].outcome for name in expected} == expected


def test_without_runs_all_is_open_and_a_part_counts_by_the_seeds_of_all_its_arms():
    frame = simulated(spread=0.03)
    assert {(answer.outcome, answer.why) for answer in judged(frame[:0]).values()} == {("open", "not run yet")}
    few = judged(frame[(frame["seed"] < 5) | (frame["arm"] != "CosReg")])
    assert (few["M1"].outcome, few["M4"].outcome) == ("holds", "open")
    assert few["M1"].why.endswith("mpnet (12 layers, the last 2 trained), SST-2, 4 of 10 seeds")
    alone = judged(frame[frame["model"] == "mpnet"])
    assert (alone["M1"].outcome, alone["M6"].why) == ("open", "not run yet")
    assert alone["M1"].why.endswith("10 of 10 seeds. smollm2 decides nothing: part A isn't run")


def test_a_control_below_a_head_on_frozen_vectors_decides_nothing():
    """By the scores of the dial: 0.834 at layer 15 of smollm2, the first from a cut at 12, and 0.870 of mpnet."""
    frozen = [study.frozen_head(*cut) for cut in ((study.SMOLLM2, 12), (study.SMOLLM2, 16), (study.MPNET, 12))]
    assert frozen == pytest.approx([0.833716, 0.832569, 0.870413], abs=1e-6)
    gains, nothing = simulated(cosines_and(of_reader(study.HEAD, by=UP))), simulated()
    first = gains["model"] == "smollm2"
    for frame, low, outcomes in (
        (gains, first & False, ("contradicted", "contradicted")),
        (gains, first, ("contradicted", "contradicted")),
        (gains, first | True, ("open", "open")),
        (nothing, first, ("open", "open")),  # mpnet alone isn't both
    ):
        results = judged(frame.assign(score=frame["score"].where(~low, frame["score"] - 0.1)))
        assert (results["M1"].outcome, results["M4"].outcome) == outcomes
        assert (". smollm2 decides nothing: plain training reaches 0." in results["M4"].why) == low.any()


def with_cut(frame, arm, seeds=(3,)):
    """The same runs, where the head of an arm still learned at its end with these seeds."""
    mine = (frame["arm"] == arm) & frame["seed"].isin(seeds) & (frame["task"] == real_models.TASK)
    course = {"updates": 200.0, "first": 0.5, "half": 0.6, "last": 0.7, "method.k": 64.0}
    return frame.assign(cut=mine.where(frame["arm"] == arm), **course)


def test_an_arm_whose_head_still_learned_at_its_end_decides_nothing():
    """Not for the trained head, of both tasks; the readers of its vectors go on to count. Its cells stay, marked."""
    gains = cosines_and(of_reader(study.HEAD, by=DOWN, letters="AC"))
    frame = simulated(lambda *cell: gains(*cell) + of_reader(study.HEAD, by=lambda _: 60.0, arms=["whitening"])(*cell))
    assert judged(frame)["M1"].outcome == "contradicted"
    results = judged(with_cut(frame, "whitening"))
    assert [results[name].outcome for name in ("M1", "M2", "M4")] == ["open", "open", "holds"]
    assert results["M1"].why.startswith("0 of 22 cells gain a point, 20 rule it out")
    assert "whitening with mpnet decides nothing: 1 of 10 heads still learned" in results["M4"].why
    assert "With all arms, as planned, holds: trained head, smollm2: -0." in results["M4"].why
    measured = study.parts(with_cut(frame, "whitening"))
    text = figures.answer(measured, "")
    assert text.endswith(
        "Of 22 cells of SST-2 20 rule a gain of a point out. In 2 the head still learned when its training ended: "
        "they decide nothing."
    )
    (line,) = (line for line in figures.rows(measured, "gain")[0][:12] if line["method"] == "whitening")
    assert ["†" in line[name] for name in (study.HEAD, figures.SECOND, study.RIDGE)] == [True, True, False]
    course = figures.cut_short(measured)
    assert course.startswith(
        "Whitening of smollm2 keeps 64 of 576 dimensions, as the held-out accuracy of such a head on another seed "
        "chose. 1 of 10 heads still learned after the last"
    )
    assert "accuracy on held-out rows was 50%. Half-way it was 60%, at the end 70%. A ridge head" in course
    assert not figures.cut_short(study.parts(with_cut(frame, "whitening", ()))), "all had finished"
    names = {row["arm"] for rows in figures.cosine_and_head(measured).to_dict()["datasets"].values() for row in rows}
    assert {"whitening †", "CosReg"} <= names


def test_the_recorded_heads_behind_whitening_were_cut_short():
    """Their accuracy rose to the last of their updates; a layer's training ended by its patience."""
    cut = study.cut_runs(study.parts(study.runs()))
    assert {cell: len(rows) for cell, rows in cut.items()} == {(m, "whitening"): 6 for m in ("smollm2", "mpnet")}


def test_the_course_of_a_second_phase_is_read_off_its_series():
    curves = {"rising": [place / 100 for place in range(50)], "ended": [0.5, 0.6, 0.5]}
    rows = [(run, "step.second.accuracy", 4 * n, y) for run, ys in curves.items() for n, y in enumerate(ys, 1)]
    phases = study.second_phases(pd.DataFrame(rows, columns=["run_id", "name", "step", "value"]).sample(frac=1))
    assert phases.loc["rising"].tolist() == [True, 200, 0, 0.24, 0.49]
    assert phases.loc["ended"].tolist() == [False, 12, 0.5, 0.6, 0.5]


def test_runs_of_two_kinds_of_processor_are_no_pair():
    frame = simulated()
    frame.loc[(frame["arm"] == PLAIN) & (frame["seed"] > 8), "kind"] = "another"
    assert set(study.table(study.parts(frame)).query("part == 'A'")["seeds"]) == {8}


def test_cells_are_those_of_scipy():
    measured = study.parts(simulated(cosines_and(of_reader(study.HEAD, by=DOWN)), 2.0))
    every = study.table(measured).set_index(["part", "model", "reader", "arm"]).sort_index()
    assert len(every) == 2 * 6 * 12 + 6 * 4 + 2 * 12
    for part, reader in ((study.MPNET, study.SEARCH), (study.PARTS[3], study.HEAD)):
        column = study.READERS[reader]
        scores = {arm: 100 * rows[column].to_numpy() for arm, rows in measured[part].items()}
        alone = {arm: stats.ttest_rel(scores[arm], scores[PLAIN]) for arm in study.METHODS}
        arm = min(alone, key=lambda name: alone[name].pvalue)
        row, least = every.loc[part.letter, part.model, reader].loc[arm], alone[arm]
        assert row["p"] == pytest.approx(min(1, 11 * least.pvalue))
        for name, level in (("gain", 0.95), ("joint", 1 - 0.05 / 11)):
            assert (row[f"{name} low"], row[f"{name} high"]) == pytest.approx(least.confidence_interval(level))
        assert row["score"] == pytest.approx(scores[arm].mean() / 100)
        assert row["directions"] == (10 + PLACE[arm] if reader == study.HEAD else 20)


def test_a_correlation_and_its_interval_are_those_of_scipy():
    measured = study.parts(simulated(cosines_and(of_reader(study.HEAD, by=DOWN)), 4.0))
    sides = [study.gains(measured[study.MPNET], study.READERS[name]).to_numpy() for name in (study.HEAD, study.COSINE)]

    def correlation(rows):
        return stats.spearmanr(*(side[rows].mean(0) for side in sides)).statistic

    interval = study.correlations(measured, [study.HEAD])[study.HEAD, "mpnet"]
    assert interval.estimate == pytest.approx(correlation(np.arange(10)))
    draw = np.random.default_rng(1)
    drawn = np.quantile([correlation(draw.integers(0, 10, 10)) for _ in range(2000)], [0.025, 0.975])
    assert (interval.low, interval.high) == pytest.approx(drawn, abs=0.05)


def test_the_spread_of_the_first_five_seeds_says_whether_ten_are_enough():
    frame = simulated(spread=1.0)
    assert study.detectable(frame[frame["seed"] < 5], study.MPNET) is None
    spread = study.gains(study.MPNET.runs(frame[frame["seed"] <= 5]), "score").std(ddof=1).median()
    ten = study.detectable(frame, study.MPNET) / spread
    t = stats.t.ppf(1 - 0.05 / 22, 9)
    assert stats.nct.sf(t, 9, ten * 10**0.5) == pytest.approx(0.8, abs=0.002)


def write(folder, run, metrics):
    write_record(folder / "records", Record(run.config, metrics, manifest={}, series={}, named=run.run_id))


BLOCK = {"task": real_models.TASK, "model": "mpnet", "pooling": "mean", "layers": 12, "train_layers": 2}


def test_records_and_their_recording_say_the_same(tmp_path):
    """Records as a sweep writes them: tuning with seed 0, and the arms with two seeds."""
    block = BLOCK | {"readers": True, "protocol": "first", "head": "linear", "precision": "float32", "track_every": 0}
    methods = ["none", *real_models.ISTAR, *({"name": name, **some[0]} for name, some in real_models.OPTIONS.items())]
    columns = [column.removeprefix("metric.") for column in study.READERS.values() if column != "score"]
    measures = {column.removeprefix("metric."): 9.0 for column in study.MEASURED.values()}
    draw = np.random.default_rng(0)
    for seed in (0, 1, 2):
        for method in methods:
            metrics = {"accuracy": 0.8, **measures, **{name: 0.5 + draw.normal(0, 0.01) for name in columns}}
            write(tmp_path, plan({**block, "method": method, "seed": seed}), metrics)
    frame = study.runs(tmp_path)
    every = study.table(study.parts(frame))
    assert (set(frame["arm"]), set(frame["seed"]), len(every)) == ({PLAIN, *study.METHODS}, {1, 2}, 6 * 12)
    assert set(every["directions"]) == {9}
    recording = publish(tmp_path / "records", tmp_path, "real_models", series=("step.validation.accuracy",))
    assert judged(study.runs(recording)) == judged(frame)
    write(tmp_path, plan({**block, "method": {"name": "cosreg", "weight": 0.3}, "seed": 1}), metrics)
    with pytest.raises(InputError, match="an arm must have one run a seed; got several of CosReg"):
        study.runs(tmp_path)


def with_idle(frame, arm, model):
    """The same runs, where every score of an arm is that of plain training."""
    columns = list(study.READERS.values())
    keys = ["model", "pooling", "task", "seed"]
    plain = frame[frame["arm"] == PLAIN].set_index(keys)[columns]
    mine = frame.index[(frame["arm"] == arm) & (frame["model"] == model)]
    results = frame.copy()
    results.loc[mine, columns] = plain.loc[list(map(tuple, frame.loc[mine, keys].to_numpy()))].to_numpy()
    return results


def test_an_arm_that_did_not_act_counts_in_no_cell():
    """Not for what rules a gain out; beside the plan's word not for the correlations; it has no detectable effect."""
    frame = with_idle(simulated(cosines_and(of_reader(study.HEAD, by=DOWN))), "CosReg", "mpnet")
    measured = study.parts(frame)
    assert list(study.idle_arms(measured)) == [("mpnet", "CosReg")]
    results = judged(frame)
    assert results["M1"].why.startswith("0 of 22 cells gain a point, 21 rule it out; in 1 the method didn't act")
    assert [results[name].outcome for name in ("M1", "M2", "M4")] == ["open", "open", "holds"]
    assert "in 1 the method didn't act" in results["M3"].why
    both = study.correlations(measured, [study.HEAD], study.idle_arms(measured))[study.HEAD, "mpnet"]
    rest = [study.gains(measured[study.MPNET], study.READERS[one]).drop(columns="CosReg").mean() for one in READ]
    assert both.estimate == pytest.approx(stats.spearmanr(*rest).statistic)
    assert "Exploratory, without arms that didn't act, " in results["M4"].why
    (cell,) = study.table(measured).query("arm == 'CosReg' and model == 'mpnet' and part == 'C'").to_dict("records")
    assert (cell["acted"], np.isnan(cell["detectable"])) == (False, True)
    lines = {name: figures.rows(measured, name)[0][13 + PLACE["CosReg"]] for name in ("gain", "read")}
    assert (lines["gain"][study.COSINE], lines["read"][study.COSINE]) == ("didn't act", "–; 20")
    assert "In 1 the method didn't act." in figures.answer(measured, "")
    searched = frame.copy()
    mine = (frame["arm"] == "CosReg") & (frame["model"] == "mpnet")
    searched.loc[mine, study.READERS[study.SEARCH]] += 0.001  # another reader notices
    assert not study.idle_arms(study.parts(searched))


READ = (study.HEAD, study.COSINE)


def test_istar_on_the_language_model_did_not_act():
    measured = study.parts(study.runs())
    assert {model for model, _ in study.idle_arms(measured)} == {"smollm2"}
    assert all(arm.startswith("I-STAR") for _, arm in study.idle_arms(measured))
    counts = study.head_cells(measured, "A").groupby("excluded")["ruled_out"].sum().to_dict()
    assert counts == {"": 16, study.DID_NOT_ACT: 4, study.STILL_LEARNED: 2}


def test_the_losses_of_the_trained_head_and_destroyed_trainings_are_named():
    """The largest stands on the second task, at the score of the majority with every seed."""
    text = figures.losses(study.parts(study.runs()))
    assert "on the second task: I-STAR 1 with mpnet -20.2 points (-22.1 to -18.4); " in text
    assert "I-STAR 1 destroyed that training with mpnet: 6 of 6 runs failed. Their mean score is 0.000" in text
    assert "cosine +5.2 points (+3.5 to +6.9) and search +11.5 points" in text
    assert "whitening" not in text, "its heads still learned"
    assert not figures.losses(study.parts(simulated()))


def test_of_weights_that_change_nothing_the_score_that_they_see_is_told():
    seen = {"smollm2": 1.2e-6}
    said = figures.idle(study.parts(simulated(spread=0)), seen)
    assert ("smollm2" in said, "0.000001" in said, "mpnet" in said) == (True, True, False)
    changed = simulated(of_reader(study.SEARCH, by=TWO, arms=["I-STAR 1"]), spread=0)
    assert not figures.idle(study.parts(changed), seen)


def test_the_score_that_istar_sees_is_read_off_its_term(tmp_path):
    for weight, term in ((2.0, 1.6), (-1.0, -0.7), (0.5, 0.25)):  # scores of 0.2, 0.3 and 0.5
        config = plan(BLOCK | {"seed": 1, "method": {"name": "istar", "weight": weight}}).config
        series = {study.PENALTY: [(10, 0.0), (20, term)]}
        write_record(tmp_path, Record(config, metrics={"accuracy": 0.8}, series=series))
    assert study.score_in_training(tmp_path) == {"mpnet": pytest.approx(0.3)}


ANSWERS = {
    0: "These runs aren't made yet. Not all are recorded: 3 hours.",
    3: "Whether what helps a cosine hurts the trained head stays open. ",
    10: "Over these methods, what helps a cosine hurts the trained head. On SST-2 no method gains a point with "
    "the trained head; on the second task none does. This rests on 10 of 10 seeds of smollm2 and 10 of 10 seeds of "
    "mpnet on SST-2.",
}


@pytest.mark.parametrize("seeds", ANSWERS)
def test_the_page_is_made_of_the_runs_that_are_there(seeds, monkeypatch, capsys):
    """The cells of its section, without runs, with a few seeds and with all."""
    frame = simulated(cosines_and(of_reader(study.HEAD, by=DOWN)))
    values, tables = {}, []
    monkeypatch.setattr(study, "runs", lambda: frame[frame["seed"] <= seeds])
    monkeypatch.setattr(plans, "price", lambda plan: "3 hours" * (plan == "real_models_plan"))
    monkeypatch.setattr(pages, "glue", values.__setitem__)
    monkeypatch.setattr(pages, "table", lambda rows, **_: tables.append(rows))
    monkeypatch.setattr(pages, "assert_facts", lambda **_: None)  # of the recorded runs
    page = {"runs": "", "study": study, "trained": figures, "plans": plans, "pages": pages}
    page |= {"by_readers": study}  # as the ledger calls it, which has the tables
    chapters = Book(EXPERIMENTS_FOLDER.parents[1]).pick(["three_readers", "ledger"])
    for cell in (cell for chapter in chapters for cell in chapter.code if "measured" in cell.source):
        exec(cell.source, page)
    assert values["trained-answer"].startswith(ANSWERS[seeds])
    assert [len(rows) for rows in tables] == ([6] if not seeds else [2 * 12 + 4, 2 * 12 + 4, 6])
    if seeds:
        plain = frame.query("arm == @PLAIN and seed <= @seeds and model == 'smollm2' and pooling != 'mean'")
        score = plain[plain["task"] == real_models.TASK]["score"].mean()
        assert (tables[0][0][study.HEAD], tables[1][0][study.HEAD]) == (f"{score:.3f}", "–; 10")  # of plain training
        assert tables[0][1]["method"] == "I-STAR 1"


def test_what_training_takes_from_a_cosine_and_the_method_that_gives_most_back():
    """The dial has the last layer of mpnet, and none of smollm2's at this cut; the largest gain costs the head."""
    gains = {(study.COSINE, "entropy"): 3.0, (study.COSINE, "whitening"): 9.0, (study.HEAD, "whitening"): -5.0}
    frame = simulated(lambda part, reader, arm: gains.get((reader, arm), 0.0), spread=0.01)
    frame[study.READERS[study.COSINE]] -= 0.4
    frame.loc[frame["arm"] == "entropy", study.MEASURED[study.COSINE]] = 30
    text = figures.lost_cosine(study.parts(frame))
    assert text.startswith("Training on SST-2 takes the cosine of mpnet from 0.834 to 0.510 (STS-B).")
    assert "entropy gives most back: +3.0 points (+3.0 to +3.0)" in text
    assert "a participation ratio of 20 after plain training, and of 30 with entropy" in text
    assert not figures.lost_cosine(study.parts(frame[frame["seed"] == 1])), "one seed has no interval"
    frame[study.READERS[study.COSINE]] += 0.4
    assert not figures.lost_cosine(study.parts(frame)), "training took nothing"
