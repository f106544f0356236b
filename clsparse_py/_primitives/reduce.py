"""Reduction by key: the sums of runs of equal adjacent keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from pyopencl import array as cl_array

from clsparse_py._build.built import Built
from clsparse_py._build.plain import door
from clsparse_py._build.programs import note_asked
from clsparse_py._ground.index_types import index_for
from clsparse_py._precision.arithmetic import name_of
from clsparse_py._primitives import arguments
from clsparse_py._primitives.addition import sum_dtype
from clsparse_py._primitives.scan import ScanChunks, ScanTiles, count_chunks, enqueue_carries
from clsparse_py._primitives.segmented import enqueue_segmented_sum
from clsparse_py._run.launch import Chain
from clsparse_py._run.recording import run

__all__ = ["KeyRuns", "reduce_by_key"]


class KeyRuns:
    """The runs of equal adjacent keys, counted on the device by a scan whose entries are 1 where a run begins. Reads once.

    Parameters
    ----------
    chain : Chain
        The chain that the commands go to.
    keys : pyopencl.array.Array
        Keys from the beginning of their buffer on.
    n : int
        The number of keys, at least one.
    work_group : int, optional
        Work-items of a work-group; by default a number that suits the device.

    Attributes
    ----------
    n_runs : int
    """

    def __init__(self, chain: Chain, keys: cl_array.Array, n: int, work_group: int | None = None) -> None:
        self._chain, self._keys = chain, keys
        kind = KeyRuns, chain.device, keys.dtype, n, work_group
        self._counting = counting = chain.worked_out(kind, lambda: _build_counting(chain, *kind[2:]))
        note_asked(counting.built)
        self._sums = chain.scratch(counting.n_sums, counting.position)
        run(chain, _enqueue_counts, (keys, self._sums), *kind[2:])
        if chain.device.lanes_are_loops:
            self.n_runs = int(chain.read(self._sums, counting.n_sums).sum())
        else:
            self.n_runs = int(chain.read(self._sums, 1, counting.n_sums - 1)[0])

    def enqueue_list(self, unique: cl_array.Array) -> cl_array.Array:
        """Enqueue the list of runs of equal keys: each run's key goes to ``unique``; return the runs' first positions, then n."""
        counting = self._counting
        starts = self._chain.scratch(self.n_runs + 1, counting.position)
        numbers = counting.numbers
        self._chain.launch(counting.built[-1], counting.groups, *numbers, self._keys, self._sums, unique, starts)
        return starts


class _Counting(NamedTuple):
    """The kernels that count and list the runs of ``n`` keys of a dtype on a device.

    Attributes
    ----------
    position : dtype
        The dtype of positions of keys.
    built : tuple of Built
        Kernels; the last one lists runs.
    record : ScanChunks or ScanTiles
        The record of the first kernel.
    groups : int
        Work-groups of the last kernel.
    numbers : tuple of numpy.uint64
        The first arguments of the last kernel.
    n_sums : int
        Length of the array of sums: counts of runs of pieces on CPU devices; elsewhere a scan of these, ending with the total.
    """

    position: np.dtype[Any]
    built: tuple[Built, ...]
    record: ScanChunks | ScanTiles
    groups: int
    numbers: tuple[np.uint64, ...]
    n_sums: int


def _build_counting(chain: Chain, dtype: np.dtype[Any], n: int, work_group: int | None) -> _Counting:
    """Build the kernels that count and list the runs of equal adjacent keys among ``n`` keys of a dtype."""
    index = index_for(n)
    types = name_of(dtype), name_of(index)
    if chain.device.lanes_are_loops:
        portability = chain.device.portability.at_most(1)
        summing, chunked = chain.build(ScanChunks(work_group or 1, *types, portability, True, "sums", True))
        listing, _ = chain.build(replace(chunked, step="scan"))
        n_pieces = count_chunks(chain.device, n)
        numbers = np.uint64(n), np.uint64(n), np.uint64(n_pieces)
        return _Counting(index, (summing, listing), chunked, -(-n_pieces // chunked.work_group), numbers, n_pieces)
    record = replace(ScanTiles.legal(chain.device, *types, True, work_group, runs=True), carried=True)
    listing, tiles = chain.build(record)
    groups = -(-n // tiles.tile)
    return _Counting(index, (listing,), tiles, groups, (np.uint64(n), np.uint64(n)), groups + 1)


def _enqueue_counts(
    chain: Chain, keys: cl_array.Array, sums: cl_array.Array, dtype: np.dtype[Any], n: int, work_group: int | None
) -> None:
    """Enqueue counts of runs of equal adjacent keys, chunk by chunk (CPU devices), or a scan of counts, tile by tile (others)."""
    counting = _build_counting(chain, dtype, n, work_group)
    if isinstance(counting.record, ScanChunks):
        chain.launch(counting.built[0], counting.groups, *counting.numbers, keys, sums)
    else:
        enqueue_carries(chain, counting.record, keys, n, counting.n_sums, sums_out=sums)


@door()
def reduce_by_key(
    keys: cl_array.Array, values: cl_array.Array, *, out: tuple[cl_array.Array, cl_array.Array] | None = None
) -> tuple[cl_array.Array, cl_array.Array]:
    """Return the key of each run of equal adjacent keys, and the sum of the run's values.

    Runs are found by a scan of where they begin, and summed as segments, as in `segmented_sum`.

    Parameters
    ----------
    keys : pyopencl.array.Array
        One-dimensional, of int32, uint32, int64 or uint64. Keys need not be sorted: equal and adjacent keys form a run.
    values : pyopencl.array.Array
        As many values, of any supported dtype.
    out : tuple of pyopencl.array.Array, optional
        Where the keys and the sums go: arrays of at least as many entries as there are runs. By default new arrays.

    Returns
    -------
    tuple of pyopencl.array.Array
        The runs' keys, and their sums: of the dtype of ``values``, in which they are made; of int64 where that is
        bool. With ``out``, its first entries. The device may still be writing them.

    Raises
    ------
    TypeError, ValueError
        An argument is no such array, or ``out`` has no room for all runs; the message names the argument.

    Notes
    -----
    Waits for the number of runs: one read. The order of the additions depends on the keys alone, so results are bitwise the same
    at each call on a device.

    Examples
    --------
    >>> import numpy as np
    >>> from pyopencl import array as cl_array
    >>> import clsparse_py as sp
    >>> keys, values = (cl_array.to_device(sp.default_queue(), np.array(each, np.int32)) for each in ([1, 1, 4], [5, 6, 7]))
    >>> [each.get().tolist() for each in sp.primitives.reduce_by_key(keys, values)]
    [[1, 4], [11, 7]]
    """
    queue = arguments.find_queue(keys=keys, values=values)
    entries = arguments.prepare_keys(queue, "keys", keys)
    added = arguments.prepare_values(queue, "values", values, beside=("keys", keys.size), added=True)
    outs = arguments.split_outputs(out, second=True)
    chain, n = arguments.start_chain(queue, entries, added, outs=outs), keys.size
    runs = KeyRuns(chain, entries, n) if n else None
    n_runs = runs.n_runs if runs else 0
    dtypes = keys.dtype, sum_dtype(values.dtype)
    unique, sums = (
        arguments.prepare_output(chain, "out", _first(part, n_runs), n_runs, dtype, entries, added)
        for part, dtype in zip(outs, dtypes, strict=True)
    )
    if runs:
        enqueue_segmented_sum(chain, runs.enqueue_list(unique.array), added, sums.array, n_runs, n)
    return unique.deliver(chain), sums.deliver(chain)


def _first(out: Any, n: int) -> Any:
    """Return the first ``n`` entries of an output array that is longer; return any other output argument unchanged."""
    return out[:n] if isinstance(out, cl_array.Array) and out.ndim == 1 and out.size > n else out
