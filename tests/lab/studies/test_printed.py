"""The printed numbers: all there, and parsed."""

import pytest

from isonb_lab.claims.printed import PAPERS, PrintedError, hyperparameters, printed

COUNTS = {"isolayer": 139, "istar": 163, "shrink_the_longest": 165, "softdecay": 237}


@pytest.mark.parametrize("paper", PAPERS)
def test_everything_is_there(paper):
    result = printed(paper)
    assert len(result) == COUNTS[paper]
    assert set(result["paper"]) == set(hyperparameters(paper)["paper"]) == {paper}
    unread = set(result.loc[result["value"].isna(), "text"])
    assert unread <= {
        "", "less than 5%", "last 30% of training", "10,6,4,4,1,...,1", "0.12 to 0.0397", "around 2-3%", "70/30",
    }  # fmt: skip


def test_known_numbers():
    row = printed("istar", "Table 1", model="ALBERT", task="SST-2", method="I-STAR").iloc[0]
    assert (row["value"], row["std"], row["text"]) == (93.08, 0.32, "93.08")
    bars = printed("shrink_the_longest", "Table 3", model="bert-base-uncased", task="MRPC", metric="raw_anisotropy_1")
    assert bars["value"].tolist() == [0.679, 0.485, 0.541]
    sts = printed("softdecay", "Table 1", model="bert-base", task=["STS-B", "STS-12"], method="BERT")
    assert sts["value"].tolist() == [59.05, 57.72]
    assert hyperparameters("istar", model="ALBERT", task="SST-2", parameter="zeta")["value"].tolist() == ["0.2"]


def test_table_averages_follow_from_the_rows():
    result = printed("softdecay", "Table 1", metric="spearman_x100")
    for (_, method), rows in result.groupby(["model", "method"]):
        scores = rows.set_index("task")["value"]
        if "Avg" in scores and not method.startswith("-"):
            assert scores.drop("Avg").mean() == pytest.approx(scores["Avg"], abs=0.03)


def test_fractions():
    percent, fraction = printed("istar", "Table 1"), printed("istar", "Table 1", percent=False)
    for column in ("value", "std"):
        assert fraction[column].tolist() == pytest.approx((percent[column] / 100).tolist())
    assert set(fraction["metric"]) == {"accuracy", "exact_match", "f1", "matthews_corrcoef", "pearson"}
    bars = printed("shrink_the_longest", "Table 3")
    assert bars.equals(printed("shrink_the_longest", "Table 3", percent=False))  # shares stay shares


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda: printed("bert"), "istar"),
        (lambda: printed("istar", colour="red"), "method"),
        (lambda: printed("istar", "Table 1", task=["RTE", 3]), "RTE"),
        (lambda: hyperparameters("istar", parameter="magic"), "zeta"),
    ],
)
def test_errors_name_what_there_is(call, names):
    with pytest.raises(PrintedError, match=names):
        call()
