"""Devices: which there are, what each can do, and which is the default."""
