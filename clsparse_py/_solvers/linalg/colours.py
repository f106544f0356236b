"""Colours of the rows of a sparse array of any pattern."""

from __future__ import annotations

from typing import Any

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._operations.preconditioning import Colouring, colour_rows

__all__ = ["colour_matrix"]


def colour_matrix(A: Any) -> Colouring:
    """Return colours of the rows of a square CSR array, such that rows of a colour do not depend on each other; waits.

    A pattern that is not symmetric is coloured together with its mirror image.
    """
    transposed = A.T.tocsr()
    if transposed.structure is A.structure:
        return colour_rows(A.structure)
    marks = cl_array.to_device(A.queue, np.ones(A.nnz, np.bool_))
    return colour_rows((A.with_values(marks) + transposed.with_values(marks)).structure)
