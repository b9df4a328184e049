"""Transforms: what each promises holds, saved Gram matrices, folding, files, and the words for what can't be done."""

import json
import re
import sys

import numpy as np
import pytest
import torch
from golden_cases import cases, load, values
from processes import python
from sklearn.cluster import KMeans
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA
from support import P4, assert_same, check_gradient, gpu, normal, some_mask, uneven

from isonb.errors import DegenerateError, DependencyError, FitWarning, InputError, NotFittedError, ShapeError
from isonb.measures.cosine import mean_cosine
from isonb.measures.isoscore import isoscore
from isonb.streaming.moments import Moments
from isonb.transforms import AllButTheTop, ClusterRemoval, MeanDirection, SoftZCA, Whitening, ZeroMean, load_transform
from isonb.transforms.clusters import k_means, nearest_centre
from isonb.transforms.graded import DimensionScale, MeanTranslation, PartialWhitening, SingularDecay, Standardize
from isonb.transforms.whitening import principal_axes

pytestmark = pytest.mark.filterwarnings("ignore::isonb.errors.FitWarning")  # small clouds on purpose

TRANSFORMS = {
    "zero mean": ZeroMean,
    "whitening": Whitening,
    "whitening-3": lambda: Whitening(k=3),
    "ZCA": lambda: SoftZCA(eps=0.0),
    "soft ZCA": lambda: SoftZCA(eps=0.5),
    "automatic ZCA": SoftZCA,
    "all but the top": lambda: AllButTheTop(D=2),
    "all but the top, uncentred": lambda: AllButTheTop(D=2, centered=False),
    "mean direction": MeanDirection,
    "mean direction, subtracted": lambda: MeanDirection(subtract=True),
    "cluster removal": lambda: ClusterRemoval(n_clusters=3, D=1),
    "needle": lambda: PartialWhitening(p=-1.0),
    "rounder": lambda: PartialWhitening(p=0.75),
    "beyond": lambda: PartialWhitening(p=1.5),
    "mean added": lambda: MeanTranslation(s=2.0),
    "loudest": lambda: DimensionScale(factor=0.25, count=2),
    "standardised": Standardize,
    "decayed": lambda: SingularDecay(alpha=-0.6),
}
GRADED = ("needle", "rounder", "beyond", "mean added", "loudest", "standardised", "decayed")
AFFINE = [name for name in TRANSFORMS if not name.startswith(("mean direction", "cluster removal"))]
STREAMED = [name for name in AFFINE if name != "automatic ZCA"]
WHITENED = [case for case in cases("layers") if "whitening" in values("layers", case)]


@pytest.mark.parametrize("case", WHITENED)
def test_saved_gram_of_whitening(case):
    saved, x = values("layers", case)["whitening"], load(case)["points"]
    y = Whitening().fit_transform(x) / (len(x) - 1) ** 0.5  # the saved matrix is of the scatter, not the covariance
    gram, index = y @ y.T, saved["gram_block_index"]
    assert_same(gram.diagonal(), torch.tensor(saved["gram_diagonal"], dtype=torch.float64), rtol=1e-8)
    assert_same(gram[index][:, index], torch.tensor(saved["gram_block"], dtype=torch.float64), rtol=1e-8, atol=1e-10)
    assert gram.trace().item() == pytest.approx(saved["gram_trace"])
    assert gram.norm().item() == pytest.approx(saved["gram_frobenius_norm"])


def test_whitening_is_pca_whitening():
    x = uneven(40, 6)
    want = np.abs(PCA(4, whiten=True).fit_transform(x.numpy()))
    assert_same(Whitening(k=4).fit_transform(x).abs(), torch.from_numpy(want), rtol=1e-8)


def test_whitening_drops_directions_without_variance():
    few = Whitening().fit(uneven(5, 12))
    assert few.rank == 4
    assert few.transform(uneven(5, 12)).shape == (5, 4)
    assert_same(few.transform(uneven(5, 12)).T.cov(), torch.eye(4).double(), atol=1e-9)
    cov = torch.diag(torch.tensor([1.0, 3.0, 2.0]).double())
    assert [principal_axes(cov, most)[0].tolist() for most in (None, 2)] == [[3, 2, 1], [3, 2, 0]]
    dead = uneven(30, 6)
    dead[:, 2] = 0.25
    white = Whitening(k=6).fit(dead)
    assert white.rank == 5
    assert white.transform(dead).shape == (30, 5)
    assert white.to_dense().weight.shape == (5, 6)
    wide = torch.randn(64, 128, generator=torch.Generator().manual_seed(0))
    assert Whitening().fit(wide).rank == 63
    torch.testing.assert_close(Whitening().fit_transform(wide).mT.cov(), torch.eye(63), rtol=0, atol=1e-4)
    streamed = Moments().update(wide)  # products in float32: what they leave of 65 directions is above 1e-10
    assert Whitening().fit_moments(streamed).rank == 63
    with pytest.raises(DegenerateError, match="ZCA needs variance in every direction"):
        SoftZCA(eps=0.0).fit_moments(streamed)


def test_a_fit_says_what_it_keeps_and_how_far_it_is_off():
    x = uneven(100, 24)
    with pytest.warns(FitWarning, match=r"Whitening: 9 of the 24 directions asked for are kept: .* 10 points are few"):
        Whitening(k=24).fit(x[:10])
    flat = normal(200, 24)
    with pytest.warns(FitWarning, match=r"^Whitening: 20 of the 24 directions asked for are kept: the 200 points vary"):
        Whitening().fit(torch.cat([flat[:, :20], flat[:, :4]], -1))
    with pytest.warns(FitWarning, match=r"between 0\.26 and 2\.2 times .* Fit on 120 or more") as caught:
        Whitening(k=3).fit(x)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with pytest.warns(FitWarning, match="SoftZCA: 100 points are few for 24 dimensions"):
        SoftZCA(eps=0.1).fit(x)
    with pytest.warns(FitWarning, match="AllButTheTop: 100 points are few"):
        AllButTheTop(1).fit_moments(Moments().update(x))


@pytest.mark.filterwarnings("error")
def test_a_fit_on_enough_points_says_nothing():
    x = uneven(60, 12)
    for transform in (Whitening(), Whitening(4), SoftZCA(0.1), AllButTheTop(2)):
        transform.fit(x)
    for transform in (ZeroMean(), SoftZCA(), MeanDirection()):  # no covariance, or one shrunk for few points
        transform.fit(x[:3])


def test_the_error_said_is_the_error_there_is():
    """The variances of white points, along the worst directions that a sample gives them."""
    variances = torch.linalg.eigvalsh(normal(2000, 400).T.cov())
    with pytest.warns(FitWarning) as caught:
        Whitening().fit(normal(1000, 400))
    low, high = map(float, re.findall(r"between (\S+) and (\S+) times", str(caught[0].message))[0])
    sample = torch.linalg.eigvalsh(normal(1000, 400).T.cov())
    assert sample.min().item() == pytest.approx(low, abs=0.03)
    assert sample.max().item() == pytest.approx(high, abs=0.12)
    assert variances.min() > low
    assert variances.max() < high


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_float32_points_of_any_size(name, scale):
    x, eps = uneven(60, 6).float(), {"soft ZCA", "decayed"}  # an absolute variance, or length, there
    y = TRANSFORMS[name]().fit_transform(x * scale)
    assert bool(torch.isfinite(y).all())
    units = name.startswith(("zero", "all but", "cluster", *GRADED)) and name != "standardised"
    want = TRANSFORMS[name]().fit_transform(x) * (scale if units else 1)
    if name not in eps:
        assert_same(y.abs() / want.abs().max(), want.abs() / want.abs().max(), rtol=1e-2, atol=1e-3)


def test_soft_zca_between_raw_and_white():
    x = uneven(60, 5)
    e, axes = torch.linalg.eigh(x.T.cov())
    y = SoftZCA(eps=0.3).fit_transform(x)
    assert_same(y, (x - x.mean(0)) @ axes / (e + 0.3).sqrt() @ axes.T, rtol=1e-8)
    scores = [isoscore(SoftZCA(eps=eps).fit_transform(x)).item() for eps in (100.0, 1.0, 0.01, 0.0)]
    assert scores == sorted(scores)
    assert scores[0] < isoscore(x).item() * 1.2
    _, z = ledoit_wolf(x.numpy())
    e, axes = torch.linalg.eigh((1 - z) * x.T.cov() + z * torch.eye(5).double() * x.T.cov().trace() / 5)
    assert_same(SoftZCA().fit_transform(x), (x - x.mean(0)) @ axes / e.sqrt() @ axes.T, rtol=1e-8)
    for eps, want in ((0.0, 1.0), (0.1, 0.998929), (1.0, 0.945858), (10.0, 0.675900)):
        assert isoscore(SoftZCA(eps).fit_transform(P4)).item() == pytest.approx(want, abs=1e-6)
    assert bool(torch.isfinite(SoftZCA().fit_transform(P4)).all())  # shrinkage 1
    with pytest.raises(DegenerateError, match="variance in every direction"):
        SoftZCA(eps=0.0).fit(uneven(4, 6))


def test_all_but_the_top_removes_what_it_says():
    x = uneven(50, 7)
    pca = PCA(3).fit(x.numpy())
    top = torch.from_numpy(pca.components_)
    y = AllButTheTop(D=3).fit_transform(x)
    assert (y @ top.T).abs().max() < 1e-10
    rest = torch.linalg.eigvalsh(y.T.cov()).flip(0)
    assert_same(rest[:4], torch.linalg.eigvalsh(x.T.cov()).flip(0)[3:], rtol=1e-8)
    assert_same(rest[4:], torch.zeros(3).double(), atol=1e-12)
    centred = x - x.mean(0)
    uncentred = AllButTheTop(D=3, centered=False).fit_transform(x)
    assert_same(uncentred, centred - x @ top.T @ top, atol=1e-10)
    assert_same(AllButTheTop(D=0).fit_transform(x), centred)
    assert AllButTheTop().fit(uneven(20, 250)).state["axes"].shape == (250, 2)
    assert AllButTheTop().fit(uneven(20, 5)).state["axes"].shape == (5, 1)


def test_mean_direction():
    x = torch.tensor([[2.0, 0, 1], [0, 1, 1], [1, 3, 0], [4, 4, 2]], dtype=torch.float64)
    y = MeanDirection().fit_transform(x)
    assert y[0].tolist() == pytest.approx([0.701385, -0.687493, 0.188180], abs=1e-6)
    assert_same(y.norm(dim=-1), torch.ones(4).double())
    unit, fitted = x / x.norm(dim=-1, keepdim=True), MeanDirection().fit(x).state
    assert fitted["length"].item() == pytest.approx(0.834088, abs=1e-6)
    assert_same(fitted["direction"] * fitted["length"], unit.mean(0))
    assert (y @ unit.mean(0)).abs().max() < 1e-12
    subtracted = MeanDirection(subtract=True).fit_transform(x)
    assert subtracted[0].tolist() == pytest.approx([0.587535, -0.802478, 0.104074], abs=1e-6)
    assert_same(subtracted.norm(dim=-1), torch.ones(4).double())
    cloud = uneven(60, 6, mean=3.0)
    assert abs(mean_cosine(MeanDirection().fit_transform(cloud)).item()) < 0.1 < mean_cosine(cloud).item()
    padded, mask = torch.stack([x, x + 9]), torch.tensor([[True] * 4, [False] * 4])
    assert_same(
        MeanDirection().fit(padded, mask).state.values(), fitted.values()
    )  # a sentence of padding alone is left out
    bare = MeanDirection(renormalize=False).fit(x)
    assert_same(bare.to_dense(torch.float64)(unit), bare.transform(x))
    shifted = MeanDirection(renormalize=False, subtract=True).fit(x)
    assert_same(shifted.transform(x), unit - unit.mean(0))
    assert_same(shifted.to_dense(torch.float64)(unit), shifted.transform(x))
    with_zero = torch.cat([x, torch.zeros(2, 3).double()])
    assert_same(MeanDirection().fit(with_zero).state.values(), fitted.values())
    assert not MeanDirection().fit(x).transform(torch.zeros(1, 3)).any()
    line = torch.arange(1.0, 8.0).unsqueeze(-1) * torch.tensor([1.0, 3.0, 7.0])
    assert not MeanDirection().fit_transform(line).any()  # rounding noise is not blown up to length 1
    for sides in (2, 3, 7):
        angles = torch.arange(sides, dtype=torch.float64) * 2 * torch.pi / sides
        polygon = torch.stack([angles.cos(), angles.sin()], -1)
        for corners in (polygon, polygon.float()):
            with pytest.raises(DegenerateError, match="mean direction"):  # nor made a direction of
                MeanDirection().fit(corners)


def test_k_means_is_lloyds():
    x = torch.cat([normal(40, 5, seed=k) + 6 * normal(1, 5, seed=50 + k) for k in range(4)])
    centres, label = k_means(x, 4, seed=1)
    start = x[torch.randperm(160, generator=torch.Generator().manual_seed(1))[:4]]
    peer = KMeans(4, init=start.numpy(), n_init=1, algorithm="lloyd", tol=0, max_iter=300).fit(x.numpy())
    assert label.tolist() == peer.labels_.tolist()
    assert_same(centres, torch.from_numpy(peer.cluster_centers_))
    far = x + 1e6
    assert nearest_centre(far, centres + 1e6).tolist() == label.tolist()
    assert torch.equal(k_means(x, 4, seed=1)[0], centres)
    assert not torch.equal(k_means(x, 4, seed=2, iterations=0)[0], k_means(x, 4, seed=1, iterations=0)[0])
    same = k_means(torch.zeros(5, 2), 3)  # clusters that lose every row
    assert bool(torch.isfinite(same[0]).all())


def test_cluster_removal_removes_what_it_says():
    x = torch.cat([uneven(30, 6, seed=k) + 9 * normal(1, 6, seed=70 + k) for k in range(3)])
    fitted = ClusterRemoval(n_clusters=3, D=2, seed=2).fit(x)
    y, (_, label) = fitted.transform(x), k_means(x, 3, seed=2)
    assert len(label.unique()) == 3
    for c in range(3):
        rows = x[label == c].numpy()
        pca = PCA().fit(rows)
        want = (rows - rows.mean(0)) @ pca.components_[2:].T @ pca.components_[2:]
        assert_same(y[label == c], torch.from_numpy(want), rtol=1e-7, atol=1e-9)
    assert_same(fitted.transform(x.flip(0)), y.flip(0))
    tiny = ClusterRemoval(n_clusters=4, D=2).fit(torch.tensor([[0.0, 0, 0], [0, 1, 0], [9, 0, 0], [0, 0, 9]]))
    assert_same(tiny.transform(torch.tensor([[0.0, 1, 0]])), torch.zeros(1, 3), atol=1e-6)
    tokens, mask = uneven(4, 9, 5), some_mask(4, 9)
    a, b = ClusterRemoval(2, 1).fit(tokens, mask), ClusterRemoval(2, 1).fit(tokens[mask])
    assert_same(a.transform(tokens, mask)[mask], b.transform(tokens[mask]))


@pytest.mark.parametrize("name", TRANSFORMS)
def test_base(name):
    x = uneven(30, 6)
    fitted = TRANSFORMS[name]().fit(x)
    y = fitted.transform(x)
    assert fitted.dims == 6
    assert_same(TRANSFORMS[name]().fit_transform(x), y)
    check_gradient(fitted.transform, x[:4])
    assert_same(fitted.transform(x.view(5, 6, 6)), y.view(5, 6, -1))
    assert_same(fitted.transform(x.float()), y.float(), rtol=1e-3, atol=1e-4)
    assert fitted.transform(x.bfloat16()).dtype == torch.float32
    assert fitted.transform(x[:0]).shape == (0, y.shape[1])
    mask = some_mask(5, 6)
    padded = torch.where(mask.unsqueeze(-1), x.view(5, 6, 6), float("nan"))
    out = fitted.transform(padded, mask)
    assert_same(out[mask], y.view(5, 6, -1)[mask])
    assert not out[~mask].any()
    masked, dropped = TRANSFORMS[name]().fit(padded, mask), TRANSFORMS[name]().fit(x.view(5, 6, 6)[mask])
    assert_same(masked.transform(x).abs(), dropped.transform(x).abs(), rtol=1e-6, atol=1e-8)
    assert not masked.transform(x).requires_grad
    with torch.device("meta"):  # stands for a default device "cuda"
        assert_same(TRANSFORMS[name]().fit(x).transform(x), y, rtol=0, atol=0)
    with torch.inference_mode():
        fitted = TRANSFORMS[name]().fit(x + 0)
    check_gradient(fitted.transform, x[:4])


@pytest.mark.parametrize("name", AFFINE)
def test_folds_into_a_linear_layer(name):
    x = uneven(30, 6) + 2
    fitted = TRANSFORMS[name]().fit(x)
    assert_same(fitted.to_dense(torch.float64)(x), fitted.transform(x), atol=1e-10)
    layer = fitted.to_dense()
    assert type(layer) is torch.nn.Linear
    assert not any(p.requires_grad for p in layer.parameters())
    assert_same(layer(x.float()), fitted.transform(x).float(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", STREAMED)
def test_fits_from_a_stream(name):
    x = uneven(60, 6) + 100
    moments = Moments()
    for part in (x[:7], x[7:8], x[8:]):
        moments.update(part)
    streamed = TRANSFORMS[name]().fit_moments(moments)
    assert_same(streamed.transform(x), TRANSFORMS[name]().fit(x).transform(x), rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_files(name, tmp_path):
    x = uneven(30, 6)
    fitted = TRANSFORMS[name]().fit(x)
    fitted.save(tmp_path / "deep" / "folder")
    assert sorted(p.name for p in (tmp_path / "deep" / "folder").iterdir()) == ["config.json", "weights.safetensors"]
    for read in (load_transform, type(fitted).load):
        result = read(tmp_path / "deep" / "folder")
        assert type(result) is type(fitted)
        assert torch.equal(result.transform(x), fitted.transform(x))
        assert repr(result) == repr(fitted)


def test_every_public_transform_is_read_by_a_fresh_process(tmp_path):
    for name in TRANSFORMS:
        TRANSFORMS[name]().fit(uneven(30, 6)).save(tmp_path / name)
    names = list(TRANSFORMS)
    read = f"import isonb; print(*(type(isonb.load_transform(f'{tmp_path}/{{n}}')).__name__ for n in {names}))"
    assert python("-c", read).split() == [type(make()).__name__ for make in TRANSFORMS.values()]


def test_broken_files(tmp_path):
    Whitening().fit(uneven(9, 3)).save(tmp_path)
    with pytest.raises(InputError, match="must hold a ZeroMean"):
        ZeroMean.load(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for change, match in (
        ({"class": "Nonsense"}, "must hold one of .* Import its class first"),
        ({"class": "GlowFlow"}, r"must hold one of .* Use GlowFlow\.load"),
        ({"options": {"q": 1}}, "an option of Whitening must exist; got 'q'. Options: k"),
        ({"dims": 5}, "3 dimensions"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(InputError, match=match):
            load_transform(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="must hold what save wrote"):
        load_transform(tmp_path)
    (tmp_path / "config.json").unlink()
    with pytest.raises(InputError, match=r"no config\.json"):
        load_transform(tmp_path)


def test_files_need_safetensors(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors.torch", None)
    with pytest.raises(DependencyError, match=r"needs safetensors: pip install .*\[hf\]"):
        ZeroMean().fit(uneven(4, 3)).save(tmp_path)
    with pytest.raises(DependencyError, match=r"needs safetensors: pip install .*\[hf\]"):
        load_transform(tmp_path)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_bad_input(name, tmp_path):
    make, x = TRANSFORMS[name], uneven(12, 6)
    for call in (lambda: make().transform(x), lambda: make().save(tmp_path), lambda: make().dims):
        with pytest.raises(NotFittedError, match="must be fitted before it is used"):
            call()
    fitted = make().fit(x)
    with pytest.raises(ShapeError, match="the 6 dimensions"):
        fitted.transform(uneven(4, 5))
    with pytest.raises(ShapeError, match=r"at least|between"):
        make().fit(x[:0])
    with pytest.raises(ShapeError, match="mask"):
        fitted.transform(x, torch.ones(3, dtype=torch.bool))


def test_bad_options():
    x = uneven(12, 6)
    for call, match in (
        (lambda: Whitening(k=7).fit(x), "at most the 6"),
        (lambda: SoftZCA().fit_moments(Moments().update(x)), "needs the points"),
        (lambda: AllButTheTop(D=7).fit(x), "at most the 6"),
        (lambda: ClusterRemoval(2, D=7).fit(x), "at most the 6"),
        (lambda: ClusterRemoval(13, 1).fit(x), "between 1 and 12"),
        (lambda: Whitening().fit(torch.ones(5, 3)), "must not all be equal"),
        (lambda: DimensionScale(count=9).fit(x), "at most the 6 dimensions"),
    ):
        with pytest.raises(InputError, match=match):
            call()


@gpu
@pytest.mark.parametrize("name", TRANSFORMS)
def test_cuda(name):
    x = uneven(30, 6)
    want = TRANSFORMS[name]().fit(x).transform(x)
    fitted = TRANSFORMS[name]().fit(x.cuda())
    assert_same(fitted.transform(x.cuda()).cpu(), want, rtol=1e-6, atol=1e-7)
