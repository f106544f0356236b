# A number with A's unit was compared with the norm of b, and the iterations ended at once.
# seed 106, block 0, program 112
from tests.programs.prelude import *

q = queue("ordered")
for a in (0, 60):
    A = sp.csr_array(np.diag([8.0, 10.0]) * 2.0**a, queue=q)
    for b in (0, 50, 100):
        x, info = linalg.minres(A, np.ones(2) * 2.0**b, rtol=1e-10)
        assert info == 0
        check(x * 2.0 ** (a - b), np.array([0.125, 0.1]), 1e-9)
