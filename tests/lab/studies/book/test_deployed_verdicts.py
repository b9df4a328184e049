"""The dial as one deploys it: an interval decides each hypothesis, and what is advised follows the recorded gains."""

import pandas as pd
import pytest

from isonb.auditing import defects
from isonb_lab.papers import deployed, hypotheses


def scores(**gains):
    """Rows of each reader and encoder, fitted on unread text; ``gains``: (gain, half an interval) by p or reader."""
    rows = [
        {"encoder": encoder, "layer": layer, "pool": pool, "reader": reader, "fit": "unread", "texts": 1000}
        | {"turn": "whitening" if p else "raw", "p": p, "score": 0.5, "set": "all", "chosen": p == 0.5}
        | dict(zip(("gain", "gain_low", "gain_high"), (gain, gain - half, gain + half), strict=True))
        for encoder, layers in deployed.LAYERS.items()
        for layer in layers
        for pool in ("mean", "without first")
        for reader in deployed.READERS
        for p in (0.0, 0.5, 0.75, 1.0)
        for gain, half in [gains.get(f"{encoder}_{reader}".replace(" ", "_"), gains.get(f"p{p:g}", (0.0, 0.002)))]
    ]
    return pd.DataFrame(rows)


def outcomes(table):
    return {answer.name: answer.outcome for answer in deployed.answers(table)}


@pytest.mark.parametrize(
    ("gain", "half", "e2", "e6", "e7"),
    [
        (0.001, 0.002, "holds", "holds", "open"),  # a chosen p may lose
        (0.003, 0.002, "holds", "holds", "holds"),
        (0.020, 0.005, "contradicted", "contradicted", "holds"),
        (0.006, 0.004, "open", "holds", "holds"),
        (-0.02, 0.005, "holds", "contradicted", "contradicted"),
    ],
)
def test_an_interval_decides(gain, half, e2, e6, e7):
    table = scores(**{"p0.5": (gain, half)})
    assert {name: outcomes(table)[name] for name in ("E2", "E6", "E7")} == {"E2": e2, "E6": e6, "E7": e7}


def test_without_an_encoder_nothing_holds_for_all():
    table = scores(**{"p0.5": (0.003, 0.002)})
    table = table[table["encoder"] != "smollm2"]
    assert {outcomes(table)[name] for name in ("E3", "E4", "E6", "E7")} == {"open"}
    assert {answer.why for answer in deployed.answers(table) if answer.name in ("E3", "E4")} == {hypotheses.NOT_RUN}


def test_advice_is_the_best_worst_case_or_what_held_out_data_choose():
    best = deployed.advice(scores(**{"p0.5": (0.02, 0.01), "p1": (0.05, 0.06)}), "search")
    assert (best.p, best.worst, best.recommendation) == (0.5, pytest.approx(0.01), "Turn at p = 0.5.")
    unclear = deployed.advice(scores(), "search")
    assert (unclear.p, unclear.held_out) == (None, True)
    one_loses = deployed.advice(scores(minilm_search=(-0.02, 0.01)), "search")
    assert (one_loses.held_out, one_loses.recommendation) == (False, "Leave the vectors as they are.")


def test_the_recorded_outcomes_and_what_the_audit_advises_by_them():
    table = deployed.read()
    assert outcomes(table) == (
        dict.fromkeys(("E1", "E2", "E8"), "holds")
        | dict.fromkeys(("E3", "E4", "E6", "E7"), "open")
        | {"E5": "contradicted"}
    )
    assert deployed.advice(table, "search").p == defects.SEARCH_P
    assert deployed.advice(table, "similarity").p == 0  # which is centring, the audit's first remedy
    of = "fit == 'wikipedia' and reader == 'search' and pool == 'mean' and p == 1 and encoder == 'minilm'"
    gains = table.query(of).set_index("texts")["gain"]
    assert gains.idxmin() == 384
    assert gains[384 * defects.PER_DIM] > gains[384 * 2] > gains[384]
