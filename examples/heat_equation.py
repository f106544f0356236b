"""
Heat equation, preconditioned by multigrid
==========================================

A square plate, cold at first, is warmed from one edge. Each implicit step solves a linear system by conjugate gradients on the
device; a cycle of algebraic multigrid is the preconditioner. The temperature stays on the device for all steps.
"""

# %%
# The system
# ----------
#
# One step of length h solves (I + h L) u_new = u. L is a Kronecker sum, made on the device.

import matplotlib.pyplot as plt
import numpy as np
import pyopencl.array as cla

import clsparse_py as sp

N = 128
STEP = 2e-3

second = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(N, N)) * (N + 1) ** 2
laplacian = sp.kronsum(second, second)
system = (sp.eye_array(N * N) + STEP * laplacian).tocsr()
print(repr(system))

# %%
# The hierarchy is set up once, as the matrix does not change:

ml = sp.amg.smoothed_aggregation_solver(system)
print(ml)

# %%
# Steps
# -----
#
# The left edge is held at 1: that is a constant source beside it.

source = np.zeros((N, N))
source[:, 0] = STEP * (N + 1) ** 2
heat = cla.to_device(system.queue, source.ravel())
u = cla.zeros_like(heat)
frames, counts = [], []
for step in range(40):
    iterates = []
    b = u + heat
    u, info = sp.linalg.cg(system, b, x0=u, rtol=1e-8, M=ml.aspreconditioner(), callback=iterates.append)
    assert info == 0
    counts.append(len(iterates))
    if step in (0, 4, 39):
        frames.append((step + 1, u.get().reshape(N, N)))
print(f"iterations of conjugate gradients a step: {min(counts)} to {max(counts)}")
assert np.linalg.norm((system @ u - b).get()) <= 1e-8 * np.linalg.norm(b.get())

# %%
# The picture
# -----------

fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained", sharey=True)
for ax, (step, field) in zip(axes, frames):
    image = ax.imshow(field, vmin=0, vmax=1, cmap="cividis", extent=(0, 1, 0, 1))
    ax.set_title(f"after {step} step{'s' * (step > 1)}")
fig.colorbar(image, ax=axes, label="temperature")
plt.show()
