"""Systems that one work-group holds: their iterations in one launch.

Between two launches an iteration of a small system waits for the host. Here one work-group makes all passes and products of an
iteration, and the iterations one after another, from the passes that `clsparse_py._solvers.krylov.sweep` launches one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from pyopencl import array as cl_array
from typing_extensions import Self, override

from clsparse_py._build.declaration import Examples, kernel
from clsparse_py._build.programs import Parameters
from clsparse_py._device.device import Device, Portability
from clsparse_py._ground.records import dataclass
from clsparse_py._precision.arithmetic import OPENCL_TYPES, Arithmetic, define_numbers
from clsparse_py._run.recording import Bound
from clsparse_py._solvers.krylov.scaling import RESIDUAL, max_unscaled_exponent
from clsparse_py._solvers.krylov.sweep import Layout, Pass, Sweeps
from clsparse_py._solvers.krylov.system import GroupMatrices, System
from clsparse_py._solvers.krylov.thresholds import Thresholds

__all__ = ["Iterations", "Product", "Script", "declare_scripts", "iterate_together"]


@dataclass(frozen=True)
class Product:
    """The product ``y = A x`` or ``y = M x``, by the names of the matrix and the vectors."""

    matrix: str
    x: str
    y: str


#: The steps after the last iteration in one launch: the product A x and the pass of the residual, to check the solution.
_CHECK = Product("A", "x", "q"), RESIDUAL


@dataclass(frozen=True)
class Script:
    """The steps of an iteration of a method.

    Attributes
    ----------
    name : str
        Part of the kernel's name.
    steps : tuple of Pass and Product
        The passes and products of an iteration, in their order.
    going : str
        Whether another iteration follows: an expression of OpenCL C, in which ``scalar_NAME`` is a scalar.
    ending : Pass
        Writes the outcome of the last of all iterations for the host.
    """

    name: str
    steps: tuple[Pass | Product, ...]
    going: str
    ending: Pass

    @property
    def vectors(self) -> tuple[str, ...]:
        """The names of all vectors of a script (the steps of a method's iteration), in the order of the kernel's arguments."""
        used = [(step.x, step.y) if isinstance(step, Product) else step.vectors for step in (*self.steps, self.ending, *_CHECK)]
        return tuple(dict.fromkeys(name for names in used for name in names))

    @property
    def carried(self) -> tuple[str, ...]:
        """The names of the sums that a script's iteration takes over from the iteration before."""
        begun_sums: set[str] = set()
        names: dict[str, None] = {}
        for step in self.steps:
            if isinstance(step, Pass):
                names.update(dict.fromkeys(name for name in step.totals if name not in begun_sums))
                begun_sums.update(name for name, _ in step.sums)
        return tuple(names)

    @property
    def matrices(self) -> tuple[str, ...]:
        """The names of all matrices that a script's iterations multiply by: A, and M if there is one."""
        return tuple(dict.fromkeys(step.matrix for step in self.steps if isinstance(step, Product)))


#: All scripts of Krylov methods, each with its method's layout, for the catalogue of kernels.
_declared: list[tuple[Script, Layout]] = []


def declare_scripts(layout: Layout, *scripts: Script) -> None:
    """Register a Krylov method's scripts, steps of its iterations in one launch, for the catalogue of kernels."""
    _declared.extend((script, layout) for script in scripts)


@kernel
@dataclass(frozen=True)
class Iterations(Parameters):
    """Parameters of ``templates/vectors/iterations.mako``. ``work_group`` is a power of two.

    Attributes
    ----------
    dtype : str
        As of `Sweep`.
    portability : Portability
    script : Script
    layout : Layout
    matrices : tuple of (str, str)
        The name of each matrix, and NumPy's name of the dtype of its indices: none of a diagonal.
    """

    template = "vectors/iterations"

    dtype: str
    portability: Portability
    script: Script
    layout: Layout
    matrices: tuple[tuple[str, str], ...]

    @classmethod
    def legal(
        cls, device: Device, dtype: str, script: Script, layout: Layout, matrices: tuple[tuple[str, str], ...]
    ) -> Iterations:
        """Return the parameters, suited to a device, of the kernel that runs the iterations of a script in one launch."""
        group = (
            1
            if device.lanes_are_loops
            else 1 << min(Thresholds.of(device).together_group, device.max_work_group).bit_length() - 1
        )
        return cls(group, dtype, device.portability.at_most(group), script, layout, matrices)

    @property
    @override
    def name(self) -> str:
        """The kernel's name: script, dtype, the matrices with their index types, and work-group size."""
        matrices = "_".join(f"{matrix}_{index or 'diagonal'}" for matrix, index in self.matrices)
        return f"iterations_{self.script.name}_{self.dtype}_{matrices}_wg{self.work_group}"

    @property
    @override
    def prelude(self) -> str:
        """The OpenCL C before the kernel: macros for the device's exchange between work-items, and the dtype's arithmetic."""
        return "\n".join([self.portability.defines, *define_numbers(np.dtype(self.dtype))])

    @override
    def arguments(self) -> Mapping[str, object]:
        """Return the template's named arguments: a script's data, exponent limits for scaling, whether sums need local memory."""
        max_sums = max(len(step.sums) for step in (*self.script.steps, self.script.ending, *_CHECK) if isinstance(step, Pass))
        return {
            "work_group": self.work_group,
            "most": np.finfo(self.dtype).maxexp - 2,
            "near": max_unscaled_exponent(np.dtype(self.dtype)),
            "needs_box": self.work_group > self.portability.lane_width,
            "boxes": max(-(-max_sums // 8), 1),
            "scalars": self.layout.scalars,
            "sums": self.layout.sums,
            "carried": self.script.carried,
            "told": self.layout.told,
            "steps": self.script.steps,
            "going": self.script.going,
            "ending": self.script.ending,
            "check": _CHECK,
            "vectors": self.script.vectors,
            "matrices": tuple((matrix, index and OPENCL_TYPES[index]) for matrix, index in self.matrices),
        }

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        """Return the nearest parameters of the iterations' kernel for a work-group size and lane width; None for size 0."""
        if work_group < 1:
            return None
        return replace(self, work_group=1 << work_group.bit_length() - 1, portability=self.portability.at_most(lane_width))

    @classmethod
    @override
    def examples(cls, device: Device, arithmetic: Arithmetic) -> Examples:
        """Yield an example record for each declared script of a Krylov method; the variant is the script's name."""
        for script, layout in _declared:
            indices = (("A", arithmetic.index), ("M", ""))[: len(script.matrices)]
            yield script.name, cls.legal(device, arithmetic.floating, script, layout, indices)


def iterate_together(
    system: System,
    matrices: GroupMatrices,
    sweeps: Sweeps,
    script: Script,
    vectors: Mapping[str, cl_array.Array],
    info: Callable[..., int | None],
    last: Callable[..., int] | None = None,
) -> int:
    """Run the iterations of a small system in launches of one work-group, and return SciPy's info.

    Parameters
    ----------
    system : System
        Without a callback.
    matrices : GroupMatrices
        The matrices of the system.
    sweeps : Sweeps
        With scalars, sums and vectors as they are before the first iteration.
    script : Script
    vectors : mapping of str to pyopencl.array.Array
        All vectors of the script but b; q is room.
    info, last : callable
        As of `Iteration`.
    """
    chain = sweeps.chain
    indices = tuple((name, parts[0].dtype.name if len(parts) == 3 else "") for name, parts in matrices.items())
    built, _ = chain.build(Iterations.legal(chain.device, sweeps.dtype.name, script, sweeps.layout, indices))
    real = np.zeros(0, sweeps.dtype).real.dtype.type
    vectors = {**vectors, "b": system.b}
    of_matrices = [array for parts in matrices.values() for array in parts]
    arrays = [sweeps.scalars, sweeps.sums, *(vectors[name] for name in script.vectors), *of_matrices]
    sizes = [np.uint64(size) for size in (sweeps.n, sweeps.groups, sweeps.told_at)]
    powers = [getattr(system.scaling, name) for name in matrices]
    remaining, n_told = system.maxiter, len(sweeps.layout.told)
    n_known = n_told + len(powers)
    while True:
        count = min(remaining, Thresholds.of(chain.device).together_at_once)
        remaining -= count
        # The power of two that scales a matrix is passed as 0 if the launch determines it, by the first product with the matrix.
        alphas = [real(0 if power.exponent is None else power.alpha) for power in powers]
        arguments = [*sizes, np.uint32(count), np.uint32(remaining == 0), *alphas, *(array.base_data for array in arrays)]
        Bound(chain.queue, (built, 1, arguments))()
        values = chain.read(sweeps.scalars, n_known + len(RESIDUAL.sums), sweeps.told_at).real
        for power, alpha in zip(powers, values[n_told:n_known], strict=True):
            power.exponent = 1 - math.frexp(alpha)[1] if alpha else None
        code = (info if remaining else last or info)(*values[:n_told])
        if code is not None or not remaining:
            system.checked = values[n_known:]
            return system.maxiter if code is None else code
