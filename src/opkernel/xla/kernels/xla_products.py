"""XlaDot, XlaConv, XlaEinsum: products as XLA has them, their dimensions given by number.

Source: TensorFlow compiler/tf2xla/kernels/xla_dot_op.cc, xla_conv_op.cc, einsum_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from opkernel.errors import InvalidArgumentError
from opkernel.ops.declared.dimension_numbers import dimension_numbers as fields_of
from opkernel.types import DataType
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel

_Product = Callable[..., Any]


def _precision(config: str) -> Any:
    """The precision that a PrecisionConfig asks for, of each operand."""
    asked = fields_of(config)[1]
    return tuple(map(lax().Precision, asked)) if len(asked) == 2 else None


def _alike(lhs: Any, rhs: Any, dtype: Any) -> tuple[Any, Any]:
    """Operands of one type: that of the result, if theirs differ."""
    return (lhs, rhs) if lhs.dtype == rhs.dtype else (lhs.astype(dtype), rhs.astype(dtype))


def _dot(numbers: str, config: str) -> _Product:
    fields = fields_of(numbers)
    contracted, batched = (fields[1], fields[2]), (fields[3], fields[4])
    precision = _precision(config)

    def dot(lhs: Any, rhs: Any, dtype: Any) -> Any:
        left, right = _alike(lhs, rhs, dtype)
        return lax().dot_general(
            left, right, (contracted, batched), precision=precision, preferred_element_type=dtype
        )

    return dot


@register_xla_kernel("XlaDot", factory=True)
def xla_dot(*, dimension_numbers: str, precision_config: str) -> _Product:
    dot = _dot(dimension_numbers, precision_config)
    return lambda lhs, rhs: dot(lhs, rhs, lhs.dtype)


@register_xla_kernel("XlaDotV2", factory=True)
def xla_dot_v2(
    *, dimension_numbers: str, precision_config: str, preferred_element_type: DataType
) -> _Product:
    dot = _dot(dimension_numbers, precision_config)
    return lambda lhs, rhs: dot(lhs, rhs, preferred_element_type.numpy_dtype)


@register_xla_kernel("XlaEinsum", factory=True)
def xla_einsum(*, equation: str) -> _Product:
    return lambda a, b: jnp().einsum(equation, a, b)


def _layout(numbers: str) -> Any:
    """The ConvDimensionNumbers of a ConvolutionDimensionNumbers; a number that is 0 is not written there."""
    fields = fields_of(numbers)
    (
        kernel_in,
        kernel_out,
        batch,
        feature,
        out_batch,
        out_feature,
    ) = (fields[number][0] if fields[number] else 0 for number in (3, 4, 7, 8, 9, 10))
    return lax().ConvDimensionNumbers(
        lhs_spec=(batch, feature, *fields[11]),
        rhs_spec=(kernel_out, kernel_in, *fields[6]),
        out_spec=(out_batch, out_feature, *fields[12]),
    )


class _Window(NamedTuple):
    """The inputs of a convolution that are known when it is compiled."""

    window_strides: Any
    padding: Any
    lhs_dilation: Any
    rhs_dilation: Any
    feature_group_count: Any


def _conv(numbers: str, config: str, batch_groups: int) -> _Product:
    layout, precision = _layout(numbers), _precision(config)

    def conv(dtype: Any, lhs: Any, rhs: Any, window: _Window) -> Any:
        padding = window.padding
        if padding.shape != (lhs.ndim - 2, 2):
            raise InvalidArgumentError(
                f"padding must have two numbers for each of {lhs.ndim - 2} spatial dimensions, its shape "
                f"is {list(padding.shape)}"
            )
        return lax().conv_general_dilated(
            *_alike(lhs, rhs, dtype),
            window.window_strides.tolist(),
            padding.tolist(),
            window.lhs_dilation.tolist(),
            window.rhs_dilation.tolist(),
            layout,
            feature_group_count=int(window.feature_group_count),
            batch_group_count=batch_groups,
            precision=precision,
            preferred_element_type=dtype,
        )

    return conv


@register_xla_kernel("XlaConv", compile_time_constants=_Window._fields, factory=True)
def xla_conv(*, dimension_numbers: str, precision_config: str) -> _Product:
    conv = _conv(dimension_numbers, precision_config, 1)
    return lambda lhs, rhs, *window: conv(lhs.dtype, lhs, rhs, _Window(*window))


@register_xla_kernel("XlaConvV2", compile_time_constants=_Window._fields, factory=True)
def xla_conv_v2(
    *,
    dimension_numbers: str,
    precision_config: str,
    preferred_element_type: DataType,
    batch_group_count: int,
) -> _Product:
    conv = _conv(dimension_numbers, precision_config, batch_group_count)
    dtype = preferred_element_type.numpy_dtype
    return lambda lhs, rhs, *window: conv(dtype, lhs, rhs, _Window(*window))
