"""The base of Tensor, known to the modules that Tensor is made with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from opkernel.graph.core.tensor import Tensor


class TensorBase:
    """The base of Tensor, and of nothing else."""

    __slots__ = ()


def is_tensor(value: Any) -> TypeGuard[Tensor]:
    """Whether a value is a tensor of a graph."""
    return isinstance(value, TensorBase)
