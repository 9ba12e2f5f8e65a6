"""What functions of a SavedModel take from outside besides variables: tables, constants, paths of assets.

Source: TensorFlow python/trackable/resource.py, asset.py, python/saved_model/load.py.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.errors import DataLossError, OpError
from opkernel.runtime.calls.eager import execute
from opkernel.types import DataType, PartialTensorShape, dtype_of_array

if TYPE_CHECKING:
    from opkernel.opdef import ShapeAndType

__all__ = ["Again", "LoadedConstant", "LoadedResource"]


class LoadedResource:
    """A table, or another resource: created and filled by the functions of its model at first use.

    Args:
        name: What to call it.
        create: Creates the resource; gives its handle.
        fill: Called once with this object, when it has a handle.
    """

    handle_facts: Sequence[ShapeAndType] | None = None

    def __init__(self, name: str, create: Callable[[], Any], fill: Callable[[], object]) -> None:
        self.name = name
        self._create, self._fill = create, fill
        self._lock = threading.RLock()
        self._handle: Any = None
        self._is_ready = False
        self._is_creating = False

    @property
    def captured_value(self) -> Any:
        """Its handle; the resource exists and is filled."""
        if not self._is_ready:
            with self._lock:
                self._make()
        return self._handle

    @property
    def is_ready(self) -> bool:
        """Whether it was used."""
        return self._is_ready

    @property
    def handle(self) -> Any:
        """Its handle, for ops on resources."""
        return self.captured_value

    captured_spec = DataType.DT_RESOURCE, PartialTensorShape([])

    def _make(self) -> None:
        if self._handle is None:
            if self._is_creating:
                raise DataLossError(f"{self.name} is needed to create itself")
            self._is_creating = True
            try:
                self._handle = self._create()
            finally:
                self._is_creating = False
            weakref.finalize(self, _destroy, self._handle)
            try:
                self._fill()  # takes the handle of this object, on this thread
            except BaseException:
                self._handle = None
                raise
            self._is_ready = True

    def __repr__(self) -> str:
        return f"<opkernel.LoadedResource {self.name!r}>"


def _destroy(handle: Any) -> None:
    with suppress(OpError):
        execute("DestroyResourceOp", {"resource": handle}, {"ignore_lookup_error": True})


class LoadedConstant:
    """A constant that functions share."""

    handle_facts: Sequence[ShapeAndType] | None = None

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.captured_value = value

    @property
    def captured_spec(self) -> tuple[DataType, PartialTensorShape]:
        """Its type and shape."""
        dtype = dtype_of_array(self.captured_value)
        assert dtype is not None
        return dtype, PartialTensorShape(self.captured_value.shape)

    def numpy(self) -> Any:
        """Its value."""
        return self.captured_value.copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Its value, for NumPy."""
        return np.asarray(self.captured_value, dtype)

    def __repr__(self) -> str:
        return f"<opkernel.LoadedConstant {self.name!r}>"


class Again:
    """The same value, where a function takes it twice."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self.name = value.name
        self.captured_spec = value.captured_spec
        self.handle_facts = value.handle_facts

    @property
    def captured_value(self) -> Any:
        """The value."""
        return self._value.captured_value
