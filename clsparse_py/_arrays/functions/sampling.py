"""Random sparse arrays."""

from __future__ import annotations

from typing import Any

import pyopencl as cl
import scipy.sparse

from clsparse_py._arrays.coo import coo_array
from clsparse_py._ground.errors import warn_of_fallback

__all__ = ["random_array"]


def random_array(
    shape: tuple[int, ...],
    *,
    density: float = 0.01,
    format: str = "coo",
    dtype: Any = None,
    rng: Any = None,
    data_sampler: Any = None,
    queue: cl.CommandQueue | None = None,
    **random_state: Any,
) -> coo_array | Any:
    """Return a sparse array with random entries at random places.

    Parameters
    ----------
    shape : tuple of int
    density : float
        How much of all places has an entry, from 0 to 1.
    format : str
        Of the result.
    dtype : dtype, optional
        Of the values; float64 by default.
    rng : numpy.random.Generator, int or None
        What numbers are drawn by, or its seed.
    data_sampler : callable, optional
        Gives the values, called with ``size=``; by default uniform from 0 to 1, of integers over their dtype's range.
    queue : pyopencl.CommandQueue, optional
        Where it lives; `clsparse_py.default_queue` by default.
    **random_state
        ``random_state=`` is SciPy's older name of ``rng``.

    Returns
    -------
    coo_array, or as ``format`` says
        Of more than two dimensions SciPy's, which is on the host, as a `HostFallbackWarning` says.

    Raises
    ------
    ValueError
        ``density`` is not from 0 to 1.

    Notes
    -----
    Numbers are drawn on the host, by NumPy through SciPy: a seed gives the array that `scipy.sparse.random_array` gives. The
    conversion to ``format`` runs on the device.

    Examples
    --------
    >>> import clsparse_py as sp
    >>> sp.random_array((100, 50), density=0.1, rng=0).nnz
    500
    """
    seed = random_state if rng is None else {"rng": rng, **random_state}
    host = scipy.sparse.random_array(shape, density=density, dtype=dtype, data_sampler=data_sampler, format="coo", **seed)
    if len(shape) > 2:
        warn_of_fallback("random_array of more than two dimensions")
        return host.asformat(format)
    return coo_array(host, queue=queue, check=False).asformat(format)
