"""The one way to run kernels: transfers, launches, recordings of launches, upgrades."""
