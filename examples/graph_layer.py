"""
A layer of a graph neural network, beside PyTorch
=================================================

A graph convolution takes the mean of the neighbours' features and mixes them: relu(A X W). ``A @ X`` is a product of a
sparse and a dense matrix. Beside it, if torch is installed, PyTorch's own sparse product gives the same numbers; without it,
SciPy stands in.
"""

# %%
# A graph, and features
# ---------------------

import time

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
X = rng.random((N, FEATURES), dtype=np.float32)
W = rng.standard_normal((FEATURES, HIDDEN), dtype=np.float32)
print(repr(A))

# %%
# Forward, and the gradient of W
# ------------------------------
#
# The gradient needs the transposed: A is symmetric here, but ``A.T @ G`` is what a general layer writes.

Y = A @ (X @ W)
out = np.maximum(Y, 0)
G = A.T @ (out * (Y > 0)).astype(np.float32)
gradient = X.T @ G

# %%
# The same beside it
# ------------------


def milliseconds(call):
    """Return the median time of five calls after a first one."""
    call()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return 1e3 * sorted(times)[2]


widths = [1, 4, 16, 64]
ours = [milliseconds(lambda: A @ np.ascontiguousarray(X[:, :width])) for width in widths]
S = A.get()
if torch is None:
    peer = "SciPy"
    assert np.allclose(S @ (X @ W), Y, rtol=1e-3, atol=1e-4)
    theirs = [milliseconds(lambda: S @ np.ascontiguousarray(X[:, :width])) for width in widths]
else:
    peer = "PyTorch"
    T = torch.sparse_csr_tensor(
        torch.from_numpy(S.indptr.astype(np.int64)),
        torch.from_numpy(S.indices.astype(np.int64)),
        torch.from_numpy(S.data),
        S.shape,
    )
    weights = torch.from_numpy(W).requires_grad_()
    torch.relu(T @ (torch.from_numpy(X) @ weights)).square().sum().mul(0.5).backward()
    assert np.allclose(weights.grad.numpy(), gradient, rtol=1e-2, atol=1e-2 * abs(gradient).max())
    theirs = [milliseconds(lambda: T @ torch.from_numpy(np.ascontiguousarray(X[:, :width]))) for width in widths]
print(f"device: {A.queue.device.name.strip()}; beside {peer}")

# %%
# The picture
# -----------
#
# Times of this run, on the machine where this page was built: no figure to go by.

fig, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
places = np.arange(len(widths))
axes.bar(places - 0.2, ours, 0.38, color="#0072B2", label="clsparse_py")
axes.bar(places + 0.2, theirs, 0.38, color="#E69F00", hatch="//", label=peer)
axes.set_xticks(places, [f"{width}" for width in widths])
axes.set(xlabel="columns of X", ylabel="ms", title=f"A @ X, {A.nnz:,} entries, NumPy to NumPy")
axes.legend()
plt.show()
