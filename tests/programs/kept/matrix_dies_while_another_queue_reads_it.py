# The memory of the host that a matrix lay on was let go once its own queue had ended, not the one that multiplied by it.
from tests.programs.prelude import *

q, other = queue("ordered"), queue("ordered")
rng = np.random.default_rng(0)
T = scipy.sparse.random_array((300, 1000), density=0.01, rng=rng, format="csr", dtype=np.float32)
T.data[:] = rng.integers(1, 5, T.nnz)
x = rng.integers(-4, 5, 1000).astype(np.float32)
on_q = cl_array.to_device(q, x)
for _ in range(20):
    A = sp.csr_array(T, queue=other)
    for _ in range(3):
        y = A @ on_q
    del A
    check(y, T @ x)
