"""Semirings: the OpenCL C of addition, multiplication and the identity.

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

Others are made by name, as GraphBLAS has them: ``Semiring("max_min")`` is any addition of `ADDITIONS` with any multiplication of
`MULTIPLICATIONS`; or of expressions in OpenCL C: ``Semiring(plus="min(a, b)", times="a + b", zero=math.inf)``.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
from typing import Any, Literal, cast

import numpy as np

from clsparse_py._ground.errors import require_name
from clsparse_py._ground.records import dataclass

__all__ = [
    "ADDITIONS",
    "MULTIPLICATIONS",
    "SEMIRINGS",
    "LogicalName",
    "Semiring",
    "SemiringName",
    "max_times",
    "min_plus",
    "of_name",
    "or_and",
    "plus_pair",
    "plus_times",
]

#: Type of the names of semirings: an addition and a multiplication, with "_" between.
SemiringName = Literal[
    "plus_times", "plus_plus", "plus_min", "plus_max", "plus_first", "plus_second", "plus_pair",
    "min_times", "min_plus", "min_min", "min_max", "min_first", "min_second", "min_pair",
    "max_times", "max_plus", "max_min", "max_max", "max_first", "max_second", "max_pair",
    "any_times", "any_plus", "any_min", "any_max", "any_first", "any_second", "any_pair",
    "or_times", "or_plus", "or_min", "or_max", "or_first", "or_second", "or_pair", "or_or", "or_and", "or_xor",
    "and_times", "and_plus", "and_min", "and_max", "and_first", "and_second", "and_pair", "and_or", "and_and", "and_xor",
    "xor_times", "xor_plus", "xor_min", "xor_max", "xor_first", "xor_second", "xor_pair", "xor_or", "xor_and", "xor_xor",
]  # fmt: skip
#: Type of GraphBLAS's names of semirings whose addition is a logical operation.
LogicalName = Literal[
    "lor_times", "lor_plus", "lor_min", "lor_max", "lor_first", "lor_second", "lor_pair", "lor_lor", "lor_land", "lor_lxor",
    "land_times", "land_plus", "land_min", "land_max", "land_first", "land_second", "land_pair", "land_lor", "land_land",
    "land_lxor",
    "lxor_times", "lxor_plus", "lxor_min", "lxor_max", "lxor_first", "lxor_second", "lxor_pair", "lxor_lor", "lxor_land",
    "lxor_lxor",
]  # fmt: skip
#: Names of semirings' additions. "any" takes one of two values, the larger; "or", "and" and "xor" are of truth values.
ADDITIONS = ("plus", "min", "max", "any", "or", "and", "xor")
#: Names of semirings' multiplications. "first" is the value of A, "second" that of the other operand, "pair" is 1.
MULTIPLICATIONS = ("times", "plus", "min", "max", "first", "second", "pair", "or", "and", "xor")
#: Names of the additions and multiplications of truth values.
_OF_TRUTH = ("or", "and", "xor")
#: GraphBLAS's names of the logical operations or, and and xor, in the order of `_OF_TRUTH`.
_LOGICAL = ("lor", "land", "lxor")
#: Tokens that a user's OpenCL C expression must not contain, as they could end the code that a kernel has around it.
_NO_EXPRESSION = re.compile(r"[;{}#\\\"'\n]|//|/\*")
#: Semirings that users defined by expressions, by their generated names.
_given: dict[str, Semiring] = {}


@dataclass(frozen=True)
class Semiring:
    """Addition, multiplication and their identities: by name, or by expressions in OpenCL C.

    Parameters
    ----------
    name : str
        An addition and a multiplication, of `ADDITIONS` and `MULTIPLICATIONS`, with "_" between: "min_plus", "plus_first",
        "any_pair". GraphBLAS's names of logical operators are understood too: "lor_land".
    plus, times : str
        Instead of a name: expressions of ``a`` and ``b``, of the type T, which is the result's. The addition is to be associative
        and commutative.
    zero : scalar, optional
        Of expressions: the identity of ``plus``. An infinity stands for the largest or smallest value of an integer type. Without
        it, the semiring serves `spgemm` under a mask alone, whose sums begin with a product.
    one : scalar, optional
        Of expressions: the identity of ``times``, if it has one, see `unit`.

    Attributes
    ----------
    name : str
        Of expressions: a name that tells them apart.

    Raises
    ------
    ValueError, TypeError
        There is no such name, or what was given is no expression. Whether it compiles is seen by the first product.

    Examples
    --------
    >>> import math
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
    >>> sp.spmv(A, x, semiring=sp.Semiring("max_min"))
    array([1, 0])
    >>> sp.spmv(A, x, semiring=sp.Semiring(plus="max(a, b)", times="a - b", zero=-math.inf))
    array([2, 3])
    """

    name: SemiringName | LogicalName | Literal[""] = ""
    plus: str = ""
    times: str = ""
    zero: Any = None
    one: Any = None

    def __post_init__(self) -> None:
        if self.plus or self.times:
            if self.name:
                raise ValueError("semiring: takes a name or expressions, not both")
            for name, text in (("plus", self.plus), ("times", self.times)):
                _require_expression(name, text)
            for name, value in (("zero", self.zero), ("one", self.one)):
                if value is not None and not (np.isscalar(value) and np.asarray(value).dtype.kind in "biuf"):
                    raise TypeError(f"semiring: {name} must be a real number or None, is {value!r}")
            words = "\0".join((self.plus, self.times, repr(self.zero)))
            object.__setattr__(self, "name", f"given_{hashlib.sha256(words.encode()).hexdigest()[:12]}")
            _given[self.name] = self
            return
        if self.zero is not None or self.one is not None:
            raise ValueError("semiring: zero and one belong to the expressions plus and times")
        if not isinstance(self.name, str):
            raise TypeError(f"semiring: must be a name, is {type(self.name).__name__}")
        plus, _, times = (part[1:] if part in _LOGICAL else part for part in self.name.partition("_"))
        require_name("semiring", plus, ADDITIONS)
        require_name("semiring", times, MULTIPLICATIONS)
        if times in _OF_TRUTH and plus not in _OF_TRUTH:
            raise ValueError(f"semiring: {times} is of truth values; take or, and or xor as addition, not {plus}")
        object.__setattr__(self, "name", f"{plus}_{times}")

    def __repr__(self) -> str:
        if not self.is_given:
            return f"semiring.{self.name}"
        return f"Semiring(plus={self.plus!r}, times={self.times!r}, zero={self.zero!r}, one={self.one!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Semiring, ("", self.plus, self.times, self.zero, self.one) if self.is_given else (self.name,))

    @property
    def is_given(self) -> bool:
        """Whether a user defined the semiring by expressions in OpenCL C, and not by a name."""
        return bool(self.plus)

    @property
    def operations(self) -> tuple[str, str]:
        """The names of the semiring's addition and multiplication; both empty if it is given by expressions."""
        plus, _, times = ("", "", "") if self.is_given else self.name.partition("_")
        return plus, times

    @property
    def ordered(self) -> bool:
        """Whether the semiring takes real values alone: it compares values, or a user gave it by expressions."""
        return self.is_given or any(part in ("min", "max", "any") for part in self.operations)

    @property
    def of_truth(self) -> bool:
        """Whether the semiring computes with truth values: a value that is not 0 is true."""
        return self.operations[0] in _OF_TRUTH

    def result_dtype(self, a: np.dtype, x: np.dtype) -> np.dtype:
        """Return the dtype of the semiring's product of values of dtypes ``a`` and ``x``.

        Raises
        ------
        TypeError
            The semiring is not defined on complex values.
        """
        promoted = np.result_type(a, x)
        if self.ordered and promoted.kind == "c":
            raise TypeError(f"semiring: {self.name} orders its values, which complex ones ({a}, {x}) are not")
        if self.of_truth:
            return np.dtype(bool)
        if self.name == "plus_pair" and promoted.kind == "b":
            return np.dtype(np.int64)
        return promoted

    def identity(self, dtype: np.dtype) -> Any:
        """Return the identity of the semiring's addition, as a scalar of ``dtype``.

        Raises
        ------
        ValueError
            The semiring has no such identity, or ``dtype`` does not hold it.
        """
        if self.is_given:
            if self.zero is None:
                raise ValueError("semiring: needs zero, the identity of plus, which sums begin with")
            return _scalar("zero", self.zero, dtype)
        plus = self.operations[0]
        if plus in ("max", "any") and self.name not in ("max_times", "any_pair"):
            return _scalar("zero", -math.inf, dtype)
        return _scalar("zero", {"min": math.inf, "and": True}.get(plus, 0), dtype)

    def unit(self, dtype: np.dtype) -> Any:
        """Return the identity of the semiring's multiplication, as a scalar of ``dtype``.

        Raises
        ------
        ValueError
            The semiring has no such identity, or ``dtype`` does not hold it.

        Examples
        --------
        >>> import numpy as np
        >>> import clsparse_py as sp
        >>> int(sp.min_plus.unit(np.dtype(int))), int(sp.plus_times.unit(np.dtype(int)))
        (0, 1)
        """
        units = {"times": 1, "plus": 0, "min": math.inf, "max": -math.inf, "or": False, "and": True, "xor": False}
        identity = self.one if self.is_given else units.get(self.operations[1])
        if identity is None:
            raise ValueError(f"semiring: {self!r} has no identity of multiplication")
        return _scalar("one", identity, dtype)


def _require_expression(name: str, text: Any) -> None:
    """Raise an error unless a user's ``plus`` or ``times`` is text that can be an expression in OpenCL C."""
    if not isinstance(text, str):
        raise TypeError(f"semiring: {name} must be an expression in OpenCL C, is {type(text).__name__}")
    if not text.strip():
        raise ValueError(f"semiring: {name} is missing; plus and times are given together")
    match = _NO_EXPRESSION.search(text)
    if match:
        raise ValueError(f"semiring: {name} must be one expression in OpenCL C, has {match.group()!r}: {text}")


def _scalar(name: str, value: Any, dtype: np.dtype) -> Any:
    """Return a number as a scalar of a dtype: an infinity as an integer type's limit; for bool, whether it is above 0."""
    if dtype.kind in "fc":
        return dtype.type(value)
    if dtype.kind == "b":
        return dtype.type(value > 0)
    bounds = np.iinfo(dtype)
    if isinstance(value, (float, np.floating)) and math.isinf(value):
        return dtype.type(bounds.max if value > 0 else bounds.min)
    if value != value or value != int(value) or not bounds.min <= value <= bounds.max:
        raise ValueError(f"semiring: {name} is {value!r}, which {dtype} does not hold")
    return dtype.type(int(value))


plus_times = Semiring("plus_times")
min_plus = Semiring("min_plus")
max_times = Semiring("max_times")
or_and = Semiring("or_and")
plus_pair = Semiring("plus_pair")

#: Semirings that have a public name, by that name.
SEMIRINGS: dict[str, Semiring] = {ring.name: ring for ring in (plus_times, min_plus, max_times, or_and, plus_pair)}


@functools.lru_cache(maxsize=256)
def of_name(name: str) -> Semiring:
    """Return the semiring of a name: a public one, one that a user gave by expressions, or an addition with a multiplication."""
    return SEMIRINGS.get(name) or _given.get(name) or Semiring(cast("SemiringName", name))
