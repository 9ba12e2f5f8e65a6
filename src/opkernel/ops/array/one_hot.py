"""OneHot.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/one_hot_op.cc.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.kernel_types import ALL, INDEX
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def one_hot_shape(c: InferenceContext) -> None:
    """The shape of `indices` with a dimension of size `depth` at `axis`."""
    axis: int = c.get_attr("axis")
    if axis < -1:
        raise InvalidArgumentError("axis must be >= -1")
    depth = c.make_dim_for_scalar_input(1)
    indices = c.input(0)
    if indices.dims is None:
        c.set_output(0, c.unknown_shape())
        return
    rank = len(indices.dims) + 1
    at = (axis + rank) % rank
    front, back = c.subshape(indices, 0, at), c.subshape(indices, at)
    c.set_output(0, c.concatenate(c.concatenate(front, c.vector(depth)), back))


ONE_HOT = register_op(
    "OneHot",
    inputs=["indices: TI", "depth: int32", "on_value: T", "off_value: T"],
    outputs=["output: T"],
    attrs=["axis: int = -1", "T: type", "TI: {uint8, int8, int32, int64} = DT_INT64"],
    shape_fn=one_hot_shape,
    doc="""`off_value` everywhere but at the places along `axis` that `indices` name: `on_value`.

    The dimension `axis` is new and of size `depth`; -1 makes it the last.""",
    traits="cost=linear",
)


@register_kernel(
    ONE_HOT,
    types={"T": ALL, "TI": (DataType.DT_UINT8, DataType.DT_INT8, *INDEX)},
    host_memory=["depth"],
    factory=True,
)
def one_hot(*, axis: int, T: DataType, xp: Any) -> Callable[[Any, Any, Any, Any], Any]:
    def encoded(indices: Any, depth: Any, on_value: Any, off_value: Any) -> Any:
        rank = indices.ndim
        if not -1 <= axis <= rank:
            raise InvalidArgumentError(
                f"Expected axis to be -1 or between [0, {rank}].  But received: {axis}"
            )
        scalars = {"depth": depth, "on_value": on_value, "off_value": off_value}
        for name, value in scalars.items():
            require_scalar(value, f"{name} must be a scalar, but got: {{}}")
        size = depth.item()
        if size < 0:
            raise InvalidArgumentError(f"depth must be non-negative, got: {size}")
        at = rank if axis == -1 else axis
        shape = check_allocation((*indices.shape[:at], size, *indices.shape[at:]), T)
        if xp is np:
            return _filled(indices, shape, at, (on_value, off_value))
        places = xp.arange(size).reshape((size, *[1] * (rank - at)))
        return xp.where(xp.expand_dims(indices, at) == places, on_value, off_value)

    return encoded


def _filled(indices: Any, shape: tuple[int, ...], at: int, values: tuple[Any, Any]) -> Any:
    """The output, by setting only the elements that are on; indices out of range set nothing."""
    on_value, off_value = values
    output = np.empty(shape, on_value.dtype)
    output[...] = off_value
    blocks = output.reshape((math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])))
    places = indices.reshape((blocks.shape[0], blocks.shape[2]))
    before, after = np.nonzero((places >= 0) & (places < shape[at]))
    blocks[before, places[before, after], after] = on_value
    return output
