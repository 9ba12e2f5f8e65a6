"""UnravelIndex: places in a flat tensor as indices along its dimensions.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/unravel_index_op.cc.
"""

from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import allocate
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape, as_dtype


def unravel_index_shape(c: InferenceContext) -> None:
    """A row for each dimension: a scalar for a scalar index, else as many as there are indices."""
    indices, dims = c.input(0), c.with_rank(c.input(1), 1)
    if not c.rank_known(indices):
        c.set_output(0, c.unknown_shape())
    elif c.rank(indices) == 0:
        c.set_output(0, c.vector(c.dim(dims, 0)))
    else:
        c.set_output(0, c.matrix(c.dim(dims, 0), c.num_elements(indices)))


UNRAVEL_INDEX = register_op(
    "UnravelIndex",
    inputs=["indices: Tidx", "dims: Tidx"],
    outputs=["output: Tidx"],
    attrs=["Tidx: {int32, int64} = DT_INT32"],
    shape_fn=unravel_index_shape,
    doc="For each of the `indices` into the elements of a tensor of shape `dims` its coordinates.",
)


_AT_ONCE = 1 << 18
"""So many coordinates are computed at once."""


@register_kernel(UNRAVEL_INDEX, types={"Tidx": INDEX})
def unravel_index(indices: Any, dims: Any) -> Any:
    _check(indices, dims)
    parts = _strides(dims)
    if (indices >= parts[0]).any():
        raise InvalidArgumentError("index is out of bound as with dims")
    parts = parts.reshape(-1, *(1 for _ in indices.shape))
    output = allocate((dims.size, *indices.shape), as_dtype(dims.dtype))
    step = max(_AT_ONCE // indices.size, 1)
    for start in in_time(range(0, dims.size, step), SLOW):
        some = slice(start, start + step)
        whole, stride = parts[:-1][some], parts[1:][some]
        # Negative indices divide as in C++, towards zero.
        output[some] = (np.fmod(indices, whole) - np.fmod(indices, stride)) // stride
    return output


def _strides(dims: Any) -> Any:
    """How many elements there are, and then in a part of each dimension."""
    limit = np.iinfo(dims.dtype).max
    parts = [1]
    for size in reversed(dims.tolist()):
        parts.append(parts[-1] * size)
        if parts[-1] > limit:
            raise InvalidArgumentError(
                f"Input dims product is causing integer overflow: {dims.tolist()}"
            )
    return np.array(parts[::-1], dims.dtype)


def _check(indices: Any, dims: Any) -> None:
    if indices.ndim > 1:
        raise InvalidArgumentError(
            f'The indices can only be scalar or vector, got "{TensorShape(indices.shape)}"'
        )
    if indices.size == 0:
        raise InvalidArgumentError("received empty tensor indices")
    if dims.ndim != 1:
        raise InvalidArgumentError(f'The indices can only be 1-D, got "{TensorShape(dims.shape)}"')
    for i, size in enumerate(dims.tolist()):
        if size == 0:
            raise InvalidArgumentError(
                f"Input dims cannot contain a dim of zero, but dims contains zero at index {i}"
            )
        if size < 0:
            raise InvalidArgumentError(
                f"Input dims cannot be negative. Got dim = {size} at index {i}"
            )
