"""Arrays, products and solvers over many devices: rows divided among ranks."""
