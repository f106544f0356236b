"""
A layer of a graph neural network
=================================

A graph convolution takes the mean of the neighbours' features and mixes them: relu(A X W). ``A @ X`` is a product of a
sparse and a dense matrix. A few steps of gradient descent train W. If torch is installed, PyTorch's own sparse product checks the
gradient.
"""

# %%
# A graph, and features
# ---------------------

import matplotlib.pyplot as plt
import numpy as np

import clsparse_py as sp

try:
    import torch
except ImportError:
    torch = None

N, FEATURES, HIDDEN = 20_000, 64, 16
rng = np.random.default_rng(0)
edges = sp.random_array((N, N), density=8 / N, format="csr", dtype=np.float32, rng=rng)
A = ((edges + edges.T) != 0).astype(np.float32) + sp.eye_array(N, dtype=np.float32)
scale = sp.diags_array((1 / np.sqrt(A.sum(axis=1))).astype(np.float32))
A = (scale @ A @ scale).tocsr()
X = rng.standard_normal((N, FEATURES), dtype=np.float32)
W = rng.standard_normal((FEATURES, HIDDEN), dtype=np.float32)
print(repr(A))

# %%
# Forward, and the gradient of W
# ------------------------------
#
# The gradient needs the transposed: A is symmetric here, but ``A.T @ G`` is what a general layer writes.


def layer(W):
    """Return relu(A X W)."""
    return np.maximum(A @ (X @ W), 0)


def gradient(out, of_out):
    """Return the gradient of W, from the layer's result and the gradient of that."""
    return X.T @ (A.T @ (of_out * (out > 0)).astype(np.float32))


if torch is not None:
    S, out = A.get(), layer(W)
    arrays = (torch.from_numpy(part) for part in (S.indptr.astype(np.int64), S.indices.astype(np.int64), S.data))
    weights = torch.from_numpy(W).requires_grad_()
    torch.relu(torch.sparse_csr_tensor(*arrays, S.shape) @ (torch.from_numpy(X) @ weights)).square().sum().mul(0.5).backward()
    own = gradient(out, out)
    assert np.allclose(weights.grad.numpy(), own, rtol=1e-2, atol=1e-2 * abs(own).max())

# %%
# Training
# --------
#
# The target is what other weights give; gradient descent looks for them.

target = layer(rng.standard_normal((FEATURES, HIDDEN), dtype=np.float32))
losses = []
for _ in range(60):
    out = layer(W)
    losses.append(float(np.square(out - target).mean()))
    W -= 20 / N * gradient(out, out - target)
print(f"loss: {losses[0]:.3f}, after {len(losses)} steps {losses[-1]:.3f}")
assert losses[-1] < 0.5 * losses[0]

# %%
# The picture
# -----------

fig, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
axes.semilogy(losses, color="#0072B2")
axes.set(xlabel="step of gradient descent", ylabel="mean square of the error", title=f"relu(A X W), {A.nnz:,} entries in A")
axes.grid(lw=0.4)
plt.show()
