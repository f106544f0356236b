"""What can be tuned of SpGEMM: the recipe, by which methods share the rows of a product."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyopencl as cl
from typing_extensions import override

from clsparse_py._spgemm.decide import parse
from clsparse_py._spgemm.pipeline import multiply, structure_of
from clsparse_py._spgemm.request import Request
from clsparse_py._spgemm.strategy import Recipe, features_of
from clsparse_py.csr import csr_array
from clsparse_py.device import Device, describe
from clsparse_py.tuning.profiles import default
from clsparse_py.tuning.tunable import Parameter, Tunable

__all__ = ["SpgemmProblem", "SpgemmTunable"]

_MOST, _ALONE = 1 << 16, 1 << 10
#: Methods, with a place for the rows that are merged, and entries of the longest of these, 0 for none: on GPUs, on CPU devices.
_METHODS = {
    False: (
        ("reg-sort dense-span {} esc", (256, 0, 64)),
        ("reg-sort {} esc", (256,)),
        ("reg-sort dense-span {} large-hash long-rows", (0, 256)),
        ("dense-span {} reg-hash large-hash long-rows", (0,)),
        ("{} reg-hash large-hash long-rows", (0,)),
        ("reg-sort dense-span {} esc-local", (0, 256)),
        ("reg-sort {} esc-local", (0,)),
        ("esc-local", (0,)),
    ),
    True: (("{} dense esc", (0, 4, 8, 16)), ("hash dense esc", (0,)), ("esc", (0,))),
}
#: Products of the smallest product that is tuned with: smaller ones are the host's time.
_MIN_PRODUCTS = 1 << 15
#: Intermediate products that GPUs, and a few cores, make in reasonable time; bytes of each in C and in workspace, at most.
_MOST_PRODUCTS = {False: 1 << 31, True: 1 << 27}
_PRODUCT_BYTES = 48


def _labels(*, is_cpu: bool) -> tuple[str, ...]:
    """Return the labels of the declared recipes."""
    merged = {
        longest: f"reg-merge:{longest}:{_MOST}:{_ALONE}" if longest else "" for _, each in _METHODS[is_cpu] for longest in each
    }
    return tuple(" ".join(methods.format(merged[longest]).split()) for methods, each in _METHODS[is_cpu] for longest in each)


@dataclass
class SpgemmProblem:
    """A product to be made.

    Attributes
    ----------
    name : str
    queue : pyopencl.CommandQueue
    host : tuple of scipy.sparse.csr_array
        Both operands.
    A, B : csr_array
        The same on the device.
    features : dict of str to float
        What is known before the analysis.
    C : csr_array, optional
        What the last run made.
    """

    name: str
    queue: cl.CommandQueue
    host: tuple[Any, Any]
    A: csr_array
    B: csr_array
    features: dict[str, float]
    C: csr_array | None = field(default=None, repr=False)

    @functools.cached_property
    def applied(self) -> tuple[Any, Any, Any]:
        """A vector, the product applied to it, and the same with the absolute values of all numbers."""
        left, right = (each.astype(np.float64) for each in self.host)
        x = np.random.default_rng(1).random(right.shape[1]).astype(self.A.dtype)
        return x, left @ (right @ x), abs(left) @ (abs(right) @ x)


class SpgemmTunable(Tunable[SpgemmProblem]):
    """SpGEMM as the tuner takes it, see `tuning.tunable.Tunable`: a matrix times itself or, if not square, its transposed."""

    operation = "spgemm"
    questions = ("strategy",)
    waits = True
    parameters = (
        Parameter(
            "methods", tuple(methods for each in _METHODS.values() for methods, _ in each), _METHODS[False][0][0], "in order"
        ),
        Parameter("longest", (0, 4, 8, 16, 32, 64, 128, 256), 256, "entries of a row of A that is merged, at most"),
        Parameter("most", (_MOST,), _MOST, "products of a row that a team merges, at most"),
        Parameter("most_alone", (_ALONE,), _ALONE, "products of a row that a single work-item merges, at most"),
    )

    @override
    def dtypes(self, device: Device) -> tuple[str, ...]:
        """Return the real dtypes that the device computes with: accumulators differ by their size."""
        return ("float32", "float64") if device.fp64 else ("float32",)

    @override
    def largest(self, device: Device) -> int:
        """Return how many nonzeros are worth trying: a product has many times more."""
        return min(10**6 if device.is_cpu else 10**7, device.global_memory // (16 * _PRODUCT_BYTES))

    @override
    def problem(self, queue: cl.CommandQueue, name: str, matrix: Any, dtype: str) -> SpgemmProblem:
        """Return the problem of multiplying a matrix with itself or, where it is not square, with its transposed.

        Raises
        ------
        MemoryError
            The device has no room for the product.
        ValueError
            It is so small that one rule makes it all, or so large that it would take too long.
        """
        left = matrix.astype(dtype)
        right = left if left.shape[0] == left.shape[1] else left.T.tocsr()
        device, n_products = describe(queue.device), int(np.diff(right.indptr)[left.indices].sum(dtype=np.int64))
        if n_products <= _MIN_PRODUCTS:
            raise ValueError(f"{name}: has so few products, {n_products:,}, that one rule makes all rows")
        if n_products > _MOST_PRODUCTS[device.is_cpu]:
            raise ValueError(f"{name}: has {n_products:,} products, which take long")
        if n_products * _PRODUCT_BYTES > device.global_memory // 2:
            raise MemoryError(f"{name}: {n_products:,} products may need more memory than {device.name} has")
        A = csr_array(left, queue=queue)
        B = A if right is left else csr_array(right, queue=queue)
        features = features_of((*left.shape, right.shape[1]), (left.nnz, right.nnz), A.facts)
        return SpgemmProblem(name, queue, (left, right), A, B, features)

    @override
    def configurations(self, device: Device, dtype: str, question: str) -> tuple[str, ...]:
        """Return the declared recipes; what a device has no room for is left to the methods behind."""
        return _labels(is_cpu=device.is_cpu)

    @override
    def features(self, subject: SpgemmProblem) -> dict[str, float]:
        """Return what is known before the analysis."""
        return subject.features

    @override
    def parse(self, question: str, label: str) -> Recipe:
        """Return a recipe by its label.

        Raises
        ------
        ValueError
            It names none.
        """
        return parse(label)

    @override
    def prepare(self, subject: SpgemmProblem, question: str, label: str) -> Callable[[], list[cl.Event]]:
        """Return what makes the product by a recipe, analysis and all. Kernels are built by its first call."""
        A, B = subject.A, subject.B
        request = Request(strategy=parse(label))

        def make() -> list[cl.Event]:
            subject.C = None  # its memory is free for the next
            C = multiply(A, B, request)
            subject.C = csr_array.assembled(structure_of(A.queue, (A.shape[0], B.shape[1]), C.indices, C.indptr), C.data)
            return list(C.data.events)

        make()
        return make

    @override
    def default(self, device: Device, dtype: str, question: str, features: Mapping[str, float]) -> str:
        """Return the recipe of the shipped profile for a device of this type."""
        return default(device, self.operation, dtype, question, features, parse).label

    @override
    def verify(self, subject: SpgemmProblem) -> bool:
        """Return whether the last product is one: rows sorted, without duplicates, and right when applied to a vector. Waits."""
        if subject.C is None:
            return False
        made = subject.C
        # What is known of C is not believed: another matrix of its arrays is checked.
        unknown = csr_array((made.data, made.indices, made.indptr), shape=made.shape)
        try:
            if not unknown.has_canonical_format:
                return False
        except ValueError:
            return False
        x, wanted, scale = subject.applied
        return bool(np.all(np.abs(unknown @ x - wanted) <= 1e3 * np.finfo(made.dtype).eps * scale))
