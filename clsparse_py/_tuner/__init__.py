"""Tuning: operations are measured on a device, and the profile of it is written."""
