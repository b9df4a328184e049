"""The border: what passes, what is refused, and what the refusal says."""

import pytest
import torch
from support import assert_same

from isonb.checks import border, check_values, cloud, mask_of, strict
from isonb.errors import DegenerateError, DtypeError, InputError, NotFittedError, ShapeError, not_fitted

NAN, INF = float("nan"), float("inf")


def test_not_fitted_names_what_is_missing():
    with pytest.raises(NotFittedError, match=r"^Whitening must be fitted before it is used; got .*Call fit first\.$"):
        not_fitted("Whitening")
    assert issubclass(NotFittedError, InputError)


@pytest.mark.parametrize(
    ("x", "keywords", "kind", "match"),
    [
        (torch.ones(3), {}, ShapeError, "unsqueeze"),
        (torch.tensor(1.0), {}, ShapeError, r"shape \(\)"),
        (torch.ones(2, 3, 2), {"single": True}, ShapeError, "batch axes"),
        (torch.ones(1, 2), {}, ShapeError, "at least 2 points"),
        (torch.ones(0, 2), {"points": 1}, ShapeError, "at least 1 points"),
        (torch.ones(3, 1), {"dims": 2}, ShapeError, "points as rows"),
        (torch.tensor([[1.0, 2.0], [NAN, 0.0]]), {}, DegenerateError, r"nan at index \(1, 0\)"),
        (torch.tensor([[1.0, -INF], [0.0, 0.0]]), {}, DegenerateError, r"-inf at index \(0, 1\)"),
        (torch.ones(3, 2), {"mask": [True, True, False]}, DtypeError, "list"),
        (torch.ones(3, 2), {"mask": torch.tensor([1, 0, 0])}, ShapeError, "the mask must leave at least 2"),
        (torch.ones(2, 3, 2), {"mask": torch.tensor([[1, 1, 1], [0, 0, 1]])}, ShapeError, "got 1"),
    ],
)
def test_cloud_refuses(x, keywords, kind, match):
    with pytest.raises(kind, match=match):
        cloud(x, **keywords)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_cloud_computes_in_at_least_float32(dtype):
    x, _ = cloud(torch.ones(2, 3, dtype=dtype))
    assert x.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)


def test_cloud_zeroes_masked_rows_before_it_looks_at_values():
    x, mask = cloud(torch.tensor([[1.0, 2.0], [NAN, INF], [3.0, 4.0]]), torch.tensor([1, 0, 1]))
    assert_same(x, torch.tensor([[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]]))
    assert mask.dtype == torch.bool


def test_a_sum_beyond_the_dtype_is_not_a_bad_value():
    x = torch.full((3, 2), 3e38)
    assert torch.equal(cloud(x)[0], x)
    with pytest.raises(DegenerateError, match=r"nan at index \(2, 1\)"):
        cloud(torch.tensor([[3e38, 3e38], [3e38, 1.0], [1.0, NAN]]))


def test_infinities_of_both_signs_do_not_cancel():
    with pytest.raises(DegenerateError, match=r"inf at index \(0, 0\)"):
        cloud(torch.tensor([[INF, -INF], [1.0, 1.0]]))


def test_cloud_names_the_argument():
    with pytest.raises(ShapeError, match="y must hold"):
        cloud(torch.ones(1, 2), name="y")


def test_mask_of_accepts_bool_and_integers():
    x = torch.ones(2, 3)
    for dtype in (torch.bool, torch.int64, torch.uint8):
        assert mask_of(x, torch.tensor([1, 0]).to(dtype)).tolist() == [True, False]
    assert mask_of(x, None) is None


def test_border_names_the_outermost_function_once():
    @border
    def inner(x):
        return cloud(x)[0]

    @border
    def outer(x):
        return inner(x)

    with pytest.raises(ShapeError, match=r"^inner: x must have shape"):
        outer(torch.ones(3))
    with pytest.raises(DtypeError, match=r"^inner: x must be a torch.Tensor; got int\."):
        inner(3)


def test_border_lets_other_errors_through_and_keeps_the_docstring():
    @border
    def broken(x):
        """Say what it does."""
        raise KeyError(x)

    assert broken.__doc__ == "Say what it does."
    with pytest.raises(KeyError):
        broken(1)


def test_border_computes_outside_autocast():
    @border
    def product(x):
        return x @ x.mT

    x = torch.ones(2, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert product(x).dtype == torch.float32
        assert (x @ x.mT).dtype == torch.bfloat16


def test_values_are_looked_at_on_the_cpu_and_in_strict():
    assert check_values(torch.ones(1))
    elsewhere = torch.ones(1, device="meta")
    assert not check_values(elsewhere)
    with strict():
        assert check_values(elsewhere)
        with strict(False):
            assert not check_values(elsewhere)
        assert check_values(elsewhere)
    assert not check_values(elsewhere)


def test_shapes_are_checked_without_values():
    with pytest.raises(ShapeError):
        cloud(torch.ones(1, 2, device="meta"))
    assert cloud(torch.ones(3, 2, device="meta"))[0].device.type == "meta"
