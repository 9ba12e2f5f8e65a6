"""Conv: the convolution of images or volumes, with any number of batch dimensions.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/conv_ops_impl.h (ConvOp).
"""

import math
from collections.abc import Callable

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import register_kernel
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes import conv_shape
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.nn.convolution import (
    check_filter,
    convolution,
    convolve_images,
    convolve_volumes,
)
from opkernel.ops.nn.geometry import Windows, check_length, spatial_attr, windows_from_attrs
from opkernel.ops.nn.windows import Array
from opkernel.types import DataType

__all__ = ["CONV"]

CONV = register_op(
    "Conv",
    inputs=["input: T", "filter: T"],
    outputs=["output: T"],
    attrs=[
        "T: {half, bfloat16, float, double, int32}",
        "strides: list(int)",
        "padding: {'SAME', 'VALID', 'EXPLICIT'}",
        "explicit_paddings: list(int) = []",
        "data_format: {'CHANNELS_FIRST', 'CHANNELS_LAST'} = 'CHANNELS_LAST'",
        "dilations: list(int) = []",
        "batch_dims: int = 1",
        "groups: int = 1",
    ],
    shape_fn=conv_shape,
    doc="The convolution of images or volumes, after `batch_dims` dimensions of them, with a "
    "filter [*spatial, in, out].",
)


@register_kernel(CONV, device="CPU", types={"T": (*FLOATS, DataType.DT_INT32)}, factory=True)
def conv(
    *,
    strides: list[int],
    padding: str,
    explicit_paddings: list[int],
    data_format: str,
    dilations: list[int],
    batch_dims: int,
    groups: int,
) -> Callable[[Array, Array], Array]:
    """Channels last and without groups, as in TensorFlow."""
    int32_attr("batch_dims", batch_dims)
    if int32_attr("groups", groups) != 1:
        raise UnimplementedError("Grouped/Depthwise Convolutions are not supported yet.")
    layout = "NHWC" if data_format == "CHANNELS_LAST" else "NCHW"

    def windows_over(dims: int) -> Windows:
        gaps = dilations or [1] * dims
        check_length("strides", strides, dims)
        check_length("dilations", gaps, dims)
        steps = spatial_attr("strides", strides, layout)
        return windows_from_attrs(
            layout, steps, spatial_attr("dilations", gaps, layout), padding, explicit_paddings
        )

    def convolved(x: Array, filters: Array) -> Array:
        spatial = x.ndim - 1 - batch_dims
        if spatial not in (2, 3) or batch_dims < 0:
            raise InvalidArgumentError(
                f"The input must have 2 or 3 spatial dimensions but got {spatial}, with "
                f"batch_dims = {batch_dims}"
            )
        if filters.ndim != spatial + 2:
            raise InvalidArgumentError(
                f"The filter must be rank {spatial + 2} but got {filters.ndim}"
            )
        windows = windows_over(spatial + 2)
        leading, shape = x.shape[:batch_dims], x.shape[batch_dims:]
        batch = x.reshape(math.prod(leading), *shape)
        channels = batch.shape[windows.data_format.feature_index(batch.ndim)]
        check_filter(filters)
        if channels != filters.shape[-2]:
            raise InvalidArgumentError(
                f"Input depth must be equal to filter depth: {channels} vs {filters.shape[-2]}"
            )
        compute = convolve_images if spatial == 2 else convolve_volumes
        result = convolution(batch, filters, windows, compute)
        return result.reshape(*leading, *result.shape[1:])

    return convolved
