"""XlaArgument: what is known of an argument of a program before it is compiled.

Source: TensorFlow compiler/tf2xla/xla_argument.h.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

import numpy as np

from opkernel.records import dataclass
from opkernel.types import DataType, as_dtype

__all__ = ["XlaArgument"]


@dataclass(frozen=True, eq=False)
class XlaArgument:
    """An argument: a parameter of the program, a constant, or a resource.

    Attributes:
        kind: `parameter`, `constant` or `resource`.
        dtype: The type of the tensor; of a resource, that of its value.
        shape: The shape of the tensor or of the resource's value.
        constant: The value of a constant.
        name: A name for messages.
        is_initialized: Whether a resource has a value.
    """

    kind: Literal["parameter", "constant", "resource"]
    dtype: DataType
    shape: tuple[int, ...] = ()
    constant: Any = None
    name: str = ""
    is_initialized: bool = True

    @classmethod
    def parameter(cls, dtype: DataType, shape: tuple[int, ...], name: str = "") -> XlaArgument:
        """A tensor that is known when the program runs."""
        return cls("parameter", dtype, tuple(shape), name=name)

    @classmethod
    def of_constant(cls, value: Any, name: str = "") -> XlaArgument:
        """A tensor that is known now."""
        array = np.asarray(value)
        return cls("constant", as_dtype(array.dtype), array.shape, array, name)

    @classmethod
    def variable(
        cls,
        dtype: DataType,
        shape: tuple[int, ...] = (),
        name: str = "",
        *,
        is_initialized: bool = True,
    ) -> XlaArgument:
        """A variable, whose value is known when the program runs."""
        return cls("resource", dtype, tuple(shape), name=name, is_initialized=is_initialized)

    @property
    def key(self) -> Hashable:
        """Equal for arguments that one program serves."""
        value = (
            None if self.constant is None else (self.constant.tobytes(), str(self.constant.dtype))
        )
        return self.kind, self.dtype, self.shape, value, self.is_initialized
