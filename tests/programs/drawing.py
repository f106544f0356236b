"""Draws operands: values whose sums are exact in every order, or any; structures of all kinds; options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from tests.programs.program import Input

__all__ = ["DTYPES", "Block", "Draw", "SkipError"]

DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
FORMATS = ("csr", "csc", "coo")
#: Features of inputs that a block has or has not.
FEATURES = (
    "unsorted", "duplicates", "zeros", "negative zeros", "nan", "scales", "hubs", "empty", "single", "large", "formats",
    "host", "forms", "deaths", "order", "ends",
)  # fmt: skip


def ends(dtype: str) -> list[int]:
    """Return integers whose sums and products leave a dtype's range, some as 0, or that float64 does not tell from others."""
    info, bits = np.iinfo(dtype), 8 * np.dtype(dtype).itemsize
    menu = (info.min, info.max, info.max - 1, info.max // 2 + 1, 1 << bits // 2, 2**53 + 1)
    return [n for n in menu if n <= info.max]


class SkipError(Exception):
    """An operation is not valid with what there is."""


@dataclass
class Block:
    """The settings that the programs of a block share: few dtypes, so that few kernels are built, and half of all features."""

    dtypes: tuple[str, ...]
    index: str
    features: frozenset[str]
    operations: frozenset[str]
    settings: tuple[str, ...] = ()
    queues: tuple[str, ...] = ("ordered", "ordered")
    threads: int = 1
    seed: int = 0

    def few(self, menu: Sequence[Any]) -> list[Any]:
        """Return the two or three of a menu that all programs of this block choose from."""
        rng = np.random.default_rng((self.seed, len(menu), *str(menu).encode()))
        return [menu[int(i)] for i in rng.permutation(len(menu))[:3]]


@dataclass
class Draw:
    """A program that is being drawn: its variables as the oracle has them, and random numbers."""

    rng: np.random.Generator
    block: Block
    exact: bool
    add: Callable[[Input], str]
    values: dict[str, Any] = field(default_factory=dict)
    sizes: tuple[int, ...] = ()
    scale: int = 0

    def __post_init__(self) -> None:
        """Draw the sizes and the scale of the program's inputs."""
        menu = [2, 3, 7, 17, 40, 64, 65, 100, 130]
        if self.has("empty"):
            menu += [0]
        if self.has("single"):
            menu += [1, 1, 1]
        if self.has("large"):
            menu += [300, 1000, 2500]
        self.sizes = tuple(int(size) for size in self.rng.choice(menu, 3))
        self.scale = int(self.rng.choice([0, 0, -40, -10, 10, 40])) if self.has("scales") else 0

    def has(self, feature: str) -> bool:
        """Return whether a feature is on in this block."""
        return feature in self.block.features

    def chance(self, p: float) -> bool:
        """Return True with some probability."""
        return bool(self.rng.random() < p)

    def one(self, of: Sequence[Any]) -> Any:
        """Return one of several, all as likely."""
        if not len(of):
            raise SkipError
        return of[int(self.rng.integers(len(of)))]

    def few(self, menu: Sequence[Any]) -> Any:
        """Return one of the few options that the block has of a menu: each has kernels of its own."""
        return self.one(self.block.few(menu))

    def canonical(self, name: str) -> bool:
        """Return whether a matrix has its entries in order, none twice."""
        value = self.values[name]
        return bool(value.format != "coo" and value.has_canonical_format)

    def size(self) -> int:
        """Return a size of rows or columns."""
        return int(self.one(self.sizes))

    def dtype(self, kinds: str = "biufc") -> str:
        """Return a dtype of the block, of some kinds."""
        return str(self.one([dtype for dtype in self.block.dtypes if np.dtype(dtype).kind in kinds]))

    def numbers(self, n: Any, dtype: str, *, small: bool = False, zeros: bool = False, special: str = "") -> np.ndarray:
        """Return values: small integers times a power of two, or any; ``special``: as of `integers`."""
        kind = np.dtype(dtype).kind
        if kind == "b":
            return self.rng.random(n) < 0.7
        if kind in "iu":
            low = 0 if kind == "u" else -4
            values = self.rng.integers(low, 5, n).astype(dtype)
            if special == "one sign":
                values = (self.one([-1, 1]) * self.rng.integers(1, 5, n)).astype(dtype)
            elif special == "ends" or (not small and self.chance(0.5 if self.has("ends") else 0.1)):
                far = self.rng.random(n) < self.one([0.2, 0.9])
                values = np.where(far, self.rng.choice(np.array(ends(dtype), dtype), n), values)
        elif kind == "c":
            real = "float32" if dtype == "complex64" else "float64"
            parts = [self.numbers(n, real, small=small, zeros=zeros) for _ in range(2)]
            values = (parts[0] + 1j * parts[1]).astype(dtype)
            values = np.where(np.isfinite(values), values, 1).astype(dtype)
        else:
            values = self.rng.integers(-4, 5, n) if self.exact else self.rng.standard_normal(n)
            if not small:
                values = values * 2.0**self.scale
            values = values.astype(dtype)
            if self.has("negative zeros") and not small:
                values[values == 0] *= -1
            if self.has("nan") and not small and self.chance(0.3):
                values[self.rng.random(n) < 0.02] = self.one([np.nan, np.inf, -np.inf])
        if kind != "b" and not (zeros or self.has("zeros")):
            values = np.where(values == 0, 1, values).astype(dtype)
        return values

    def structure(self, m: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and columns of entries, in some order, some of them twice."""
        rng, mean = self.rng, float(self.rng.choice([0.3, 1, 3, 8]))
        wanted = int(min(mean * m, m * n / 2 + 1, 6000)) if m and n else 0
        some = ["hub"] * 3 if self.has("hubs") else ["any"]
        kind = self.one(["any", "band", "any", *some, "none" if self.has("empty") else "any", "full"])
        if kind == "none" or not wanted:
            keys = np.zeros(0, np.int64)
        elif kind == "full" and m * n <= 1000:
            keys = np.arange(m * n)
        elif kind == "band":
            row = np.repeat(np.arange(m), 3)
            col = row * max(n // m, 1) + np.tile([-1, 0, 1], m)
            keys = (row * n + col)[(col >= 0) & (col < n)]
        elif kind == "hub":
            row, col = rng.integers(0, m, wanted), rng.integers(0, n, wanted)
            few = rng.integers(0, m, 2)
            row[: wanted * 2 // 3] = few[rng.integers(0, 2, wanted * 2 // 3)]
            if self.chance(0.5):
                col[wanted // 3 :] = rng.integers(0, n)
            keys = row * n + col
        else:
            keys = rng.integers(0, m * n, wanted)
        keys = np.unique(keys)
        if self.has("duplicates") and keys.size and self.chance(0.5):
            keys = np.sort(np.concatenate((keys, rng.choice(keys, 1 + keys.size // 4))))
        if self.has("unsorted") and self.chance(0.6):
            keys = rng.permutation(keys)
        return keys // max(n, 1), keys % max(n, 1)

    def matrix(
        self,
        shape: tuple[int | None, int | None] = (None, None),
        kinds: str = "biufc",
        *,
        formats: Sequence[str] = FORMATS,
        small: bool = False,
        fresh: float = 0.3,
        where: Callable[[Any], bool] = lambda _: True,
        dtype: str = "",
        special: str = "",
    ) -> str:
        """Return a variable that is a matrix of a shape and of some kinds of dtypes: one that there is, or a new one."""
        fitting = (
            []
            if small or dtype
            else [name for name, value in self.values.items() if self._fits(value, shape, kinds, formats) and where(value)]
        )
        if fitting and not self.chance(fresh):
            return str(self.one(fitting))
        m, n = (self.size() if size is None else size for size in shape)
        if m * n > 4_000_000:
            raise SkipError
        dtype, kind = dtype or self.dtype(kinds), self.one(formats) if self.has("formats") else formats[0]
        row, col = self.structure(m, n)
        made = "parts" if not self.has("forms") else self.one(["parts", "coordinates", "scipy"])
        values = self.numbers(row.size, dtype, small=small, special=special)
        on_device = not (self.has("host") and self.chance(0.4))
        return self.add(Input(kind, made, (m, n), (row, col, values), self.block.index, on_device, self.queue()))

    def integers(
        self, dtypes: Sequence[str], shape: tuple[int | None, int | None] = (None, None), *, special: str = "ends"
    ) -> str:
        """Return a new matrix of the one of some dtypes that the block has: with many values at `ends`, or all of "one sign".

        What few dtypes show is too rare where each dtype is the block's.
        """
        return self.matrix(shape, dtype=self.block.few(dtypes)[0], special=special)

    @staticmethod
    def _fits(value: Any, shape: tuple[int | None, int | None], kinds: str, formats: Sequence[str]) -> bool:
        return bool(
            scipy.sparse.issparse(value)
            and value.ndim == 2
            and value.dtype.kind in kinds
            and value.format in formats
            and all(wanted in (None, there) for wanted, there in zip(shape, value.shape, strict=True))
        )

    def array(
        self,
        shape: tuple[int, ...],
        kinds: str = "biufc",
        *,
        fresh: float = 0.5,
        dtype: str = "",
        values: Any = None,
        small: bool = False,
        on_device: bool | None = None,
    ) -> str:
        """Return a variable that is a dense array of a shape: one that there is, or a new one."""
        given = on_device is not None or values is not None or small or dtype
        fitting = (
            []
            if given
            else [
                name
                for name, value in self.values.items()
                if isinstance(value, np.ndarray) and value.shape == shape and value.dtype.kind in kinds
            ]
        )
        if fitting and not self.chance(fresh):
            return str(self.one(fitting))
        dtype = dtype or self.dtype(kinds)
        numbers = self.numbers(shape, dtype, small=small, zeros=True) if values is None else np.asarray(values, dtype)
        if on_device is None:
            on_device = not (self.has("host") and self.chance(0.4))
        order = "F" if len(shape) == 2 and self.has("order") and self.chance(0.5) else "C"
        return self.add(Input("array", "dense", shape, (numbers,), "", on_device, self.queue(), order=order))

    def queue(self) -> str:
        """Return the queue of a new input."""
        return "q2" if self.block.queues[0] != self.block.queues[1] and self.chance(0.3) else "q"

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a variable."""
        return tuple(self.values[name].shape)

    def scalar(self, dtype: Any) -> str:
        """Return the text of a number that has a dtype's kind, and changes no other dtype."""
        kind = np.dtype(dtype).kind
        if kind == "b":
            return str(self.one(["True", "False"]))
        number = self.one([0, 1, 2, 3] if kind == "u" else [-2, -1, 0, 1, 2, 3])
        return f"np.{np.dtype(dtype).name}({number})" if self.chance(0.5) else repr(number if kind in "iu" else float(number))
