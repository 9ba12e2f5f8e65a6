"""ImmutableConst: a constant in a file of its own.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/immutable_constant_op.cc.
"""

import math
import os
from typing import Any

import numpy as np

from opkernel.device.opened_files import open_file
from opkernel.device.permissions import Permissions
from opkernel.errors import InternalError, InvalidArgumentError, UnimplementedError
from opkernel.file_errors import file_errors
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import explicit_shape
from opkernel.opdef.common_shapes.rules import defined_shape
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

IMMUTABLE_CONST = register_op(
    "ImmutableConst",
    outputs=["tensor: dtype"],
    attrs=["dtype: type", "shape: shape", "memory_region_name: string"],
    shape_fn=explicit_shape,
    traits="reads_files file_attr=memory_region_name",
    doc="A tensor whose elements stand in the file `memory_region_name`, as in memory.",
)


@register_kernel(IMMUTABLE_CONST)
class ImmutableConst(OpKernel):
    """Reads its file at the first run; every later step gets the same read-only array."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        self._path = construction.get_attr("memory_region_name")
        shape, self._dtype = construction.get_attr("shape"), self.output_types[0]
        if self._dtype in (DataType.DT_RESOURCE, DataType.DT_VARIANT):
            raise InvalidArgumentError(f"No file holds elements of type {self._dtype.string}")
        self._shape = check_allocation(defined_shape(shape).as_tensor_shape(), self._dtype)
        self._value: Any = None

    def compute(self, ctx: OpKernelContext) -> None:
        """Set the constant as the output.

        Raises:
            InternalError: the file is too short.
            UnimplementedError: the elements are strings.
            OpError: the file may not be read, or cannot.
        """
        ctx.permissions.check_read(self._path)
        if self._value is None:
            self._value = self._read(ctx.permissions)
        ctx.set_output(0, self._value)

    def _read(self, permissions: Permissions) -> Any:
        wanted, path = math.prod(self._shape) * _item_size(self._dtype), self._path
        with file_errors(path), open_file(permissions, path) as file:
            size = os.fstat(file.fileno()).st_size
            data = file.read(wanted)
        if not size:
            raise InvalidArgumentError(f"{path}; the file is empty")
        if self._dtype is DataType.DT_STRING:
            raise UnimplementedError("ImmutableConst reads numbers from files, not strings")
        if len(data) < wanted:
            raise InternalError(
                f"Readonly memory region has wrong length ({size}) when allocating {wanted}: {path}"
            )
        value = np.frombuffer(data, self._dtype.numpy_dtype).reshape(self._shape)
        return value.view(np.uint8) != 0 if self._dtype is DataType.DT_BOOL else value


def _item_size(dtype: DataType) -> int:
    return dtype.numpy_dtype.itemsize
