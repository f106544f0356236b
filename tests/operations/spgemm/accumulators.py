"""Products whose rows are all made by one accumulator, whatever the methods' bins are; teams that make rows of dense sums."""

from __future__ import annotations

from collections.abc import Callable

import pyopencl as cl
import pytest
import scipy.sparse as sp
from pairs import exhaustive
from platforms import PLATFORMS
from problems import assert_product, device_matrix

from clsparse_py._operations.spgemm.accumulator import Accumulator
from clsparse_py._operations.spgemm.bins import EMPTY, Bin, Bins
from clsparse_py._operations.spgemm.plan import SpgemmPlan
from clsparse_py._operations.spgemm.request import Request

__all__ = ["TEAMS", "Give", "Team", "check_accumulator", "over_teams"]

#: Platforms, and whether a row of dense sums is made by one work-item, as on CPU devices, or by many, as on GPUs. Not by many on
#: PoCL (quirk 4). By one elsewhere only with ``CLSPARSE_FULL=1``, or where PoCL is not there to do that.
_ONE = exhaustive() or not any(name.startswith("pocl") for name in PLATFORMS)
TEAMS = [(name, many) for name in PLATFORMS for many in (False, True) if (not many if name.startswith("pocl") else many or _ONE)]
Team = tuple[str, bool]
#: The type of the fixture `give`.
Give = Callable[[Accumulator, Team], cl.CommandQueue]
over_teams = pytest.mark.parametrize("team", TEAMS, ids=lambda team: f"{team[0]}-{'many' if team[1] else 'one'}")


def check_accumulator(queue: cl.CommandQueue, accumulator: Accumulator, A: sp.csr_array, B: sp.csr_array) -> None:
    """Make A @ B in all three phases and compare; rows are listed where some have no products."""
    bins = Bins((EMPTY, Bin("named", accumulator)))
    left, right = device_matrix(queue, A), device_matrix(queue, B)
    plan = SpgemmPlan(left, right, Request(bins=bins))
    assert_product(plan(), A, B)
    assert_product(plan(), A, B)
