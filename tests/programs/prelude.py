"""Names of scripts that shrunken programs are: ``python script.py [PLATFORM]``, with the checkout's root in PYTHONPATH."""

# ruff: noqa: F401
import functools
import os
import re
import sys
import tempfile
import threading
import zlib
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pyopencl as cl
import scipy.sparse
import scipy.sparse.linalg
from numpy import inf, nan
from pyopencl import array as cl_array

import clsparse_py as sp
from clsparse_py import amg, distributed, graph, linalg, primitives
from clsparse_py._build import programs
from clsparse_py._device.device import unusable
from clsparse_py._memory import pool
from tests.lanes import understated

ERRORS = (TypeError, ValueError, IndexError, NotImplementedError, OverflowError, ZeroDivisionError, AttributeError)


def device_of(name):
    """Return the first usable device by part of its platform's name; "pocl" is one, too, and "understated64", "understated1"."""
    if name.startswith("understated"):
        understated.install(int(name.removeprefix("understated")))
        name = "pocl"
    name = "portable computing language" if name == "pocl" else name.lower()
    return next(device for device in sp.devices() if name in device.platform.name.lower() and unusable(device) is None)


#: Patterns of names of kernels that `refuse` has refused.
REFUSED = []
PLACES = [(pool, "_create"), *((cl, f"enqueue_{name}") for name in ("nd_range_kernel", "copy", "fill_buffer", "map_buffer"))]


def refuse(pattern):
    """Have the compiler refuse kernels of several work-items in whose names a pattern is found: plain ones take their place."""
    compile_source = programs.compile_source
    os.environ["CLSPARSE_CACHE_DIR"] = tempfile.mkdtemp()  # refusals are kept there
    programs.forget_refused()
    REFUSED.append(pattern)

    def refusing(context, device, source, options=()):
        names = programs._KERNEL.findall(source)
        if re.search(r"reqd_work_group_size\((?!1,)", source) and any(re.search(pattern, name) for name in names):
            source = f"#error refused\n{source}"
        return compile_source(context, device, source, options)

    programs.compile_source = refusing


DEVICE = device_of(sys.argv[1] if len(sys.argv) == 2 and not sys.argv[1].startswith("-") else "")
CONTEXT = cl.Context([DEVICE])


def queue(mode):
    """Return a new queue."""
    return cl.CommandQueue(
        CONTEXT, DEVICE, {"ordered": 0, "unordered": cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE}[mode]
    )


def later(array, values):
    """Write values into an array, on its queue, after a while."""
    if not array.size:
        return
    event, given = cl.UserEvent(array.context), cl_array.to_device(array.queue, values)
    copied = cl.enqueue_copy(array.queue, array.base_data, given.data, byte_count=array.nbytes, wait_for=[event])
    array.add_event(copied)
    array.queue.flush()
    threading.Timer(0.02, event.set_status, (cl.command_execution_status.COMPLETE,)).start()


def host(value):
    """Return NumPy's array of a result."""
    if isinstance(value, tuple):
        return np.concatenate([np.ravel(host(item)) for item in value])
    return value.toarray() if sp.issparse(value) else value.get() if hasattr(value, "get") else np.asarray(value)


def eye(q, m, n):
    """Return ones on a diagonal, whose dtype changes no other."""
    return sp.eye_array(m, n, dtype=bool, format="csr", queue=q)


def failing(nth, code, call):
    """Call a function of which the nth command or allocation fails, the first attempt of a step."""
    seen, kept = [0], [(owner, name, getattr(owner, name)) for owner, name in PLACES]

    def counted(original):
        def counting(*given, **named):
            seen[0] += 1
            if seen[0] == nth:
                kind = cl.MemoryError if "ALLOCATION" in code else cl.RuntimeError
                raise kind(cl._cl._ErrorRecord("a command", getattr(cl.status_code, code), ""))
            return original(*given, **named)

        return counting

    for owner, name, original in kept:
        setattr(owner, name, counted(original))
    try:
        return call()
    except (MemoryError, cl.Error, RuntimeError, *ERRORS):
        return None
    finally:
        for owner, name, original in kept:
            setattr(owner, name, original)


def assigned(A, change):
    """Return a changed copy."""
    B = A.copy()
    changed = change(B)
    return B if changed is None else changed


def alike(one, other):
    """Return whether two results are the same, bit for bit."""
    one, other = host(one), host(other)
    return np.array((one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes()))


def on(q, value):
    """Return a copy of a CSR matrix or an array that belongs to another queue."""
    if not sp.issparse(value):
        return cl_array.to_device(q, host(value))
    parts = (cl_array.to_device(q, array.get()) for array in (value.data, value.indices, value.indptr))
    return sp.csr_array(tuple(parts), shape=value.shape, queue=q)


def limited(call, limit):
    """Call a function with a limit of memory, and again with what each refusal says that it takes to get further."""
    for _ in range(20):
        try:
            return call(limit)
        except MemoryError as error:
            numbers = [int(text.replace(",", "")) for text in re.findall(r"[\d,]*\d", str(error))]
            further = sum(numbers[:2]) if "beside" in str(error) else max(numbers)
        assert further > limit, f"a refusal for {limit} bytes says {further}"
        limit = further
    return call(limit)


def residues(q, seed, n, dtype, method):
    """Return whether a large product is right modulo 2^61 - 1 for a vector of residues: A (B x) beside (A B) x."""
    p, rng = (1 << 61) - 1, np.random.default_rng(seed)

    def make_pair():
        row, col = rng.integers(0, n, (2, 6 * n))
        row[:n] = np.where(rng.random(n) < 0.3, n // 2, row[:n])
        M = scipy.sparse.coo_array((rng.integers(-4, 5, row.size).astype(dtype), (row, col)), shape=(n, n)).tocsr()
        return sp.csr_array(M, queue=q), M.astype(np.int64)

    def times(M, x):
        parts = [M @ np.array([int(array) >> shift & (1 << 21) - 1 for array in x]) for shift in (0, 21, 42)]
        return [(int(a) + (int(b) << 21) + (int(c) << 42)) % p for a, b, c in zip(*parts, strict=True)]

    (A, M), (B, N) = make_pair(), make_pair()
    x, C = rng.integers(0, p, n), sp.spgemm(A, B, method=method).get()
    assert C.dtype == dtype, C.dtype
    return np.array(times(C.astype(np.int64), x) == times(M, times(N, x)) and bool((C.data == np.rint(C.data)).all()))


def by_ranks(queues, function):
    """Return what a function makes of a team of ranks."""
    with distributed.over(queues, time_limit=60.0) as team:
        result = function(team)
        return result.gather() if hasattr(result, "gather") else result


def multiply_again(team, A, B):
    """Return the second product of two SciPy matrices over a team's ranks, which sends values alone."""
    left = team.csr_array(A, division="rows")
    right = team.csr_array(B, division=left.columns)
    (2 * left) @ right
    return left @ right


def hermitian(A, dominance, laplacian=False):
    """Return SciPy's sum of a square matrix and its transposed, with all entries of both; the diagonal times ``dominance``."""
    S = A.get().tocoo()
    (row, col), data = np.hstack([S.coords, S.coords[::-1]]), np.concatenate([S.data, S.data])
    is_off = row != col
    data[~is_off] *= dominance
    if laplacian:
        data[is_off] = -abs(data[is_off])
    if S.dtype.kind == "c":
        turns = np.array([1, 1j, -1, -1j], S.dtype)
        data *= turns[row % 4] * turns[col % 4].conj()
    order = np.argsort(row, kind="stable")
    indptr = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=S.shape[0]))))
    return scipy.sparse.csr_array((data[order], col[order], indptr), shape=S.shape)


def inverse_diagonal(A):
    """Return the inverse of a matrix's diagonal as a matrix over the same ranks."""
    own = A.rows.part(A.comm.rank)
    inverse = scipy.sparse.diags_array(
        1 / A.diagonal().allgather()[own], offsets=own.start, shape=(own.stop - own.start, A.shape[1])
    )
    return distributed.csr_array(scipy.sparse.csr_array(inverse), A.comm, rows=A.rows)


def refreshed(ml, values):
    """Return a multigrid hierarchy of new values."""
    ml.refresh(values)
    return ml


def solved_over_ranks(queues, cuts, S, b, form, rtol, solve):
    """Return True if the residual of a system that is solved over ranks is small; b is given in some form."""
    whole = host(b)

    def on_rank(A):
        own, q = whole[A.rows.part(A.comm.rank)], A.comm.queue
        if form == "vector":
            x, info = solve(A, distributed.vector(own, A.comm, A.rows), rtol)
        elif form in ("whole", "strided"):
            x, info = solve(A, whole if form == "whole" else np.repeat(whole, 2, axis=0)[::2], rtol)
        else:
            other = cl.CommandQueue(q.context, q.device) if form != "device" else q
            x, info = solve(A, cl_array.to_device(other, own), rtol)
            x = distributed.vector(x, A.comm, A.rows)
        assert not np.any(info), f"info is {info}"
        return x.allgather() if isinstance(x, distributed.vector) else x

    with distributed.over(queues, time_limit=60.0) as team:
        x = team.run(on_rank, team.csr_array(S, division=cuts))
    residual = np.linalg.norm(whole.reshape(x.shape) - S @ x)
    rounded = np.linalg.norm(abs(S) @ abs(x) + abs(whole.reshape(x.shape))) * float(np.finfo(x.dtype).eps)
    limit = 2 * max(rtol * np.linalg.norm(whole), 30 * rounded)
    assert residual <= limit, f"the residual is {residual}, more than {limit}"
    return np.array(True)


def check(result, wanted, rtol=0, signs=False):
    """Compare a result with NumPy's array of the right values."""
    result = host(result)
    assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape), (result.dtype, result.shape)
    np.testing.assert_allclose(result, wanted, rtol=rtol, atol=rtol * np.max(np.abs(wanted), initial=0))
    if signs:
        np.testing.assert_array_equal(np.signbit(result), np.signbit(wanted))
