"""isonb in the place of other libraries, for their own tests: a plugin of pytest, ``-p tests.peers.shims``.

Each stand-in has the signature of what it stands in for, and answers by isonb alone. What isonb doesn't offer skips the
test that asks for it, with the word "not offered". Outcomes are written to the file that ``PEERS_OUTCOMES`` names.
"""

import json
import math
import os
import random
import sys
from pathlib import Path
from typing import get_args

import gph
import gudhi
import gudhi.sklearn.rips_persistence
import hypothesis
import numpy as np
import persim.persistent_entropy
import pytest
import ripser
import torch
import torch_topological.nn
from scipy import sparse
from sklearn.metrics import pairwise_distances

import isonb
from isonb.barcodes import rips
from isonb.barcodes.inputs import Metric

OUTCOMES: dict[str, list[str]] = {}
ASKED = []  # by the test that runs, of a stand-in


def not_offered(what):
    """Skip the test that asks for it."""
    pytest.skip(f"not offered: {what}")


def distances(x):
    """A matrix as others take it: sparse, or one of its triangles. A pair that isn't stored is never joined."""
    if sparse.issparse(x):
        full = np.full(x.shape if len(set(x.shape)) == 1 else (max(x.shape),) * 2, np.inf)
        coo = x.tocoo()
        if (coo.row == coo.col).any() and coo.data[coo.row == coo.col].any():
            not_offered("births above 0")
        full[coo.col, coo.row] = full[coo.row, coo.col] = coo.data
        low = coo.row < coo.col  # of a pair stored twice the upper one counts
        full[coo.col[low], coo.row[low]] = full[coo.row[low], coo.col[low]] = coo.data[low]
        np.fill_diagonal(full, 0)
        x = full
    x = np.asarray(x, dtype=float)
    if len(set(x.shape)) > 1:
        return x  # isonb says what is wrong
    if np.diagonal(x).any():
        not_offered("births above 0")
    if (x < 0).any():
        not_offered("distances below 0")
    return x if np.array_equal(x, x.T) else np.triu(x) + np.triu(x).T


def barcode(x, max_dim, threshold, metric):
    """The barcode of what another library was given, with generators and without bars of length 0."""
    ASKED.append(metric)
    if metric == "precomputed":
        x = distances(x)
    elif metric not in get_args(Metric):
        x, metric = pairwise_distances(np.asarray(x, dtype=float), metric=metric), "precomputed"
    x = torch.as_tensor(np.asarray(x, dtype=float))
    options = {"keep_infinite": True, "return_generators": True}
    result = isonb.rips_barcode(x, max_dim, metric=metric, threshold=threshold, **options)
    remaining = [item.diagram[:, 0] < item.diagram[:, 1] for item in result]
    return [
        entry._replace(diagram=entry.diagram[k], pairing=entry.pairing[k])
        for entry, k in zip(result, remaining, strict=True)
    ]


def generators(result):
    """Finite H0, finite above, infinite H0, infinite above, as to_diagrams orders them; the lower end of edges last."""
    several = [item.pairing.flip(0)[:, [1, 0, 3, 2] if item.dimension else [0, 2, 1]] for item in result]
    ends = [(pairing >= 0).all(1) for pairing in several]
    finite = [pairing[end].numpy() for pairing, end in zip(several, ends, strict=True)]
    endless = [pairing[~end].numpy() for pairing, end in zip(several, ends, strict=True)]
    return finite[0], finite[1:], endless[0][:, 0][::-1], [entry[:, :2] for entry in endless[1:]]


def ripser_parallel(
    X,
    maxdim=1,
    thresh=np.inf,
    coeff=2,
    metric="euclidean",
    metric_params=None,
    nearest_neighbors_params=None,
    weights=None,
    weight_params=None,
    collapse_edges=False,
    n_threads=1,
    return_generators=False,
):
    """giotto-ph."""
    if coeff != 2:
        not_offered("coefficients but 0 and 1")
    if isinstance(weights, str) or np.any(weights):
        not_offered("weights of vertices")
    if collapse_edges:
        not_offered("a collapse of edges")
    if sparse.issparse(X) and metric != "precomputed":
        X = X.toarray()
    if sparse.issparse(X) and max(X.shape) < 2:
        not_offered("a cloud of fewer than two points")
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, n_threads))
    result = barcode(X, maxdim, thresh, metric)
    torch.set_num_threads(threads)
    return {"dgms": isonb.to_diagrams(result)} | ({"gens": generators(result)} if return_generators else {})


def ripser_of(
    X, maxdim=1, thresh=np.inf, coeff=2, distance_matrix=False, do_cocycles=False, metric="euclidean", n_perm=None
):
    """ripser.py; its class ``Rips`` calls this function."""
    if coeff != 2:
        not_offered("coefficients but 0 and 1")
    if do_cocycles or n_perm:
        not_offered("cocycles" if do_cocycles else "a subset of the points")
    result = barcode(X, maxdim, thresh, "precomputed" if distance_matrix else metric)
    away = distances(X) if distance_matrix else torch.cdist(*[torch.as_tensor(X)] * 2).numpy()
    edges = int((away[np.triu_indices(len(away), 1)] <= min(thresh, sys.float_info.max)).sum())
    return {
        "dgms": isonb.to_diagrams(result),
        "num_edges": edges,
        "cocycles": [],
        "dperm2all": away,
        "idx_perm": None,
        "r_cover": 0.0,
    }


class VietorisRipsComplex(torch_topological.nn.VietorisRipsComplex):
    """torch_topological: its own treatment of batches and lists, our bars."""

    def _forward(self, x, treat_as_distances=False):
        metric = {1: "cityblock", 2: "euclidean", math.inf: "chebyshev"}.get(self.p)
        if metric is None:
            not_offered(f"the {self.p}-norm")
        options = {"threshold": self.threshold, "keep_infinite": self.keep_infinite_features}
        ASKED.append(metric)
        metric = "precomputed" if treat_as_distances else metric
        result = isonb.rips_barcode(x, self.dim, metric=metric, return_generators=True, **options)
        return [torch_topological.nn.PersistenceInformation(*item) for item in result]


def entropy(dgms, keep_inf=False, val_inf=None, normalize=False):
    """The one of persim."""
    dgms = dgms if isinstance(dgms, list) else [dgms]
    ASKED.append("entropy")
    if normalize:
        not_offered("a normalised entropy of any bars")
    filled = [np.where(np.isinf(item), val_inf, item) if keep_inf else item for item in dgms]
    bars = [isonb.from_diagrams([entry])[0] for entry in filled]
    return np.array([float(isonb.persistent_entropy(death - birth)) for birth, death in bars])


class SimplexTree:
    """gudhi's, as far as it is about bars."""

    def __init__(self, x, metric, threshold, max_dimension):
        self.found = barcode(x, max(0, max_dimension - 1), threshold, metric)

    def compute_persistence(self, **_):
        """Nothing: it is done."""

    def persistence(self, **_):
        """All bars with their dimension, longest first."""
        return isonb.to_diagrams(self.found, "gudhi")

    def persistence_intervals_in_dimension(self, dimension):
        """The diagram of one dimension."""
        return isonb.to_diagrams(self.found)[dimension]

    def flag_persistence_generators(self):
        """The vertices, without the dimensions beyond the last that has one."""
        first, finite, endless, infinite = generators(self.found)
        last = max(
            (k + 1 for k, some in enumerate(zip(finite, infinite, strict=True)) if any(map(len, some))), default=0
        )
        return first, finite[:last], endless, infinite[:last]

    def __getattr__(self, name):
        not_offered(f"{name} of a simplex tree")


class RipsComplex:
    """gudhi's."""

    def __init__(self, *, points=None, distance_matrix=None, max_edge_length=math.inf, sparse=None):
        if sparse is not None or (points is None and distance_matrix is None):
            not_offered("an approximation" if sparse else "a complex of no points")
        if distance_matrix is not None:
            full = np.zeros((len(distance_matrix),) * 2)
            for k, row in enumerate(distance_matrix):
                full[k, :k] = full[:k, k] = row[:k]
            distance_matrix = full
        points = points.detach() if isinstance(points, torch.Tensor) else points
        metric = "euclidean" if distance_matrix is None else "precomputed"
        self.given = (points if distance_matrix is None else distance_matrix, metric, max_edge_length)

    def create_simplex_tree(self, max_dimension=1):
        """The bars up to one dimension below."""
        return SimplexTree(*self.given, max_dimension)


def persistence_of(estimator, X, Y=None):
    """The diagrams of gudhi's RipsPersistence."""
    if estimator.input_type not in ("point cloud", "lower distance matrix"):
        raise ValueError(estimator.input_type)
    expected = estimator.homology_dimensions
    metric = "euclidean" if estimator.input_type == "point cloud" else "precomputed"
    several = [barcode(x, max(np.atleast_1d(expected)), estimator.threshold, metric) for x in X]
    diagrams = [isonb.to_diagrams(result) for result in several]
    if isinstance(expected, int):
        return [item[expected] for item in diagrams]
    return [[entry[k] for k in expected] for entry in diagrams]


run = rips._giotto()  # isonb's own use of giotto-ph stays what it is
rips._giotto = lambda: run
gph.ripser_parallel = ripser_parallel
ripser.ripser = sys.modules["ripser.ripser"].ripser = ripser_of
torch_topological.nn.VietorisRipsComplex = VietorisRipsComplex
persim.persistent_entropy.persistent_entropy = entropy
gudhi.RipsComplex = RipsComplex
gudhi.sklearn.rips_persistence.RipsPersistence.transform = persistence_of


@pytest.fixture(autouse=True)
def the_same_draws():
    """Tests that draw without a seed draw the same."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    torch.manual_seed(0)


def pytest_collection_modifyitems(items):
    """Properties are tried on the same draws on every run, however slow the machine is."""
    name = "_hypothesis_internal_use_settings"
    for test in [item.obj for item in items if hasattr(getattr(item, "obj", None), name)]:
        setattr(test, name, hypothesis.settings(getattr(test, name), deadline=None, derandomize=True, database=None))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """A test that passes without a stand-in says nothing of isonb."""
    ASKED.clear()
    try:
        return (yield)
    finally:
        item.user_properties.append(("asked", bool(ASKED)))


def pytest_runtest_logreport(report):
    """Keep what became of each test: its last word, and why."""
    if report.when == "call" or report.outcome != "passed":
        why = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr or "")
        missed = report.outcome == "passed" and not dict(report.user_properties)["asked"]
        OUTCOMES[f"{Path(report.location[0]).name}: {report.location[2]}"] = [
            "elsewhere" if missed else report.outcome,
            why,
        ]


def pytest_sessionfinish():
    """Write it down."""
    if place := os.environ.get("PEERS_OUTCOMES"):
        Path(place).write_text(json.dumps(OUTCOMES), encoding="utf-8")
