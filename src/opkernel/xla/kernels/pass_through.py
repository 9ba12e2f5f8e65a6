"""Ops that pass their inputs on: those that check values, and those that mean something to a compiler.

Compiled code does not check values: Assert, CheckNumerics. A program runs on one device, as its only replica, and no
dimension changes its size: XlaSharding, XlaOptimizationBarrier and their kin. ToBool says what counts as true.

Source: TensorFlow compiler/tf2xla/kernels/sharding_op.cc, replica_id_op.cc, optimization_barrier_op.cc,
reduce_precision_op.cc, xla_dequantize_op.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel.function_kernel import forward_input
from opkernel.ops.logging_ops import check_has_truth
from opkernel.types import DataType, PartialTensorShape
from opkernel.xla.context import XlaOpKernel, XlaOpKernelContext
from opkernel.xla.jax_numpy import jnp, lax
from opkernel.xla.register_kernel import register_xla_kernel

__all__ = ["truth"]


register_xla_kernel(["CheckNumerics", "CheckNumericsV2"])(forward_input)


@register_xla_kernel("Assert", strings=True)
class AssertOp(XlaOpKernel):
    """Nothing is asserted, as in TensorFlow."""

    def compile(self, ctx: XlaOpKernelContext) -> None:
        """Add nothing to the program."""


def truth(tensor: Any) -> Any:
    """Whether a tensor counts as true: a scalar that is not zero, or another tensor with elements."""
    return np.asarray(tensor.size > 0) if tensor.ndim else tensor != 0


@register_xla_kernel("ToBool")
def to_bool(tensor: Any, *, T: DataType) -> Any:
    if not tensor.ndim:
        check_has_truth(T)
    return truth(tensor)


register_xla_kernel(["XlaSharding", "_ArrayToList", "_EagerConst", "_ListToArray"])(forward_input)


@register_xla_kernel("XlaSpmdFullToShardShape")
def xla_spmd_full_to_shard_shape(input: Any) -> Any:
    """The tensor itself: the one device has all of it."""
    return input


@register_xla_kernel("XlaSpmdShardToFullShape")
def xla_spmd_shard_to_full_shape(input: Any, *, full_shape: PartialTensorShape) -> Any:
    """The tensor itself, whose shape is that of the whole."""
    if list(input.shape) != full_shape.as_list():
        raise InternalError(
            f"XlaSpmdShardToFullShape: on one device full_shape {full_shape} must be the shape of the "
            f"input, {list(input.shape)}"
        )
    return input


@register_xla_kernel("XlaSetBound", compile_time_constants=["bound"])
@register_xla_kernel("XlaRemoveDynamicDimensionSize", compile_time_constants=["dim_index"])
def first_input(input: Any, _: Any) -> Any:
    return input


@register_xla_kernel("XlaOptimizationBarrier")
def xla_optimization_barrier(input: list[Any]) -> list[Any]:
    """Nothing is moved across."""
    return list(lax().optimization_barrier(tuple(input)))


@register_xla_kernel("XlaReplicaId")
def xla_replica_id() -> Any:
    return np.zeros((), np.int32)


@register_xla_kernel("DeviceIndex", factory=True)
def device_index(*, device_names: list[str]) -> Callable[[], Any]:
    """The number of names: a program is compiled for no device of them, as in TensorFlow."""
    return lambda: np.array(len(device_names), np.int32)


@register_xla_kernel("FakeParam", factory=True)
def fake_param(*, dtype: DataType, shape: PartialTensorShape) -> Callable[[], Any]:
    """Zeros, which nobody looks at."""
    return lambda: jnp().zeros(tuple(shape.as_tensor_shape()), dtype.numpy_dtype)


@register_xla_kernel("XlaReducePrecision", factory=True)
def xla_reduce_precision(*, exponent_bits: int, mantissa_bits: int) -> Callable[[Any], Any]:
    return lambda operand: lax().reduce_precision(operand, exponent_bits, mantissa_bits)


@register_xla_kernel("XlaDequantize", factory=True)
def xla_dequantize(
    *, min_range: float, max_range: float, mode: str, transpose_output: bool
) -> Callable[[Any], Any]:
    """Four numbers of 8 bits from each of 32, those of the upper bits first; computed in bfloat16."""
    if mode != "MIN_COMBINED":
        raise InvalidArgumentError(f"XlaDequantize needs the mode MIN_COMBINED, not {mode!r}")
    scale = (max_range - min_range) / 255

    def dequantized(input: Any) -> Any:
        shifts = jnp().arange(24, -8, -8, dtype=input.dtype)
        parts = (input[..., None] >> shifts) & 0xFF
        numbers = parts.reshape((*input.shape[:-1], -1)).astype("bfloat16") * scale + min_range
        return numbers.swapaxes(-1, -2) if transpose_output else numbers

    return dequantized
