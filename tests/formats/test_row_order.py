"""Coordinates in CSR form and back: sorted ones, which are not sorted again, and others; against SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp

from clsparse_py import coo_array, csr_array
from clsparse_py._formats.coordinates import order_of

SHAPE = (3000, 40)


def coordinates(kind: str, rng: np.random.Generator) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return rows, with gaps at both ends and in between, and columns."""
    places = np.sort(rng.choice(np.r_[400:420, 60_000:70_000, 99_000:99_003], 900, replace=False))
    if kind in ("repeated", "unsorted"):
        places = np.sort(np.append(places, places[::7]))
    rows, columns = np.divmod(places, SHAPE[1])
    if kind == "unsorted":
        columns = columns[np.lexsort((rng.permutation(rows.size), rows))]
    order = rng.permutation(rows.size) if kind == "shuffled" else slice(0 if kind == "none" else None)
    return rows[order], columns[order]


@pytest.mark.parametrize(("device_type", "index"), [("gpu", np.int64), ("cpu", np.int32)])
def test_coordinates_of_any_order(queue: cl.CommandQueue, take_as: Callable[..., None], device_type: str, index: Any) -> None:
    take_as(type=device_type)
    rng = np.random.default_rng(2)
    for kind, by_row, by_column, canonical in (
        ("sorted", True, True, True), ("repeated", True, True, False), ("unsorted", True, False, False),
        ("shuffled", False, False, False), ("none", None, None, None),
    ):  # fmt: skip
        rows, columns = (coordinate.astype(index) for coordinate in coordinates(kind, rng))
        host = sp.coo_array((np.arange(rows.size, dtype=np.float32), (rows, columns)), shape=SHAPE)
        A = coo_array(host, queue=queue)
        if rows.size:
            assert order_of(queue, *A.coords) == (by_row, by_column, canonical), kind
        result, wanted = A.tocsr(), host.tocsr()
        assert result.has_canonical_format, kind
        for part in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(result, part).get(), getattr(wanted, part), err_msg=kind)
        result.data.fill(0)
        np.testing.assert_array_equal(A.data.get(), host.data)  # not shared
        back = csr_array(wanted, queue=queue).tocoo()
        for array, of_host in zip((*back.coords, back.data), (*wanted.tocoo().coords, wanted.data), strict=True):
            np.testing.assert_array_equal(array.get(), of_host, err_msg=kind)
        np.testing.assert_array_equal(A.tocsc().toarray(), host.toarray())
