"""UnravelIndex: places in a flat tensor as indices along its dimensions.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/unravel_index_op.cc.
"""

import math
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, register_op
from opkernel.ops.kernel_types import INDEX
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape


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


@register_kernel(UNRAVEL_INDEX, device="CPU", types={"Tidx": INDEX})
def unravel_index(indices: Any, dims: Any) -> Any:
    _check(indices, dims)
    sizes = dims.tolist()
    parts = [math.prod(sizes[i:]) for i in range(len(sizes) + 1)]
    if parts[0] > np.iinfo(dims.dtype).max:
        raise InvalidArgumentError(f"Input dims product is causing integer overflow: {sizes}")
    if (indices >= parts[0]).any():
        raise InvalidArgumentError("index is out of bound as with dims")
    # Negative indices divide as in C++, towards zero.
    of_whole = np.reshape([np.fmod(indices, part) for part in parts], (-1, *indices.shape))
    strides = np.reshape(parts[1:], (-1, *(1 for _ in indices.shape)))
    rest = of_whole[1:] if parts[1:] else of_whole[:0]
    return ((of_whole[:-1] - rest) // strides).astype(dims.dtype)


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
