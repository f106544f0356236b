"""A call of every public name: by rule if it takes no arguments, else from one table, and the results on the host."""

from __future__ import annotations

import functools
import inspect
import io
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pyopencl as cl
import scipy.linalg
import scipy.sparse
from pyopencl import array as cl_array

import clsparse_py as sp
from clsparse_py import distributed

__all__ = ["NOT_CALLED", "TABLE", "call", "calls", "like"]

N = 240
ARRAYS = {"csr_array": sp.csr_array, "csc_array": sp.csc_array, "coo_array": sp.coo_array, "bsr_array": sp.bsr_array}


def _random(seed: int) -> scipy.sparse.csr_array:
    S = scipy.sparse.random_array((N, N), density=0.03, format="csr", dtype=np.float32, rng=np.random.default_rng(seed))
    S.data *= 0.9
    return S


def _laplacian() -> scipy.sparse.csr_array:
    long, short = (
        scipy.sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n), dtype=np.float32) for n in (N // 12, 12)
    )
    return scipy.sparse.csr_array(scipy.sparse.kronsum(long, short), dtype=np.float32)


_rng = np.random.default_rng(2)
_S = _random(0)
_T = _random(1)
_L = _laplacian()
_P = scipy.sparse.csr_array((np.ones(N, np.float32), np.arange(N) // 4, np.arange(N + 1)), shape=(N, N // 4))
_SHUFFLED = _S.copy()
for _begin, _end in zip(_S.indptr, _S.indptr[1:], strict=False):
    _SHUFFLED.indices[_begin:_end], _SHUFFLED.data[_begin:_end] = _S.indices[_begin:_end][::-1], _S.data[_begin:_end][::-1]
_SHUFFLED.has_sorted_indices = False
_DENSE = _rng.random((N, 3)).astype(np.float32)
_KEYS = _rng.integers(0, 50, 5000).astype(np.int32)
_RUNS = np.concatenate([np.sort(run) for run in _KEYS.reshape(10, -1)])


def _on(values: np.ndarray) -> Callable[[cl.CommandQueue], Any]:
    return lambda queue: cl_array.to_device(queue, values)


#: What expressions name, made anew for each call: on a queue.
OPERANDS: dict[str, Callable[[cl.CommandQueue], Any]] = {
    "A": lambda queue: sp.csr_array(_SHUFFLED, copy=True, queue=queue),
    "B": lambda queue: sp.csr_array(_T, copy=True, queue=queue),
    "C": lambda queue: sp.csc_array(_S, copy=True, queue=queue),
    "O": lambda queue: sp.coo_array(_SHUFFLED, copy=True, queue=queue),
    "E": lambda queue: sp.bsr_array(_S.tobsr((2, 2)), queue=queue),
    "L": lambda queue: sp.csr_array(_L, copy=True, queue=queue),  # positive definite
    "G": lambda queue: sp.csr_array(((_S + _S.T) != 0).astype(np.float32), queue=queue),  # a graph
    "U": lambda queue: sp.csr_array(scipy.sparse.triu(_L), queue=queue),
    "x": _on(_DENSE[:, 0].copy()),
    "X": _on(_DENSE),
    "Y": _on(np.ascontiguousarray(_DENSE.T)),
    "keys": _on(_KEYS),
    "values": _on(_KEYS.astype(np.float32)),
    "sorted_keys": _on(np.sort(_KEYS)),
    "runs": _on(_RUNS),
    "pointers": _on(np.arange(0, 5001, 1000).astype(np.int32)),
    "groups": _on(np.arange(0, 11, 2).astype(np.int32)),
    "ends": _on(np.arange(0, 5001, 500).astype(np.int32)),
    "queue": lambda queue: queue,
    "ranks": lambda queue: lambda work: _in_ranks(queue, work),
    "ml": lambda queue: sp.amg.smoothed_aggregation_solver(sp.csr_array(_L, queue=queue), max_coarse=10),
    "P": lambda queue: sp.csr_array(_P, queue=queue),
    "factors": lambda queue: sp.linalg.splu(sp.csc_array(_L, queue=queue)),
}
_GIVEN = {"np": np, "sp": sp, "scipy": scipy, "io": io, "N": N, "L_HOST": _L, "S_HOST": _S, "DENSE": _DENSE, "later": None}


@functools.cache
def like(queue: cl.CommandQueue, properties: int, number: int = 0) -> cl.CommandQueue:
    """Return a queue beside another one, by its number. It is kept: quirk 44."""
    del number
    return cl.CommandQueue(queue.context, queue.device, properties)


def _in_ranks(queue: cl.CommandQueue, work: Callable[..., Any]) -> list[Any]:
    """Return the result of ranks, each with a queue like this one, on a matrix and a vector that they share."""
    ranks = 1 if "Intel" in queue.device.platform.name else 2  # quirk 14
    with distributed.over([queue] * ranks) as team:

        def task(comm: Any) -> Any:
            own = like(queue, queue.properties, comm.rank)
            A = distributed.csr_array.scattered(_L, comm, queue=own)
            x = distributed.vector(_DENSE[A.rows.part(comm.rank), 0].copy(), comm, A.rows, queue=own)
            return read_back(work(A, x))

        return team.each(task)


#: Calls by name. Of arrays "array.NAME", in which A is one of each format: "csr_array.NAME" comes first.
TABLE = {
    # Operators and methods of arrays.
    "array.__add__": "A + B",
    "array.__radd__": "DENSE[:, :1] + A",
    "array.__sub__": "A - B",
    "array.__rsub__": "DENSE[:, :1] - A",
    "array.__mul__": "A * 3, A * DENSE[:, :1]",
    "array.__rmul__": "3 * A",
    "array.__matmul__": "A @ x, A @ X, A @ B",
    "array.__rmatmul__": "DENSE[:, 0] @ A, DENSE.T @ A",
    "array.__truediv__": "A / 3, A / (1 + DENSE[:, :1])",
        "array.__pow__": "A ** 2",
    "array.__imul__": "A.__imul__(3)",
    "array.__itruediv__": "A.__itruediv__(3)",
    "array.__getitem__": "A[::2], A[3:70, [1, 9, 4]], A[[1, 2], [3, 4]], A[7]",
    "array.__setitem__": "A.__setitem__((slice(3, 70), 5), 2.0), A.__setitem__(([1, 2], [3, 4]), 7.0)",
    "array.__iter__": "next(iter(A))",
    "array.__deepcopy__": "A.__deepcopy__({})",
    "array.__array__": "",
    "array.__array_function__": "np.trace(A)",
    "array.__array_ufunc__": "np.sin(A), np.multiply(A, 2)",
    "array.__len__": "",
    "array.__bool__": "",
    "array.asformat": "A.asformat('csr'), A.asformat('coo')",
    "array.astype": "A.astype(np.int64)",
    "array.dot": "A.dot(x)",
    "array.explain": "A @ x, None",
    "array.getnnz": "A.getnnz(0), A.getnnz(1)",
    "array.count_nonzero": "A.count_nonzero(0), A.count_nonzero(1)",
    "array.matmat": "A.matmat(X)",
    "array.matvec": "A.matvec(x)",
    "array.rmatmat": "A.rmatmat(X)",
    "array.rmatvec": "A.rmatvec(x)",
    "array.maximum": "A.maximum(B), A.maximum(-1)",
    "array.minimum": "A.minimum(B), A.minimum(1)",
    "array.multiply": "A.multiply(B), A.multiply(x)",
    "array.power": "A.power(3)",
    "array.reshape": "A.reshape(N // 2, 2 * N)",
    "array.resize": "A.resize(N - 20, N + 20)",
    "array.setdiag": "A.setdiag(DENSE[:, 0])",
    "array.sum": "A.sum(), A.sum(axis=0), A.sum(axis=1)",
    "array.mean": "A.mean(axis=0)",
    "array.max": "A.max(), A.max(axis=0), A.max(axis=1)",
    "array.min": "A.min(), A.min(axis=0), A.min(axis=1)",
    "array.nanmax": "A.nanmax(axis=1)",
    "array.nanmin": "A.nanmin(axis=1)",
    "array.argmax": "A.argmax(axis=0), A.argmax(axis=1)",
    "array.argmin": "A.argmin(axis=0), A.argmin(axis=1)",
    "array.tensordot": "A.tensordot(O, 1)",
    "array.toarray": "A.toarray(), A.toarray(out=sp.csr_array(B).toarray())",
    "array.tobsr": "A.tobsr((2, 2)), A.tobsr((3, 1))",
    "csr_array.assembled": "sp.csr_array.assembled(A.structure, A.data)",
    "csr_array.sharing": "sp.csr_array.sharing(A)",
    "csr_array.with_values": "A.with_values(2 * A.data)",
    "csr_array.spmv_plan": "sp.spmv(A, x, plan=A.spmv_plan())",
    "csr_array.spmm_plan": "sp.spmm(A, X, plan=A.spmm_plan())",
    "csr_array.transpose_plan": "A.transpose_plan()()",
    "csc_array.spmv_plan": "A.spmv_plan(), A @ x",
    "csc_array.spmm_plan": "A.spmm_plan(), A @ X",
    "csc_array.over": "sp.csc_array.over(B)",
    "coo_array.over": "sp.coo_array.over(queue, A.shape, A.coords, A.data)",
    "bsr_array.over": "sp.bsr_array.over(A.structure, A.data)",
    "bsr_array.of_rows": "sp.bsr_array.of_rows(B, (2, 2))",
    # The package's functions.
    "csr_array": "sp.csr_array((A.data, A.indices, A.indptr), shape=A.shape), sp.csr_array((O.data, O.coords), shape=O.shape)",
    "csc_array": "sp.csc_array(B), sp.csc_array((O.data, O.coords), shape=O.shape)",
    "coo_array": "sp.coo_array(B), sp.coo_array(X)",
    "bsr_array": "sp.bsr_array(B, blocksize=(2, 2))",
    "dia_array": "sp.dia_array(A)",
    "dok_array": "sp.dok_array(A)",
    "lil_array": "sp.lil_array(A)",
    "block_array": "sp.block_array([[A, None], [B, A]])",
    "block_diag": "sp.block_diag([A, B])",
    "hstack": "sp.hstack([A, B])",
    "vstack": "sp.vstack([A, B])",
    "diags_array": "sp.diags_array([DENSE[:, 0], 2.0], offsets=[0, 3], shape=(N, N), queue=queue, dtype=np.float32)",
    "eye_array": "sp.eye_array(N, k=3, dtype=np.float32, format='csr', queue=queue)",
    "expand_dims": "sp.expand_dims(O)",
    "find": "sp.find(A)",
    "kron": "sp.kron(A[:20], B[:5, :9])",
    "kronsum": "sp.kronsum(A[:20, :20], B[:9, :9])",
    "matrix_transpose": "sp.matrix_transpose(A)",
    "permute_dims": "sp.permute_dims(A, (1, 0), copy=True)",
    "swapaxes": "sp.swapaxes(A, 0, 1)",
    "random_array": "sp.random_array((N, N), dtype=np.float32, rng=0, queue=queue)",
    "safely_cast_index_arrays": "sp.safely_cast_index_arrays(A, np.int64)",
    "get_index_dtype": "sp.get_index_dtype((A.indices, A.indptr), check_contents=True)",
    "load_npz": "(later := io.BytesIO(), sp.save_npz(later, S_HOST), later.seek(0), sp.load_npz(later, queue=queue))[-1]",
    "save_npz": "(later := io.BytesIO(), sp.save_npz(later, A), later.seek(0), scipy.sparse.load_npz(later))[-1]",
    "sddmm": "sp.sddmm(A, X, Y)",
    "spgemm": "sp.spgemm(A, B), sp.spgemm(A, B, semiring=sp.min_plus)",
    "spgemm_estimate": "sp.spgemm_estimate(A, B).nnz, sp.spgemm_estimate(A, B, exact=True).nnz",
    "spgemm_plan": "sp.spgemm_plan(A, B)(a_data=2 * A.data)",
    "spmm": "sp.spmm(A, X, alpha=2)",
    "spmm_plan": "sp.spmm(A, X, plan=sp.spmm_plan(A))",
    "spmv": "sp.spmv(A, x, alpha=2), sp.spmv(A, x, beta=2, out=x + 1), sp.spmv(A, x, semiring=sp.max_times)",
    "spmv_plan": "sp.spmv(A, x, plan=sp.spmv_plan(A))",
    "transpose": "sp.transpose(A)",
    "transpose_plan": "sp.transpose_plan(A)()",
    "tril": "sp.tril(A, -1)",
    "triu": "sp.triu(A, 1)",
    "record_use": "sp.record_use(x, queue)",
    "free_memory": "(A @ x, sp.free_memory(queue))[0]",
    "memory_info": "sp.memory_info(queue), None",
    "describe": "sp.describe(queue.device).type",
    "issparse": "sp.issparse(A)",
    # Of submodules.
    "primitives.exclusive_scan": "sp.primitives.exclusive_scan(keys)",
    "primitives.inclusive_scan": "sp.primitives.inclusive_scan(keys)",
    "primitives.radix_sort": "sp.primitives.radix_sort(keys, values)",
    "primitives.reduce_by_key": "sp.primitives.reduce_by_key(sorted_keys, values)",
    "primitives.segmented_merge": "sp.primitives.segmented_merge(groups, ends, runs, values)",
    "primitives.segmented_scan": "sp.primitives.segmented_scan(pointers, values)",
    "primitives.segmented_sort": "sp.primitives.segmented_sort(pointers, keys, values)",
    "primitives.segmented_sum": "sp.primitives.segmented_sum(pointers, values)",
    "graph.betweenness_centrality": "sp.graph.betweenness_centrality(G, sources=[0, 1, 2])",
    "graph.bfs": "sp.graph.bfs(G, 0)[0]",
    "graph.connected_components": "sp.graph.connected_components(A)",
    "graph.k_truss": "sp.graph.k_truss(G, 3)",
    "graph.pagerank": "sp.graph.pagerank(A)",
    "graph.triangle_count": "sp.graph.triangle_count(G)",
    "graph.triangles": "sp.graph.triangles(G)",
    "amg.smoothed_aggregation_solver": "sp.amg.smoothed_aggregation_solver(L, max_coarse=10).solve(DENSE[:, 0])",
    "amg.from_pyamg": "sp.amg.from_pyamg(ml.to_pyamg(), queue=queue).solve(x)",
    "amg.rap_plan": "sp.amg.rap_plan(P.T.tocsr(), L, P)()",
    "amg.MultilevelSolver.aspreconditioner": "sp.linalg.cg(L, x, M=ml.aspreconditioner())",
    "amg.MultilevelSolver.grid_complexity": "ml.grid_complexity()",
    "amg.MultilevelSolver.operator_complexity": "ml.operator_complexity()",
    "amg.MultilevelSolver.refresh": "ml.refresh(2 * L.data), ml.solve(x)",
    "amg.MultilevelSolver.solve": "ml.solve(x), ml.solve(x, cycle='W', accel='gmres')",
    "amg.MultilevelSolver.to_pyamg": "ml.to_pyamg().levels[0].A",
    "amg.Level.changed": "ml.levels[0].changed()",
    "amg.Level.inverse": "ml.levels[0].inverse()",
    "amg.Level.has_zero_diagonal": "ml.levels[0].has_zero_diagonal()",
    "amg.Level.longest_row": "ml.levels[0].longest_row()",
    "amg.Level.relaxed": "ml.levels[0].relaxed(x, 0.9, 2)",
    "amg.Level.rho": "ml.levels[0].rho()",
    "amg.Level.smoothing": "ml.levels[0].smoothing(0.9)",
    "linalg.aslinearoperator": "sp.linalg.aslinearoperator(A) @ DENSE[:, 0]",
    "linalg.SuperLU.L": "factors.L",
    "linalg.SuperLU.U": "factors.U",
    "linalg.SuperLU.solve": "factors.solve(x)",
    "linalg.block_jacobi": "sp.linalg.block_jacobi(L) @ DENSE[:, 0]",
    "linalg.chebyshev": "sp.linalg.chebyshev(L) @ DENSE[:, 0]",
    "linalg.jacobi": "sp.linalg.jacobi(L) @ DENSE[:, 0]",
    "linalg.ic0": "sp.linalg.ic0(L) @ DENSE[:, 0]",
    "linalg.ilu0": "sp.linalg.ilu0(L) @ DENSE[:, 0]",
    "linalg.isai": "sp.linalg.isai(L) @ DENSE[:, 0]",
    "linalg.eigs": "abs(sp.linalg.eigs(L, k=2, v0=DENSE[:, 0], return_eigenvectors=False))",
    "linalg.eigsh": "sp.linalg.eigsh(L, k=2, v0=x, return_eigenvectors=False), sp.linalg.eigsh(L, k=1, sigma=0.3)[0]",
    "linalg.svds": "sp.linalg.svds(L, k=2, v0=DENSE[:, 0], return_singular_vectors=False)",
    "linalg.lobpcg": "sp.linalg.lobpcg(L, X, tol=1e-3, maxiter=100)[0]",
    "linalg.expm": "sp.linalg.expm(L[:20, :20])",
    "linalg.expm_multiply": "sp.linalg.expm_multiply(0.1 * L, x)",
    "linalg.funm_multiply_krylov": "sp.linalg.funm_multiply_krylov(scipy.linalg.expm, 0.1 * L, DENSE[:, 0])",
    "linalg.factorized": "sp.linalg.factorized(L.tocsc())(x)",
    "linalg.inv": "sp.linalg.inv(L[:20, :20].tocsc())",
    "linalg.is_sptriangular": "sp.linalg.is_sptriangular(U)",
    "linalg.spbandwidth": "sp.linalg.spbandwidth(L)",
    "linalg.matrix_power": "sp.linalg.matrix_power(A, 3)",
    "linalg.norm": "sp.linalg.norm(A), sp.linalg.norm(A, 1), sp.linalg.norm(A, np.inf), sp.linalg.norm(A, axis=0)",
    "linalg.onenormest": "sp.linalg.onenormest(L)",
    "linalg.spilu": "sp.linalg.spilu(L.tocsc()).solve(x)",
    "linalg.splu": "sp.linalg.splu(L.tocsc()).solve(x)",
    "linalg.spsolve": "sp.linalg.spsolve(L.tocsc(), x)",
    "linalg.spsolve_triangular": "[sp.linalg.spsolve_triangular(U, b, lower=False) for b in (x, X)]",
    "linalg.triangular_plan": "[sp.linalg.triangular_plan(U, lower=False)(b, 2 * U.data) for b in (x, X)]",
    "linalg.lsqr": "sp.linalg.lsqr(L, x, iter_lim=30)[0], sp.linalg.lsqr(L, x, iter_lim=9, calc_var=True)[-1]",
    "linalg.lsmr": "sp.linalg.lsmr(L, x, maxiter=30)[0]",
    "linalg.gmres": "sp.linalg.gmres(L, x, restart=20)",
    **{f"linalg.{name}": f"sp.linalg.{name}(L, x)" for name in ("bicg", "bicgstab", "cg", "cgs", "gcrotmk", "lgmres", "minres")},
    **{f"linalg.{name}": f"sp.linalg.{name}(L, x)" for name in ("qmr", "tfqmr")},
    "io.mmread": "(later := io.BytesIO(), sp.io.mmwrite(later, S_HOST), later.seek(0), sp.io.mmread(later, queue=queue))[-1]",
    "io.mmwrite": "(later := io.BytesIO(), sp.io.mmwrite(later, A), later.getvalue())[-1]",
    "io.mminfo": "(later := io.BytesIO(), sp.io.mmwrite(later, A), later.seek(0), sp.io.mminfo(later))[-1]",
    # SciPy's, of copies on the host.
    **{
        f"csgraph.{name}": f"sp.csgraph.{name}(A)"
        for name in (
            "bellman_ford", "connected_components", "csgraph_to_dense", "csgraph_to_masked", "dijkstra", "johnson", "laplacian",
            "maximum_bipartite_matching", "minimum_spanning_tree", "reverse_cuthill_mckee", "shortest_path", "structural_rank",
        )
    },
    **{
        f"csgraph.{name}": f"sp.csgraph.{name}(A, 0)"
        for name in ("breadth_first_order", "breadth_first_tree", "depth_first_order", "depth_first_tree")
    },
    "csgraph.floyd_warshall": "sp.csgraph.floyd_warshall(A[:30, :30])",
    "csgraph.construct_dist_matrix":
        "sp.csgraph.construct_dist_matrix(A, sp.csgraph.shortest_path(A, return_predecessors=True)[1])",
    "csgraph.reconstruct_path": "sp.csgraph.reconstruct_path(A, sp.csgraph.breadth_first_order(A, 0)[1])",
    "csgraph.csgraph_from_dense": "sp.csgraph.csgraph_from_dense(X[:3])",
    "csgraph.csgraph_from_masked": "sp.csgraph.csgraph_from_masked(sp.csgraph.csgraph_to_masked(A))",
    "csgraph.csgraph_masked_from_dense": "sp.csgraph.csgraph_masked_from_dense(X[:3])",
    "csgraph.maximum_flow": "sp.csgraph.maximum_flow(G.astype(np.int32), 0, 1).flow_value",
    "csgraph.min_weight_full_bipartite_matching": "sp.csgraph.min_weight_full_bipartite_matching(L)",
    "csgraph.yen": "sp.csgraph.yen(A, 0, 1, 2)",
    # Over ranks: A and x are theirs.
    "distributed.csr_array":
        "ranks(lambda A, x: type(A)(A.own_rows(), A.comm, rows=A.rows, columns=A.columns, queue=A.local.queue))",
    "distributed.csr_array.__add__": "ranks(lambda A, x: A + A)",
    "distributed.csr_array.__sub__": "ranks(lambda A, x: A - 2 * A)",
    "distributed.csr_array.__mul__": "ranks(lambda A, x: A * 2)",
    "distributed.csr_array.__rmul__": "ranks(lambda A, x: 2 * A)",
    "distributed.csr_array.__truediv__": "ranks(lambda A, x: A / 2)",
    "distributed.csr_array.__matmul__": "ranks(lambda A, x: (A @ x, A @ A, A @ DENSE))",
    "distributed.csr_array.__rmatmul__": "ranks(lambda A, x: (x @ A, DENSE.T @ A))",
    "distributed.csr_array.T": "ranks(lambda A, x: A.T @ x)",
    "distributed.csr_array.transpose": "ranks(lambda A, x: A.transpose() @ x)",
    "distributed.csr_array.astype": "ranks(lambda A, x: A.astype(np.complex64))",
    "distributed.csr_array.by_blocks": "ranks(lambda A, x: sp.linalg.cg(A, x, M=A.by_blocks(sp.linalg.jacobi)))",
    "distributed.csr_array.explain": "ranks(lambda A, x: A.explain())",
    "distributed.csr_array.mapped": "ranks(lambda A, x: A.mapped(lambda part: 2 * part, lambda part: 3 * part))",
    "distributed.csr_array.scattered": "ranks(lambda A, x: type(A).scattered(L_HOST, A.comm, queue=A.local.queue))",
    "distributed.csr_array.assembled":
        "ranks(lambda A, x: type(A).assembled(A.comm, A.rows, A.columns, A.local, A.remote, A.halo.columns) @ x)",
    "distributed.csr_array.multigrid": "ranks(lambda A, x: sp.amg.smoothed_aggregation_solver(A, max_coarse=10).solve(x))",
    "distributed.csr_array.problem": "ranks(lambda A, x: (sp.linalg.cg(A, x)[0], sp.linalg.minres(A, x)[0]))",
    "distributed.SpgemmPlan.product": "ranks(lambda A, x: sp.distributed.spgemm_plan(A, A).product(A, A))",
    "distributed.spgemm_plan": "ranks(lambda A, x: sp.distributed.spgemm_plan(A, A)(A, -A))",
    "distributed.by_blocks": "ranks(lambda A, x: sp.linalg.cg(A, x, M=sp.distributed.by_blocks(A, sp.linalg.ic0))[0])",
    "distributed.vector": "ranks(lambda A, x: type(x)(DENSE[:7], A.comm, queue=A.local.queue))",
    **{
        f"distributed.vector.__{name}__": f"ranks(lambda A, x: x.__{name}__({by}))"
        for by, names in {"x": ("add", "iadd", "sub", "isub"), "2": ("mul", "imul", "rmul", "truediv")}.items()
        for name in names
    },
    "distributed.vector.__radd__": "ranks(lambda A, x: x.__radd__(0))",
    "distributed.vector.__rsub__": "ranks(lambda A, x: x.__rsub__(1))",
    "distributed.vector.__rtruediv__": "ranks(lambda A, x: 1 / (x + 1))",
    "distributed.vector.astype": "ranks(lambda A, x: x.astype(np.complex64))",
    "distributed.vector.axpy": "ranks(lambda A, x: x.axpy(2, x.copy()))",
    "distributed.vector.dot": "ranks(lambda A, x: x.dot(x))",
    "distributed.vector.vdot": "ranks(lambda A, x: x.vdot(x))",
    "distributed.vector.over": "ranks(lambda A, x: type(x).over(2 * x.own, x.comm, x.division))",
}  # fmt: skip

_OF_HOST = "works on what the host has, and enqueues nothing"
#: Names that are not called, and why; the names of classes stand for their members too.
NOT_CALLED = {
    "array.__rtruediv__": "raises in words",
    "array.__array__": "raises in words",
    "array.__bool__": "raises in words",
    "array.__len__": "raises in words",
    "default_queue": "makes a queue, in order",
    "devices": _OF_HOST,
    "sparray": "a name for isinstance, which is not called",
    "warmup": "builds kernels and runs what other names here run",
    "amg.RapPlan": "is called by the line of `rap_plan`",
    "amg.Smoother": "a record",
    "linalg.TriangularPlan": "is called by the line of `triangular_plan`",
    "distributed.Communicator": "passes arrays of the host on",
    "distributed.MpiCommunicator": "passes arrays of the host on",
    "distributed.Division": _OF_HOST,
    "distributed.Team": "runs what other names here run, on queues of its own, which are in order",
    "distributed.over": "as its team",
    "distributed.by_entries": _OF_HOST,
    "distributed.by_graph": _OF_HOST,
    "distributed.by_rows": _OF_HOST,
    "distributed.mmread": "makes `csr_array` of what the host read, as the line of that does",
    "distributed.petsc_mat": "of PETSc, which has its own memory",
    "distributed.world": "passes arrays of the host on",
    "distributed.csr_array.around": "what `A @ x` enqueues: a part of it",
    "distributed.csr_array.by_root": "gathers and scatters, as other lines do",
    "distributed.csr_array.raise_alike": "raises",
    "distributed.vector.scattered": "on the queue of its rank, which is in order",
    "distributed.vector.zeros": "on the queue of its rank, which is in order",
}


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Return the public members of a class that are computed: methods, operators and properties of this package."""
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        function = getattr(member, "fget", None) or getattr(member, "__func__", member)
        named = not name.startswith("_") or (name[:2] == "__" and not hasattr(object, name))
        if named and inspect.isfunction(function) and (function.__module__ or "").startswith("clsparse_py"):
            yield name, member


def _by_rule(name: str, member: Any, about: str) -> str | None:
    """Return the expression of a member that takes no arguments."""
    if isinstance(member, property):
        return f"{about}.{name}"
    if not inspect.isfunction(member):
        return None
    needed = [
        parameter
        for parameter in inspect.signature(member).parameters.values()
        if parameter.default is parameter.empty and parameter.kind < 2
    ]
    return f"{about}.{name}()" if len(needed) == 1 else None


def calls() -> dict[str, str | None]:
    """Return the expression of each public name that is called; None of one that the table lacks."""
    results: dict[str, str | None] = {}
    modules = {"": sp} | {f"{name}.": getattr(sp, name) for name in sp.__all__ if isinstance(getattr(sp, name), ModuleType)}
    for before, module in modules.items():
        for name in module.__all__:
            value, full = getattr(module, name), before + name
            if isinstance(value, (ModuleType, sp.Semiring)) or value is sp.Semiring or full in NOT_CALLED:
                continue
            of_scipy = str(getattr(value, "__module__", "")).startswith("scipy")
            if of_scipy or (inspect.isclass(value) and issubclass(value, BaseException)):
                continue
            members = dict(_members(value)) if inspect.isclass(value) else {}
            if full in TABLE or not members:
                results[full] = TABLE.get(full)
            for label, member in members.items():
                results.update(_of_member(full, label, member))
    return results


def _of_member(cls: str, name: str, member: Any) -> dict[str, str | None]:
    """Return the expression of a member of a class, if it is called."""
    full, shared = f"{cls}.{name}", f"array.{name}"
    over_ranks = cls in ("distributed.csr_array", "distributed.vector")
    raises = "NoReturn" in str(getattr(member, "__annotations__", ""))
    if raises or full in NOT_CALLED or (cls in ARRAYS and shared in NOT_CALLED):
        return {}
    given = TABLE.get(full) or (TABLE.get(shared) if cls in ARRAYS else None)
    if given is None and (cls in ARRAYS or over_ranks):
        given = _by_rule(name, member, "x" if cls.endswith("vector") else "A")
        if given is not None and over_ranks:
            given = f"ranks(lambda A, x: {given})"
    if given is not None and cls in ARRAYS:
        given = re.sub(r"\bA\b", {"csr": "A", "csc": "C", "coo": "O", "bsr": "E"}[cls[:3]], given)
    return {full: given}


def call(expression: str, queue: cl.CommandQueue) -> list[Any]:
    """Return the value of an expression of `calls` on a queue, and its operands afterwards."""
    operands = {name: OPERANDS[name](queue) for name in dict.fromkeys(re.findall(r"\w+", expression)) if name in OPERANDS}
    return read_back((eval(expression, {**_GIVEN, **operands}), operands))


def read_back(value: Any) -> list[Any]:
    """Return a result's values on the host, read by a queue without waits, after `finish` of the result's queue alone."""
    if isinstance(value, cl_array.Array):
        if value.queue is not None:
            value.queue.finish()
        host = np.empty(value.shape, value.dtype)
        if value.size and value.flags.forc and isinstance(value.base_data, cl.MemoryObjectHolder):
            host = np.empty(value.shape, value.dtype, "C" if value.flags.c_contiguous else "F")
            other = cl.CommandQueue(value.context, value.queue.device)
            cl.enqueue_copy(other, host, value.base_data, src_offset=value.offset)
            return [host]
        return [value.get() if value.size else host]
    if isinstance(value, distributed.csr_array):
        return [*read_back(value.local), *read_back(value.remote)]
    if isinstance(value, distributed.vector):
        return read_back(value.own)
    if isinstance(value, tuple(ARRAYS.values())):
        names = ("coords", "data") if isinstance(value, sp.coo_array) else ("indptr", "indices", "data")
        return [str(type(value)), value.shape, *(part for name in names for part in read_back(getattr(value, name)))]
    if scipy.sparse.issparse(value):
        return [value.toarray()]
    if isinstance(value, dict):
        return [part for item in value.values() for part in read_back(item)]
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in read_back(item)]
    if isinstance(value, (np.ndarray, np.generic, bool, int, float, complex, str, bytes, type(None))):
        return [value]
    return [type(value).__name__]
