"""The kernels of convolutions, around whoever computes them: attrs and shapes are checked here.

The computation is in channels-last layout; `also_channels_first` turns the other one into it.

Source: TensorFlow core/kernels/conv_ops_impl.h, conv_ops_3d.cc, conv_ops_fused_impl.h,
conv_ops_using_gemm.cc, depthwise_conv_op.cc.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.kernel import OpKernelConstruction, allocate, from_attrs
from opkernel.kernel.node_properties import is_set
from opkernel.opdef.common_shapes.windows import Padding
from opkernel.opdef.core.attr_value import IN_MUST_COMPILE
from opkernel.ops.array.pad_and_slice import mirror_pad
from opkernel.ops.input_checks import int32_attr, require, require_equal
from opkernel.ops.nn.channels_first import ONEDNN_TYPES, also_channels_first
from opkernel.ops.nn.conv.reference import Algorithms
from opkernel.ops.nn.fused_matmul import Epilogue, Fusion, conv2d_fusion, depthwise_fusion
from opkernel.ops.nn.windows import (
    Geometry,
    Windows,
    check_length,
    check_rank,
    spatial_attr,
    windows_from_attrs,
)
from opkernel.ops.registration import NARROW_FLOATS, WIDE_FLOATS
from opkernel.records import dataclass, replace
from opkernel.types import Array, DataType, as_dtype


def conv2d_windows(
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
    refusal: type[OpError] = UnimplementedError,
    rank: int = 4,
) -> Windows:
    """The windows of the attrs of Conv2D; or over other inputs than images, of `rank` dimensions.

    Raises:
        refusal: windows would step over the batch or the channels.
        InvalidArgumentError: an attr is not one of windows over such inputs.
    """
    check_length("strides", strides, rank)
    check_length("dilations", dilations, rank)
    steps = spatial_attr("strides", strides, data_format, refusal)
    gaps = spatial_attr("dilations", dilations, data_format, refusal)
    return windows_from_attrs(data_format, steps, gaps, padding, explicit_paddings)


conv3d_windows = partial(conv2d_windows, explicit_paddings=(), refusal=InvalidArgumentError, rank=5)
"""The windows of the attrs of Conv3D."""


def windows_of_conv(
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> Callable[[int], Windows]:
    """The windows that the attrs of Conv describe, for a number of spatial dimensions."""
    layout = "NHWC" if data_format == "CHANNELS_LAST" else "NCHW"

    def windows_for(num_spatial: int) -> Windows:
        rank = num_spatial + 2
        steps = strides, dilations or [1] * rank
        paddings = padding, explicit_paddings
        return conv2d_windows(*steps, *paddings, layout, InvalidArgumentError, rank)

    return windows_for


def check_num_spatial(rank: int, batch_dims: int) -> int:
    """The number of spatial dimensions of an input of Conv."""
    spatial = rank - 1 - batch_dims
    message = f"The input must have 2 or 3 spatial dimensions but got {spatial}"
    require(spatial in (2, 3) and batch_dims >= 0, f"{message}, with batch_dims = {batch_dims}")
    return spatial


def depthwise_windows(
    T: DataType,
    strides: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> Windows:
    """The windows without dilations, which TensorFlow leaves out in gradients.

    Raises:
        InvalidArgumentError: the strides are not equal, which only oneDNN takes, or an attr is not one of such windows.
    """
    check_length("strides", strides, 4)
    steps = spatial_attr("strides", strides, data_format)
    message = "Current implementation only supports equal length strides in the row and column"
    is_equal = T in ONEDNN_TYPES or steps[0] == steps[1]
    require(is_equal, f"{message} dimensions, got {list(steps)}")
    return windows_from_attrs(data_format, steps, (1, 1), padding, explicit_paddings)


def dilated_depthwise_windows(
    T: DataType,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> Windows:
    """The windows of DepthwiseConv2dNative, whose dilations only oneDNN takes.

    Raises:
        UnimplementedError: there are dilations, which are computed in some types only.
        InvalidArgumentError: as `depthwise_windows`.
    """
    windows = depthwise_windows(T, strides, padding, explicit_paddings, data_format)
    if all(int32_attr("dilations", dilation) == 1 for dilation in dilations):
        return windows
    if T not in ONEDNN_TYPES:
        raise UnimplementedError(
            f"Current kernel implementation does not support dilations, received {dilations}"
        )
    check_length("dilations", dilations, 4)
    return replace(windows, dilations=spatial_attr("dilations", dilations, data_format))


def check_unit_dilations(windows: Windows) -> None:
    """Refuse dilations, which some of TensorFlow's CPU kernels do not compute."""
    if max(windows.dilations) > 1:
        raise InvalidArgumentError(
            "Current CPU implementations do not yet support dilation rates larger than 1, "
            f"got {list(windows.dilations)}"
        )


Compute = Callable[[Array, Array, Geometry, Windows], Array]


@dataclass(frozen=True)
class ConvolutionKernels:
    """Makes the kernels of the convolutions from their attrs.

    Attributes:
        algorithms: Who computes them.
    """

    algorithms: Algorithms

    @also_channels_first("Conv2D")
    @from_attrs(windows=conv2d_windows)
    def conv2d(self, *, windows: Windows) -> Callable[[Array, Array], Array]:
        """Images in layout NHWC."""
        compute = self._images

        def convolved(x: Array, filters: Array) -> Array:
            check_rank("convolution input", x, 4)
            check_rank("convolution filter", filters, 4)
            return convolution(x, filters, windows, compute)

        return convolved

    @also_channels_first("Conv3D")
    @from_attrs(windows=conv3d_windows)
    def conv3d(
        self, *, T: DataType, windows: Windows, construction: OpKernelConstruction
    ) -> Callable[[Array, Array], Array]:
        """Volumes in layout NDHWC; as in TensorFlow, groups where XLA would compile them, gaps there or by oneDNN."""
        as_xla = is_set(construction.node_def.attr, IN_MUST_COMPILE)
        compute = self._volumes
        if as_xla or T in ONEDNN_TYPES:
            compute = self._grouped_volumes if as_xla else self._dilated_volumes

        def convolved(x: Array, filters: Array) -> Array:
            check_rank("input", x, 5)
            check_rank("filter", filters, 5)
            check_filter(filters)
            if x.size and not as_xla and T not in ONEDNN_TYPES:
                x = _seen_by_eigen(x, filters.shape[:-2], windows)
            return convolution(x, filters, windows, compute)

        return convolved

    @from_attrs(windows_for=windows_of_conv)
    def conv(
        self, *, windows_for: Callable[[int], Windows], batch_dims: int, groups: int
    ) -> Callable[[Array, Array], Array]:
        """Channels last and without groups, as in TensorFlow."""
        int32_attr("batch_dims", batch_dims)
        if int32_attr("groups", groups) != 1:
            raise UnimplementedError("Grouped/Depthwise Convolutions are not supported yet.")

        def convolved(x: Array, filters: Array) -> Array:
            spatial = check_num_spatial(x.ndim, batch_dims)
            require_equal(spatial + 2, filters.ndim, "The filter must be rank {} but got {}")
            windows = windows_for(spatial)
            leading, shape = x.shape[:batch_dims], x.shape[batch_dims:]
            batch = x.reshape(math.prod(leading), *shape)
            channels = batch.shape[windows.data_format.feature_index(batch.ndim)]
            check_filter(filters)
            require_equal(
                channels, filters.shape[-2], "Input depth must be equal to filter depth: {} vs {}"
            )
            compute = self._images if spatial == 2 else self._volumes
            if spatial == 3 and batch.size:
                batch = _seen_by_eigen(batch, filters.shape[:-2], windows)
            result = convolution(batch, filters, windows, compute)
            return result.reshape(*leading, *result.shape[1:])

        return convolved

    def fused_pad_conv2d(
        self, *, T: DataType, mode: str, strides: list[int], padding: str
    ) -> Callable[[Array, Array, Array], Array]:
        """The mirror image of the borders around the images, then a convolution."""
        pad = mirror_pad(mode=mode, T=T, xp=np)
        windows = conv2d_windows(strides, [1, 1, 1, 1], padding, (), "NHWC", InvalidArgumentError)

        def fused(x: Array, paddings: Array, filters: Array) -> Array:
            check_rank("input", x, 4)
            check_rank("filter", filters, 4)
            require(x.size, "Input tensor can't be empty")
            padded = pad(x, paddings)
            if paddings[[0, 3]].any():
                raise InvalidArgumentError(
                    f"Fused mirror padding only support spatial padding, got {paddings.tolist()}"
                )
            require_equal(
                x.shape[3], filters.shape[2], "input and filter must have the same depth: {} vs {}"
            )
            output = convolution(padded, filters, windows, self._images)
            require(output.size, "Output tensor can't be empty")
            return output

        return fused

    @also_channels_first("_FusedConv2D", where=lambda attrs: attrs["T"] == DataType.DT_FLOAT)
    @from_attrs(fusion=conv2d_fusion, windows=conv2d_windows)
    def fused_conv2d(
        self, *, T: DataType, data_format: str, filter_format: str, windows: Windows, fusion: Fusion
    ) -> Callable[[Array, Array, list[Array], list[Array]], Array]:
        """Float and double in layout NHWC without groups, as in TensorFlow."""
        require(T in WIDE_FLOATS, f"_FusedConv2D does not support {T.string} inputs on the CPU")
        if data_format != "NHWC" or filter_format != "HWIO":
            raise UnimplementedError(
                "Fused conv implementation only supports NHWC tensor format for now, got "
                f"{data_format} and {filter_format}"
            )

        def fused(x: Array, filters: Array, args: list[Array], host_args: list[Array]) -> Array:
            check_rank("input", x, 4)
            check_rank("filter", filters, 4)
            if x.shape[3] != filters.shape[2]:
                raise UnimplementedError(
                    "Fused conv implementation does not support grouped convolutions for now."
                )

            def compute(x: Array, filters: Array, geometry: Geometry, windows: Windows) -> Array:
                shape = (x.shape[0], *geometry.output, filters.shape[3])
                epilogue = fusion.epilogue(args, shape)
                return self._images(x, filters, geometry, windows, epilogue)

            return convolution(x, filters, windows, compute)

        return fused

    @also_channels_first("DepthwiseConv2dNative")
    @from_attrs(windows=dilated_depthwise_windows)
    def depthwise_conv2d(self, *, windows: Windows) -> Callable[[Array, Array], Array]:
        """Images in layout NHWC."""
        return lambda x, filters: self._depthwise(x, filters, windows)

    @also_channels_first("_FusedDepthwiseConv2dNative")
    @from_attrs(
        fusion=depthwise_fusion, windows=partial(dilated_depthwise_windows, explicit_paddings=())
    )
    def fused_depthwise_conv2d(
        self, *, fusion: Fusion, windows: Windows
    ) -> Callable[[Array, Array, list[Array]], Array]:
        """Images in layout NHWC; half and bfloat16 in float."""

        def fused(x: Array, filters: Array, args: list[Array]) -> Array:
            images, weights, *others = (
                array.astype(np.float32, copy=False) for array in (x, filters, *args)
            )
            result = self._depthwise(
                images, weights, windows, lambda shape: fusion.epilogue(others, shape)
            )
            return result.astype(x.dtype, copy=False)

        return fused

    def _images(
        self,
        x: Array,
        filters: Array,
        geometry: Geometry,
        windows: Windows,
        epilogue: Epilogue | None = None,
    ) -> Array:
        """The convolution of images, in groups where the filter has fewer channels than they.

        Half and bfloat16 are computed in float.

        Raises:
            UnimplementedError: the layout is NCHW.
            InvalidArgumentError: the filter is empty, or its output cannot be divided into the groups.
        """
        if not windows.channels_last:
            raise UnimplementedError(
                "The Conv2D op currently only supports the NHWC tensor format on the CPU. "
                f"The op was given the format: {windows.data_format.value}"
            )
        check_filter(filters)
        _check_out_depth(x, filters)
        convolve = self.algorithms.convolve
        return convolve(_widened(x), _widened(filters), geometry, epilogue).astype(
            x.dtype, copy=False
        )

    def _volumes(self, x: Array, filters: Array, geometry: Geometry, windows: Windows) -> Array:
        """The convolution of volumes.

        Raises:
            InvalidArgumentError: the layout is NCDHW, the windows have gaps, or there are groups.
        """
        message = "CPU implementation of Conv3D currently only supports the NHWC tensor format"
        require(windows.channels_last, message)
        check_unit_dilations(windows)
        return self._dilated_volumes(x, filters, geometry, windows)

    def _dilated_volumes(
        self, x: Array, filters: Array, geometry: Geometry, windows: Windows
    ) -> Array:
        """The convolution of volumes that may have gaps; for groups it raises InvalidArgumentError."""
        message = "Number of channels in filter ({}) must match last dimension of input ({})"
        require_equal(filters.shape[-2], x.shape[-1], message)
        return self._grouped_volumes(x, filters, geometry, windows)

    def _grouped_volumes(
        self, x: Array, filters: Array, geometry: Geometry, windows: Windows
    ) -> Array:
        """The convolution of volumes in as many groups as the filters' channels fit into the input."""
        _check_out_depth(x, filters)
        return self.algorithms.convolve(x, filters, geometry)

    def _depthwise(
        self,
        x: Array,
        filters: Array,
        windows: Windows,
        epilogue_of: Callable[[Sequence[int]], Epilogue] | None = None,
    ) -> Array:
        """The convolution of each channel by itself, with the epilogue.

        Raises:
            InvalidArgumentError: the shapes do not fit.
            UnimplementedError: the layout is NCHW.
        """
        check_rank("input", x, 4)
        check_rank("filter", filters, 4)
        channels, multiplier = filters.shape[2:]
        found = x.shape[windows.data_format.feature_index(4)]
        require_equal(found, channels, "input and filter must have the same depth: {} vs {}")
        geometry = windows.geometry(windows.spatial(x.shape), filters.shape[:2])
        shape = windows.shape(x.shape[0], geometry.output, channels * multiplier)
        epilogue = None if epilogue_of is None else epilogue_of(shape)
        if 0 in shape:
            return allocate(shape, as_dtype(x.dtype))
        if not windows.channels_last:
            raise UnimplementedError(
                "Depthwise convolution on CPU is only supported for NHWC format"
            )
        return self.algorithms.depthwise(x, filters, geometry, epilogue)


def _check_out_depth(x: Array, filters: Array) -> None:
    """Refuse filters whose output cannot be divided into the groups."""
    groups, depth = x.shape[-1] // filters.shape[-2], filters.shape[-1]
    if depth % groups:
        raise InvalidArgumentError(
            f"output depth must be evenly divisible by number of groups: {depth} vs {groups}"
        )


def _widened(x: Array) -> Array:
    """The array in the type that sums of its products are computed in: narrow floats in float."""
    if x.dtype.char in "fd":  # to look the type up takes longer
        return x
    return x.astype(np.float32) if as_dtype(x.dtype) in NARROW_FLOATS else x


def convolution(x: Array, filters: Array, windows: Windows, compute: Compute) -> Array:
    """The convolution of images or volumes in the layout of `windows`, with filters `[*window, in, out]`.

    As in TensorFlow `compute` is not asked, and so can refuse nothing, where the result is empty or all
    padding.
    """
    channels, depth = x.shape[windows.data_format.feature_index(x.ndim)], filters.shape[-2]
    if depth == 0 or channels % depth:
        raise InvalidArgumentError(
            f"input depth must be evenly divisible by filter depth: {channels} vs {depth}"
        )
    geometry = windows.geometry(windows.spatial(x.shape), filters.shape[:-2])
    shape = windows.shape(x.shape[0], geometry.output, filters.shape[-1])
    if 0 in shape or x.size == 0:
        empty = allocate(shape, as_dtype(x.dtype))
        empty.fill(0)
        return empty
    return compute(x, filters, geometry, windows)


def _seen_by_eigen(x: Array, window: Sequence[int], windows: Windows) -> Array:
    """The part of volumes in which the windows lie; Eigen centers windows that need less than the volume has.

    That is so with SAME padding and strides beyond the window, where others begin with the first element.
    """
    if windows.padding is not Padding.SAME:
        return x
    along = []
    for size, length, axis in zip(x.shape[1:-1], window, range(3), strict=True):
        stride = windows.strides[axis]
        needed = (size - 1) // stride * stride + (length - 1) * windows.dilations[axis] + 1
        first = max(0, (size - needed) // 2)
        along.append(slice(first, first + needed))
    return np.ascontiguousarray(x[(slice(None), *along)])


def check_filter(filters: Array) -> None:
    """Refuse a filter without elements."""
    if filters.size == 0:
        raise InvalidArgumentError(
            "filter must not have zero elements (i.e. all dimensions must be non-zero), "
            f"got shape {list(filters.shape)}"
        )
