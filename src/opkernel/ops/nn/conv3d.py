"""Conv3D and its gradients.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/conv_ops_3d.cc, conv_grad_ops_3d.cc.
"""

from collections.abc import Callable, Sequence

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import register_kernel
from opkernel.opdef import InferenceContext, OpHandle, register_op
from opkernel.opdef.common_shapes import conv3d_shape
from opkernel.ops.kernel_types import FLOATS
from opkernel.ops.nn.convolution import (
    backprop_filter,
    backprop_input,
    check_filter,
    check_unit_dilations,
    convolution,
    convolve_volumes,
)
from opkernel.ops.nn.geometry import (
    Windows,
    check_length,
    check_rank,
    sizes_from_tensor,
    spatial_attr,
    windows_from_attrs,
)
from opkernel.ops.nn.windows import Array
from opkernel.types import DataType

__all__ = ["CONV3D"]

_TYPES = "{half, bfloat16, float, double}"
_OLD_TYPES = "{half, float, double}"
_DATA_FORMAT = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"


def _declare(
    name: str,
    inputs: Sequence[str],
    types: str,
    shape_fn: Callable[[InferenceContext], None],
    doc: str,
    data_format: Sequence[str] = (_DATA_FORMAT,),
    more_attrs: Sequence[str] = (),
    deprecated: tuple[int, str] | None = None,
) -> OpHandle:
    return register_op(
        name,
        inputs=inputs,
        outputs=["output: T"],
        attrs=[
            f"T: {types}",
            "strides: list(int) >= 5",
            "padding: {'SAME', 'VALID'}",
            *data_format,
            "dilations: list(int) = [1, 1, 1, 1, 1]",
            *more_attrs,
        ],
        shape_fn=shape_fn,
        doc=doc,
        deprecated=deprecated,
    )


def _input_shape(c: InferenceContext) -> None:
    """Input 0 holds the shape of the volumes."""
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(0), 5))


def _filter_shape(c: InferenceContext) -> None:
    """Input 1 holds the shape of the filter."""
    c.set_output(0, c.with_rank(c.make_shape_from_shape_tensor(1), 5))


def _copied_shape(index: int) -> Callable[[InferenceContext], None]:
    def shape(c: InferenceContext) -> None:
        c.set_output(0, c.with_rank(c.input(index), 5))

    return shape


CONV3D = _declare(
    "Conv3D",
    ["input: T", "filter: T"],
    _TYPES,
    conv3d_shape,
    "The convolution of volumes with a filter [planes, rows, columns, in, out].",
)
BACKPROP_INPUT = _declare(
    "Conv3DBackpropInputV2",
    ["input_sizes: Tshape", "filter: T", "out_backprop: T"],
    _TYPES,
    _input_shape,
    "The gradient of Conv3D by its input, whose shape is given.",
    more_attrs=["Tshape: {int32, int64} = DT_INT32"],
)
BACKPROP_FILTER = _declare(
    "Conv3DBackpropFilterV2",
    ["input: T", "filter_sizes: int32", "out_backprop: T"],
    _TYPES,
    _filter_shape,
    "The gradient of Conv3D by its filter, whose shape is given.",
)
OLD_BACKPROP_INPUT = _declare(
    "Conv3DBackpropInput",
    ["input: T", "filter: T", "out_backprop: T"],
    _OLD_TYPES,
    _copied_shape(0),
    "The gradient of Conv3D by its input; of `input` only the shape counts.",
    data_format=(),
    deprecated=(10, "Use Conv3DBackpropInputV2"),
)
OLD_BACKPROP_FILTER = _declare(
    "Conv3DBackpropFilter",
    ["input: T", "filter: T", "out_backprop: T"],
    _OLD_TYPES,
    _copied_shape(1),
    "The gradient of Conv3D by its filter; of `filter` only the shape counts.",
    data_format=(),
    deprecated=(10, "Use Conv3DBackpropFilterV2"),
)


def _windows(
    strides: Sequence[int], dilations: Sequence[int], padding: str, data_format: str
) -> Windows:
    check_length("strides", strides, 5)
    check_length("dilations", dilations, 5)
    steps = spatial_attr("strides", strides, data_format)
    gaps = spatial_attr("dilations", dilations, data_format)
    return windows_from_attrs(data_format, steps, gaps, padding)


@register_kernel(CONV3D, device="CPU", types={"T": FLOATS}, factory=True)
def conv3d(
    *, strides: list[int], dilations: list[int], padding: str, data_format: str
) -> Callable[[Array, Array], Array]:
    """Volumes in layout NDHWC, without gaps and groups, as in TensorFlow."""
    windows = _windows(strides, dilations, padding, data_format)

    def convolved(x: Array, filters: Array) -> Array:
        check_rank("input", x, 5)
        check_rank("filter", filters, 5)
        check_filter(filters)
        return convolution(x, filters, windows, convolve_volumes)

    return convolved


def _gradient_windows(
    op: str, strides: Sequence[int], dilations: Sequence[int], padding: str, data_format: str
) -> Windows:
    if data_format != "NDHWC":
        raise InvalidArgumentError(f"{op} only supports NDHWC on the CPU, not {data_format}")
    windows = _windows(strides, dilations, padding, data_format)
    check_unit_dilations(windows)
    return windows


def backprop_input_v2(
    *, strides: list[int], dilations: list[int], padding: str, data_format: str
) -> Callable[[Array, Array, Array], Array]:
    op = "Conv3DBackpropInputV2"
    windows = _gradient_windows(op, strides, dilations, padding, data_format)

    def gradient_by_input(input_sizes: Array, filters: Array, gradient: Array) -> Array:
        sizes = sizes_from_tensor(f"{op}: input_sizes", input_sizes)
        return backprop_input(op, sizes, filters, gradient, windows)

    return gradient_by_input


def backprop_filter_v2(
    *, strides: list[int], dilations: list[int], padding: str, data_format: str
) -> Callable[[Array, Array, Array], Array]:
    op = "Conv3DBackpropFilterV2"
    windows = _gradient_windows(op, strides, dilations, padding, data_format)

    def gradient_by_filter(x: Array, filter_sizes: Array, gradient: Array) -> Array:
        sizes = sizes_from_tensor(f"{op}: filter_sizes", filter_sizes)
        return backprop_filter(op, x, sizes, gradient, windows)

    return gradient_by_filter


def old_backprop_input(
    *, strides: list[int], dilations: list[int], padding: str
) -> Callable[[Array, Array, Array], Array]:
    op = "Conv3DBackpropInput"
    windows = _gradient_windows(op, strides, dilations, padding, "NDHWC")

    def gradient_by_input(x: Array, filters: Array, gradient: Array) -> Array:
        return backprop_input(op, x.shape, filters, gradient, windows)

    return gradient_by_input


def old_backprop_filter(
    *, strides: list[int], dilations: list[int], padding: str
) -> Callable[[Array, Array, Array], Array]:
    op = "Conv3DBackpropFilter"
    windows = _gradient_windows(op, strides, dilations, padding, "NDHWC")

    def gradient_by_filter(x: Array, filters: Array, gradient: Array) -> Array:
        return backprop_filter(op, x, filters.shape, gradient, windows)

    return gradient_by_filter


_NO_HALF = (DataType.DT_BFLOAT16, DataType.DT_FLOAT, DataType.DT_DOUBLE)
_NO_BFLOAT16 = (DataType.DT_HALF, DataType.DT_FLOAT, DataType.DT_DOUBLE)
_WIDE = (DataType.DT_FLOAT, DataType.DT_DOUBLE)

# The labels choose between algorithms in TensorFlow; here all are one.
for _label in ("", "custom", "eigen_tensor"):
    for _op, _kernel, _types in (
        (BACKPROP_INPUT, backprop_input_v2, FLOATS),
        (BACKPROP_FILTER, backprop_filter_v2, _NO_HALF if _label else FLOATS),
        (OLD_BACKPROP_INPUT, old_backprop_input, _NO_BFLOAT16),
        (OLD_BACKPROP_FILTER, old_backprop_filter, _WIDE if _label else _NO_BFLOAT16),
    ):
        register_kernel(_op, device="CPU", types={"T": _types}, label=_label, factory=True)(_kernel)
