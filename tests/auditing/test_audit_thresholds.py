"""Thresholds keep the rate asked for on the other half; remedies are judged on rows that they weren't fitted on."""

import pandas as pd
import pytest
import torch

import isonb
from isonb.auditing.defects import SEARCH_P
from isonb.errors import DtypeError, InputError, ShapeError

N, D = 4000, 32


def draw(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def rows():
    """Topics of ten rows each, off the origin: as sentence vectors are."""
    topics = torch.randn(N // 10, D, generator=draw(0)).repeat_interleave(10, 0)
    return topics + 0.7 * torch.randn(N, D, generator=draw(1)) + 1.5


@pytest.fixture(scope="module")
def pairs(rows):
    """Pairs of one topic, labelled 1, and of any two rows, labelled 0."""
    first = torch.randint(N, (6000,), generator=draw(2))
    match = torch.arange(6000) < 1500
    shift = torch.randint(1, 10, (6000,), generator=draw(3))
    same = first - first % 10 + (first % 10 + shift) % 10
    other = (first + 10 + torch.randint(N - 20, (6000,), generator=draw(4))) % N
    return first.tolist(), torch.where(match, same, other).tolist(), match.double().tolist()


def test_the_rate_holds_on_the_half_that_judges(rows, pairs):
    raw, centred = isonb.audit(rows, sample=1000, pairs=pairs, false_match_rate=0.2).matches
    for match in (raw, centred):
        share, low, high = match.false_matches
        assert abs(share - 0.2) < 0.02
        assert low <= share <= high
    assert centred.threshold < raw.threshold - 0.1


def test_graded_labels_are_scored_by_spearman(rows):
    graded = isonb.audit(rows, sample=1000, pairs=(range(100), range(100, 200), [i % 5 for i in range(100)]))
    assert "Spearman over 100 pairs" in graded.score
    assert not graded.matches


def test_pairs_may_be_columns_of_a_frame_of_which_rows_were_left_out(rows, pairs):
    frame = pd.DataFrame(dict(zip("abc", pairs, strict=True)))[3:]
    by_lists, by_columns = (
        isonb.audit(rows, sample=1000, pairs=part) for part in ([side[3:] for side in pairs], [frame[x] for x in "abc"])
    )
    assert by_columns.score == by_lists.score


def test_a_threshold_by_hand(rows, pairs):
    (raw, _) = isonb.audit(rows, sample=1000, pairs=pairs, false_match_rate=0.05).matches
    first, second = (torch.nn.functional.normalize(rows[torch.tensor(side)], dim=-1) for side in pairs[:2])
    cosines, labels = (first * second).sum(-1), torch.tensor(pairs[2])
    assert raw.recall[0] == pytest.approx((cosines[labels == 1] > raw.threshold).double().mean().item(), abs=1e-6)
    assert (cosines[labels == 0] > raw.threshold).double().mean().item() == pytest.approx(0.05, abs=0.01)
    unit = torch.nn.functional.normalize(rows[:2000], dim=-1)
    below = (unit @ unit.T <= raw.threshold).double().mean().item()
    assert raw.percentile == pytest.approx(100 * below, abs=1)


def test_queries_need_no_labels_nor_the_type_of_the_vectors(rows):
    asking = (rows[torch.arange(0, N, 20)] + 0.3).half()
    raw, centred = isonb.audit(rows, sample=1000, queries=asking, false_match_rate=0.02).matches
    assert raw.recall is None
    assert abs(raw.false_matches[0] - 0.02) < 0.02
    assert abs(centred.false_matches[0] - 0.02) < 0.02


def test_the_headline_gives_the_threshold_of_the_vectors_as_they_are(rows):
    report = isonb.audit(rows, sample=1000, queries=rows[:200] + 0.3)
    raw, centred = report.matches
    assert f"take the threshold {raw.threshold:.3f}. " in report.headline
    assert raw.threshold > centred.threshold + 0.1


def test_shuffled_pairs_have_no_pair_that_belongs_together():
    """Of 20 vectors, each with itself, one alone would lift the upper quantiles to 1."""
    x = torch.nn.functional.one_hot(torch.arange(20), D).double() + 0.01 * torch.rand(20, D, generator=draw(0))
    for seed in range(5):
        pairs = (range(20), range(20), [0.0, 1.0, 2.0, 3.0] * 5)
        assert isonb.audit(x, seed=seed, pairs=pairs).floor["pairs, shuffled"]["0.999"] < 0.2


def test_scores_as_percentiles(rows):
    report = isonb.audit(rows, sample=2000)
    assert report.percentile(-1.0) == 0.0
    assert report.percentile(1.0) == 100.0
    assert report.percentile(report.floor["random cosine"]["0.95"]) == pytest.approx(95, abs=0.1)
    assert report.percentile(report.floor["random cosine"]["0.5"]) == pytest.approx(50, abs=0.1)


def test_a_remedy_that_helps_is_told_from_one_that_does_not(rows, pairs):
    """One loud direction that has nothing to do with the topics drowns them."""
    noisy = rows - 1.5
    noisy[:, 0] = 30 * torch.randn(N, generator=draw(5))
    report = isonb.audit(noisy, sample=1000, pairs=pairs)
    result = {remedy.name: remedy for remedy in report.remedies}
    assert result["all-but-the-top, k = 1"].gain[1] > 0.1
    assert result["all-but-the-top, k = 1"].verdict.startswith("helps")
    assert "AUC" in report.score
    few = isonb.audit(noisy, sample=1000, pairs=pairs, false_match_rate=0.2).next_steps[0]
    assert few.startswith("import isonb; isonb.audit(vectors, pairs=pairs, sample=1000, false_match_rate=0.2, fix=")
    assert report.next_steps[0].startswith(
        'import isonb; isonb.audit(vectors, pairs=pairs, sample=1000, fix="fixed.npy")'
    )
    clear = {item.name: item for item in isonb.audit(rows - 1.5, sample=1000, pairs=pairs).remedies}
    assert not clear["centring"].verdict.startswith("helps")
    assert "the mean is near zero already" in clear["centring"].verdict


def test_a_round_cloud_has_nothing_to_gain():
    report = isonb.audit(torch.randn(1000, D, generator=draw(6)))
    assert len(report.remedies) == 4
    assert all("already" in remedy.verdict for remedy in report.remedies)
    assert "isotropy is no score" in report.score
    assert not report.next_steps


def test_of_too_few_rows_in_the_sample_no_shape_is_told():
    report = isonb.audit(torch.randn(1000, 64, generator=draw(6)), sample=100)
    assert "100 rows are too few for 64 dimensions. A larger sample has more of the 1,000." in report.withheld
    assert {remedy.verdict for remedy in report.remedies} == {"too few rows to judge"}


def test_the_map_of_softdecay_is_that_which_was_judged(rows, pairs):
    """Singular values grow with the rows, and SoftDecay looks at their size: the code to paste names how many."""
    (decay,) = [remedy for remedy in isonb.audit(rows, sample=1000, pairs=pairs).remedies if remedy.name == "SoftDecay"]
    assert decay.code == "isonb.SingularDecay(rows=500)"
    few, many = rows[:500].double(), rows[:500].double().repeat(8, 1)
    judged = isonb.SingularDecay().fit(few).transform(few)
    torch.testing.assert_close(isonb.SingularDecay(rows=500).fit(many).transform(few), judged)
    assert (isonb.SingularDecay().fit(many).transform(few) - judged).norm() > 0.01 * judged.norm()


def test_queries_without_a_false_match_leave_room_for_one(rows):
    """Ten judging queries of which none has a false match: the share is not known to be 0."""
    options = {"sample": 1000, "queries": -rows[:20] - 3.0, "false_match_rate": 1e-5}
    audits = (isonb.audit(rows, seed=seed, **options) for seed in range(6))
    share, low, high = next(item.matches[0].false_matches for item in audits if not item.matches[0].false_matches[0])
    assert (share, low) == (0, 0)
    assert 0.2 < high < 0.4


@pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")
def test_remedies_are_judged_on_the_other_half():
    """Whitening by 60 rows of 64 dimensions makes those rows rounder, and must not be praised for that."""
    x = torch.randn(120, 64, generator=draw(7)) * torch.linspace(3, 0.3, 64)
    (white,) = [remedy for remedy in isonb.audit(x).remedies if remedy.name.startswith("whitening")]
    direct = isonb.isoscore(isonb.PartialWhitening(p=SEARCH_P).fit_transform(x[:60]), unbiased=True).item()
    assert dict(white.after)["IsoScore-U"] < direct - 0.1


def test_one_match_alone_leaves_a_gain_without_an_interval(rows):
    """Without the tenth of the pairs that holds it there is no score."""
    report = isonb.audit(rows, sample=1000, pairs=([0] * 25, range(1, 26), [1] + [0] * 24), false_match_rate=0.2)
    assert all("too few pairs of one label for an interval" in remedy.verdict for remedy in report.remedies)
    assert "nan" not in str(report)


def test_a_threshold_of_another_rate(rows):
    with pytest.raises(InputError, match=r"rate must be one of 0\.5, 0\.1, 0\.05, 0\.01, 0\.001; got 0\.02"):
        isonb.audit(rows, sample=1000).threshold(0.02)


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        ({"pairs": None, "false_match_rate": 0.1}, InputError, "false_match_rate must come with pairs or queries"),
        ({"false_match_rate": 0.0001}, InputError, "pairs labelled 0"),
        ({"false_match_rate": 2}, InputError, "between 0 and 1"),
        ({"pairs": ([0] * 30, [1] * 30, [0, 1] * 15)}, InputError, "200 pairs labelled 0"),
        ({"pairs": ([0] * 30, [N] * 30, [0, 1] * 15)}, InputError, "row numbers from 0"),
        ({"pairs": (["a"] * 30, ["b"] * 30, [0, 1] * 15)}, DtypeError, "row numbers"),
        ({"pairs": ([0] * 30, [1] * 30, ["no"] * 30)}, DtypeError, "labels must be numbers"),
        ({"pairs": ([0] * 30, [1] * 30, [-1, 1] * 15)}, InputError, "labels must be 0 and 1, or grades of three"),
        ({"pairs": (torch.ones(30, 1), torch.zeros(30), [0, 1] * 15)}, ShapeError, "row numbers, one a pair"),
        ({"pairs": ([0] * 30, [1] * 30, torch.ones(30, 1))}, ShapeError, "labels must be numbers, one a pair"),
        ({"pairs": ([0] * 30, [1] * 30, [1] * 30)}, InputError, "different labels"),
        ({"pairs": (1, 2, 3)}, ShapeError, "of one length"),
        ({"pairs": zip([0] * 30, [1] * 30, [0, 1] * 15, strict=True)}, ShapeError, "of one length"),
        ({"queries": torch.ones(30, 5)}, ShapeError, "dimensions of the vectors"),
        ({"queries": torch.full((30, D), torch.nan)}, InputError, "queries must be finite"),
        ({"queries": torch.ones(3, D)}, InputError, "20 queries"),
        ({"texts": ["a"]}, ShapeError, "one text a row"),
    ],
)
def test_bad_questions(rows, pairs, change, kind, says):
    with pytest.raises(kind, match=f"^audit: .*{says}.*; got .*\\.$"):
        isonb.audit(rows, sample=1000, **{"pairs": pairs} | change)
