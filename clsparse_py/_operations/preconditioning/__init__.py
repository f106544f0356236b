"""Colours of rows, steps of Gauss-Seidel by colours, and approximate inverses of triangular matrices."""

from clsparse_py._operations.preconditioning.colouring import Colouring, colour_rows
from clsparse_py._operations.preconditioning.inverses import invert_triangle
from clsparse_py._operations.preconditioning.relaxation import bind_relaxation

__all__ = ["Colouring", "bind_relaxation", "colour_rows", "invert_triangle"]
