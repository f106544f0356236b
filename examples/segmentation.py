"""
Image segmentation
==================

Shi and Malik's normalised cuts: pixels are nodes, neighbours of like colour are strongly tied, and the eigenvectors of the
graph tell regions apart. The photograph comes with scikit-learn.
"""

# %%
# The picture as a graph
# ----------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

import clsparse_py as sp

REGIONS = 6

image = load_sample_image("flower.jpg")[:420:6, 100:600:6].astype(np.float64) / 255
height, width = image.shape[:2]
n = height * width
pixel = np.arange(n).reshape(height, width)
colour = image.reshape(n, 3)
rows, columns = [], []
for dy in range(4):
    for dx in range(-3, 4):
        if (dy, dx) > (0, 0):
            y, x = slice(0, height - dy), slice(dy, height)
            left, right = (slice(0, width - dx), slice(dx, width)) if dx >= 0 else (slice(-dx, width), slice(0, width + dx))
            rows.append(pixel[y, left].ravel())
            columns.append(pixel[x, right].ravel())
rows, columns = np.concatenate(rows), np.concatenate(columns)
ties = np.exp(-(((colour[rows] - colour[columns]) ** 2).sum(axis=1)) / 0.02)
half = sp.coo_array((ties, (rows, columns)), shape=(n, n))
graph = (half + half.T).tocsr()
print(f"{n} pixels, {graph.nnz} ties")

# %%
# Eigenvectors
# ------------

degree = graph.sum(axis=1)
scale = sp.diags_array(1 / np.sqrt(degree))
normalised = (scale @ graph @ scale).tocsr()
values, vectors = sp.linalg.eigsh(normalised, k=REGIONS, which="LA", v0=np.sqrt(degree), tol=1e-6)
print("eigenvalues", values.round(5))

# %%
# Regions
# -------

places = vectors / np.sqrt(degree)[:, None]
places /= np.linalg.norm(places, axis=1, keepdims=True)
labels = KMeans(REGIONS, n_init=4, random_state=0).fit_predict(places)
means = np.array([colour[labels == region].mean(axis=0) for region in range(REGIONS)])

# %%
# The picture
# -----------

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
axes[0].imshow(image)
axes[0].set_title("the photograph")
axes[1].imshow(means[labels].reshape(height, width, 3))
for region in range(REGIONS):
    axes[1].contour(labels.reshape(height, width) == region, levels=[0.5], colors="white", linewidths=0.8)
axes[1].set_title(f"{REGIONS} regions, each in its mean colour")
for ax in axes:
    ax.set_axis_off()
plt.show()
