"""Features of a product before its analysis, and its budget of memory."""

from __future__ import annotations

from typing import NamedTuple

from clsparse_py._device.device import Device
from clsparse_py._matrix.structure import Facts

__all__ = ["Budget", "Features"]


class Budget(NamedTuple):
    """The bytes of workspace that a product may take.

    Attributes
    ----------
    workspace : int
        Bytes of the workspace in all.
    accumulator : int
        Bytes of the workspace that an accumulator as wide as B may take.
    """

    workspace: int
    accumulator: int


class Features(NamedTuple):
    """Features of A @ B that are known before its rows are analysed.

    Attributes
    ----------
    shape : tuple of int
        Rows of A, its columns, columns of B.
    nnz : tuple of int
        Entries of A and of B.
    A, B : Facts or None
        Facts of the structures of A and B. Without facts of A, profiles decide as if A's rows were alike and half of its columns
        neighbours.
    entry_bytes : int
        Bytes of an entry of B.
    """

    shape: tuple[int, int, int]
    nnz: tuple[int, int]
    A: Facts | None = None
    B: Facts | None = None
    entry_bytes: int = 12

    @property
    def mean_row_of_b(self) -> float:
        """Mean number of entries of a row of B."""
        return self.nnz[1] / self.shape[1]

    def by_name(self, device: Device | None = None) -> dict[str, float]:
        """Return a product's features by their names in profiles.

        ``device``: some features are divided by its cache's bytes or its work-items; by 1 without a device.
        """
        (rows, inner, columns), (nnz, nnz_of_b), A = self.shape, self.nnz, self.A
        mean, mean_of_b = nnz / max(rows, 1), nnz_of_b / max(inner, 1)
        # If the driver tells no size of the device's cache, the size of all local memory stands for it.
        cache = (device.cache_bytes or device.local_memory * device.compute_units) if device else 1
        return {
            "rows": rows,
            "columns": columns,
            "nnz": nnz,
            "nnz_of_b": nnz_of_b,
            "mean": mean,
            "mean_of_b": mean_of_b,
            "longest_by_mean": A.longest / mean if A and A.longest else 1.0,
            # Share of A's entries in a column beside that of the entry before: their rows of B share columns, as in meshes.
            "adjacent": A.adjacent / nnz if A and A.longest else 0.5,
            # Estimated number of products of A @ B: as if all rows of B had the same length.
            "products": nnz * mean_of_b,
            "mean_products": mean * mean_of_b,
            # Estimated fill of a row of C (entries by columns): as if no two products had the same column.
            "fill": mean * mean_of_b / max(columns, 1),
            # B's bytes divided by those of the device's cache, as a row of B is read again for each entry of A that names it.
            "bytes_by_cache": nnz_of_b * self.entry_bytes / max(cache, 1),
            "rows_by_items": rows / (device.compute_units * device.resident) if device else rows,
        }
