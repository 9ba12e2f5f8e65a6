"""Gradients of convolutions: the kernels of the ops, around whoever computes them, and the gradient functions.

Convolutions are linear in the input and in the filters.

Source: TensorFlow core/kernels/conv_grad_input_ops.h, conv_grad_filter_ops.cc, conv_grad_ops_3d.cc,
conv_grad_shape_utils.cc, depthwise_conv_grad_op.cc.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.kernel import OpKernelConstruction, from_attrs
from opkernel.kernel.function_kernel import keywords_of
from opkernel.kernel.node_properties import is_set
from opkernel.opdef.common_shapes.windows import Padding
from opkernel.opdef.core.attr_value import IN_MUST_COMPILE
from opkernel.ops.input_checks import require_equal
from opkernel.ops.nn.channels_first import (
    ONEDNN_TYPES,
    also_channels_first,
    no_explicit_padding,
)
from opkernel.ops.nn.conv.kernels import (
    check_unit_dilations,
    conv2d_windows,
    conv3d_windows,
    depthwise_windows,
)
from opkernel.ops.nn.conv.reference import Algorithms
from opkernel.ops.nn.windows import Geometry, Windows, check_rank, check_shape, sizes_from_tensor
from opkernel.types import Array, DataType, as_dtype

Kernel = Callable[[Array, Array, Array], Array]
SizesOf = Callable[[str, Array, Array, Array], Sequence[int]]
"""The shape of the gradient, from the op, the input that tells it, the other one, and the gradient."""


def _told(op: str, given: Array, other: Array, gradient: Array) -> Sequence[int]:
    """It is the value of the input."""
    name = "input_sizes" if "BackpropInput" in op else "filter_sizes"
    return sizes_from_tensor(f"{op}: {name}", given)


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
    T: DataType,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    explicit_paddings: Sequence[int],
    data_format: str,
) -> Windows:
    require_equal(data_format, "NHWC", f"{op} only supports NHWC on the CPU, not {{}}")
    windows = conv2d_windows(strides, dilations, padding, explicit_paddings, data_format, refusal)
    if T not in ONEDNN_TYPES or padding == "EXPLICIT":
        check_unit_dilations(windows)
    return windows


def _conv3d_windows(
    op: str,
    T: DataType,
    strides: Sequence[int],
    dilations: Sequence[int],
    padding: str,
    data_format: str,
) -> Windows:
    require_equal(data_format, "NDHWC", f"{op} only supports NDHWC on the CPU, not {{}}")
    windows = conv3d_windows(strides, dilations, padding, data_format=data_format)
    if T not in ONEDNN_TYPES or not op.endswith("V2"):
        check_unit_dilations(windows)
    return windows


_WINDOWS: dict[str, Callable[..., Windows]] = {}
"""The windows that the attrs of an op describe. Of depthwise ops dilations do not count, as in TensorFlow."""
for _by, _refusal in (("Input", UnimplementedError), ("Filter", InvalidArgumentError)):
    _2d, _3d = f"Conv2DBackprop{_by}", f"Conv3DBackprop{_by}"
    _WINDOWS[_2d] = partial(_conv2d_windows, _2d, _refusal)
    _WINDOWS[f"{_3d}V2"] = partial(_conv3d_windows, f"{_3d}V2")
    _WINDOWS[_3d] = partial(_conv3d_windows, _3d, data_format="NDHWC")
    _WINDOWS[f"DepthwiseConv2dNativeBackprop{_by}"] = depthwise_windows

_SIZES_OF: dict[str, SizesOf] = {
    "Conv2DBackpropInput": _of_images,
    "Conv3DBackpropInput": _like,
    "Conv3DBackpropFilter": _like,
}


def gradient_maker(algorithms: Algorithms, op: str) -> Callable[..., Kernel]:
    """What makes the kernels of an op from its attrs: of a gradient by the input or by the filters."""
    kernel = _by_input if "BackpropInput" in op else _by_filters

    @from_attrs(windows=_WINDOWS[op])
    def make(*, windows: Windows, construction: OpKernelConstruction) -> Kernel:
        as_xla = is_set(construction.node_def.attr, IN_MUST_COMPILE)
        return kernel(algorithms, op, windows, _SIZES_OF.get(op, _told), as_xla)

    if "data_format" in keywords_of(make):
        return also_channels_first(op, where=no_explicit_padding)(make)

    return make


def _by_input(
    algorithms: Algorithms, op: str, windows: Windows, sizes_of: SizesOf, as_xla: bool
) -> Kernel:
    compute, geometry_of = algorithms.by_input, _geometry
    if op.startswith("Depthwise"):
        compute, geometry_of = algorithms.depthwise_by_input, _depthwise_geometry

    def by_input(given: Array, filters: Array, gradient: Array) -> Array:
        sizes = sizes_of(op, given, filters, gradient)
        geometry = geometry_of(op, sizes, filters.shape, gradient, windows, as_xla)
        if op.startswith("Conv3D"):
            _check_work(op, geometry, filters.shape)
            if gradient.shape[0] == 0 and 0 in filters.shape[:-1]:
                raise InvalidArgumentError(f"{op}: neither the batch nor the filter has elements")
        if _is_zero(sizes, windows, filters, gradient):
            return np.zeros(sizes, gradient.dtype)
        groups = _num_groups(op, sizes, filters.shape)
        if groups == 1:
            return compute(sizes, filters, gradient, geometry)
        part, pairs = (*sizes[:-1], filters.shape[-2]), _split(groups, filters, gradient)
        return np.concatenate([compute(part, *pair, geometry) for pair in pairs], -1)

    return by_input


def _by_filters(
    algorithms: Algorithms, op: str, windows: Windows, sizes_of: SizesOf, as_xla: bool
) -> Kernel:
    compute, geometry_of = algorithms.by_filters, _geometry
    if op.startswith("Depthwise"):
        compute, geometry_of = algorithms.depthwise_by_filters, _depthwise_geometry

    def by_filters(x: Array, given: Array, gradient: Array) -> Array:
        sizes = sizes_of(op, given, x, gradient)
        geometry = geometry_of(op, x.shape, sizes, gradient, windows, as_xla)
        if op.startswith("Conv3D") and x.size:
            _check_work(op, geometry, sizes)
        if _is_zero(sizes, windows, x, gradient):
            return np.zeros(sizes, x.dtype)
        groups = _num_groups(op, x.shape, sizes)
        if groups == 1:
            return compute(x, sizes, gradient, geometry)
        part, pairs = (*sizes[:-1], sizes[-1] // groups), _split(groups, x, gradient)
        return np.concatenate([compute(one, part, two, geometry) for one, two in pairs], -1)

    return by_filters


def _num_groups(op: str, input_shape: Sequence[int], filter_shape: Sequence[int]) -> int:
    """How many convolutions there are, each with as many channels as the filter."""
    return 1 if op.startswith("Depthwise") else input_shape[-1] // filter_shape[-2]


def _split(groups: int, one: Array, two: Array) -> Iterable[tuple[Array, Array]]:
    """Two arrays cut into groups of channels."""
    return zip(np.split(one, groups, -1), np.split(two, groups, -1), strict=True)


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
    as_xla: bool,
) -> Geometry:
    """The geometry of the convolution whose gradients are asked for; its shapes are checked."""
    rank = len(windows.strides) + 2
    if len(input_shape) != rank or len(filter_shape) != rank:
        raise InvalidArgumentError(
            f"{op}: input and filter must be {rank}-dimensional, got {list(input_shape)} and {list(filter_shape)}"
        )
    check_rank(f"{op}: out_backprop", gradient, rank)
    if filter_shape[-2] == 0:
        raise InvalidArgumentError(f"{op}: filter depth must be strictly greater than zero")
    is_onednn = as_dtype(gradient.dtype) in ONEDNN_TYPES and windows.padding is not Padding.EXPLICIT
    takes_groups = as_xla or (is_onednn and op.startswith("Conv2D"))
    _check_groups(op, input_shape[-1], filter_shape, takes_groups)
    geometry = windows.geometry(input_shape[1:-1], filter_shape[:-2])
    expected = (input_shape[0], *geometry.output, filter_shape[-1])
    message = "Size of out_backprop doesn't match computed: actual = {}, computed = {}"
    require_equal([*gradient.shape], [*expected], f"{op}: {message}")
    return geometry


def _check_groups(op: str, depth: int, filter_shape: Sequence[int], takes_groups: bool) -> None:
    """Refuse groups, unless TensorFlow computes the call by oneDNN or by XLA."""
    filter_depth, out_depth = filter_shape[-2:]
    if op == "Conv2DBackpropFilter" and 0 in filter_shape:
        takes_groups = True  # there they do not matter
    if depth % filter_depth if takes_groups else depth != filter_depth:
        raise InvalidArgumentError(
            "Gradients for grouped convolutions are not supported on CPU. "
            f"Input depth {depth} doesn't match filter input depth {filter_depth}"
        )
    groups = depth // filter_depth
    if groups and out_depth % groups and 0 not in filter_shape:
        raise InvalidArgumentError(
            f"{op}: output depth {out_depth} must be evenly divisible by {groups} groups"
        )


def _depthwise_geometry(
    op: str,
    input_shape: Sequence[int],
    filter_shape: Sequence[int],
    gradient: Array,
    windows: Windows,
    as_xla: bool,
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
    message = f"{op}: input and filter must have the same in_depth, got {{}} and {{}}"
    require_equal(channels, filter_shape[2], message)
    geometry = windows.geometry(windows.spatial(input_shape), filter_shape[:2])
    expected = windows.shape(batch, geometry.output, channels * filter_shape[3])
    check_shape(f"{op}: out_backprop", gradient.shape, expected)
    return geometry


def _register_gradients(names: Sequence[str], attrs: tuple[str, ...]) -> None:
    """Register the gradients of a convolution, and of its gradients by the input and by the filters.

    The other two ops give the gradients of each of the three.

    Args:
        names: The three ops.
        attrs: The attrs that all three have.
    """

    def node(which: int, op: g.Operation, *inputs: g.Tensor) -> Any:
        """A node of one of the three ops, with the attrs of another."""
        return getattr(g.nodes, names[which])(*inputs, **g.attrs_of(op, *attrs))

    def by_input(op: g.Operation, x: g.Tensor, filters: g.Tensor, grad: g.Tensor) -> Any:
        return node(1, op, g.shape_of(x), filters, grad)

    def by_filters(op: g.Operation, x: g.Tensor, filters: g.Tensor, grad: g.Tensor) -> Any:
        return node(2, op, x, g.shape_of(filters), grad)

    @g.register_gradient(names[0])
    def of_convolution(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        x, filters = op.inputs
        return by_input(op, x, filters, grad), by_filters(op, x, filters, grad)

    @g.register_gradient(names[1])
    def of_backprop_input(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        _, filters, out_backprop = op.inputs
        return None, by_filters(op, grad, filters, out_backprop), node(0, op, grad, filters)

    @g.register_gradient(names[2])
    def of_backprop_filter(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        x, _, out_backprop = op.inputs
        return by_input(op, x, grad, out_backprop), None, node(0, op, x, grad)


_ATTRS = ("dilations", "strides", "padding", "data_format")
_2D = (*_ATTRS, "explicit_paddings")

for _name, _version, _attrs in (
    ("Conv2D", "", (*_2D, "use_cudnn_on_gpu")),
    ("Conv3D", "V2", _ATTRS),
    ("DepthwiseConv2dNative", "", _2D),
):
    _back = (f"{_name}Backprop{by}{_version}" for by in ("Input", "Filter"))
    _register_gradients((_name, *_back), _attrs)
