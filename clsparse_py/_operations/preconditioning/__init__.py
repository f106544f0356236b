"""Colours of rows, steps of Gauss-Seidel by colours, and approximate inverses."""

from clsparse_py._operations.preconditioning.colouring import Colouring, colour_rows
from clsparse_py._operations.preconditioning.inverses import has_regular_diagonal, invert_rows, invert_triangle
from clsparse_py._operations.preconditioning.relaxation import bind_relaxation

__all__ = ["Colouring", "bind_relaxation", "colour_rows", "has_regular_diagonal", "invert_rows", "invert_triangle"]
