"""
Gradients of sparse products, for PyTorch
=========================================

Weights of a graph's edges are learned from what they do: ``Y = A @ X`` is seen, A's pattern is known, its values are not. The
gradient with respect to A's values is a sampled product, ``sddmm(A, G, X.T)``; that with respect to X is ``A.T @ G``. Of a
sampled product, both gradients are sparse products. Beside it, if torch is installed, the same functions are operations of
PyTorch's autograd; without it, finite differences check them all the same.
"""

# %%
# Two products and their gradients
# --------------------------------
#
# ``W`` is a sparse array with the pattern of the graph; products with other values share its structure, and so its plans.

import matplotlib.pyplot as plt
import numpy as np

import clsparse_py as sp

try:
    import torch
except ImportError:
    torch = None


def with_values(W, values):
    """Return an array with W's structure and other values."""
    found = W.copy()
    found.data = values
    return found


def spmm_gradients(W, values, X, G):
    """Return the gradients of ``A @ X`` with respect to A's values and to X; G is that of the result."""
    return sp.sddmm(W, G, X.T).data.get(), with_values(W, values).T @ G


def sddmm_gradients(W, X, Z, g):
    """Return the gradients of the values of ``sddmm(W, X, Z.T)`` with respect to X and to Z; g is that of the values."""
    G = with_values(W, g)
    return G @ Z, G.T @ X


# %%
# Finite differences
# ------------------
#
# A step along a random direction changes the sum of the result's entries, weighted by G, by what the gradient says.

rng = np.random.default_rng(0)
small = sp.random_array((60, 50), density=0.1, format="csr", rng=rng)
values, X, G = small.data.get(), rng.standard_normal((50, 4)), rng.standard_normal((60, 4))
U, g = rng.standard_normal((60, 4)), rng.standard_normal(small.nnz)


def slope(function, at, direction, step=1e-6):
    """Return the derivative of a function along a direction, by central differences."""
    return (function(at + step * direction) - function(at - step * direction)) / (2 * step)


by_values, by_x = spmm_gradients(small, values, X, G)
by_u, by_z = sddmm_gradients(small, U, X, g)
checks = {
    "A @ X by A's values": (lambda v: np.sum(G * (with_values(small, v) @ X)), values, by_values),
    "A @ X by X": (lambda x: np.sum(G * (small @ x)), X, by_x),
    "sddmm by X": (lambda u: g @ sp.sddmm(small, u, X.T).data.get(), U, by_u),
    "sddmm by Z": (lambda z: g @ sp.sddmm(small, U, z.T).data.get(), X, by_z),
}
for name, (function, at, gradient) in checks.items():
    direction = rng.standard_normal(at.shape)
    wanted, found = slope(function, at, direction), np.sum(gradient * direction)
    print(f"{name}: {found:.6f}, by differences {wanted:.6f}")
    assert abs(found - wanted) < 1e-5 * max(1, abs(wanted))

# %%
# The same as an operation of PyTorch
# -----------------------------------
#
# ``forward`` keeps what ``backward`` needs. Tensors of the CPU share their memory with NumPy's arrays.

if torch is None:
    print("torch is not installed: the gradients above are used by hand")
else:

    class Spmm(torch.autograd.Function):
        """``A @ X`` with gradients for A's values and for X."""

        @staticmethod
        def forward(ctx, W, values, X):
            ctx.W = W
            ctx.save_for_backward(values, X)
            return torch.from_numpy(with_values(W, values.detach().numpy()) @ X.detach().numpy())

        @staticmethod
        def backward(ctx, G):
            values, X = (each.detach().numpy() for each in ctx.saved_tensors)
            return None, *(torch.from_numpy(each) for each in spmm_gradients(ctx.W, values, X, np.ascontiguousarray(G.numpy())))

    given = [torch.from_numpy(each).requires_grad_() for each in (values, X)]
    assert torch.autograd.gradcheck(lambda v, x: Spmm.apply(small, v, x), given)
    print("torch.autograd.gradcheck: passed")

# %%
# Learning the weights
# --------------------
#
# A graph of 2000 vertices, signals that walked one step over it, and descent with momentum from equal weights.

N, SIGNALS = 2000, 48
graph = sp.random_array((N, N), density=6 / N, format="csr", rng=rng)
truth = rng.random(graph.nnz) + 0.5
signals = rng.standard_normal((N, SIGNALS))
seen = with_values(graph, truth) @ signals
weights, velocity, losses = np.ones(graph.nnz), np.zeros(graph.nnz), []
for _ in range(60):
    error = with_values(graph, weights) @ signals - seen
    losses.append(np.square(error).mean() / 2)
    velocity = 0.7 * velocity - 0.5 / SIGNALS * sp.sddmm(graph, error, signals.T).data.get()
    weights = weights + velocity
print(f"loss: {losses[0]:.3g} at first, {losses[-1]:.3g} after {len(losses)} steps; {graph.nnz:,} weights")
assert np.abs(weights - truth).max() < 0.05

# %%
# The picture
# -----------

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
left.semilogy(losses, color="#0072B2")
left.set(xlabel="step", ylabel="loss", title="descent along sddmm's gradient")
right.plot(truth, weights, ".", markersize=2, color="#D55E00")
right.set(xlabel="weight of an edge", ylabel="as learned", title=f"{graph.nnz:,} edges")
plt.show()
