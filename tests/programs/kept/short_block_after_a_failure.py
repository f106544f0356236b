# An allocation failed, and was made again without rounding: the short block then was taken for one of the rounded size.
# seed 41, block 0, program 45
from tests.programs.prelude import *

q = queue("ordered")
for nth in range(1, 5):
    A = sp.csr_array(scipy.sparse.csr_array((1, 7), dtype="float32"), queue=q)
    check(A.argmin(axis=1), np.array([0]))
    sp.free_memory()
    failing(nth, "OUT_OF_RESOURCES", lambda A=A: A.argmin(axis=1))
    check(A.argmin(axis=1), np.array([0]))
    check(sp.csr_array(np.eye(60, dtype="float32"), queue=q) @ np.ones(60, "float32"), np.ones(60, "float32"))
