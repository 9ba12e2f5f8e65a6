"""Other shapes, orders and parts of the same elements. Kernels of the CPU that only take views compile as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel.function_kernel import forward_input
from opkernel.ops.array import space_depth
from opkernel.ops.array.diag import diag_part
from opkernel.ops.array.identity import ensure_shape
from opkernel.ops.array.reshape import expand_dims, reshape, squeeze
from opkernel.ops.array.reverse import reverse, reverse_v2
from opkernel.ops.array.space_batch import batch_to_space, batch_to_space_nd
from opkernel.ops.array.split import split, split_v, unpack
from opkernel.ops.array.transpose import conjugate_transpose, transpose
from opkernel.types import DataType
from opkernel.xla.jax_numpy import lax
from opkernel.xla.register_kernel import register_xla_kernel

register_xla_kernel(["Identity", "IdentityN"], resources=True, variants=True)(forward_input)
register_xla_kernel("StopGradient", variants=True)(forward_input)
register_xla_kernel(["PlaceholderWithDefault", "PreventGradient", "Snapshot"])(forward_input)
register_xla_kernel("EnsureShape", factory=True)(ensure_shape)

register_xla_kernel("Reshape", compile_time_constants=["shape"])(reshape)
register_xla_kernel("ExpandDims", compile_time_constants=["dim"])(expand_dims)
register_xla_kernel("Squeeze", factory=True)(squeeze)
register_xla_kernel("Transpose", compile_time_constants=["perm"])(transpose)
register_xla_kernel("ConjugateTranspose", compile_time_constants=["perm"])(conjugate_transpose)
register_xla_kernel("Reverse", compile_time_constants=["dims"])(reverse)
register_xla_kernel("ReverseV2", compile_time_constants=["axis"])(reverse_v2)
register_xla_kernel("DiagPart")(diag_part)

register_xla_kernel("Split", compile_time_constants=["split_dim"], factory=True)(split)
register_xla_kernel("SplitV", compile_time_constants=["size_splits", "split_dim"], factory=True)(
    split_v
)
register_xla_kernel("Unpack", factory=True)(unpack)

register_xla_kernel("BatchToSpaceND", compile_time_constants=["block_shape", "crops"])(
    batch_to_space_nd
)
register_xla_kernel("BatchToSpace", compile_time_constants=["crops"], factory=True)(batch_to_space)

_Move = Callable[[Any], Any]


@register_xla_kernel("SpaceToDepth", factory=True)
def space_to_depth(*, block_size: int, data_format: str) -> _Move:
    return _on_images(space_depth.space_to_depth(block_size=block_size), data_format)


@register_xla_kernel("DepthToSpace", factory=True)
def depth_to_space(*, block_size: int, data_format: str) -> _Move:
    return _on_images(space_depth.depth_to_space(block_size=block_size), data_format)


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
