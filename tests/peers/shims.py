"""isonb in the place of giotto-ph, for its own tests: a plugin of pytest, ``-p shims``.

The stand-in has giotto-ph's signature, and answers by isonb alone. What isonb doesn't offer skips the test that asks
for it, with the word "not offered".
"""

import random
from typing import get_args

import gph
import hypothesis
import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.metrics import pairwise_distances

import isonb
from isonb.barcodes import rips
from isonb.barcodes.inputs import Metric

ASKED = []  # by the test that runs, of the stand-in


def not_offered(what):
    """Skip the test that asks for it."""
    pytest.skip(f"not offered: {what}")


def distances(x):
    """A matrix as giotto-ph takes it: sparse, or one of its triangles. A pair that isn't stored is never joined."""
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
    """The barcode of what giotto-ph was given, with generators and without bars of length 0."""
    ASKED.append(metric)
    if metric == "precomputed":
        x = distances(x)
    elif metric not in get_args(Metric):
        x, metric = pairwise_distances(np.asarray(x, dtype=float), metric=metric), "precomputed"
    x = torch.as_tensor(np.asarray(x, dtype=float))
    options = {"keep_infinite": True, "return_generators": True}
    result = isonb.rips_barcode(x, max_dim, metric=metric, threshold=threshold, **options)
    lasting = [entry.diagram[:, 0] < entry.diagram[:, 1] for entry in result]
    return [e._replace(diagram=e.diagram[k], pairing=e.pairing[k]) for e, k in zip(result, lasting, strict=True)]


def generators(result):
    """Finite H0, finite above, infinite H0, infinite above, as to_diagrams orders them; the lower end of edges last."""
    several = [item.pairing.flip(0)[:, [1, 0, 3, 2] if item.dimension else [0, 2, 1]] for item in result]
    ends = [(pairing >= 0).all(1) for pairing in several]
    finite = [pairing[end].numpy() for pairing, end in zip(several, ends, strict=True)]
    endless = [pairing[~end].numpy() for pairing, end in zip(several, ends, strict=True)]
    return finite[0], finite[1:], endless[0][:, 0][::-1], [entry[:, :2] for entry in endless[1:]]


def ripser_parallel(
    X, maxdim=1, thresh=np.inf, coeff=2, metric="euclidean", metric_params=None, nearest_neighbors_params=None,
    weights=None, weight_params=None, collapse_edges=False, n_threads=1, return_generators=False,
):  # fmt: skip
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


run = rips._giotto()  # isonb's own use of giotto-ph stays what it is
rips._giotto = lambda: run
gph.ripser_parallel = ripser_parallel


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
    """A test that passes without the stand-in says nothing of isonb: it is skipped, too."""
    ASKED.clear()
    result = yield
    if not ASKED:
        pytest.skip("isonb isn't asked")
    return result
