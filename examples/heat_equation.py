"""
Heat equation, with PyAMG's preconditioner
==========================================

A square plate, cold at first, is warmed from one edge. Each implicit step solves a linear system by SciPy's conjugate
gradients, whose products run on the device; PyAMG's multigrid cycle is the preconditioner.
"""

# %%
# The system
# ----------
#
# One step of length h solves (I + h L) u_new = u. L is a Kronecker sum, made on the device.

import matplotlib.pyplot as plt
import numpy as np
import pyamg
import scipy.sparse.linalg

import clsparse_py as sp

N = 128
STEP = 2e-3

second = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(N, N)) * (N + 1) ** 2
laplacian = sp.kronsum(second, second)
system = sp.eye_array(N * N) + STEP * laplacian
print(repr(system))

# %%
# The preconditioner is set up on the host, once, as the matrix does not change:

cycle = pyamg.smoothed_aggregation_solver(system.get()).aspreconditioner()

# %%
# Steps
# -----
#
# The left edge is held at 1: that is a constant source beside it.

source = np.zeros((N, N))
source[:, 0] = (N + 1) ** 2
u = np.zeros(N * N)
frames, counts = [], []
for step in range(40):
    rounds = []
    u, info = scipy.sparse.linalg.cg(system, u + STEP * source.ravel(), x0=u, rtol=1e-8, M=cycle, callback=rounds.append)
    assert info == 0
    counts.append(len(rounds))
    if step in (0, 4, 39):
        frames.append((step + 1, u.reshape(N, N).copy()))
print(f"rounds of conjugate gradients a step: {min(counts)} to {max(counts)}")
residual = system @ u
assert np.isfinite(residual).all()

# %%
# The picture
# -----------

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
for ax, (step, field) in zip(axes, frames):
    image = ax.imshow(field, vmin=0, vmax=1, cmap="cividis", extent=(0, 1, 0, 1))
    ax.set_title(f"after {step} step{'s' * (step > 1)}")
fig.colorbar(image, ax=axes, label="temperature")
plt.show()
