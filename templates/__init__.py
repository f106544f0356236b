"""Mako templates of the kernels, one folder an operation; shipped as package data, no Python here."""
