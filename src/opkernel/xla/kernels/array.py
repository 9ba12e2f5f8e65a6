"""Arrays: shapes as tensors, new tensors, and other shapes, orders and parts of the same elements.

Kernels of the CPU that only take views compile as they are. Ops whose outputs have sizes that depend on values compile
where the values are known at compile time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernelConstruction, check_allocation
from opkernel.kernel.function_kernel import forward_input
from opkernel.ops.array import shape as cpu
from opkernel.ops.array import space_blocks
from opkernel.ops.array.broadcast import broadcast_args, broadcast_gradient_args
from opkernel.ops.array.concat import concat_offset
from opkernel.ops.array.diag import diag_part
from opkernel.ops.array.fill import empty, lin_space
from opkernel.ops.array.matrix_diag import (
    matrix_diag,
    matrix_diag_part,
    matrix_diag_part_v2,
    matrix_diag_part_v3,
    matrix_diag_v2,
    matrix_diag_v3,
    matrix_set_diag,
    matrix_set_diag_v2,
    matrix_set_diag_v3,
)
from opkernel.ops.array.pad_and_slice import mirror_pad_grad
from opkernel.ops.array.shape import ensure_shape, expand_dims, reshape, squeeze
from opkernel.ops.array.space_blocks import batch_to_space, batch_to_space_nd
from opkernel.ops.array.split_and_stitch import split, split_v, unpack
from opkernel.ops.array.transpose_reverse import conjugate_transpose, reverse, reverse_v2, transpose
from opkernel.ops.array.unique_and_bounds import list_diff
from opkernel.types import DataType, as_dtype
from opkernel.xla.jax_numpy import lax
from opkernel.xla.register_kernel import register_xla_kernel
from opkernel.xla.traced_array import traced

register_xla_kernel("Shape", metadata=True, factory=True)(cpu.shape)
register_xla_kernel("ShapeN", metadata=True, factory=True)(cpu.shape_n)
register_xla_kernel("BroadcastArgs", compile_time_constants=["s0", "s1"])(broadcast_args)
register_xla_kernel("BroadcastGradientArgs", compile_time_constants=["s0", "s1"])(
    broadcast_gradient_args
)
register_xla_kernel("ConcatOffset", compile_time_constants=["concat_dim", "shape"])(concat_offset)


@register_xla_kernel("Size", metadata=True, factory=True)
def size(*, out_type: DataType) -> Callable[[Any], Any]:
    size_of = cpu.size(out_type=out_type)
    return lambda tensor: np.asarray(size_of(tensor))


@register_xla_kernel("Rank", metadata=True)
def rank(tensor: Any) -> Any:
    return np.asarray(cpu.rank(tensor))


register_xla_kernel("Empty", compile_time_constants=["shape"])(empty)
register_xla_kernel("LinSpace", compile_time_constants=["num"], factory=True)(traced(lin_space))


register_xla_kernel(["Identity", "IdentityN"], resources=True, variants=True)(forward_input)
register_xla_kernel("StopGradient", variants=True)(forward_input)
register_xla_kernel(["PlaceholderWithDefault", "PreventGradient", "Snapshot"])(forward_input)
register_xla_kernel("EnsureShape")(ensure_shape)

register_xla_kernel("Reshape", compile_time_constants=["shape"])(reshape)
register_xla_kernel("ExpandDims", compile_time_constants=["dim"])(expand_dims)
register_xla_kernel("Squeeze", factory=True)(squeeze)
register_xla_kernel("Transpose", compile_time_constants=["perm"])(transpose)
register_xla_kernel("ConjugateTranspose", compile_time_constants=["perm"])(conjugate_transpose)
register_xla_kernel("Reverse", compile_time_constants=["dims"])(reverse)
register_xla_kernel("ReverseV2", compile_time_constants=["axis"])(reverse_v2)
register_xla_kernel("DiagPart")(diag_part)
register_xla_kernel("MirrorPadGrad", compile_time_constants=["paddings"], factory=True)(
    traced(mirror_pad_grad)
)

register_xla_kernel("Split", compile_time_constants=["split_dim"], factory=True)(split)
register_xla_kernel("SplitV", compile_time_constants=["size_splits", "split_dim"])(split_v)
register_xla_kernel("Unpack", factory=True)(unpack)

register_xla_kernel("BatchToSpaceND", compile_time_constants=["block_shape", "crops"])(
    batch_to_space_nd
)
register_xla_kernel("BatchToSpace", compile_time_constants=["crops"])(batch_to_space)

_Move = Callable[[Any], Any]


@register_xla_kernel("SpaceToDepth", factory=True)
def space_to_depth(*, block_size: int, data_format: str) -> _Move:
    return _on_images(partial(space_blocks.space_to_depth, block_size=block_size), data_format)


@register_xla_kernel("DepthToSpace", factory=True)
def depth_to_space(*, block_size: int, data_format: str) -> _Move:
    return _on_images(partial(space_blocks.depth_to_space, block_size=block_size), data_format)


def _on_images(move: _Move, data_format: str) -> _Move:
    """What a function of images with the depth last is for images of a data format."""
    if data_format == "NHWC":
        return move
    if data_format != "NCHW":
        raise InvalidArgumentError(f"XLA does not compile images of the data format {data_format}")
    return lambda images: move(images.transpose((0, 2, 3, 1))).transpose((0, 3, 1, 2))


@register_xla_kernel("Bitcast", factory=True)
def bitcast(*, T: DataType, type: DataType) -> _Move:
    def read(tensor: Any) -> Any:
        count = max(type.size // T.size, 1)
        if count > 1 and (tensor.ndim == 0 or tensor.shape[-1] != count):
            raise InvalidArgumentError(
                f"Cannot bitcast from {int(T)} to {int(type)}: the last dimension of "
                f"{list(tensor.shape)} is not {count}"
            )
        if T is type:
            return tensor
        if not (T.is_complex or type.is_complex):
            return lax().bitcast_convert_type(tensor, type.numpy_dtype)
        shape = tensor.shape if count == 1 else tensor.shape[:-1]
        rest = (T.size // type.size,) if T.size > type.size else ()
        return _from_bytes(_bytes(tensor, T), type, (*shape, *rest))

    return read


def _bytes(tensor: Any, dtype: DataType) -> Any:
    """The bytes of all elements."""
    if dtype.is_complex:
        tensor = lax().concatenate([tensor.real[..., None], tensor.imag[..., None]], tensor.ndim)
    return lax().bitcast_convert_type(tensor, "uint8").reshape(-1)


def _from_bytes(values: Any, dtype: DataType, shape: tuple[int, ...]) -> Any:
    if not dtype.is_complex:
        values = values.reshape((*shape, dtype.size))
        return lax().bitcast_convert_type(values, dtype.numpy_dtype)
    parts = values.reshape((*shape, 2, dtype.size // 2))
    parts = lax().bitcast_convert_type(parts, f"float{dtype.size * 4}")
    return lax().complex(parts[..., 0], parts[..., 1])


@register_xla_kernel("Diag")
def diag(diagonal: Any, *, xp: Any) -> Any:
    if diagonal.ndim < 1:
        raise InvalidArgumentError("Input must be at least rank 1, got 0")
    shape = check_allocation(diagonal.shape * 2, as_dtype(diagonal.dtype))
    return xp.diag(diagonal.reshape(-1)).reshape(shape)


register_xla_kernel("MatrixDiag")(matrix_diag)
register_xla_kernel("MatrixDiagPart")(matrix_diag_part)
register_xla_kernel("MatrixSetDiag")(matrix_set_diag)
for _op, _kernel, _constants in (
    ("MatrixDiagV2", matrix_diag_v2, ["k", "num_rows", "num_cols", "padding_value"]),
    ("MatrixDiagV3", matrix_diag_v3, ["k", "num_rows", "num_cols", "padding_value"]),
    ("MatrixDiagPartV2", matrix_diag_part_v2, ["k", "padding_value"]),
    ("MatrixDiagPartV3", matrix_diag_part_v3, ["k", "padding_value"]),
    ("MatrixSetDiagV2", matrix_set_diag_v2, ["k"]),
    ("MatrixSetDiagV3", matrix_set_diag_v3, ["k"]),
):
    register_xla_kernel(_op, compile_time_constants=_constants)(_kernel)


register_xla_kernel("ListDiff", compile_time_constants=["x", "y"])(list_diff)


def _refused(*, construction: OpKernelConstruction) -> Callable[..., Any]:
    """Operations on constants are computed before they reach a kernel."""
    node = construction.node_def
    raise UnimplementedError(
        f"XLA cannot compile {node.op} (node {node.name!r}): the size of its output depends on the values of its "
        "inputs, which are known only when the program runs"
    )


register_xla_kernel(["Unique", "Where"], factory=True)(_refused)
register_xla_kernel("UniqueV2", compile_time_constants=["axis"], factory=True)(_refused)
