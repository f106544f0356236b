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

import time

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
# Beside the plans: the products made anew each time, and SciPy's.


def by_plans(values):
    """Put new values through all levels, in the arrays that are there."""
    current = values
    for number, (with_p, P, AP, with_r, R) in enumerate(plans):
        with_p(current, P.data, out=AP)
        with_r(R.data, AP.data, out=levels[number + 1])
        current = levels[number + 1].data
    A.queue.finish()


def anew(matrix):
    """Make all products from scratch."""
    current = matrix
    for P, R in zip(prolongators, restrictors):
        current = R @ (current @ P)
    A.queue.finish()
    return current


def by_scipy(matrix):
    """Make all products on the host."""
    current = matrix
    for P in on_host:
        current = P.T.tocsr() @ (current @ P)
    return current


on_host = [P.get() for P in prolongators]
times = {"SciPy": [], "products anew": [], "plans": []}
for step in range(8):
    S = diffusion(coefficient(step))
    new = sp.csr_array(S)
    new.queue.finish()
    for name, call in (
        ("SciPy", lambda: by_scipy(S)),
        ("products anew", lambda: anew(new)),
        ("plans", lambda: by_plans(new.data)),
    ):
        begin = time.perf_counter()
        made = call()
        times[name].append(1e3 * (time.perf_counter() - begin))
        if name == "SciPy":
            expected = made
    assert abs(levels[-1].get() - expected).max() < 1e-10 * abs(expected).max()

# %%
# The picture
# -----------
#
# Times of this run, on the machine where this page was built: the median of seven steps, and a line from the fastest to the
# slowest. The first step, which builds kernels, is left out.

fig, axes = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
for place, (name, each) in enumerate(times.items()):
    steps = np.array(each[1:])
    axes.barh(place, np.median(steps), height=0.6, color="#56B4E9" if name == "plans" else "#DDDDDD", edgecolor="black")
    axes.plot([steps.min(), steps.max()], [place, place], color="black", linewidth=1.5)
axes.set_yticks(range(len(times)), times)
axes.set(xlabel="ms for all levels", title=f"New values in {len(levels)} levels, {A.nnz:,} entries in the first")
axes.grid(axis="x", lw=0.4)
plt.show()
