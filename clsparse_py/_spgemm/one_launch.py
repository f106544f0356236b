"""C = A @ B of small matrices by one launch, into memory for as many entries as C may have; the host reads how many it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np
from typing_extensions import Self, override

from clsparse_py import programs
from clsparse_py._spgemm.arguments import form_of
from clsparse_py._spgemm.kernels import Form
from clsparse_py._spgemm.kind import Kind, kind_of
from clsparse_py._spgemm.methods.base import Result
from clsparse_py._spgemm.refused import RefusedError, refused_of
from clsparse_py._spgemm.request import Request
from clsparse_py.device import Device, Portability
from clsparse_py.errors import BuildError
from clsparse_py.launch import Chain
from clsparse_py.matrix import Matrix
from clsparse_py.memory import allocated, shortened
from clsparse_py.programs import Built, Parameters
from clsparse_py.records import dataclass

__all__ = ["OneLaunch", "in_one_launch"]

#: Columns to a word of the pattern.
_BITS = 32


@dataclass(frozen=True)
class OneLaunch(Parameters):
    """Parameters of ``templates/spgemm/one_launch.mako``.

    Attributes
    ----------
    form : Form
    portability : Portability
        How lanes exchange values, and how far.
    """

    template = "spgemm/one_launch"

    form: Form
    portability: Portability

    #: Words of the pattern of B, and of C, at most: four such arrays are in local memory.
    WORDS: ClassVar[int] = 1024
    #: Work-items to a row of B, of which the pattern is made.
    LANES: ClassVar[int] = 8

    @classmethod
    def legal(cls, device: Device, form: Form) -> Self:
        """Return the record for a device."""
        return cls(min(256, device.max_work_group), form, device.portability)

    @property
    @override
    def name(self) -> str:
        return f"spgemm_one_launch_wg{self.work_group}_{self.form.name}"

    @property
    @override
    def prelude(self) -> str:
        return f"{self.portability.defines}\n#define LISTED 0\n{self.form.prelude}"

    @property
    @override
    def lane_width(self) -> int:
        return self.portability.lane_width

    @override
    def within(self, work_group: int, lane_width: int) -> Self | None:
        return replace(self, work_group=work_group, portability=self.portability.at_most(lane_width)) if work_group else None

    @override
    def arguments(self) -> Mapping[str, object]:
        lanes = 1 if self.work_group % self.LANES else self.LANES
        return {"work_group": self.work_group, "words": self.WORDS, "lanes": lanes}


class _Way(NamedTuple):
    """The kernel for a kind of product; None if it is refused."""

    kind: Kind
    built: Built | None


def _way(chain: Chain, A: Matrix, B: Matrix, request: Request) -> _Way:
    form = form_of(A, B, request.semiring)
    kind = kind_of(chain.device, form)
    if OneLaunch in refused_of(chain.device, form):
        return _Way(kind, None)
    try:
        return _Way(kind, chain.build(OneLaunch.legal(chain.device, form))[0])
    except BuildError as error:
        RefusedError(chain.device, form, OneLaunch, error).avoid()
        return _Way(kind, None)


def in_one_launch(A: Matrix, B: Matrix, request: Request) -> Result | None:
    """Return C's arrays, which are there; None if the matrices are not small, or not known to be in canonical format.

    Waits for the device once.

    Parameters
    ----------
    A, B : Matrix
    request : Request
    """
    a, b = A.structure, B.structure
    (m, k), n = a.shape, b.shape[1]
    n_words = -(-n // _BITS)
    if max(m, k) * n_words > OneLaunch.WORDS or not request.is_open:
        return None
    of_a, of_b, index = a.facts, b.facts, a.indptr.dtype
    if of_a is None or of_b is None or not (of_a.canonical and of_b.canonical) or b.indptr.dtype != index:
        return None
    n_a, n_b, of_values = a.indices.size, b.indices.size, (A.data, B.data)
    if not (n_a and n_b):
        return None
    queue, structure = a.queue, (a.indptr, a.indices, b.indptr, b.indices)
    chain = Chain(queue, *structure, *of_values)
    kinds = of_values[0].dtype, of_values[1].dtype, index, request.semiring.name
    kind, built = chain.worked_out((_way, *kinds), lambda: _way(chain, A, B, request))
    n_products = n_a * n_b // k
    if built is None or n_products > kind.thresholds.max_small_products:
        return None
    programs.note_asked((built,))
    bound = min(m * n, n_a * min(n_b, of_b.longest or n))
    allocator = of_values[0].allocator
    indptr = allocated(queue, "indptr of the product", m + 1, kind.c_index, allocator)
    indices = allocated(queue, "indices of the product", bound, kind.c_index, allocator)
    data = allocated(queue, "values of the product", bound, kind.result, allocator)
    # A work-group for as many entries as it has work-items.
    groups = min(n_products // built.parameters.work_group + 1, chain.device.compute_units)
    chain.launch(built, groups, np.uint32(m), np.uint32(k), np.uint32(n_words), *structure, *of_values, indptr, indices, data)
    nnz = int(chain.read(indptr, 1, m)[0])
    return Result(indptr, shortened(indices, nnz), shortened(data, nnz))
