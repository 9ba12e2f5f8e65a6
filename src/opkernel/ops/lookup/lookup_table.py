"""LookupInterface: the common part of all tables.

Source: TensorFlow core/framework/lookup_interface.{h,cc}.
"""

from typing import Any, ClassVar

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import ResourceBase
from opkernel.ops.input_checks import require_equal
from opkernel.types import DataType, TensorShape

Shape = tuple[int, ...]


class LookupInterface(ResourceBase):
    """A table of values by key; used from any thread.

    Args:
        key_dtype: The type of the keys.
        value_dtype: The type of the values.
        key_shape: The shape of a key.
        value_shape: The shape of a value.
    """

    is_initializable: ClassVar[bool] = False

    def __init__(
        self,
        key_dtype: DataType,
        value_dtype: DataType,
        key_shape: Shape = (),
        value_shape: Shape = (),
    ) -> None:
        self.key_dtype = key_dtype
        self.value_dtype = value_dtype
        self.key_shape = key_shape
        self.value_shape = value_shape

    def debug_string(self) -> str:
        """The number of keys."""
        return f"A lookup table of size: {self.size}"

    @property
    def size(self) -> int:
        """The number of keys."""
        raise NotImplementedError

    def find(self, keys: Any, default: Any) -> Any:
        """The values of keys [batch..., key...], as [batch..., value...].

        Keys that the table lacks have `default`: one value for all, or one for each key.
        """
        raise NotImplementedError

    def insert(self, keys: Any, values: Any) -> None:
        """Set the values of keys."""
        raise NotImplementedError

    def remove(self, keys: Any) -> None:
        """Forget keys; those that it lacks are passed over."""
        raise NotImplementedError

    def import_values(self, keys: Any, values: Any) -> None:
        """Have these keys and values and no others."""
        raise NotImplementedError

    def export_values(self) -> tuple[Any, Any]:
        """All keys and values."""
        raise NotImplementedError

    def check_find(self, keys: Any, default: Any) -> None:
        """Raise InvalidArgumentError unless the shapes fit."""
        wanted = self._values_shape(keys, self.key_shape, self.value_shape)
        if default.shape not in (self.value_shape, wanted):
            raise InvalidArgumentError(
                f"Expected shape {TensorShape(self.value_shape)} or {TensorShape(wanted)} for "
                f"default value, got {TensorShape(default.shape)}"
            )

    def check_keys(self, keys: Any) -> None:
        """Raise InvalidArgumentError unless the last dimensions are those of a key."""
        rank = len(self.key_shape)
        if keys.ndim < rank or keys.shape[keys.ndim - rank :] != self.key_shape:
            raise InvalidArgumentError(
                f"Input key shape {TensorShape(keys.shape)} must end with the table's key shape "
                f"{TensorShape(self.key_shape)}"
            )

    def check_insert(self, keys: Any, values: Any) -> None:
        """Raise InvalidArgumentError unless there is a value for each key."""
        self._check_values(keys, values, self.key_shape, self.value_shape)

    def check_import(self, keys: Any, values: Any) -> None:
        """`check_insert` for `import_values`."""
        self.check_insert(keys, values)

    def _values_shape(self, keys: Any, key_shape: Shape, value_shape: Shape) -> Shape:
        """The shape of the values of keys."""
        self.check_keys(keys)
        batch: Shape = keys.shape[: keys.ndim - len(key_shape)]
        return batch + value_shape

    def _check_values(self, keys: Any, values: Any, key_shape: Shape, value_shape: Shape) -> None:
        wanted = self._values_shape(keys, key_shape, value_shape)
        require_equal(wanted, values.shape, "Expected shape {} for value, got {}")


def flat_keys(keys: Any) -> list[Any]:
    """Scalar keys as Python values."""
    flat: list[Any] = keys.reshape(-1).tolist()
    return flat


def array_of_keys(keys: list[Any], dtype: DataType) -> Any:
    """Python values as a vector."""
    array = np.empty(len(keys), dtype.numpy_dtype)
    array[:] = keys
    return array
