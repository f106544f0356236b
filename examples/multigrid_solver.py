"""
Poisson's equation by multigrid, beside PyAMG
=============================================

A hierarchy by smoothed aggregation is set up on the device, and preconditions conjugate gradients there. PyAMG does the same on
the host. Then the coefficients change, and the hierarchy is refreshed: aggregates and plans of products stay.
"""

# %%
# The system
# ----------
#
# The Laplacian of a square, and a right-hand side with two sources.

import matplotlib.pyplot as plt
import numpy as np
import pyamg
import pyopencl.array as cla

import clsparse_py as sp

N = 300

second = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(N, N))
A = sp.kronsum(second, second, format="csr")
sources = np.zeros((N, N))
sources[N // 4, N // 3], sources[2 * N // 3, 3 * N // 4] = 1, -1
b = cla.to_device(A.queue, sources.ravel())

# %%
# Set up and solved on the device, and on the host
# ------------------------------------------------
#
# PyAMG's smoother is Gauss and Seidel's by default, whose steps depend on each other. With Jacobi's, which ours is, iterations
# can be compared.

jacobi = ("jacobi", {"omega": 4 / 3})
host = A.get()
ml = sp.amg.smoothed_aggregation_solver(A)
print(ml)

histories = {}
x = ml.solve(b, tol=1e-10, accel="cg", residuals=histories.setdefault("clsparse_py", []))
for name, smoothers in (("PyAMG", {}), ("PyAMG, Jacobi", {"presmoother": jacobi, "postsmoother": jacobi})):
    theirs = pyamg.smoothed_aggregation_solver(host, **smoothers)
    expected = theirs.solve(b.get(), tol=1e-10, accel="cg", residuals=histories.setdefault(name, []))
    assert np.abs(x.get() - expected).max() < 1e-7 * np.abs(expected).max()

# %%
# Other coefficients
# ------------------
#
# The right half takes up what comes to it: the same pattern, other values, as at each step of a nonlinear problem.

takes_up = np.tile(np.where(np.arange(N) < N // 2, 0.0, 0.01), N)
other = (A + sp.diags_array(takes_up)).tocsr()
ml.refresh(other)
y, info = ml.solve(b, tol=1e-10, accel="cg", residuals=histories.setdefault("clsparse_py, refreshed", []), return_info=True)
assert info == 0
assert np.linalg.norm((other @ y).get() - b.get()) < 1e-8

# %%
# The picture
# -----------
#
# Left: the solution. Right: the norms of the residuals.

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
image = left.imshow(x.get().reshape(N, N), cmap="RdBu", vmin=-0.8, vmax=0.8)
left.set(xticks=[], yticks=[], title="solution")
fig.colorbar(image, ax=left)
for (name, norms), (line, marker, colour) in zip(
    histories.items(), (("-", "o", "#0072B2"), ("--", "s", "#000000"), (":", "^", "#D55E00"), ("-.", "v", "#56B4E9"))
):
    right.semilogy(np.array(norms) / norms[0], line, marker=marker, markersize=3.5, color=colour, label=name)
right.set(xlabel="iteration of conjugate gradients", title="norm of the residual, of the first")
right.legend(fontsize=8)
right.grid(lw=0.4)
plt.show()
