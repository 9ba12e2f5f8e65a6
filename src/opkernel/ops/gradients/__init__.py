"""Gradients of ops whose module lies in `opkernel.ops` itself; each module has the name of its ops' module."""
