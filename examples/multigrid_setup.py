"""
The set-up of a multigrid hierarchy, with plans that take new values
====================================================================

Multigrid makes a row of ever smaller matrices, each as R A P from the one above. If A's values change but not its pattern,
as from one step of a nonlinear problem to the next, all these products have the structure that they had. Plans keep it: new
values need no analysis and no wait.
"""

# %%
# A problem whose values change
# -----------------------------
#
# Diffusion on a square, with a coefficient that changes from step to step.

import matplotlib.pyplot as plt
import numpy as np
import pyamg

import clsparse_py as sp

N = 256


def diffusion(coefficient):
    """Return the matrix of 5-point diffusion with a coefficient at each cell, in SciPy's CSR."""
    import scipy.sparse

    k = coefficient
    east = np.pad((k[:, :-1] + k[:, 1:]) / 2, ((0, 0), (0, 1)))
    south = np.pad((k[:-1] + k[1:]) / 2, ((0, 1), (0, 0)))
    centre = east + south + np.pad(east[:, :-1], ((0, 0), (1, 0))) + np.pad(south[:-1], ((1, 0), (0, 0))) + 1e-3
    e, s = -east.ravel()[:-1], -south.ravel()[:-N]
    return scipy.sparse.diags_array([centre.ravel(), e, e, s, s], offsets=[0, 1, -1, N, -N], format="csr")


cells = np.linspace(0, 1, N)
y, x = np.meshgrid(cells, cells, indexing="ij")


def coefficient(step):
    """Return a smooth field that wanders."""
    return 1.1 + np.sin(4 * x + step / 3) * np.cos(3 * y - step / 4)


# %%
# The hierarchy
# -------------
#
# PyAMG aggregates on the host, once, and gives the prolongators. They go to the device.

hierarchy = pyamg.smoothed_aggregation_solver(diffusion(coefficient(0)), max_coarse=50)
prolongators = [sp.csr_array(level.P.tocsr()) for level in hierarchy.levels[:-1]]
restrictors = [sp.transpose(P) for P in prolongators]
A = sp.csr_array(diffusion(coefficient(0)))

levels, plans = [A], []
for P, R in zip(prolongators, restrictors):
    with_p = sp.spgemm_plan(levels[-1], P)
    AP = with_p(levels[-1].data, P.data)
    with_r = sp.spgemm_plan(R, AP)
    levels.append(with_r(R.data, AP.data))
    plans.append((with_p, P, AP, with_r, R))
for level in levels:
    print(level.shape, level.nnz)

# %%
# New values
# ----------
#
# The plans put the values of each step through all levels, in the arrays that are there. SciPy's products have the same values.
# How long either takes, on which device, is in the table of multigrid's products in Benchmarks.


def by_plans(values):
    """Put new values through all levels, in the arrays that are there."""
    current = values
    for number, (with_p, P, AP, with_r, R) in enumerate(plans):
        with_p(current, P.data, out=AP)
        with_r(R.data, AP.data, out=levels[number + 1])
        current = levels[number + 1].data


def by_scipy(matrix):
    """Make all products on the host."""
    current = matrix
    for P in on_host:
        current = P.T.tocsr() @ (current @ P)
    return current


on_host = [P.get() for P in prolongators]
for step in range(8):
    S = diffusion(coefficient(step))
    by_plans(sp.csr_array(S).data)
    expected = by_scipy(S)
    assert abs(levels[-1].get() - expected).max() < 1e-10 * abs(expected).max()

# %%
# The picture
# -----------
#
# Left: the coefficient of the last step. Right: the entries of each level.

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
image = left.imshow(coefficient(7), cmap="cividis", extent=(0, 1, 0, 1))
left.set(xticks=[], yticks=[], title="coefficient")
fig.colorbar(image, ax=left)
right.barh(range(len(levels)), [level.nnz for level in levels], color="#56B4E9", edgecolor="black", log=True)
right.set_yticks(range(len(levels)), [f"{level.shape[0]:,} rows" for level in levels])
right.invert_yaxis()
right.set(xlabel="stored entries", title="levels")
plt.show()
