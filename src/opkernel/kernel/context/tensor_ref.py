"""TensorRef: a tensor that kernels share in order to change it, with the lock that guards it.

Source: TensorValue with its mutex in TensorFlow core/framework/op_kernel.h.
"""

import threading
from typing import Any

import numpy as np


class TensorRef:
    """The value of a tensor of a reference type, such as `float_ref`.

    Attributes:
        tensor: The array; None before the tensor was first assigned, or after it was deleted.
        mutex: Is to be held while the array is replaced or written to.
        declared_shape: The shape that the tensor has while there is no array.
        version: Which value it is: another one once `replace` was called, or a variable written to.
    """

    __slots__ = ("declared_shape", "mutex", "tensor", "version")

    def __init__(
        self, tensor: Any = None, mutex: Any = None, declared_shape: tuple[int, ...] = ()
    ) -> None:
        self.tensor = tensor
        self.version = 1
        self.mutex = threading.RLock() if mutex is None else mutex
        self.declared_shape = declared_shape

    def replace(self, tensor: Any) -> None:
        """Have it refer to another array, a new version; the lock is to be held."""
        self.tensor = tensor
        self.version += 1

    @property
    def is_initialized(self) -> bool:
        """Whether the tensor was assigned a value."""
        return self.tensor is not None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array, or the declared one."""
        return self.declared_shape if self.tensor is None else np.shape(self.tensor)
