"""The design of SoftDecay's study: arms, cells, and evidence recomputed from the recorded tables."""

import numpy as np
import pandas as pd
import pytest

from isonb_lab.claims.printed import printed
from isonb_lab.claims.summary import cell_rows
from isonb_lab.papers import softdecay
from isonb_lab.runs.recordings import FOLDER, recorded


def test_gains_are_those_of_the_record(studies):
    run = recorded("baselines").runs.set_index("run_id")
    run = run[(run["task"] == "sickr") & (run["model"] == "minilm") & (run["method.name"] == "softdecay")].iloc[0]
    every = softdecay.vector_gains(studies["softdecay"])
    gains = every.set_index(["suite", "arm", "protocol"]).sort_index().loc["minilm, SICK-R", "SoftDecay"]
    for protocol in ("mean", "weighted", "all"):  # a set without subsets has one protocol
        assert gains.loc[protocol, "mean"] == pytest.approx(run["metric.difference.spearman.all"])
        assert gains.loc[protocol, "low"] == pytest.approx(run["metric.difference.spearman.all.low"])
    assert not any(arm == softdecay.START for _, arm, _ in every.iloc[:, :3].to_numpy())


def test_cells_by_hand(studies, verdicts):
    cells = {(row["claim"], row["what"], row["cell"]): row for row in cell_rows(verdicts["softdecay"])}
    direct = pd.read_csv(FOLDER / "softdecay_direct.csv").set_index(["model", "task", "other"])
    row = cells[18, "SoftDecay less whitening, points", "tiny, STS-13"]
    assert row["mean"] == direct.loc[("tiny", "sts13", "whitening"), "difference"]
    runs = studies["softdecay"].runs
    runs = runs[runs["model"].eq("tiny")].set_index(["arm", "suite"])["metric.spearman.mean"]
    changes = [runs["whitening", f"tiny, {s}"] - runs["SoftDecay", f"tiny, {s}"] for s in softdecay.SETS.values()]
    assert cells[20, "points, whitening less SoftDecay", "tiny"]["mean"] == pytest.approx(np.mean(changes))


def test_depth_by_hand_on_the_runs_that_learned(studies):
    of_plain = recorded("evidence_claims").runs.query("task == 'sst2' and `method.name` == 'none'").set_index("run_id")
    logged = recorded("evidence_claims").series.query("name == 'layer.end.tokens.token_uniformity'")
    by = logged[logged["run_id"].isin(of_plain.index)].pivot(index="run_id", columns="step", values="value")
    learned = studies["evidence_claims"]
    deeper, relieved = (softdecay.DESIGN.claims[k].predictions[1].evidence(learned, ["SST-2 (tiny)"]) for k in (0, 1))
    for run, seed in of_plain["seed"].items():
        assert deeper["SST-2 (tiny), layers 0 to 2", seed] == pytest.approx(by[2][run] - by[0][run])
        assert deeper["SST-2 (tiny), layers 2 to 4", seed] == pytest.approx(by[4][run] - by[2][run])
        assert relieved["SST-2 (tiny)", seed] == pytest.approx(by[4][run] - by[3][run])
    shown = softdecay.numbers_by_layer(learned, "end", "none", "SST-2 (tiny)")
    assert shown.pivot(index="run_id", columns="layer", values="token_uniformity").equals(by)


def test_the_alpha_is_chosen_apart_from_the_sets_that_it_is_judged_on():
    gains = {"dev": (1.0, 2.0), "STS-B": (5.0, 3.0), "SICK-R": (0.0, 4.0)}  # at alpha -0.6 and -0.2
    tried = [("live", s, "joint", a, g) for s, pair in gains.items() for a, g in zip((-0.6, -0.2), pair, strict=True)]
    (row,) = softdecay.chosen_alphas(pd.DataFrame(tried, columns=["runs", "set", "sides", "alpha", "gain"]))
    assert row["alpha from dev"] == "-0.2"
    assert (row["with it"], row["with -0.6"]) == (3.5, 2.5)
    assert (row["best of each test set"], row["flattery"]) == (4.5, 1.0)


def test_printed_changes_and_the_printed_slip_by_hand():
    score = printed("softdecay", "Table 1", model="bert-base", metric="spearman_x100")
    mean = score[score.task.isin(softdecay.SETS.values())].groupby("method")["value"].mean()
    row = softdecay.printed_changes()[0]
    assert row["encoder"] == "BERT (theirs)"
    assert float(row["SoftDecay"]) == pytest.approx(mean["SoftDecay"] - mean["BERT"], abs=0.006)
    gain = printed("softdecay", "Table 1", model="bert-base", method="SoftDecay", metric="relative_gain_percent")
    assert gain["value"].iloc[0] == 12.0
    assert 100 * (mean["SoftDecay"] / mean["BERT"] - 1) == pytest.approx(13.16, abs=0.05)
