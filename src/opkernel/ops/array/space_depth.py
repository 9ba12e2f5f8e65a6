"""Blocks of space moved into the depth and back: SpaceToDepth, DepthToSpace.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/spacetodepth_op.cc, depthtospace_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import make_shape_from_format
from opkernel.opdef.shapes.inference_context import ShapeFn
from opkernel.opdef.shapes.shape_handles import DimensionHandle
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.ops.input_checks import require_rank
from opkernel.ops.kernel_types import ALL
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType


def space_to_depth_shape(c: InferenceContext) -> None:
    """Height and width divided by the block, the depth times its square."""
    layout, block, dims = _image_dims(c)
    space = [c.divide(dims[i], block, evenly_divisible=True) for i in _space(layout)]
    depth = c.multiply(dims[layout.index("C")], block * block)
    c.set_output(0, make_shape_from_format(c, layout, dims[0], space, depth))


def depth_to_space_shape(c: InferenceContext) -> None:
    """Height and width times the block, the depth divided by its square."""
    layout, block, dims = _image_dims(c)
    space = [c.multiply(dims[i], block) for i in _space(layout)]
    depth = c.divide(dims[layout.index("C")], block * block, evenly_divisible=True)
    c.set_output(0, make_shape_from_format(c, layout, dims[0], space, depth))


def _image_dims(c: InferenceContext) -> tuple[TensorFormat, int, list[DimensionHandle]]:
    """The layout, the size of the blocks, and the dimensions of the input."""
    layout = TensorFormat.from_string(c.get_attr("data_format"))
    tensor = c.with_rank(c.input(0), layout.num_dims(2))
    return layout, c.get_attr("block_size"), list(tensor.dims or ())


def _space(layout: TensorFormat) -> list[int]:
    return [layout.spatial_index(i) for i in (0, 1)]


def _declare(name: str, shape_fn: ShapeFn, doc: str) -> OpHandle:
    return register_op(
        name,
        inputs=["input: T"],
        outputs=["output: T"],
        attrs=[
            "T: type",
            "block_size: int >= 2",
            "data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'",
        ],
        shape_fn=shape_fn,
        traits="cost=linear mostly_copies",
        doc=doc,
    )


SPACE_TO_DEPTH = _declare(
    "SpaceToDepth",
    space_to_depth_shape,
    "Images `input` with the places within each block moved into the depth.",
)
DEPTH_TO_SPACE = _declare(
    "DepthToSpace",
    depth_to_space_shape,
    "Images `input` with parts of the depth moved into blocks of space: undoes SpaceToDepth.",
)


@register_kernel(
    SPACE_TO_DEPTH,
    types={"T": (*ALL, DataType.DT_QINT8)},
    attrs={"data_format": "NHWC"},
    kind="view",
    factory=True,
)
def space_to_depth(*, block_size: int) -> Callable[[Any], Any]:
    def move(tensor: Any) -> Any:
        batch, height, width, depth = _image_shape(tensor)
        if height % block_size or width % block_size:
            raise InvalidArgumentError(
                f"Image width {width} and height {height} should be divisible by block_size: "
                f"{block_size}"
            )
        rows, columns = height // block_size, width // block_size
        blocks = tensor.reshape((batch, rows, block_size, columns, block_size, depth))
        moved = blocks.transpose((0, 1, 3, 2, 4, 5))
        return moved.reshape((batch, rows, columns, block_size * block_size * depth))

    return move


@register_kernel(
    DEPTH_TO_SPACE, types={"T": ALL}, attrs={"data_format": "NHWC"}, kind="view", factory=True
)
def depth_to_space(*, block_size: int) -> Callable[[Any], Any]:
    def move(tensor: Any) -> Any:
        batch, rows, columns, depth = _image_shape(tensor)
        square = block_size * block_size
        if depth % square:
            raise InvalidArgumentError(
                f"Input depth dimension {depth} should be divisible by: {square}"
            )
        inner = depth // square
        blocks = tensor.reshape((batch, rows, columns, block_size, block_size, inner))
        moved = blocks.transpose((0, 1, 3, 2, 4, 5))
        return moved.reshape((batch, rows * block_size, columns * block_size, inner))

    return move


def _image_shape(tensor: Any) -> tuple[int, ...]:
    require_rank(tensor, 4, f"Input rank should be: 4 instead of: {tensor.ndim}")
    shape: tuple[int, ...] = tensor.shape
    return shape


@g.register_gradient("SpaceToDepth")
def space_to_depth_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.DepthToSpace(grad, **g.attrs_of(op, "block_size", "data_format"))


@g.register_gradient("DepthToSpace")
def depth_to_space_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    return g.nodes.SpaceToDepth(grad, **g.attrs_of(op, "block_size", "data_format"))
