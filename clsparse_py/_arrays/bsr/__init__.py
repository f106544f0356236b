"""`bsr_array`, a matrix of dense blocks: the class (`array`), its constructor (`parts`), `conversion`, `products`."""

from __future__ import annotations

from clsparse_py._arrays.bsr.array import bsr_array

__all__ = ["bsr_array"]
