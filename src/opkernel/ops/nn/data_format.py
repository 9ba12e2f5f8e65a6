"""Dimensions and vectors of sizes carried over from one layout of images to another.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/data_format_ops.cc.
"""

from collections.abc import Callable
from typing import Any

from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import unchanged_shape
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.registration import INDEX, register_kernel


def _declare(name: str, doc: str) -> OpHandle:
    return register_op(
        f"{name}(x: T) -> y: T",
        attrs=[
            "T: {int32, int64} = DT_INT32",
            "src_format: string = 'NHWC'",
            "dst_format: string = 'NCHW'",
        ],
        shape_fn=unchanged_shape,
        doc=doc,
    )


DATA_FORMAT_DIM_MAP = _declare(
    "DataFormatDimMap",
    "Where the dimension `x` of `src_format` is in `dst_format`; negative ones count from the end.",
)
DATA_FORMAT_VEC_PERMUTE = _declare(
    "DataFormatVecPermute",
    """`x`, one row for each dimension of `src_format`, in the order of `dst_format`.

    x: [dimensions] or [dimensions, 2]; of all dimensions, or of the spatial ones.
    """,
)


def _check_formats(source: str, destination: str) -> None:
    """Raise InvalidArgumentError unless both have the same 4 or 5 letters, each once."""
    for name, short, text in (("Source", "src", source), ("Destination", "dst", destination)):
        message = f"{name} format must be of length 4 or 5, received {short}_format = {text}"
        require(len(text) in (4, 5), message)
    is_permutation = sorted(source) == sorted(destination) and len(set(source)) == len(source)
    message = "Destination and source format must determine a permutation"
    require(is_permutation, f"{message}, got {source} and {destination}")


def data_format_dim_map(*, src_format: str, dst_format: str, xp: Any) -> Callable[[Any], Any]:
    """Dimensions that do not exist are taken as TensorFlow does, which does not check them."""
    _check_formats(src_format, dst_format)
    count = len(src_format)

    def kernel(x: Any) -> Any:
        # The remainder of C, negative for negative numbers, also for sums that are too large; and
        # all of these mean the last letter.
        index = xp.fmod(xp.add(x, xp.full_like(x, count)), count)
        index = xp.where(index < 0, count - 1, index)
        table = xp.asarray([dst_format.index(letter) for letter in src_format], dtype=x.dtype)
        return xp.take(table, index)

    return kernel


def data_format_vec_permute(*, src_format: str, dst_format: str, xp: Any) -> Callable[[Any], Any]:
    _check_formats(src_format, dst_format)
    count = len(src_format)

    def kernel(x: Any) -> Any:
        _check_vector(x, count)
        source, destination = src_format, dst_format
        if x.shape[0] == count - 2:
            source, destination = (_spatial(text, count - 2) for text in (source, destination))
        return xp.take(x, xp.asarray([source.index(letter) for letter in destination]), axis=0)

    return kernel


def _spatial(data_format: str, spatial_dims: int) -> str:
    """The letters of the spatial dimensions."""
    letters = "HW" if spatial_dims == 2 else "DHW"
    spatial = "".join(letter for letter in data_format if letter in letters)
    wanted = f"{', '.join(letters)} for {spatial_dims} spatial dimensions"
    message = f"Format specifier must contain {wanted}, got {data_format}"
    require_equal(len(spatial), spatial_dims, message)
    return spatial


def _check_vector(x: Any, count: int) -> None:
    shape = list(x.shape)
    require(x.ndim in (1, 2), f"input must be a vector or 2D tensor, but got shape {shape}")
    message = f"First dimension of the input must be of size {count - 2} or {count}"
    require(x.shape[0] in (count, count - 2), f"{message}, but got shape {shape}")
    message = f"Second dimension of 2D input must be of size 2, but got shape {shape}"
    require(x.ndim == 1 or x.shape[1] == 2, message)


for _label in ("", "host"):
    for _op, _make in (
        (DATA_FORMAT_DIM_MAP, data_format_dim_map),
        (DATA_FORMAT_VEC_PERMUTE, data_format_vec_permute),
    ):
        register_kernel(_op, types={"T": INDEX}, label=_label, factory=True)(_make)
