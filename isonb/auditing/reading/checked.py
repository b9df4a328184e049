"""The matrix of a part, once its shape and its type are right."""

from __future__ import annotations

from typing import Any

import torch

from isonb.auditing.reading.array_files import without_type
from isonb.auditing.reading.described import Described, check_dtype, check_shape, largest_of
from isonb.auditing.reading.sources import Changed, Rows

__all__ = ["matrix_in"]


def matrix_in(described: Described, name: str | None, hint: str = "") -> Any:
    """The matrix of a part, whose shape and type are checked."""
    part = described.chosen(name, hint)
    assert part.take is not None
    return _checked(part.take(), described.what, described.code_of(part))


def _checked(found: Any, what: str, code: str) -> Any:
    if isinstance(found, torch.Tensor):
        return _checked_tensor(found.detach(), what, code)
    if isinstance(found, Rows):
        check_shape(found.shape, what, code)
        return found
    found = without_type(found)
    check_shape(found.shape, what, code)
    if not isinstance(found, Changed):
        kind, size = found.dtype.kind, found.dtype.itemsize
        check_dtype(kind, size, str(found.dtype), lambda: largest_of(found[:1000]), what, code)
    return found


def _checked_tensor(x: torch.Tensor, what: str, code: str) -> Any:
    check_shape(x.shape, what, code)
    if x.is_quantized:
        return x.dequantize()
    name = str(x.dtype).removeprefix("torch.")
    kind = "f" if x.is_floating_point() else "c" if x.is_complex() else "b" if name == "bool" else name[0]
    dense = x[:1000].to_dense() if x.layout == torch.strided else None
    check_dtype(kind, x.element_size(), name, lambda: 2.0 if dense is None else largest_of(dense.numpy()), what, code)
    if x.layout == torch.strided:
        return x
    flat: torch.Tensor = x.to_sparse_coo().coalesce()  # type: ignore[no-untyped-call]

    class _Sparse(Rows):
        shape = tuple(x.shape)

        def __getitem__(self, rows: Any) -> torch.Tensor:
            index = torch.arange(len(flat))[rows] if isinstance(rows, slice) else torch.as_tensor(rows)
            return flat.index_select(0, index).to_dense()

    return _Sparse()
