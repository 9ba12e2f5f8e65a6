"""JAX, which XLA is reached through. No other room imports it; this module alone does, at its first use.

JAX keeps 64-bit types only where it is told to, thread by thread: all work stands inside `with wide_types():`.
The user's own settings of JAX stay as they are.
"""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

from opkernel.libraries import library

NEED = "Compiling with XLA"
"""The subject of the error where the library is missing."""


@functools.cache
def jax(module: str = "jax") -> ModuleType:
    """A module of JAX.

    Raises:
        UnimplementedError: JAX is not installed.
    """
    return library(module, NEED)


def jnp() -> ModuleType:
    """`jax.numpy`, the array namespace of what is compiled."""
    return jax("jax.numpy")


def lax() -> ModuleType:
    """`jax.lax`."""
    return jax("jax.lax")


def wide_types() -> AbstractContextManager[Any]:
    """The scope in which this thread's JAX keeps 64-bit types."""
    scope: AbstractContextManager[Any] = jax().enable_x64(True)
    return scope
