"""Off the CPU no function looks at a value: on the meta device, which holds none, each must run to the end.

That is also a check of shapes, dtypes and devices along the path that accelerators take.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from isonb.barcodes.entropy import persistent_entropy, prominent_bars
from isonb.barcodes.rips import h0_barcode, rips_barcode
from isonb.measures.neighbors import id_score, knn, lsds, mle_dimension, two_nn

FUNCTIONS: dict[str, Callable[[Tensor, Tensor | None], Tensor]] = {
    "h0_barcode": lambda x, mask: h0_barcode(x, mask=mask),
    "entropy": lambda x, mask: persistent_entropy(h0_barcode(x, mask=mask)),
    "features": lambda x, mask: prominent_bars(h0_barcode(x, mask=mask)),
    "knn": lambda x, mask: knn(x, 3, mask=mask)[0],
    "two_nn": lambda x, mask: two_nn(x, mask=mask),
    "two_nn keep": lambda x, mask: two_nn(x, keep=0.2, mask=mask),
    "mle_dimension": lambda x, mask: mle_dimension(x, 4, mask=mask),
    "id_score": lambda x, mask: id_score(x, 4, mask=mask),
    "lsds": lambda x, mask: lsds(x, x, k=4, mask=mask),
    "lsds code": lambda x, mask: lsds(x, x, k=4, mode="code", mask=mask),
}


@pytest.fixture(autouse=True)
def _no_autocast(monkeypatch):
    """The meta device has no autocast to ask about."""
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda kind=None: False)


@pytest.mark.parametrize("shape", [(20, 5), (3, 20, 70)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_runs_without_looking_at_values(name, masked, shape):
    x = torch.empty(shape, device="meta", requires_grad=True)
    mask = torch.empty(shape[:-1], dtype=torch.bool, device="meta") if masked else None
    out = FUNCTIONS[name](x, mask)
    real = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    want = FUNCTIONS[name](real, torch.ones(shape[:-1], dtype=torch.bool) if masked else None)
    assert (out.shape, out.dtype) == (want.shape, want.dtype)
    if out.requires_grad:
        out.sum().backward()
        assert x.grad is not None
        assert x.grad.shape == x.shape


def test_the_check_can_fail():
    x = torch.empty(9, 2, device="meta")
    with pytest.raises(Exception, match="meta"):
        rips_barcode(x)  # H1 is computed on the CPU and has to see the distances
