# Duplicates were kept where SciPy sums them, and integers on the right-hand side made a solution float64.
# seeds 33 and 42, blocks 0
from tests.programs.prelude import *

q = queue("ordered")
S = scipy.sparse.csr_array((np.ones(4, "float32"), np.array([1, 1, 2, 2]), np.array([0, 3, 4, 4])), shape=(3, 4))
A = sp.csr_array(S, queue=q)
for kind in ("csr", "csc", "bsr"):
    for of, ours in ((scipy.sparse.triu, sp.triu), (scipy.sparse.tril, sp.tril)):
        assert ours(A, 1, format=kind).nnz == of(S, 1, format=kind).nnz, kind
for dtype in ("int8", "float32", "float64", "complex64"):
    C = scipy.sparse.coo_array((np.array([-3, -6, 6], dtype), (np.array([0, 0, 6]), np.array([2, 2, 2]))), shape=(7, 3))
    assert (sp.coo_array(C, queue=q) / 2).nnz == (C / 2).nnz, dtype
for a in ("int8", "int64", "float32", "complex64"):
    for b in ("bool", "int8", "int32", "float32", "float64"):
        for unit in (False, True):
            T, x = scipy.sparse.csr_array(np.eye(2, dtype=a)), np.ones(2, b)
            wanted = scipy.sparse.linalg.spsolve_triangular(T, x, unit_diagonal=unit)
            check(linalg.spsolve_triangular(sp.csr_array(T, queue=q), x, unit_diagonal=unit), wanted)
