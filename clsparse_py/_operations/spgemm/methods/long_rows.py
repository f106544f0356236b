"""Long rows by segmented merge: "long-rows", the SpGEMM of Ji et al., "Segmented merge", Section 4.3.

As expansion, sort and contraction in global memory, but for the sort: each entry of A names a sorted row of B, a sub-segment of
its row of C, so that the products of all rows of a slice are merged together.
"""

from __future__ import annotations

from pyopencl import array as cl_array
from typing_extensions import override

from clsparse_py._ground.records import dataclass
from clsparse_py._operations.spgemm.bins import Bin, Setting
from clsparse_py._operations.spgemm.methods.esc import NUMBER_BYTES, Esc
from clsparse_py._operations.spgemm.methods.slices import Slice
from clsparse_py._primitives.segmented_merge import enqueue_segmented_merge
from clsparse_py._run.launch import Chain

__all__ = ["LongRows", "long_rows"]


@dataclass(frozen=True)
class LongRows(Esc):
    """An accumulator that merges the products of rows of any length in global memory.

    A merge waits for the device once. New values of a product of several slices, which wait for nothing, are sorted instead.
    """

    merges = True

    @override
    def describe(self) -> str:
        return "expansion, segmented merge and contraction in global memory"

    @override
    def _sort_bytes(self, chain: Chain, part: Slice, key_bytes: int, column_bits: int) -> int:
        # The output of rounds; segments, their lists, tiles and counts.
        merging = part.n * (key_bytes + NUMBER_BYTES) + 24 * part.n_rows + part.n // 16 + 512 * chain.device.compute_units + 4096
        return max(super()._sort_bytes(chain, part, key_bytes, column_bits), merging)

    @override
    def _enqueue_sort(
        self,
        chain: Chain,
        part: Slice,
        bits: int,
        source: tuple[cl_array.Array, ...],
        target: tuple[cl_array.Array, ...],
        runs: tuple[cl_array.Array, ...],
    ) -> None:
        if runs:
            enqueue_segmented_merge(chain, runs, source, target, part.n)
        else:
            super()._enqueue_sort(chain, part, bits, source, target, runs)


def long_rows(on: Setting) -> tuple[Bin, ...]:  # noqa: ARG001 - it is the same everywhere
    """Return the one bin of "long-rows": it takes any row."""
    return (Bin("long-rows", LongRows(bounded=True)),)
