"""What modules hold beside variables: resources, such as tables, and files.

Source: TensorFlow python/trackable/resource.py, asset.py.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from opkernel.device.local_device import LocalDevice, eager_device
from opkernel.device.opened_files import copy_file
from opkernel.device.permissions import OWN_CODE, Permissions
from opkernel.errors import DataLossError, OpError
from opkernel.graph.core.default_graph import innermost_default
from opkernel.runtime.calls.eager import execute
from opkernel.state.resource_handle import handle_from_input
from opkernel.types import DataType, PartialTensorShape, ResourceHandle, dtype_of_array

if TYPE_CHECKING:
    from opkernel.opdef import ShapeAndType

PARTS_OF_TABLE = ("-keys", "-values")
"""What follows the key of a table in a checkpoint, for each of its tensors."""


class Resource:
    """A table, or another resource: created and filled at first use.

    Args:
        name: What to call it.
        create: Creates the resource; gives its handle.
        fill: Called once, when there is a handle.
    """

    handle_facts: Sequence[ShapeAndType] | None = None
    captured_spec = DataType.DT_RESOURCE, PartialTensorShape([])

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
        """Its handle: for ops on resources, or where a function is being traced a tensor of that."""
        graph = innermost_default()
        return self.captured_value if graph is None else graph.tensor_of(self)

    def saveables(self) -> Mapping[str, tuple[Any, Any]]:
        """The functions that save and restore its content, by the attributes of checkpoints."""
        return {}

    def saved_parts(self, attribute: str) -> dict[str, Any]:
        """The tensors that a checkpoint has of an attribute, by the ends of their keys."""
        attrs = self.content_types(attribute)
        found = execute("LookupTableExportV2", {"table_handle": self.captured_value}, attrs)
        return dict(zip(PARTS_OF_TABLE, found, strict=True))

    def content_types(self, attribute: str) -> dict[str, DataType]:
        """The types of the keys and values of an attribute, as ops name them."""
        raise NotImplementedError

    def _tracked_children(self) -> dict[str, Any]:
        """The functions and objects that it is made with."""
        return {}

    def _make(self) -> None:
        if self._handle is not None:
            return  # to `_fill`, which asks for it on this thread
        if self._is_creating:
            raise DataLossError(f"{self.name} is needed to create itself")
        try:
            self._is_creating = True
            self._handle = self._create()
            self._is_creating = False
            weakref.finalize(self, _destroy, eager_device(), self._handle)
            self._fill()
            self._is_ready = True
        finally:
            self._is_creating = False
            if not self._is_ready:
                self._handle = None

    def __repr__(self) -> str:
        return f"<opkernel.{type(self).__name__} {self.name!r}>"


def _destroy(device: LocalDevice, handle: Any) -> None:
    """Take the resource out: a collection calls it within any call, so it takes no lock but the manager's."""
    with suppress(OpError):  # it is no handle, or the resource is gone
        if not isinstance(handle, ResourceHandle):
            handle = handle_from_input(handle)
        if handle.device == device.name and not handle.is_ref_counting:
            device.resource_manager.delete_handle(handle)


class Constant:
    """A value that functions share.

    Args:
        name: What to call it.
        value: The value.
    """

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

    def _tracked_children(self) -> dict[str, Any]:
        return {}


class Asset(Constant):
    """A file that functions read: what they take of it is its path. `opkernel.save` copies it.

    Args:
        path: The path of the file.
        permissions: What may be read, where the path comes from a model.
    """

    def __init__(self, path: str | os.PathLike[str], permissions: Permissions = OWN_CODE) -> None:
        self.path = os.path.abspath(os.fspath(path))
        self._permissions = permissions
        value = np.empty((), object)
        value[()] = os.fsencode(self.path)
        super().__init__("asset_path", value)

    def copy_to(self, path: str) -> None:
        """Copy the file.

        Raises:
            PermissionDeniedError: it may not be read.
            OpError: it cannot be copied.
        """
        copy_file(self._permissions, self.path, path)

    def _as_graph_element(self) -> Any:
        """The tensor of the path where a function is being traced; an array elsewhere."""
        graph = innermost_default()
        return self.captured_value if graph is None else graph.tensor_of(self)

    def __repr__(self) -> str:
        return f"<opkernel.Asset {self.path!r}>"
