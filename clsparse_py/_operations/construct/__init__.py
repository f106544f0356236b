"""Kernels that make matrices from others: Kronecker products, blocks, diagonals, triangles. `functions` calls them."""
