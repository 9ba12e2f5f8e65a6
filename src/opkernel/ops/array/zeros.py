"""Tensors of zeros and ones.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/constant_op.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.errors import InternalError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.kernel_types import POD
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, OpaqueVariant, ResourceHandle

_ZEROS_OF_OBJECTS: dict[DataType, Callable[[], object]] = {
    DataType.DT_STRING: bytes,
    DataType.DT_RESOURCE: ResourceHandle,
    DataType.DT_VARIANT: OpaqueVariant,
}


_ONES_TYPES = (
    "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, uint64, "
    "complex64, complex128, bool}"
)


def zeros(shape: Sequence[int], dtype: DataType) -> np.ndarray[Any, Any]:
    """An array of zeros; of empty strings or handles for the types that have no zero."""
    array = np.zeros(shape, dtype.numpy_dtype)
    if dtype in _ZEROS_OF_OBJECTS:
        array.fill(_ZEROS_OF_OBJECTS[dtype]())
    return array


ZEROS_LIKE = register_op(
    "ZerosLike",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=["T: type"],
    shape_fn=unchanged_shape,
    traits="value_rule=zeros_like cost=linear int32_on_host function_gradient=none",
    doc="Zeros of the shape and type of `x`.",
)

ONES_LIKE = register_op(
    "OnesLike",
    inputs=["x: T"],
    outputs=["y: T"],
    attrs=[_ONES_TYPES],
    shape_fn=unchanged_shape,
    traits="value_rule=ones_like cost=linear int32_on_host function_gradient=none",
    doc="Ones of the shape and type of `x`.",
)


@register_kernel(ZEROS_LIKE, device="CPU", types={"T": POD})
def zeros_like(x: Any, *, xp: Any) -> Any:
    return xp.zeros_like(x)


@register_kernel(ZEROS_LIKE, device="CPU", types={"T": DataType.DT_STRING})
def empty_strings_like(x: Any) -> Any:
    return zeros(x.shape, DataType.DT_STRING)


@register_kernel(ZEROS_LIKE, device="CPU", types={"T": DataType.DT_VARIANT})
def variant_zeros_like(x: Any) -> Any:
    """Variant types that have a zero say so by a method `zeros_like`."""
    output = np.empty(x.shape, object)
    output.reshape(-1)[:] = [_variant_zero(value) for value in x.reshape(-1)]
    return output


def _variant_zero(value: object) -> object:
    zero = getattr(value, "zeros_like", None)
    if zero is None:
        raise InternalError(
            "No unary variant unary_op function found for op ZEROS_LIKE Variant type_name: "
            f"{getattr(value, 'type_name', type(value).__name__)}"
        )
    return zero()


@register_kernel(ONES_LIKE, device="CPU", types={"T": POD})
def ones_like(x: Any, *, xp: Any) -> Any:
    return xp.ones_like(x)
