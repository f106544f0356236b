"""Colours of rows, and approximate inverses of triangular matrices, for preconditioners."""

from clsparse_py._operations.preconditioning.colouring import Colouring, colour_rows
from clsparse_py._operations.preconditioning.inverses import invert_triangle

__all__ = ["Colouring", "colour_rows", "invert_triangle"]
