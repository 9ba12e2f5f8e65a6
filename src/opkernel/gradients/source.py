"""The name of the call of `gradients` that nodes are made for.

TensorArrays have an array of gradients for each such call, told apart by this name.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING

from opkernel.interrupts import setting

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

_source: ContextVar[str] = ContextVar("gradient_source", default="gradients")


def as_source(scope: str) -> AbstractContextManager[None]:
    """Let the nodes made inside be those of the name scope of a call."""
    return setting({_source: scope.rstrip("/")})


def gradient_source() -> str:
    """The name of the innermost call."""
    return _source.get()
