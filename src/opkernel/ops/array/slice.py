"""Slice: a block of a tensor, a view of it.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/slice_op.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import slice_shape
from opkernel.ops.kernel_types import FLOAT8, POD_OR_STRING, QUANTIZED
from opkernel.ops.registration import register_kernel
from opkernel.types import TensorShape

SLICE = register_op(
    "Slice",
    inputs=["input: T", "begin: Index", "size: Index"],
    outputs=["output: T"],
    attrs=["T: type", "Index: {int32, int64}"],
    shape_fn=slice_shape,
    traits="value_rule=slice cost=linear int32_on_host function_gradient=yes",
    doc="The block of `input` that starts at `begin` and has shape `size`; -1 is all that is left.",
)


@register_kernel(
    SLICE,
    device="CPU",
    types={"T": (*POD_OR_STRING, *FLOAT8, *QUANTIZED)},
    host_memory=["begin", "size"],
    kind="view",
)
def slice_of(tensor: Any, begin: Any, size: Any) -> Any:
    rank = tensor.ndim
    if not begin.shape == size.shape == (rank,):
        raise InvalidArgumentError(
            f"Expected begin and size arguments to be 1-D tensors of size {rank}, but got shapes "
            f"{TensorShape(begin.shape)} and {TensorShape(size.shape)} instead."
        )
    index: list[Any] = [...]  # keeps a view of rank 0 an array
    block = zip(begin.tolist(), size.tolist(), tensor.shape, strict=True)
    for i, (start, length, limit) in enumerate(block):
        stop = limit if length == -1 else start + length
        if not 0 <= start <= stop <= limit:
            raise _out_of_bounds(i, (start, stop - start), limit)
        index.append(slice(start, stop))
    return tensor[tuple(index)]


def _out_of_bounds(axis: int, block: Sequence[int], limit: int) -> InvalidArgumentError:
    start, length = block
    if limit == 0:
        return InvalidArgumentError(
            f"Expected begin[{axis}] == 0 (got {start}) and size[{axis}] == 0 (got {length}) when "
            f"input.dim_size({axis}) == 0"
        )
    if not 0 <= start <= limit:
        return InvalidArgumentError(f"Expected begin[{axis}] in [0, {limit}], but got {start}")
    return InvalidArgumentError(f"Expected size[{axis}] in [0, {limit - start}], but got {length}")


@g.register_gradient("Slice")
def slice_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    """The gradient with zeros around it."""
    x, begin, _ = op.inputs
    size = g.nodes.Shape(op.outputs[0], out_type=begin.dtype)
    behind = g.nodes.Sub(g.nodes.Sub(g.nodes.Shape(x, out_type=begin.dtype), size), begin)
    return g.nodes.Pad(grad, g.nodes.Pack([begin, behind], axis=1)), None, None
