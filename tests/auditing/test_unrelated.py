"""The floor is a quantile of unrelated pairs: right within 0.03 in clouds of known clusters, or withheld."""

import pytest
import torch

import isonb
from isonb.auditing.unrelated import TOLERANCE, gaussian_like, pair_cosines, random_pairs
from isonb.errors import InputError

N, D = 2000, 96


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


def clusters(k, n=N, d=D, noise=0.7, tail=None, uneven=False, shift=0.0, decay=0.0):
    """Rows about ``k`` centres, and the cluster of each.

    ``tail``: degrees of freedom of Student's t, a factor of each row's noise; ``uneven``: cluster j has a share of 1/j.
    """
    centres = torch.randn(k, d, generator=draw())
    label = (
        torch.multinomial(1 / torch.arange(1.0, k + 1), n, True, generator=draw(1)) if uneven else torch.arange(n) % k
    )
    separate = torch.randn(n, d, generator=draw(2))
    if tail:
        separate /= torch.randn(n, tail, generator=draw(3)).square().mean(-1, keepdim=True).sqrt()
    x = centres[label] + noise * separate + shift * torch.randn(d, generator=draw(4))
    return x * torch.arange(1.0, d + 1) ** -decay, label


def with_copies(x, label):
    """The last rows are copies of some of the first."""
    count = int(0.3 * len(x))
    source = torch.randint(len(x) // 50, (count,), generator=draw(5))
    return torch.cat([x[:-count], x[source]]), torch.cat([label[:-count], label[source]])


def truth(x, label):
    """The quantile 0.99 of pairs of different clusters."""
    first, second = random_pairs(len(x), draw(6), 200_000)
    return float(pair_cosines(x, first, second)[label[first] != label[second]].quantile(0.99))


# What the floor is in clouds that an audit is given; whether it must be told.
SIMULATED = {
    **{f"{k} clusters": (clusters(k), True) for k in (5, 40, 400)},
    **{f"{k} wide clusters": (clusters(k, noise=1.5), k < 400) for k in (5, 400)},
    **{f"{k} clusters, heavy tails": (clusters(k, tail=3), k < 400) for k in (5, 400)},
    "clusters of uneven size": (clusters(40, uneven=True), True),
    "clusters off the origin": (clusters(40, shift=1.0), True),
    **{f"{k} clusters with copies": (with_copies(*clusters(k)), k < 400) for k in (40, 400)},
    "clusters, few directions": (clusters(40, decay=0.5), False),
    "clusters of 384 dimensions": (clusters(40, d=384), True),
    **{
        f"{k} clusters of {d} dimensions, {noise} wide": (clusters(k, d=d, noise=noise), None)
        for d, k, noise in ((4, 5, 0.4), (12, 5, 1.3), (32, 3, 1.8))
    },
    "clusters of 300 rows": (clusters(20, n=300), False),
}


@pytest.mark.parametrize("case", SIMULATED)
def test_the_floor_is_that_of_unrelated_pairs_or_withheld(case):
    (x, label), must = SIMULATED[case]
    result = isonb.auditing.vectors.floor_of(x, draw())
    assert result.unrelated.certain or not must, result.unrelated
    if result.unrelated.certain:
        assert result.quantiles["unrelated cosine"]["0.99"] == pytest.approx(truth(x, label), abs=TOLERANCE)


@pytest.mark.parametrize("offset", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("n", "d"), [(600, 24), (2000, 96), (300, 384)])
def test_a_cloud_without_clusters_has_a_floor_and_no_related_pairs(n, d, offset):
    x = torch.randn(n, d, generator=draw(7)) + offset
    result = isonb.auditing.vectors.floor_of(x, draw())
    assert result.unrelated.related == 0
    assert result.quantiles["unrelated cosine"] == result.quantiles["random cosine"]


def test_forty_topics_are_told_apart_in_the_whole_report():
    """A quantile of all pairs is 0.69 here; a threshold there would lose half of the related pairs."""
    x, label = clusters(40)
    report = isonb.audit(x + 0.3)
    assert report.threshold() == pytest.approx(truth(x + 0.3, label), abs=TOLERANCE)
    assert report.floor["random cosine"]["0.99"] > report.threshold() + 0.3
    assert report.unrelated.related == pytest.approx(1 / 40, abs=0.005)
    assert "of random pairs seem related" in " ".join(str(report).split())
    assert report.headline.startswith(f"Usable: take a threshold above {report.threshold():.2f}, which 1% of unrelated")


def test_topics_within_topics_are_withheld():
    """Rows of one branch are alike, of one leaf more so: which are related isn't for the audit to say."""
    branch, leaf = torch.randn(8, D, generator=draw(1)), 0.7 * torch.randn(80, D, generator=draw(2))
    of = torch.arange(N) % 80
    report = isonb.audit(branch[of % 8] + leaf[of] + 0.4 * torch.randn(N, D, generator=draw(3)))
    assert not report.unrelated.certain
    assert report.unrelated.low < 0.3 < 0.6 < report.unrelated.high
    assert report.values()["unrelated cosine 0.99"] is None
    assert "unrelated cosine" not in report.floor
    with pytest.raises(InputError, match=r"unrelated pairs must stand out.*Pass labelled pairs"):
        report.threshold()
    assert "labelled pairs" in " ".join(str(report).split()).lower()


def test_one_loud_dimension_makes_no_related_pairs():
    """Half of all pairs are on one side of it, with a cosine near 1; a floor below 0 would be no floor."""
    x = torch.randn(1000, 24, generator=draw())
    x[:, 0] *= 30
    result = isonb.auditing.vectors.floor_of(x, draw())
    assert not result.unrelated.certain
    assert result.unrelated.high > 0.99


def test_a_gaussian_of_the_same_mean_and_covariance():
    x = clusters(5)[0] + 1
    y = gaussian_like(x, draw())
    assert (y.mean(0) - x.mean(0)).norm() < 0.1 * x.mean(0).norm()
    assert torch.linalg.matrix_norm(torch.cov(y.mT) - torch.cov(x.mT)) < 0.5 * torch.linalg.matrix_norm(torch.cov(x.mT))
