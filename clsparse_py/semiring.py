"""Semirings: what a kernel puts for addition, multiplication and their identity.

==============  ============  ==============  ========  ==============================  ================================
semiring        addition      multiplication  identity  values                          result
==============  ============  ==============  ========  ==============================  ================================
``plus_times``  a + b         a * b           0         any                             SciPy's promotion (bool stays bool)
``min_plus``    min(a, b)     a + b           +inf      real; integers saturate         the promoted type
``max_times``   max(a, b)     a * b           0         real and nonnegative            the promoted type
``or_and``      a or b        a and b         False     any, nonzero is True            bool
``plus_pair``   a + b         1               0         any; only the pattern counts    the promoted type, int64 for bool
==============  ============  ==============  ========  ==============================  ================================

The identity of ``min_plus`` is the largest value of an integer type, and its multiplication saturates there, so that "no path"
stays so under nonnegative weights. Minimum and maximum propagate NaN, as NumPy's do. Entries that are not stored take no part in
any of them.
"""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from clsparse_py.errors import require_name
from clsparse_py.records import dataclass

__all__ = ["SEMIRINGS", "Semiring", "SemiringName", "max_times", "min_plus", "or_and", "plus_pair", "plus_times"]

SemiringName = Literal["plus_times", "min_plus", "max_times", "or_and", "plus_pair"]


@dataclass(frozen=True)
class Semiring:
    """Addition, multiplication and identity, by name.

    Use the instances of this module; see its docstring for what they are.

    Attributes
    ----------
    name : str
        One of `SEMIRINGS`.

    Examples
    --------
    >>> import numpy as np
    >>> import clsparse_py as sp
    >>> A = sp.csr_array([[1, 2], [0, 3]])
    >>> x = np.array([5, 0])
    >>> for semiring in (sp.plus_times, sp.min_plus, sp.max_times, sp.or_and, sp.plus_pair):
    ...     print(semiring, sp.spmv(A, x, semiring=semiring))
    semiring.plus_times [5 0]
    semiring.min_plus [2 3]
    semiring.max_times [5 0]
    semiring.or_and [ True False]
    semiring.plus_pair [2 1]
    """

    name: SemiringName

    def __post_init__(self) -> None:
        require_name("semiring", self.name, get_args(SemiringName))

    def __repr__(self) -> str:
        return f"semiring.{self.name}"

    @property
    def ordered(self) -> bool:
        """Whether it orders values, as complex ones are not."""
        return self.name in ("min_plus", "max_times")

    def result_dtype(self, a: np.dtype, x: np.dtype) -> np.dtype:
        """Return the dtype of a product of values of dtypes ``a`` and ``x``.

        Raises
        ------
        TypeError
            The semiring is not defined on complex values.
        """
        promoted = np.result_type(a, x)
        if self.ordered and promoted.kind == "c":
            raise TypeError(f"semiring: {self.name} orders its values, which complex ones ({a}, {x}) are not")
        if self.name == "or_and":
            return np.dtype(bool)
        if self.name == "plus_pair" and promoted.kind == "b":
            return np.dtype(np.int64)
        return promoted

    def identity(self, dtype: np.dtype) -> object:
        """Return the identity of addition, a scalar of ``dtype``."""
        if self.name == "min_plus":
            if dtype.kind == "f":
                return dtype.type(np.inf)
            return dtype.type(True) if dtype.kind == "b" else dtype.type(np.iinfo(dtype).max)
        return dtype.type(0)


plus_times = Semiring("plus_times")
min_plus = Semiring("min_plus")
max_times = Semiring("max_times")
or_and = Semiring("or_and")
plus_pair = Semiring("plus_pair")

SEMIRINGS: dict[str, Semiring] = {each.name: each for each in (plus_times, min_plus, max_times, or_and, plus_pair)}
