"""Fixtures of the tests of products."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
import scipy.sparse as sp
from products import random_csr

from clsparse_py import csr_array


@pytest.fixture
def square(queue: cl.CommandQueue) -> tuple[sp.csr_array, csr_array]:
    """Return a square matrix of short rows, on host and device."""
    matrix = random_csr(np.random.default_rng(5).integers(0, 40, 300), 300, 15)
    return matrix, csr_array(matrix, queue=queue)
