"""Thresholds keep the rate asked for on the other half; remedies are judged on rows that they weren't fitted on."""

import re

import pandas as pd
import pytest
import torch

import isonb
from isonb.auditing.defects import SEARCH_P
from isonb.auditing.measured import OF_SPREAD, groups_of_pairs, share_of
from isonb.errors import DtypeError, InputError, ShapeError
from isonb.measures.registry import titles

N, D = 4000, 32


def draw(seed):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def rows():
    """Topics of ten rows each, off the origin: as sentence vectors are."""
    topics = torch.randn(N // 10, D, generator=draw(0)).repeat_interleave(10, 0)
    return topics + 0.7 * torch.randn(N, D, generator=draw(1)) + 1.5


@pytest.fixture(scope="module")
def forty():
    """Forty topics of fifty rows, and two queries of each."""
    topics = torch.randn(40, 96, generator=draw(0))
    x = topics.repeat(50, 1) + 0.7 * torch.randn(2000, 96, generator=draw(1))
    return x, topics.repeat(2, 1) + 0.7 * torch.randn(80, 96, generator=draw(2))


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


def test_queries_need_no_labels_nor_the_type_of_the_vectors(forty):
    x, queries = (part + 1.5 for part in forty)
    raw, centred = isonb.audit(x, sample=1000, queries=queries.half(), false_match_rate=0.02).matches
    assert raw.recall is None
    assert raw.threshold > centred.threshold + 0.1
    assert abs(raw.false_matches[0] - 0.02) < 0.02
    assert abs(centred.false_matches[0] - 0.02) < 0.02


def test_the_threshold_of_queries_is_that_of_rows_that_answer_none(forty):
    """One of forty rows answers a query, so a quantile 0.99 of all pairs would lie among those that do."""
    x, queries = forty
    report = isonb.audit(x, queries=queries)
    threshold = report.matches[0].threshold
    assert threshold == pytest.approx(report.threshold(0.01), abs=0.04)
    assert f"take the threshold {threshold:.3f}. " in report.headline
    cosines = torch.nn.functional.normalize(queries, dim=-1) @ torch.nn.functional.normalize(x, dim=-1).mT
    same = torch.arange(80)[:, None] % 40 == torch.arange(2000) % 40
    assert (cosines[same] > threshold).double().mean() > 0.99
    passed = (cosines[~same] > threshold).double().mean().item()
    assert passed == pytest.approx(0.01, abs=0.005)
    share = report.matches[0].false_matches[0]
    assert f"about {share * 2000:.0f} of 2,000 rows a query" in report.headline
    assert share == pytest.approx(passed, abs=0.005)


def test_queries_give_no_threshold_where_their_answers_do_not_stand_out():
    x = torch.randn(1000, 8, generator=draw(0))
    report = isonb.audit(x, queries=x[:200] + 0.3)
    assert not report.matches
    assert "Queries give none" in str(report)
    assert "take the threshold" not in report.headline


def test_the_threshold_of_pairs_leads_and_that_of_queries_has_a_name_of_its_own(forty):
    x, queries = forty
    label = [row % 2 for row in range(2000)]
    second = [(row + 7 + 33 * label[row]) % 2000 for row in range(2000)]
    report = isonb.audit(x, queries=queries, pairs=(range(2000), second, label))
    labelled, _, queried, _ = report.matches
    assert report.values()["threshold as they are"] == labelled.threshold
    assert report.values()["threshold of queries, as they are"] == queried.threshold
    assert f"take the threshold {labelled.threshold:.3f}. " in report.headline


def by_query(seed, queries=40, documents=25, rate=0.05):
    """Whether pairs of queries, each with a level of its own, pass the cosine that this rate of new ones passes."""
    level = 0.12 * torch.randn(queries, generator=draw(seed)).repeat_interleave(documents)
    scores = level + 0.1 * torch.randn(queries * documents, generator=draw(seed + 10_000))
    return scores > torch.distributions.Normal(0, (0.12**2 + 0.1**2) ** 0.5).icdf(torch.tensor(1 - rate))


def test_the_interval_of_pairs_that_share_a_query_covers_the_rate_on_new_queries():
    """Taken for independent they cover it in half of the cases."""
    shared, alone = torch.arange(40).repeat_interleave(25), torch.arange(1000)
    covered = {
        name: sum(low <= 0.05 <= high for _, low, high in (share_of(by_query(seed), group) for seed in range(200)))
        for name, group in (("shared", shared), ("alone", alone))
    }
    assert covered["shared"] > 160
    assert covered["alone"] < 130


def test_pairs_that_share_texts_are_a_group_and_few_groups_have_no_interval():
    first = [f"query {i // 25}" for i in range(1000)]
    own, pool = ([f"document {i % n}" for i in range(1000)] for n in (1000, 60))
    assert torch.equal(groups_of_pairs(first, own), torch.arange(1000) // 25)
    assert torch.equal(groups_of_pairs(first, pool), torch.arange(1000) // 25)  # one chain joins all of them
    joined = groups_of_pairs([*first, "document 7"], [*own, "document 990"])
    assert joined[0] == joined[990] == joined[1000]
    assert share_of(torch.arange(100) % 5 == 0, torch.arange(100) // 20) == (0.2, 0.0, 1.0)


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
    assert clear["centring"].gain[0] == pytest.approx(0, abs=1e-4)
    assert "the mean is near zero already" in clear["centring"].verdict


def test_a_round_cloud_has_nothing_to_gain():
    report = isonb.audit(torch.randn(1000, D, generator=draw(6)))
    assert len(report.remedies) == 4
    assert all("already" in remedy.verdict for remedy in report.remedies)
    assert "isotropy is no score" in report.score
    assert not report.next_steps


def test_of_too_few_rows_in_the_sample_no_shape_is_told():
    report = isonb.audit(torch.randn(1000, 64, generator=draw(6)), sample=100)
    none = {name for name, value in report.values().items() if value is None}
    assert none >= {*OF_SPREAD, *titles(*OF_SPREAD).values()}
    assert isinstance(report.values()["mean cosine"], float)
    assert re.search(r"IsoScore +unsure", str(report))
    assert isonb.audit(torch.randn(1000, 64, generator=draw(6))).values()["IsoScore"] > 0.9
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


def test_queries_without_a_false_match_leave_room_for_one():
    """Ten judging queries of which none has a false match: the share is not known to be 0."""
    share, low, high = share_of(torch.zeros(1000, dtype=torch.bool), torch.arange(1000) // 100)
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
    few = "too few pairs of one label that share no text for an interval"
    assert all(few in remedy.verdict for remedy in report.remedies)
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
