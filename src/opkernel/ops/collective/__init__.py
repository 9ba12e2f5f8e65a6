"""Computations of groups of devices."""
