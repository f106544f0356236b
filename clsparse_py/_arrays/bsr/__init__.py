"""`bsr_array`, a matrix of dense blocks: the class (`array`), what it is made of (`parts`), `conversion`, `products`."""

from __future__ import annotations

from clsparse_py._arrays.bsr.array import bsr_array

__all__ = ["bsr_array"]
