"""OpenCL C that the kernel templates include; shipped as package data, no Python here."""
