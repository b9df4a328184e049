"""What we are compared with: other libraries from points to the same numbers, and published formulas as printed.

Not every one of them is installed on every Python. A library is imported where it is called, and a peer that isn't
there is left out of the rows; the record names it.
"""

import importlib
import importlib.util

import numpy as np
import torch
from torch.nn.functional import normalize
from torch.special import entr

import isonb

PACKAGES = (
    *("numba", "numpy", "scipy", "scikit-learn", "ripser", "gudhi", "giotto-ph", "fastcluster", "faiss-cpu", "mlpack"),
    *("hdbscan", "torch-topological", "scikit-dimension", "transformers"),
)
"""Distributions whose versions the record tells, or that they are absent."""


def there(module):
    return importlib.util.find_spec(module) is not None


def of(place):
    """A function of a library, which is imported when it is called."""
    module, _, name = place.rpartition(".")
    return lambda *args, **options: getattr(importlib.import_module(module), name)(*args, **options)


def finite(deaths):
    return np.sort(deaths[np.isfinite(deaths)])


def longest(diagrams, n):
    """The n - 1 longest of the finite bars of H0 and H1 together, ascending."""
    bars = np.concatenate(diagrams)
    return finite(bars[:, 1] - bars[:, 0])[1 - n :]


def gudhi_h0(x):
    tree = of("gudhi.RipsComplex")(points=x).create_simplex_tree(max_dimension=1)
    tree.compute_persistence(homology_coeff_field=2, min_persistence=-1)
    return finite(tree.persistence_intervals_in_dimension(0)[:, 1])


def hdbscan_h0(x):
    """By the Boruvka over a kd-tree of hdbscan, with its defaults but exact."""
    tree = of("sklearn.neighbors.KDTree")(x.astype(np.float64), leaf_size=40)
    search = of("hdbscan._hdbscan_boruvka.KDTreeBoruvkaAlgorithm")(tree, 1, leaf_size=13, approx_min_span_tree=False)
    return np.sort(search.spanning_tree()[:, 2])


def product_linkage_h0(x):
    """Distances by torch's float32 product, which loses digits far from the origin, then fastcluster."""
    points, above = torch.from_numpy(x), torch.triu_indices(len(x), len(x), 1)
    pairs = torch.cdist(points, points)[above[0], above[1]].numpy()
    return np.sort(of("fastcluster.linkage")(pairs, "single", preserve_input=False)[:, 2])


def scipy_tree_h0(x):
    away = of("scipy.spatial.distance.squareform")(of("scipy.spatial.distance.pdist")(x))
    return np.sort(of("scipy.sparse.csgraph.minimum_spanning_tree")(away).data)


def sklearn_h0(x):
    options = {"n_clusters": None, "distance_threshold": 0.0, "linkage": "single"}
    return np.sort(of("sklearn.cluster.AgglomerativeClustering")(**options).fit(x).distances_)


ripser, giotto = of("ripser.ripser"), of("gph.ripser_parallel")
BARCODES = {
    "ripser": ("ripser", lambda x: finite(ripser(x, maxdim=0)["dgms"][0][:, 1])),
    "gudhi": ("gudhi", gudhi_h0),
    "scipy": ("scipy", scipy_tree_h0),
    "scipy single linkage": ("scipy", lambda x: np.sort(of("scipy.cluster.hierarchy.linkage")(x, "single")[:, 2])),
    "scikit-learn": ("sklearn", sklearn_h0),
    "fastcluster": ("fastcluster", lambda x: np.sort(of("fastcluster.linkage")(x, "single")[:, 2])),
    "torch.cdist and fastcluster": ("fastcluster", product_linkage_h0),
    "giotto-ph": ("gph", lambda x: finite(giotto(x, maxdim=0, n_threads=1)["dgms"][0][:, 1])),
    "mlpack": ("mlpack", lambda x: np.sort(of("mlpack.emst")(x.astype(np.float64))["output"][:, 2])),
    "hdbscan": ("hdbscan", hdbscan_h0),
}
"""Name of a library: the module it needs, and the finite deaths of H0 by it, sorted, from points."""

LOOPS = {
    "ripser": ("ripser", lambda x: longest(ripser(x, maxdim=1)["dgms"], len(x)), 1 / 1.2),
    "giotto-ph": ("gph", lambda x: longest(giotto(x, maxdim=1, n_threads=1)["dgms"], len(x)), 0.8),
}
"""The same of the longest bars of H0 and H1, and the goal."""


def barcodes(*names):
    """Those of the named libraries (default: all) that are installed."""
    return {name: call for name, (module, call) in BARCODES.items() if (not names or name in names) and there(module)}


def faiss_neighbours(x, k):
    """Distances to the k nearest others by the flat index of faiss, which finds each point itself first."""
    of("faiss.omp_set_num_threads")(1)
    return np.sqrt(np.maximum(of("faiss.knn")(x, x, k + 1)[0][:, 1:], 0))


def faiss_queries(queries, corpus, k):
    of("faiss.omp_set_num_threads")(1)
    return np.sqrt(np.maximum(of("faiss.knn")(queries, corpus, k)[0], 0))


def nearest_by_cdist(queries, corpus, k):
    return torch.cdist(queries, corpus).topk(k, largest=False).values


def skdim_two_nn(x):
    return float(of("skdim.id.TwoNN")(discard_fraction=0.1).fit_transform(x))


def skdim_mle(x, k=20):
    """scikit-dimension's local estimates pooled as isonb pools them: by the mean of their inverses."""
    return float(of("skdim.id.MLE")(K=k).fit(x, n_neighbors=k, comb="mle").dimension_)


def unit(x):
    return normalize(x, dim=-1)


def off_diagonal(total, n):
    """The mean over pairs of two different points, of a total that has each point with itself once as 1."""
    return (total - n) / (n * (n - 1))


def mean_cosine(x):
    return off_diagonal(unit(x).sum(0).square().sum(), len(x))


def cosine_penalty(x):
    return mean_cosine(x) * ((len(x) - 1) / len(x))


def closed_from_cov(cov):
    return (cov.trace() ** 2 / cov.square().sum() - 1) / (len(cov) - 1)


def closed_isoscore(x):
    """IsoScore without singular values, by the covariance or by the Gram matrix, whichever is smaller."""
    y = x - x.mean(0)
    square = y @ y.T if len(x) < x.shape[1] else y.T @ y
    return (square.trace() ** 2 / square.square().sum() - 1) / (x.shape[1] - 1)


def alignment(x, y):
    return (unit(x) - unit(y)).square().sum(-1).mean()


def cka(x, y):
    """Linear CKA by the smaller of both kinds of products."""
    x, y = x - x.mean(0), y - y.mean(0)
    if len(x) < x.shape[1]:
        a, b = x @ x.T, y @ y.T
        return (a * b).sum() / (a.norm() * b.norm())
    return (x.T @ y).square().sum() / ((x.T @ x).norm() * (y.T @ y).norm())


def partition(x):
    along = x @ torch.linalg.eigh(x.T @ x)[1]
    heights = torch.cat([along, -along], -1).logsumexp(0)
    return (heights.min() - heights.max()).exp()


def sigreg(x, directions):
    """The Epps-Pulley statistic with all waves at once, as LeJEPA prints it, over [0, 3] and doubled."""
    t = torch.linspace(0, 3, 17, dtype=x.dtype)
    weights, normal = torch.full_like(t, 2 * 3 / 16), torch.exp(-t.square() / 2)
    weights[[0, -1]] = 3 / 16
    angles = (x @ directions.T).unsqueeze(-1) * t
    error = (angles.cos().mean(0) - normal).square() + angles.sin().mean(0).square()
    return len(x) * (error @ (weights * normal)).mean()


def rescaled(x, scale, *, back=True):
    """Each principal direction of the centred points scaled by a function of its variance, and turned back."""
    values, axes = torch.linalg.eigh(torch.cov(x.T))
    scaled = axes * scale(values)
    return (x - x.mean(0)) @ (scaled @ axes.T if back else scaled)


def whitened(x):
    return rescaled(x, torch.rsqrt, back=False)


def sklearn_whitened(x):
    return of("sklearn.decomposition.PCA")(whiten=True, svd_solver="covariance_eigh").fit_transform(x)


def all_but_the_top(x, k):
    y = x - x.mean(0)
    axes = torch.linalg.eigh(y.T @ y)[1][:, -k:]
    return y - (y @ axes) @ axes.T


def shares(x, *, center=False, power=2):
    values = torch.linalg.svdvals(x - x.mean(0) if center else x) ** power
    return values / values.sum()


def alpha_req(x):
    """As reptrix has it: ranks 11 to 100, each of weight 1 / rank."""
    variances = shares(x, center=True)[: len(x) - 1][10:100]
    rank = torch.arange(11, 11 + len(variances), dtype=x.dtype)
    along = torch.stack([rank.log(), torch.ones_like(rank)], -1) * rank.rsqrt()[:, None]
    return -torch.linalg.lstsq(along, (variances.log() * rank.rsqrt())[:, None]).solution[0, 0]


def varex(x):
    m = int(0.3 * x.shape[1])
    return m / x.shape[1] / shares(x, center=True)[:m].sum()


def contributions(x):
    rows, n = unit(x), len(x)
    return (rows.sum(0).square() - rows.square().sum(0)) / (n * (n - 1))


def nc1(x):
    """Of four classes, row by row."""
    labels = torch.arange(len(x)) % 4
    means = torch.stack([x[labels == k].mean(0) for k in range(4)])
    within, between = x - means[labels], means - means.mean(0)
    return torch.trace(within.T @ within / len(x) @ torch.linalg.pinv(between.T @ between / 4, rtol=1e-6)) / 4


def local_dimension(x):
    near = torch.cdist(x, x).topk(21, largest=False).values[:, 1:]
    return 19 / (near[:, -1:] / near[:, :-1]).log().sum(-1)


def cls_uniformity(x):
    rows = unit(x)
    return (rows[:, :1] * rows).sum(-1).mean(-1)


def token_uniformity(x):
    rows = unit(x)
    return off_diagonal((rows @ rows.mT).sum((-2, -1)), x.shape[1])


def skewness(s):
    gap = s - s.mean()
    return gap.pow(3).mean() / gap.square().mean() ** 1.5


def ledoit_wolf(x):
    y = x - x.mean(0)
    n, d = y.shape
    square = (y.T @ y / n).square().sum()
    spread = square - y.square().sum().div(n).square() / d
    return (((y.square().sum(1).square().sum() / n - square) / n) / spread).clamp(0, 1)


def two_views(x):
    return x[: len(x) // 2 * 2].view(-1, 2, x.shape[1])


def lidar(x):
    """Of objects with two views each."""
    views = two_views(x)
    means = views.mean(1)
    apart = (views - means[:, None]).flatten(0, 1)
    within = apart.T @ apart / len(views) + 1e-4 * torch.eye(x.shape[1], dtype=x.dtype)
    root = torch.linalg.cholesky(within)
    half = torch.linalg.solve_triangular(root, torch.cov(means.T), upper=False)
    values = torch.linalg.eigvalsh(torch.linalg.solve_triangular(root, half.T, upper=False)).clamp_min(0)
    return entr(values / values.sum()).sum().exp()


def gor(x):
    rows = unit(x)
    cosines = rows @ rows.T
    mean, square = (off_diagonal(part.sum(), len(x)) for part in (cosines, cosines.square()))
    return mean.square() + (square - 1 / x.shape[1]).clamp_min(0)


def spectrum_control(x):
    k = torch.arange(1, 6, dtype=x.dtype)
    return 1e-4 * (torch.linalg.svdvals(x)[:5] - torch.exp(-k.square())).square().sum()


def star_to_identity(x):
    cov = torch.cov(x.T)
    return 1 - closed_from_cov(0.8 * cov + 0.2 * cov.trace() / len(cov) * torch.eye(len(cov), dtype=x.dtype))


def soft_decay_by_svd(x, alpha=-0.2):
    """SoftDecay through torch's SVD and its gradient."""
    u, s, vt = torch.linalg.svd(x, full_matrices=False)
    f = -torch.log(1 - alpha * (s + alpha) + 1e-7) / alpha
    return (u * (f * s[..., :1] / f.amax(-1, keepdim=True)).unsqueeze(-2)) @ vt


def without_mean_direction(x):
    rows = unit(x)
    direction = normalize(rows.mean(0), dim=0)
    return unit(rows - (rows @ direction)[:, None] * direction)


def scaled_dimension(x):
    y = x.clone()
    y[:, x.square().mean(0).argmax()] = 0
    return y


def without_cluster_tops(x, n_clusters=9, top=3):
    """Lloyd's iterations from the same rows as ours, then an SVD a cluster."""
    drawn = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:n_clusters]
    label = torch.cdist(x, x[drawn]).argmin(1)
    for _ in range(100):
        centres = torch.stack([x[label == c].mean(0) for c in range(n_clusters)])
        before, label = label, torch.cdist(x, centres).argmin(1)
        if torch.equal(before, label):
            break
    out = torch.empty_like(x)
    for c in range(n_clusters):
        y = x[label == c] - centres[c]
        axes = torch.linalg.svd(y, full_matrices=False)[2][:top]
        out[label == c] = y - (y @ axes.T) @ axes
    return out


def quarters(x):
    return torch.arange(len(x)) % 4


def centred(x):
    return x - x.mean(0)


def fitted(kind, *options):
    """A transform of ours, fitted to the points that it is applied to."""
    return lambda x: kind(*options).fit_transform(x)


LINES = {
    "singular values": (isonb.singular_values, torch.linalg.svdvals),
    "anisotropy": (isonb.anisotropy, lambda x: shares(x)[:3]),
    "explained variance": (isonb.explained_variance, lambda x: shares(x)[:3].cumsum(0)),
    "VarEx score": (isonb.varex_score, varex),
    "effective rank": (isonb.effective_rank, lambda x: entr(shares(x, power=1)).sum().exp()),
    "alpha-ReQ": (isonb.alpha_req, alpha_req),
    "participation ratio": (
        isonb.participation_ratio,
        lambda x: closed_from_cov(torch.cov(x.T)) * (x.shape[1] - 1) + 1,
    ),
    "IsoScore of a covariance": (lambda x: isonb.isoscore_from_cov(x.T @ x), lambda x: closed_from_cov(x.T @ x)),
    "cosine contributions": (isonb.cosine_contributions, contributions),
    "NC1": (lambda x: isonb.nc1(x, quarters(x)), nc1),
    "Ledoit and Wolf's shrinkage": (lambda x: isonb.shrinkage_intensity(x, "lw"), ledoit_wolf),
    "LiDAR": (lambda x: isonb.lidar(two_views(x)), lidar),
    "negative count": (isonb.negative_count, lambda x: (torch.linalg.svdvals(x) < 0.2).sum()),
    "points by label": (
        lambda x: torch.cat([part for _, part in isonb.label_groups(x, quarters(x))]),
        lambda x: torch.cat([x[quarters(x) == k] for k in range(4)]),
    ),
    "mean direction removed": (fitted(isonb.MeanDirection), without_mean_direction),
    "mean translation": (fitted(isonb.MeanTranslation), centred),
    "dimension silenced": (fitted(isonb.DimensionScale), scaled_dimension),
    "local dimension": (isonb.local_dimension, local_dimension),
    "ID score": (isonb.id_score, lambda x: 1 / (1 / local_dimension(x)).mean() / x.shape[1]),
    "centring": (isonb.centered, centred),
    "ZeroMean": (fitted(isonb.ZeroMean), centred),
    "Standardize": (fitted(isonb.Standardize), lambda x: (x - x.mean(0)) / x.std(0)),
}
"""Of one cloud (n, d): our function, and what one would write."""

LOSS_LINES = {
    "IsoScore loss forward+backward": (isonb.IsoScoreLoss(), lambda x: -closed_isoscore(x).log()),
    "I-STAR forward+backward": (isonb.IStarLoss(), star_to_identity),
    "Gao's cosine loss forward+backward": (isonb.GaoCosineLoss(), cosine_penalty),
    "GOR forward+backward": (isonb.GORLoss(), gor),
    "spectrum control forward+backward": (isonb.SpectrumControlLoss(), spectrum_control),
}
FITTED = {
    "SoftZCA(0.1), fit and transform": (fitted(isonb.SoftZCA, 0.1), lambda x: rescaled(x, lambda v: (v + 0.1).rsqrt())),
    "PartialWhitening(0.5), fit and transform": (
        fitted(isonb.PartialWhitening, 0.5),
        lambda x: rescaled(x, lambda v: (v / v.mean()) ** -0.25),
    ),
    "SingularDecay, fit and transform": (fitted(isonb.SingularDecay), soft_decay_by_svd),
    "ClusterRemoval(9, 3), fit and transform": (fitted(isonb.ClusterRemoval, 9, 3), without_cluster_tops),
}
"""Of clouds with more points than dimensions, so that every direction has variance."""

TOKEN_LINES = {
    "first token": (isonb.cls_pool, lambda x: x[..., 0, :]),
    "tokens as one cloud": (isonb.token_cloud, lambda x: x.reshape(-1, x.shape[-1])),
    "points of hidden states": (
        lambda x: isonb.points_from_hidden_states(x[:, None])[0],
        lambda x: torch.cat(list(x[1:])),
    ),
    "token uniformity": (isonb.token_uniformity, token_uniformity),
    "[CLS] uniformity": (isonb.cls_uniformity, cls_uniformity),
    "mean pooling": (isonb.mean_pool, lambda x: x.mean(1)),
    "layer average": (isonb.layer_average, lambda x: (x[0] + x[-1]) / 2),
}
BAR_LINES = {
    "persistent entropy": (isonb.persistent_entropy, lambda s: entr(s / s.sum()).sum()),
    "spectral skewness": (isonb.spectral_skewness, skewness),
    "spectral median": (isonb.spectral_median, lambda s: s.quantile(0.5) / s.max()),
    "spectral CDF": (lambda s: isonb.spectral_cdf(s)[0], lambda s: s.sort().values / s.max()),
}


def unlike(x, y):
    """The largest difference of the lengths of rows, which no choice of the signs or order of axes changes."""
    return relative_error(x.norm(dim=-1), y.norm(dim=-1))


def relative_error(ours, reference):
    """Largest difference over the largest size of the reference."""
    ours, reference = ours.detach().double().cpu(), reference.detach().double().cpu()
    return float((ours - reference).abs().max() / reference.abs().max().clamp_min(1e-300))


def star_by_singular_values(x, zeta, shrinkage):
    """Algorithm 1 of I-STAR as printed: covariance, shrinkage, singular values, defect, score."""
    d = x.shape[-1]
    spectrum = torch.linalg.svdvals((1 - zeta) * torch.cov(x.T) + zeta * shrinkage)
    defect = (spectrum * d**0.5 / spectrum.norm() - 1).norm() / (2 * (d - d**0.5)) ** 0.5
    used = (d - defect**2 * (d - d**0.5)) ** 2 / d**2
    return (d * used - 1) / (d - 1)


def uniformity_by_pairs(x):
    """RBF uniformity from the distances of all pairs by torch.pdist."""
    return torch.pdist(unit(x)).square().mul(-2).exp().mean().log()


def uniformity_by_gram(x):
    """RBF uniformity from one matrix of all products, which is kept for the backward pass."""
    rows, n = unit(x), len(x)
    weights = (rows @ rows.T).mul(4).sub(4).exp()
    return ((weights.sum() - weights.diagonal().sum()) / (n * (n - 1))).log()


def lsds_by_pairs(x, y, k=12, t=0.5):
    """LSDS with the neighbours taken from the distances of all pairs by torch.pdist."""
    x, y, n = unit(x), unit(y), len(x)
    away, above = x.new_full((n, n), torch.inf), torch.triu_indices(n, n, 1)
    away[above[0], above[1]] = away[above[1], above[0]] = torch.pdist(x)
    near = away.topk(k, largest=False)
    weights = torch.exp(-near.values.square() / t)
    return (y - (weights.unsqueeze(1) @ y[near.indices]).squeeze(1)).square().sum(-1).mean()
