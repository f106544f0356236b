# 2**62 times itself is 0 modulo 2**64; one kernel counted that entry, and another did not write it.
# seed 105, block 0, program 21
from tests.programs.prelude import *

q = queue("ordered")
S = scipy.sparse.csr_array(
    (np.array([3, -2, 2**62]), np.array([0, 2, 1], "int32"), np.array([0, 2, 3, 3], "int32")), shape=(3, 3)
)
A = sp.csr_array(S, queue=q)
for ours, theirs in ((A * A, S * S), (A + A, S + S), (A - 2 * A, S - 2 * S), (A.multiply(A.get()), S.multiply(S))):
    check(ours, theirs.toarray())
    assert ours.nnz == theirs.nnz
