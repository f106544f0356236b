"""The plan of a matrix's products: inspected and decided once, executed any number of times."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pyopencl as cl
from pyopencl import array as cl_array

from clsparse_py._build.plain import are_plain, door
from clsparse_py._decisions.profiles import remark_older
from clsparse_py._device.device import Device, describe
from clsparse_py._ground.records import SetOnce
from clsparse_py._ground.tables import plan_as_html
from clsparse_py._matrix.matrix import Matrix
from clsparse_py._matrix.operands import check_matrix, check_scale, dense_operand, result_for
from clsparse_py._operations.spmv.binning import Scheme
from clsparse_py._operations.spmv.builder import Builder, Compressed
from clsparse_py._operations.spmv.choose import Decision, Explanation, KernelChoice, KernelName, Share, choose
from clsparse_py._operations.spmv.features import Features, Inspected, inspect
from clsparse_py._precision.arithmetic import Arithmetic
from clsparse_py._precision.semiring import Semiring, plus_times
from clsparse_py._run.dense_product import BoundProduct, DenseProduct, Repeating
from clsparse_py._run.recording import Bound
from clsparse_py._run.upgrade import Upgrade

__all__ = ["SpmvPlan"]

#: Key of a recorded product: dtypes of A's values and of x, name of the semiring, whether alpha and beta scale the product.
_Kind = tuple[str, str, str, bool]


class SpmvPlan(SetOnce, Repeating):
    """A plan for products ``A @ x`` with one structure, any values and any x. Made by `spmv_plan`.

    Kernels and row lists are made when the first product of a kind (dtypes, semiring, scaled or not) asks for them, and kept.

    Attributes
    ----------
    queue : pyopencl.CommandQueue
        Of the planning: keeps the order of its commands.
    device : Device
    shape : tuple of int
    nnz : int
    indptr, indices : pyopencl.array.Array
        The structure that the plan belongs to.
    features : Features
        Of A.
    inspected : Inspected
        The structure and its features together.
    decision : Decision
        The binning scheme and the kernels.
    """

    def __init__(self, A: Matrix, features: Features, decision: Decision, expected: int | None = None) -> None:
        self.queue = A.queue
        self.device: Device = describe(A.queue.device)
        self.shape = A.shape
        self.nnz = A.nnz
        self.indptr, self.indices = A.indptr, A.indices
        self.features = features
        self.inspected = Inspected(self.queue, self.device, self.indptr, self.indices, features)
        self.decision = decision
        self._expected = expected
        self._products: dict[_Kind, DenseProduct] = {}
        # Pending upgrades: kernels that read compressed columns, which replace recorded SpMV products after some repetitions.
        self._upgrades: dict[_Kind, Upgrade[Compressed]] = {}
        self._shares: list[Share] = []
        self._making = threading.RLock()

    @classmethod
    def of(
        cls, A: Matrix, scheme: str | Scheme, kernel: KernelName | KernelChoice | None, expected: int | None = None
    ) -> SpmvPlan:
        """Return the SpMV plan of a matrix: inspect its structure and choose kernels; see `spmv_plan`."""
        features = inspect(A.queue, A.shape, A.nnz, A.indptr, A.indices)
        return cls(A, features, choose(features, describe(A.queue.device), scheme, kernel, A.dtype.name), expected)

    def matches(self, A: Matrix) -> bool:
        """Return whether this plan of SpMV was made for A's present structure."""
        return A.indptr is self.indptr and A.indices is self.indices

    def in_force(self, A: Matrix) -> SpmvPlan:
        """Return the SpMV plan to execute: this plan or, while only plain kernels (one-item work-groups) run, A's plain plan."""
        if self.device.is_plain or not are_plain():
            return self
        return A.structure.get_plan((SpmvPlan, A.data.dtype), lambda: SpmvPlan.of(A, "auto", None))

    def __str__(self) -> str:
        names = list(dict.fromkeys(choice.name for side in self.decision.kernels for choice in side))
        return f"{self.decision.scheme}: {', '.join(names) if len(names) < 4 else f'{names[0]} to {names[-1]}'}"

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<SpmvPlan of a {rows} x {columns} matrix with {self.nnz} entries on {self.device.name}: {self}>"

    _repr_html_ = plan_as_html

    def explain(self) -> Explanation:
        """Return which rows of A go to which SpMV kernel with which parameters, and why."""
        if self._shares:
            due = "".join(f"; {product}" for product in dict.fromkeys(map(str, [*self._upgrades.values()])))
            shares = tuple(replace(share, why=f"{share.why}{due}") for share in self._shares)
        else:
            why = "built at the first product"
            names = dict.fromkeys(str(choice) for side in self.decision.kernels for choice in side)
            shares = tuple(Share(self.shape[0], name, "", why) for name in names)
        launches = max((product.recording.n_commands for product in self._products.values()), default=0)
        rule = self.decision.rule + remark_older("spmv", self.decision.deciding)
        return Explanation(str(self.decision.scheme), rule, shares, launches)

    def execute(
        self,
        A: Matrix,
        x: cl_array.Array,
        y: cl_array.Array,
        *,
        alpha: Any = None,
        beta: Any = None,
        semiring: Semiring = plus_times,
        queue: cl.CommandQueue | None = None,
    ) -> list[cl.Event]:
        """Enqueue ``y = alpha * A @ x + beta * y`` and return the launches' events. Nothing is checked; see `spmv`."""
        if self._upgrades:
            self._upgrade()
        product, scale = self._prepare(A, x, y, alpha, beta, semiring)
        return product.run(queue or x.queue or self.queue, (A.data, x, y), scale)

    def build(self, A: Matrix, x: cl_array.Array, y: cl_array.Array, alpha: Any, beta: Any, semiring: Semiring) -> None:
        """Build the kernels of ``alpha * A @ x + beta * y`` for the dtypes of A, x and y, unless they are built already."""
        self._prepare(A, x, y, alpha, beta, semiring)

    def note_checked(
        self, A: Matrix, x: cl_array.Array, y: cl_array.Array, alpha: Any, beta: Any, semiring: Semiring, *, is_new: bool
    ) -> None:
        """Note that a product's operands were checked, so that `again` may repeat it; ``is_new``: y was allocated for it."""
        product, scale = self._prepare(A, x, y, alpha, beta, semiring)
        self._call = product.make_call(self.queue, (A.data, x, y), scale, alpha, beta, semiring, is_new=is_new)

    def _prepare(
        self, A: Matrix, x: cl_array.Array, y: cl_array.Array, alpha: Any, beta: Any, semiring: Semiring
    ) -> tuple[DenseProduct, tuple[Any, ...]]:
        """Return the recorded product for these dtypes (recorded now if new), and alpha and beta for it, () if both are None."""
        scaled = alpha is not None or beta is not None
        key = (A.data.dtype.char, x.dtype.char, semiring.name, scaled)
        product = self._products.get(key)
        if product is None:
            product = self._make(key, Arithmetic(A.dtype.name, x.dtype.name, self.indptr.dtype.name, semiring.name), scaled)
        if not scaled:
            return product, ()
        return product, (y.dtype.type(1 if alpha is None else alpha), y.dtype.type(0 if beta is None else beta))

    @door()
    def bind(self, A: Matrix, x: cl_array.Array, out: cl_array.Array, *, semiring: Semiring = plus_times) -> BoundProduct:
        """Return a function of no arguments that computes ``out = A @ x`` at each call, with the least work of the host.

        Parameters
        ----------
        A : csr_array
            Of this plan's structure.
        x, out : pyopencl.array.Array, shapes (n,) and (m,)
            Contiguous, in A's context. The product is enqueued on x's queue.
        semiring : Semiring

        Returns
        -------
        BoundProduct
            A call returns ``out``, which is not waited for. The arrays are those of now: `A.data` may be written into, but if
            it is set to another array, the function goes on with the one before.

        Raises
        ------
        ValueError, TypeError
            As `spmv` does, or for a plan of another structure; the message names the argument.

        Examples
        --------
        >>> import numpy as np
        >>> import pyopencl.array as cla
        >>> import clsparse_py as sp
        >>> A = sp.csr_array([[1.0, 2.0], [0.0, 3.0]], dtype=np.float32)
        >>> x, y = (cla.to_device(A.queue, np.ones(2, np.float32)) for _ in range(2))
        >>> run = sp.spmv_plan(A).bind(A, x, y)
        >>> run().get()
        array([3., 3.], dtype=float32)
        >>> _ = x.fill(2)
        >>> run().get()
        array([6., 6.], dtype=float32)
        """
        check_matrix(A)
        if not self.matches(A):
            raise ValueError("plan: was made for another structure than A's")
        if (plan_in_force := self.in_force(A)) is not self:
            return plan_in_force.bind(A, x, out, semiring=semiring)
        for name, array in (("x", x), ("out", out)):
            if not isinstance(array, cl_array.Array):
                raise TypeError(f"{name}: must be a pyopencl.array.Array, is {type(array).__name__}")
        operand, _ = dense_operand(A, "x", x, ndim=1)
        dtype = check_scale(A, operand, None, None, out, semiring)
        result_for(A, "x", operand, x, out, dtype, (A.shape[0],), on_device=True)
        if operand is not x or (x.size > 1 and x.strides != (x.dtype.itemsize,)):
            raise ValueError(
                f"x: must be contiguous, and begin at an entry of its buffer, has strides {x.strides} and offset {x.offset}"
            )
        with self._making:
            arithmetic = Arithmetic(A.dtype.name, x.dtype.name, self.indptr.dtype.name, semiring.name)
            builder = self._record(arithmetic, scaled=False)
            compressed = builder.upgrade and builder.upgrade.now()
            recording = compressed.recording if compressed else builder.recorder.recording()
            self.queue.finish()
        return BoundProduct(x.queue or self.queue, (A.data, x, out), DenseProduct(recording, self.queue))

    def bound(
        self, queue: cl.CommandQueue, A: Matrix, x: cl_array.Array, y: cl_array.Array, alpha: Any = None, beta: Any = None
    ) -> Bound:
        """Return a bound product, which enqueues ``alpha * A @ x + beta * y`` on a queue; nothing is checked, or waited for."""
        product, scale = self._prepare(A, x, y, alpha, beta, plus_times)
        return product.bound(queue, (A.data, x, y), scale)

    def profile(self, A: Matrix, x: cl_array.Array, y: cl_array.Array) -> float:
        """Return the device's time for one product ``A @ x`` in seconds: the sum over its launches, by the device's own clock.

        Waits. Uses a profiling queue of its own. Time between launches is not counted: on an idle queue it is the
        host's time to enqueue the second.
        """
        queue = cl.CommandQueue(A.queue.context, A.queue.device, cl.command_queue_properties.PROFILING_ENABLE)
        events = self.execute(A, x, y, queue=queue)
        queue.finish()
        return float(sum(event.profile.end - event.profile.start for event in events)) * 1e-9

    def _make(self, key: _Kind, arithmetic: Arithmetic, scaled: bool) -> DenseProduct:
        """Return the recorded SpMV product for dtypes and a semiring; build its kernels and record it, unless the plan has it."""
        with self._making:
            product = self._products.get(key)
            if product is not None:
                return product
            builder = self._record(arithmetic, scaled)
            self.queue.finish()
            self._shares = builder.shares
            self._products[key] = DenseProduct(builder.recorder.recording(), self.queue)
            # An upgrade refers to the builder of launches: a cycle would keep device memory until a garbage collection.
            upgrade, builder.upgrade = builder.upgrade, None
            if upgrade is not None:
                self._upgrades[key] = upgrade
            if self._expected is not None:
                self._upgrade()
            return self._products[key]

    def settle(self, A: Matrix, x: cl_array.Array, y: cl_array.Array) -> None:
        """Record ``A @ x`` unless it is recorded, make all pending upgrades (compressed columns) now, and wait for the device."""
        self._prepare(A, x, y, None, None, plus_times)
        self._upgrade(now=True)

    def _upgrade(self, *, now: bool = False) -> None:
        """Count one product more; replace recordings by upgrades (compressed columns): those ready, or with ``now`` all."""
        with self._making:
            for key, upgrade in tuple(self._upgrades.items()):
                if now:
                    upgrade.now()
                if not upgrade.come():
                    continue
                del self._upgrades[key]
                if upgrade.made is not None:
                    form, recording = upgrade.made
                    self._products[key], self._call = DenseProduct(recording, self.queue), None
                    built, why = recording.kernels[0].parameters.name, form
                    self._shares = [replace(share, built=built, why=f"{share.why}; {why}") for share in self._shares]

    def _record(self, arithmetic: Arithmetic, scaled: bool) -> Builder:
        """Return a builder that recorded the launches of the SpMV kernels of the plan's decision.

        Raises
        ------
        BuildError
            A kernel is refused.
        """
        builder = Builder(self.inspected, arithmetic, scaled, self._expected)
        builder.add_all(self.decision)
        return builder
