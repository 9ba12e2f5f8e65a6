"""Gradients of MaxPool, MaxPoolWithArgmax and MaxPool3D, and gradients of these gradients.

The gradient ops are linear in the incoming gradient. Their other inputs only tell which elements were the
largest, and small changes of the inputs do not change that.

Source: TensorFlow core/ops/nn_ops.cc, core/kernels/maxpooling_op.cc, pooling_ops_3d.cc.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import from_attrs
from opkernel.opdef import InferenceContext, OpShapeInferenceFn, common_shapes, register_op
from opkernel.ops.nn.max_pool import check_depth_windows
from opkernel.ops.nn.pooling import (
    Pool,
    channels_last_pool,
    check_channels_last,
    first_equal,
    padded_channels_last_pool,
    pool_from_attrs,
    scatter_to_largest,
    sizes_in_tensor,
)
from opkernel.ops.nn.windows import Geometry, check_rank, check_shape, overlaps
from opkernel.ops.registration import REAL_NUMBERS, register_kernel
from opkernel.types import Array, DataType

_POOLED = "orig_input: T, orig_output: T, grad: T"
_IMAGES = "data_format: {'NHWC', 'NCHW'} = 'NHWC'"
_VOLUMES = "data_format: {'NDHWC', 'NCDHW'} = 'NDHWC'"
_PADDING = "padding: {'SAME', 'VALID'}"

Gradient = Callable[[Array, Array, Array], Array]


def _window_attrs(rank: int) -> list[str]:
    return [f"ksize: list(int) >= {rank}", f"strides: list(int) >= {rank}"]


def _forward_shape(
    pool_shape: OpShapeInferenceFn, like_input: int, like_output: int
) -> OpShapeInferenceFn:
    """The shape of the pooling, where two inputs have the shapes of its input and output."""

    def shape(c: InferenceContext) -> None:
        pool_shape(c)
        c.merge(c.input(0), c.input(like_input))
        pooled = c.output(0)
        if pooled is not None:
            c.merge(c.input(like_output), pooled)

    return shape


MAX_POOL_GRAD = register_op(
    f"MaxPoolGrad({_POOLED}) -> output: T",
    attrs=[
        *_window_attrs(4),
        "padding: {'SAME', 'VALID', 'EXPLICIT'}",
        "explicit_paddings: list(int) = []",
        _IMAGES,
        "T: realnumbertype = DT_FLOAT",
    ],
    shape_fn=common_shapes.max_pool_grad_shape,
    doc="The gradient of MaxPool by its input: the largest element of each window gets all of it.",
    traits="images=iii:i function_gradient=yes",
)
MAX_POOL_GRAD_V2 = register_op(
    f"MaxPoolGradV2({_POOLED}, ksize: int32, strides: int32) -> output: T",
    attrs=[_PADDING, _IMAGES, "T: realnumbertype = DT_FLOAT"],
    shape_fn=common_shapes.max_pool_grad_shape,
    doc="MaxPoolGrad, whose windows are inputs.",
)
_ARGMAX_ATTRS = [
    *_window_attrs(4),
    _PADDING,
    "include_batch_in_index: bool = false",
    "Targmax: {int32, int64}",
    "T: realnumbertype",
]
MAX_POOL_GRAD_WITH_ARGMAX = register_op(
    "MaxPoolGradWithArgmax(input: T, grad: T, argmax: Targmax) -> output: T",
    attrs=_ARGMAX_ATTRS,
    shape_fn=common_shapes.max_pool_grad_shape,
    doc="The gradient of MaxPoolWithArgmax by its input, given where the maxima are.",
)
MAX_POOL_3D_GRAD = register_op(
    "MaxPool3DGrad(orig_input: TInput, orig_output: TInput, grad: T) -> output: T",
    attrs=[
        *_window_attrs(5),
        _PADDING,
        _VOLUMES,
        "T: {half, bfloat16, float} = DT_FLOAT",
        "TInput: {half, bfloat16, float} = DT_FLOAT",
    ],
    shape_fn=common_shapes.max_pool3d_grad_shape,
    doc="The gradient of MaxPool3D by its input: each element equal to the maximum gets all of it.",
    traits="images=iii:i",
)
MAX_POOL_GRAD_GRAD = register_op(
    f"MaxPoolGradGrad({_POOLED}) -> output: T",
    attrs=[*_window_attrs(4), _PADDING, _IMAGES, "T: realnumbertype"],
    shape_fn=_forward_shape(common_shapes.max_pool_shape, 2, 1),
    doc="The gradient of MaxPoolGrad by its gradient: for each window, that of its largest element.",
)
MAX_POOL_GRAD_GRAD_V2 = register_op(
    f"MaxPoolGradGradV2({_POOLED}, ksize: int32, strides: int32) -> output: T",
    attrs=[_PADDING, _IMAGES, "T: realnumbertype"],
    shape_fn=_forward_shape(lambda c: common_shapes.max_pool_v2_shape(c, 5), 2, 1),
    doc="MaxPoolGradGrad, whose windows are inputs.",
)
register_op(
    "MaxPoolGradGradWithArgmax(input: T, grad: T, argmax: Targmax) -> output: T",
    attrs=_ARGMAX_ATTRS,
    shape_fn=_forward_shape(common_shapes.max_pool_shape, 1, 2),
    doc="The gradient of MaxPoolGradWithArgmax by its gradient.",
    traits="no_kernel=tensorflow",
)
MAX_POOL_3D_GRAD_GRAD = register_op(
    f"MaxPool3DGradGrad({_POOLED}) -> output: T",
    attrs=[*_window_attrs(5), _PADDING, _VOLUMES, "T: realnumbertype"],
    shape_fn=_forward_shape(common_shapes.pool3d_shape, 2, 1),
    doc="The gradient of MaxPool3DGrad by its gradient: for each window, that of its largest element.",
)


def _checked_geometry(x: Array, y: Array, pool: Pool) -> Geometry:
    """The geometry of the pooling that made `y` of `x`, whose shapes are checked."""
    check_rank("tensor_in", x, pool.rank)
    check_rank("tensor_out", y, pool.rank)
    check_shape("orig_output", y.shape, pool.output_shape(x.shape))
    return pool.geometry(x.shape)


def _max_pool_grad(x: Array, y: Array, gradient: Array, pool: Pool) -> Array:
    check_rank("out_backprop", gradient, pool.rank)
    pool.refuse_depth("MaxPoolingGrad")
    geometry = _checked_geometry(x, y, pool)
    check_shape("grad", gradient.shape, y.shape)
    return scatter_to_largest(x, gradient, geometry)


def _max_pool_grad_grad(x: Array, y: Array, gradient: Array, pool: Pool) -> Array:
    """For each window, the gradient of its first element that is the maximum; zero without one."""
    check_rank("out_grad_backprop", gradient, pool.rank)
    pool.refuse_depth("MaxPoolingGradGrad")
    geometry = _checked_geometry(x, y, pool)
    check_shape("grad", gradient.shape, x.shape)
    out = np.zeros(y.shape, gradient.dtype)
    integer = np.dtype(f"i{gradient.itemsize}")  # as in `scatter_to_largest`
    values, chosen = gradient.view(integer), out.view(integer)
    for found, windows, elements in first_equal(x, y, geometry):
        chosen[windows] += values[elements] * found
    return out


@register_kernel(MAX_POOL_GRAD, types={"T": REAL_NUMBERS}, factory=True)
@from_attrs(pool=partial(padded_channels_last_pool, "MaxPoolingGradOp", any_depth=True))
def max_pool_grad(*, pool: Pool) -> Gradient:
    return lambda x, y, gradient: _max_pool_grad(x, y, gradient, pool)


@register_kernel(MAX_POOL_GRAD_GRAD, types={"T": REAL_NUMBERS}, factory=True)
@from_attrs(pool=partial(channels_last_pool, "MaxPoolingGradGradOp", any_depth=True))
def max_pool_grad_grad(*, pool: Pool) -> Gradient:
    return lambda x, y, gradient: _max_pool_grad_grad(x, y, gradient, pool)


def _with_sizes(
    op: str, compute: Callable[[Array, Array, Array, Pool], Array]
) -> Callable[..., Callable[[Array, Array, Array, Array, Array], Array]]:
    """The kernel whose `ksize` and `strides` are inputs."""

    def kernel(
        *, padding: str, data_format: str
    ) -> Callable[[Array, Array, Array, Array, Array], Array]:
        check_channels_last(op, data_format)

        def computed(x: Array, y: Array, gradient: Array, ksize: Array, strides: Array) -> Array:
            sizes, steps = sizes_in_tensor(ksize), sizes_in_tensor(strides)
            is_image = x.ndim == y.ndim == gradient.ndim == len(sizes) == len(steps) == 4
            if is_image and (sizes[3], steps[3]) != (1, 1):  # whatever the other sizes
                raise UnimplementedError(f"{op[:-2]} is not yet supported on the depth dimension.")
            return compute(x, y, gradient, pool_from_attrs(sizes, steps, padding))

        return computed

    return kernel


for _op, _name, _compute in (
    (MAX_POOL_GRAD_V2, "MaxPoolingGradOp", _max_pool_grad),
    (MAX_POOL_GRAD_GRAD_V2, "MaxPoolingGradGradOp", _max_pool_grad_grad),
):
    register_kernel(_op, types={"T": REAL_NUMBERS}, host_memory=["ksize", "strides"], factory=True)(
        _with_sizes(_name, _compute)
    )


@register_kernel(
    MAX_POOL_GRAD_WITH_ARGMAX, types={"T": REAL_NUMBERS, "Targmax": DataType.DT_INT64}, factory=True
)
@from_attrs(pool=partial(pool_from_attrs, sizes_first=True))
def max_pool_grad_with_argmax(*, pool: Pool, include_batch_in_index: bool) -> Gradient:
    def gradient_by_input(x: Array, gradient: Array, argmax: Array) -> Array:
        expected = pool.output_shape(x.shape)
        check_depth_windows(pool, x.shape[-1])
        check_shape("grad", gradient.shape, expected)
        check_shape("argmax", argmax.shape, expected)
        out = np.zeros(x.shape, gradient.dtype)
        if argmax.size:
            indices = argmax.reshape(len(argmax), -1)
            if not include_batch_in_index:
                indices = indices + np.arange(len(argmax))[:, np.newaxis] * (x.size // len(x))
            if indices.min() < 0 or indices.max() >= x.size:
                raise InvalidArgumentError(
                    f"argmax must be indices of an input of {x.size} elements, got one from "
                    f"{indices.min()} to {indices.max()}"
                )
            np.add.at(out.reshape(-1), indices.reshape(-1), gradient.reshape(-1))
        return out

    return gradient_by_input


@register_kernel(
    MAX_POOL_3D_GRAD,
    types={"T": DataType.DT_BFLOAT16, "TInput": DataType.DT_BFLOAT16},
    factory=True,
)
@register_kernel(
    MAX_POOL_3D_GRAD, types={"T": DataType.DT_FLOAT, "TInput": DataType.DT_FLOAT}, factory=True
)
@from_attrs(pool=partial(channels_last_pool, "MaxPooling3dGradOp", rank=5, any_depth=True))
def max_pool_3d_grad(*, pool: Pool) -> Gradient:
    pool.refuse_depth("Pooling")

    def gradient_by_input(x: Array, y: Array, gradient: Array) -> Array:
        check_rank("out_backprop", gradient, 5)
        geometry = _checked_geometry(x, y, pool)
        check_shape("grad", gradient.shape, y.shape)
        out = np.zeros(x.shape, gradient.dtype)
        for _, windows, elements in overlaps(geometry, x.shape[1:-1]):
            largest = x[elements] == y[windows]
            out[elements] += np.where(largest, gradient[windows], gradient.dtype.type(0))
        return out

    return gradient_by_input


@register_kernel(
    MAX_POOL_3D_GRAD_GRAD, types={"T": (DataType.DT_BFLOAT16, DataType.DT_FLOAT)}, factory=True
)
def max_pool_3d_grad_grad(
    *, ksize: list[int], strides: list[int], padding: str, data_format: str
) -> Gradient:
    pool = pool_from_attrs(ksize, strides, padding, rank=5, data_format=data_format, any_depth=True)
    pool.refuse_depth("MaxPooling3dGradGrad")
    check_channels_last("MaxPooling3dGradGradOp", data_format)
    return lambda x, y, gradient: _max_pool_grad_grad(x, y, gradient, pool)


_ATTRS = ("ksize", "strides", "padding", "data_format")


def _linear(back: str) -> g.GradientFunction:
    """The gradient function, by the op that takes a gradient the other way."""

    def gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
        before, after, _ = op.inputs
        attrs = g.attrs_of(op, *_ATTRS)
        for_grad = getattr(g.nodes, back)(before, after, grad, **attrs)
        return g.zeros_like(before), g.zeros_like(after), for_grad

    return gradient


_OF_POOLING = "orig_output counts as that of orig_input"
for _pooling, _back in (
    ("MaxPoolGrad", "MaxPoolGradGrad"),
    ("MaxPoolGradGrad", "MaxPoolGrad"),
    ("MaxPool3DGrad", "MaxPool3DGradGrad"),
    ("MaxPool3DGradGrad", "MaxPool3DGrad"),
):
    g.register_gradient(_pooling, not_derivative=_OF_POOLING)(_linear(_back))


@g.register_gradient("MaxPoolGradV2", not_derivative=_OF_POOLING)
def max_pool_grad_v2_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    before, after, _, *window = op.inputs
    attrs = g.attrs_of(op, "padding", "data_format")
    for_grad = g.nodes.MaxPoolGradGradV2(before, after, grad, *window, **attrs)
    return g.zeros_like(before), g.zeros_like(after), for_grad, None, None
