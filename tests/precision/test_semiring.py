"""Semirings: domains, identities and the dtypes of results."""

from __future__ import annotations

import numpy as np
import pytest
from oracle import addition

from clsparse_py._precision import semiring
from clsparse_py._precision.arithmetic import OPENCL_TYPES
from clsparse_py._precision.semiring import SEMIRINGS


def test_all_have_names() -> None:
    for name, ring in SEMIRINGS.items():
        assert getattr(semiring, name) is ring
        assert ring.name == name
        assert repr(ring) == f"semiring.{name}"


@pytest.mark.parametrize("a", list(OPENCL_TYPES))
@pytest.mark.parametrize("x", list(OPENCL_TYPES))
def test_result_dtypes(a: str, x: str) -> None:
    a, x = np.dtype(a), np.dtype(x)
    promoted = np.result_type(a, x)
    assert semiring.plus_times.result_dtype(a, x) == promoted
    assert semiring.or_and.result_dtype(a, x) == np.bool_
    assert semiring.plus_pair.result_dtype(a, x) == (np.int64 if promoted == np.bool_ else promoted)
    for ring in (ring for ring in SEMIRINGS.values() if ring.ordered):
        if promoted.kind == "c":
            with pytest.raises(
                TypeError, match=rf"^semiring: {ring.name} orders its values, which complex ones \({a}, {x}\) are not"
            ):
                ring.result_dtype(a, x)
        else:
            assert ring.result_dtype(a, x) == promoted


@pytest.mark.parametrize("dtype", [name for name in OPENCL_TYPES if not name.startswith("complex")])
def test_identities_change_nothing(dtype: str) -> None:
    dtype = np.dtype(dtype)
    values = np.array([0, 1]).astype(dtype) if dtype.kind == "b" else np.array([0, 1, 100], dtype)
    for ring in SEMIRINGS.values():
        if ring.name == "or_and" and dtype.kind != "b":
            continue  # its values are True and False
        identity = ring.identity(dtype)
        assert np.asarray(identity).dtype == dtype
        np.testing.assert_array_equal(addition(ring, dtype)(values, identity).astype(dtype), values)
