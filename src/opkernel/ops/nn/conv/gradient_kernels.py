"""The kernels of the gradients of convolutions, around whoever computes them.

Source: TensorFlow core/kernels/conv_grad_input_ops.h, conv_grad_filter_ops.cc, conv_grad_ops_3d.cc,
conv_grad_shape_utils.cc, depthwise_conv_grad_op.cc.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.kernel import from_attrs
from opkernel.ops.input_checks import require_equal
from opkernel.ops.nn.conv.attrs import (
    check_unit_dilations,
    conv2d_windows,
    conv3d_windows,
    depthwise_windows,
)
from opkernel.ops.nn.conv.reference import Algorithms
from opkernel.ops.nn.geometry import Windows, check_rank, check_shape, sizes_from_tensor
from opkernel.ops.nn.windows import Array, Geometry

Kernel = Callable[[Array, Array, Array], Array]
SizesOf = Callable[[str, Array, Array, Array], Sequence[int]]
"""The shape of the gradient, from the op, the input that tells it, the other one, and the gradient."""


def _told(name: str) -> SizesOf:
    """It is the value of an input of that name."""
    return lambda op, given, other, gradient: sizes_from_tensor(f"{op}: {name}", given)


_INPUT_SIZES, _FILTER_SIZES = _told("input_sizes"), _told("filter_sizes")


def _like(op: str, given: Array, other: Array, gradient: Array) -> Sequence[int]:
    """It is that of the input."""
    return tuple(given.shape)


def _of_images(op: str, given: Array, filters: Array, gradient: Array) -> Sequence[int]:
    """It is the value of the input, which may have rows and columns alone."""
    sizes = sizes_from_tensor(f"{op}: input_sizes", given)
    check_rank("filter", filters, 4)
    check_rank("out_backprop", gradient, 4)
    if len(sizes) == 2:
        return (gradient.shape[0], *sizes, filters.shape[2])
    require_equal(
        len(sizes), 4, f"{op} requires input_sizes to contain 4 values or 2 values, but got: {{}}"
    )
    return sizes


def _conv2d_windows(
    op: str,
    refusal: type[OpError],
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> Windows:
    require_equal(data_format, "NHWC", f"{op} only supports NHWC on the CPU, not {{}}")
    windows = conv2d_windows(strides, dilations, padding, explicit_paddings, data_format, refusal)
    check_unit_dilations(windows)
    return windows


def _conv3d_windows(
    op: str, strides: Sequence[int], dilations: Sequence[int], padding: str, data_format: str
) -> Windows:
    require_equal(data_format, "NDHWC", f"{op} only supports NDHWC on the CPU, not {{}}")
    windows = conv3d_windows(strides, dilations, padding, data_format)
    check_unit_dilations(windows)
    return windows


@dataclass(frozen=True)
class GradientKernels:
    """Makes the kernels of the gradients of convolutions from their attrs.

    Attributes:
        algorithms: Who computes them.
    """

    algorithms: Algorithms

    @from_attrs(windows=partial(_conv2d_windows, "Conv2DBackpropInput", UnimplementedError))
    def conv2d_backprop_input(self, *, windows: Windows) -> Kernel:
        """By the images."""
        return self._by_input("Conv2DBackpropInput", windows, _of_images)

    @from_attrs(windows=partial(_conv2d_windows, "Conv2DBackpropFilter", InvalidArgumentError))
    def conv2d_backprop_filter(self, *, windows: Windows) -> Kernel:
        """By the filters."""
        return self._by_filters("Conv2DBackpropFilter", windows)

    @from_attrs(windows=partial(_conv3d_windows, "Conv3DBackpropInputV2"))
    def conv3d_backprop_input_v2(self, *, windows: Windows) -> Kernel:
        """By the volumes."""
        return self._by_input("Conv3DBackpropInputV2", windows)

    @from_attrs(windows=partial(_conv3d_windows, "Conv3DBackpropFilterV2"))
    def conv3d_backprop_filter_v2(self, *, windows: Windows) -> Kernel:
        """By the filters."""
        return self._by_filters("Conv3DBackpropFilterV2", windows)

    @from_attrs(windows=partial(_conv3d_windows, "Conv3DBackpropInput", data_format="NDHWC"))
    def conv3d_backprop_input(self, *, windows: Windows) -> Kernel:
        """By volumes like those given."""
        return self._by_input("Conv3DBackpropInput", windows, _like)

    @from_attrs(windows=partial(_conv3d_windows, "Conv3DBackpropFilter", data_format="NDHWC"))
    def conv3d_backprop_filter(self, *, windows: Windows) -> Kernel:
        """By filters like those given."""
        return self._by_filters("Conv3DBackpropFilter", windows, _like)

    @from_attrs(windows=depthwise_windows)
    def depthwise_backprop_input(self, *, windows: Windows) -> Kernel:
        """By the images. As in TensorFlow, dilations do not count."""
        return self._by_input("DepthwiseConv2dNativeBackpropInput", windows, is_depthwise=True)

    @from_attrs(windows=depthwise_windows)
    def depthwise_backprop_filter(self, *, windows: Windows) -> Kernel:
        """By the filters. As in TensorFlow, dilations do not count."""
        return self._by_filters("DepthwiseConv2dNativeBackpropFilter", windows, is_depthwise=True)

    def _by_input(
        self,
        op: str,
        windows: Windows,
        sizes_of: SizesOf = _INPUT_SIZES,
        *,
        is_depthwise: bool = False,
    ) -> Kernel:
        geometry_of = _depthwise_geometry if is_depthwise else _geometry
        compute = self.algorithms.depthwise_by_input if is_depthwise else self.algorithms.by_input

        def by_input(given: Array, filters: Array, gradient: Array) -> Array:
            sizes = sizes_of(op, given, filters, gradient)
            geometry = geometry_of(op, sizes, filters.shape, gradient, windows)
            if op.startswith("Conv3D"):
                _check_work(op, geometry, filters.shape)
                if gradient.shape[0] == 0 and 0 in filters.shape[:-1]:
                    raise InvalidArgumentError(
                        f"{op}: neither the batch nor the filter has elements"
                    )
            if _is_zero(sizes, windows, filters, gradient):
                return np.zeros(sizes, gradient.dtype)
            return compute(sizes, filters, gradient, geometry)

        return by_input

    def _by_filters(
        self,
        op: str,
        windows: Windows,
        sizes_of: SizesOf = _FILTER_SIZES,
        *,
        is_depthwise: bool = False,
    ) -> Kernel:
        geometry_of = _depthwise_geometry if is_depthwise else _geometry
        algorithms = self.algorithms
        compute = algorithms.depthwise_by_filters if is_depthwise else algorithms.by_filters

        def by_filters(x: Array, given: Array, gradient: Array) -> Array:
            sizes = sizes_of(op, given, x, gradient)
            geometry = geometry_of(op, x.shape, sizes, gradient, windows)
            if op.startswith("Conv3D") and x.size:
                _check_work(op, geometry, sizes)
            if _is_zero(sizes, windows, x, gradient):
                return np.zeros(sizes, x.dtype)
            return compute(x, sizes, gradient, geometry)

        return by_filters


def _check_work(op: str, geometry: Geometry, filter_shape: Sequence[int]) -> None:
    """Refuse what TensorFlow cannot share out: two of positions, filter and its channels being 0."""
    sizes = math.prod(geometry.output), math.prod(filter_shape[:-1]), filter_shape[-1]
    if sizes.count(0) > 1:
        raise InvalidArgumentError(
            f"{op}: input, filter_sizes and out_backprop tensors must all have at least 1 element"
        )


def _is_zero(sizes: Sequence[int], windows: Windows, other: Array, gradient: Array) -> bool:
    """Whether a gradient is empty, or nothing adds to it; in layout NCHW no others are computed."""
    if 0 not in sizes and not windows.channels_last:
        raise UnimplementedError("Depthwise convolution on CPU is only supported for NHWC format")
    return 0 in sizes or not (other.size and gradient.size)


def _geometry(
    op: str,
    input_shape: Sequence[int],
    filter_shape: Sequence[int],
    gradient: Array,
    windows: Windows,
) -> Geometry:
    """The geometry of the convolution whose gradients are asked for; its shapes are checked."""
    rank = len(windows.strides) + 2
    if len(input_shape) != rank or len(filter_shape) != rank:
        raise InvalidArgumentError(
            f"{op}: input and filter must be {rank}-dimensional, got {list(input_shape)} and "
            f"{list(filter_shape)}"
        )
    check_rank(f"{op}: out_backprop", gradient, rank)
    if filter_shape[-2] == 0:
        raise InvalidArgumentError(f"{op}: filter depth must be strictly greater than zero")
    depth, filter_depth = input_shape[-1], filter_shape[-2]
    is_nothing = op == "Conv2DBackpropFilter" and 0 in filter_shape  # there groups do not matter
    if depth % filter_depth if is_nothing else depth != filter_depth:
        raise InvalidArgumentError(
            "Gradients for grouped convolutions are not supported on CPU. "
            f"Input depth {depth} doesn't match filter input depth {filter_depth}"
        )
    geometry = windows.geometry(input_shape[1:-1], filter_shape[:-2])
    expected = (input_shape[0], *geometry.output, filter_shape[-1])
    if gradient.shape != expected:
        raise InvalidArgumentError(
            f"{op}: Size of out_backprop doesn't match computed: actual = "
            f"{list(gradient.shape)}, computed = {list(expected)}"
        )
    return geometry


def _depthwise_geometry(
    op: str,
    input_shape: Sequence[int],
    filter_shape: Sequence[int],
    gradient: Array,
    windows: Windows,
) -> Geometry:
    """As `_geometry`, of the convolution of each channel by itself."""
    for name, length in (
        ("input", len(input_shape)),
        ("filter", len(filter_shape)),
        ("out_backprop", gradient.ndim),
    ):
        require_equal(length, 4, f"{op}: {name} must be 4-dimensional, got {{}}")
    layout = windows.data_format
    batch, channels = input_shape[layout.batch_index(4)], input_shape[layout.feature_index(4)]
    if channels != filter_shape[2]:
        raise InvalidArgumentError(
            f"{op}: input and filter must have the same in_depth, got {channels} and "
            f"{filter_shape[2]}"
        )
    geometry = windows.geometry(windows.spatial(input_shape), filter_shape[:2])
    expected = windows.shape(batch, geometry.output, channels * filter_shape[3])
    check_shape(f"{op}: out_backprop", gradient.shape, expected)
    return geometry
