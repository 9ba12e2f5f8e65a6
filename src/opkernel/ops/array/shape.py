"""Shapes of tensors as tensors: Shape, ShapeN, Size, Rank.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/shape_ops.h.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, full_type, register_op
from opkernel.opdef.common_shapes import scalar_shape
from opkernel.opdef.full_type import FullTypeId
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

_OUT_TYPE = "out_type: {int32, int64} = DT_INT32"


def shape_shape(c: InferenceContext) -> None:
    """Each output is a vector as long as the rank of its input."""
    for i in range(c.num_inputs()):
        rank = c.rank(c.input(i))
        c.set_output(i, c.vector(rank))


SHAPE = register_op(
    "Shape",
    inputs=["input: T"],
    outputs=["output: out_type"],
    attrs=["T: type", _OUT_TYPE],
    shape_fn=shape_shape,
    traits="reads_shapes_only value_rule=sizes function_gradient=none",
    type_constructor=full_type.unary(FullTypeId.TFT_SHAPE_TENSOR, "out_type"),
    doc="The shape of `input`, as a vector.",
)

SHAPE_N = register_op(
    "ShapeN",
    inputs=["input: N * T"],
    outputs=["output: N * out_type"],
    attrs=["N: int >= 1", "T: type", _OUT_TYPE],
    shape_fn=shape_shape,
    traits="reads_shapes_only value_rule=sizes",
    doc="The shape of each tensor of `input`, as a vector.",
)

SIZE = register_op(
    "Size",
    inputs=["input: T"],
    outputs=["output: out_type"],
    attrs=["T: type", _OUT_TYPE],
    shape_fn=scalar_shape,
    traits="reads_shapes_only value_rule=count function_gradient=none",
    doc="The number of elements of `input`.",
)

RANK = register_op(
    "Rank",
    inputs=["input: T"],
    outputs=["output: int32"],
    attrs=["T: type"],
    shape_fn=scalar_shape,
    traits="reads_shapes_only value_rule=rank function_gradient=none",
    doc="The number of dimensions of `input`.",
)


@register_kernel(SHAPE, types={"out_type": INDEX}, host_memory=["output"], factory=True)
def shape(*, out_type: DataType) -> Callable[[Any], Any]:
    dtype = out_type.numpy_dtype

    def shape_of(tensor: Any) -> Any:
        try:
            return np.array(tensor.shape, dtype)
        except OverflowError:
            raise _too_large(tensor.shape) from None

    return shape_of


def _too_large(shape: tuple[int, ...]) -> InvalidArgumentError:
    index, size = max(enumerate(shape), key=lambda item: item[1])
    return InvalidArgumentError(f"Shape output type is 32-bit  but dim {index} is {size}")


@register_kernel(SHAPE_N, types={"out_type": INDEX}, host_memory=["output"], factory=True)
def shape_n(*, out_type: DataType) -> Callable[[list[Any]], list[Any]]:
    shape_of = shape(out_type=out_type)
    return lambda tensors: [shape_of(tensor) for tensor in tensors]


@register_kernel(SIZE, types={"out_type": INDEX}, host_memory=["output"], factory=True)
def size(*, out_type: DataType) -> Callable[[Any], Any]:
    scalar = out_type.numpy_dtype.type

    def size_of(tensor: Any) -> Any:
        try:
            return scalar(tensor.size)
        except OverflowError:
            raise InvalidArgumentError(
                f"Number of elements was larger than representable by 32-bit output type: "
                f"{tensor.size}"
            ) from None

    return size_of


@register_kernel(RANK, host_memory=["output"])
def rank(tensor: Any) -> Any:
    return np.int32(tensor.ndim)
