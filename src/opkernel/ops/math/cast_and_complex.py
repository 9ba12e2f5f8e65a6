"""Changing the type of a tensor, complex numbers and their parts, and gradients.

Cast converts the values, Bitcast reads their bytes anew.

Source: TensorFlow core/ops/math_ops.cc, array_ops.cc, core/kernels/cast_op.cc, cast_op.h, bitcast_op.cc,
cwise_op_complex.cc, cwise_op_real.cc, cwise_op_imag.cc, cwise_op_arg.cc, cwise_op_abs.cc, cwise_op_conj.cc.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import opkernel.gradients as g
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import OpKernelConstruction, forward_input
from opkernel.opdef import DimensionHandle, InferenceContext, OpHandle, ShapeHandle, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_shape, unchanged_shape
from opkernel.ops.math.elementwise import (
    POINTWISE,
    complex_from_parts,
    flush_subnormals,
    register_ufunc,
)
from opkernel.ops.registration import (
    ALL_QUANTIZED,
    COMPLEX,
    FLOAT8,
    FLOATS,
    INTEGERS,
    POD,
    REAL_OF,
    register_kernel,
)
from opkernel.types import DataType

Convert = Callable[[Any], Any]

_CAST_ATTRS = ["SrcT: type", "DstT: type", "Truncate: bool = false"]
CAST = register_op(
    "Cast(x: SrcT) -> y: DstT",
    attrs=_CAST_ATTRS,
    shape_fn=unchanged_shape,
    traits="pointwise cannot_fail value_rule=cast function_gradient=yes",
    doc="The values of `x` as numbers of the type `DstT`. Fractions are cut off where integers are "
    "wanted, imaginary parts where real numbers are. `Truncate` cuts off the digits that a "
    "narrower float lacks, too, in place of rounding.",
)

HOST_CAST = register_op(
    "_HostCast(x: SrcT) -> y: DstT",
    attrs=_CAST_ATTRS,
    shape_fn=unchanged_shape,
    traits="pointwise cannot_fail value_rule=cast",
    doc="Cast of a tensor in host memory.",
)

_PLAIN = frozenset((*POD, *ALL_QUANTIZED))
_INT4 = frozenset((DataType.DT_INT4, DataType.DT_UINT4))
_WHOLE = frozenset((*INTEGERS, *ALL_QUANTIZED))

_DIGITS = {
    DataType.DT_DOUBLE: 53,
    DataType.DT_FLOAT: 24,
    DataType.DT_HALF: 11,
    DataType.DT_BFLOAT16: 8,
    DataType.DT_FLOAT8_E4M3FN: 4,
    DataType.DT_FLOAT8_E5M2: 3,
}
"""Binary digits of the significand."""

_TRUNCATING = {
    DataType.DT_DOUBLE: (DataType.DT_FLOAT, DataType.DT_COMPLEX64, DataType.DT_HALF, *FLOAT8),
    DataType.DT_FLOAT: (DataType.DT_BFLOAT16, DataType.DT_HALF, *FLOAT8),
    DataType.DT_BFLOAT16: FLOAT8,
    DataType.DT_HALF: FLOAT8,
    DataType.DT_FLOAT8_E4M3FN: (DataType.DT_FLOAT8_E5M2,),
    DataType.DT_COMPLEX64: (DataType.DT_HALF,),
    DataType.DT_COMPLEX128: (DataType.DT_FLOAT, DataType.DT_COMPLEX64, DataType.DT_HALF),
}
"""The pairs of types that `Truncate` makes a difference for."""


@register_kernel(CAST, kind="elementwise", factory=True)
@register_kernel(HOST_CAST, kind="elementwise", factory=True)
def cast(*, SrcT: DataType, DstT: DataType, Truncate: bool, xp: Any) -> Convert:
    source, target = SrcT.base, DstT.base
    if source == target:
        return forward_input
    if not _is_supported(source, target):
        raise UnimplementedError(f"Cast {source.string} to {target.string} is not supported")
    if Truncate and target in _TRUNCATING.get(source, ()):
        return _truncating_cast(source, target, xp)
    return _cast(source, target, xp)


def _is_supported(source: DataType, target: DataType) -> bool:
    if source in FLOAT8:
        return target in _PLAIN or target in FLOAT8
    if target in FLOAT8:
        return source in FLOATS
    if source in _INT4 or target in _INT4:
        return source in _INT4 | _WHOLE and target in _INT4 | _WHOLE
    return source in _PLAIN and target in _PLAIN


def _cast(source: DataType, target: DataType, xp: Any) -> Convert:
    dtype = target.numpy_dtype
    if source in COMPLEX and target not in COMPLEX:
        return lambda x: x.real.astype(dtype)
    if source.size < 4 and source.is_floating and target in _WHOLE:
        # Values that do not fit become what they become for float: NumPy's own answers differ by type.
        return lambda x: x.astype(np.float32).astype(dtype)
    if source in FLOATS and target == DataType.DT_BOOL:
        return lambda x: flush_subnormals(x, xp).astype(dtype)
    if source in _INT4 and target in _INT4:
        return lambda x: x.astype(np.int8).astype(dtype)
    return lambda x: x.astype(dtype)


def _truncating_cast(source: DataType, target: DataType, xp: Any) -> Convert:
    part = REAL_OF.get(source, source)
    kept = _DIGITS.get(REAL_OF.get(target, target), 0)
    if target not in _DIGITS and source == part:
        kept = 0  # TensorFlow takes it that a complex number has no digits
    dtype, bits = target.numpy_dtype, np.dtype(f"uint{part.size * 8}")
    mask = bits.type(2 ** (part.size * 8) - 2 ** (_DIGITS[part] - kept))

    def truncated(x: Any) -> Any:
        cut = (x.view(bits) & mask).view(part.numpy_dtype)
        return xp.where(xp.isnan(x), x, cut)

    if target in COMPLEX and source in COMPLEX:
        return lambda x: complex_from_parts(truncated(x.real), truncated(x.imag), xp).astype(dtype)
    if source in COMPLEX:
        return lambda x: truncated(x.real).astype(dtype)
    return lambda x: truncated(x).astype(dtype)


def bitcast_shape(c: InferenceContext) -> None:
    """Smaller elements add a last dimension, larger ones consume it."""
    shape = c.input(0)
    source, target = c.get_attr("T"), c.get_attr("type")
    if not c.rank_known(shape):
        c.set_output(0, c.unknown_shape())
    elif source.size < target.size:
        c.set_output(0, _without_last(c, shape, source, target))
    elif source.size > target.size:
        c.set_output(0, c.concatenate(shape, c.vector(source.size // target.size)))
    else:
        c.set_output(0, shape)


def _without_last(
    c: InferenceContext, shape: ShapeHandle, source: DataType, target: DataType
) -> ShapeHandle:
    shape = c.with_rank_at_least(shape, 1)
    last: DimensionHandle = c.dim(shape, -1)
    expected = target.size // source.size
    if c.value_known(last) and c.value(last) != expected:
        raise InvalidArgumentError(
            f"Cannot bitcast from {int(source)} to {int(target)} due to shape. "
            f"{c.value(last)} does not match {expected}"
        )
    return c.subshape(shape, 0, -1)


_BITCAST_TYPES = (
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, uint32, uint64, int8, int16, "
    "complex64, complex128, qint8, quint8, qint16, quint16, qint32}"
)

BITCAST = register_op(
    "Bitcast(input: T) -> output: type",
    attrs=[f"T: {_BITCAST_TYPES}", f"type: {_BITCAST_TYPES}"],
    shape_fn=bitcast_shape,
    doc="The bytes of `input` read as numbers of `type`. A smaller type adds a last dimension; for "
    "a larger one the last dimension must hold just the bytes of one number.",
    traits="mostly_copies",
)


@register_kernel(BITCAST, kind="view", factory=True)
def bitcast(*, T: DataType, type: DataType) -> Convert:
    dtype = type.numpy_dtype
    if T.size == type.size:
        return lambda tensor: tensor.view(dtype)
    if T.size > type.size:
        return lambda tensor: np.ascontiguousarray(tensor[..., np.newaxis]).view(dtype)
    count = type.size // T.size

    def join(tensor: Any) -> Any:
        if tensor.ndim == 0 or tensor.shape[-1] != count:
            raise InvalidArgumentError(
                f"Cannot bitcast from {int(T)} to {int(type)}: the last dimension of "
                f"{list(tensor.shape)} is not {count}"
            )
        return np.ascontiguousarray(tensor).view(dtype)[..., 0]

    return join


_CONTINUOUS = frozenset((*FLOATS, *COMPLEX))


@g.register_gradient("Cast")
def cast_gradient(op: g.Operation, grad: g.Tensor) -> g.Gradients:
    source = op.inputs[0].dtype.base
    if source not in _CONTINUOUS or grad.dtype.base not in _CONTINUOUS:
        return None
    return g.nodes.Cast(grad, DstT=source)


_COMPLEX_ATTR = "T: {complex64, complex128} = DT_COMPLEX64"
_REAL_ATTR = "Tout: {float, double} = DT_FLOAT"

MAKE_COMPLEX = register_op(
    "Complex(real: T, imag: T) -> out: Tout",
    attrs=["T: {float, double} = DT_FLOAT", "Tout: {complex64, complex128} = DT_COMPLEX64"],
    shape_fn=broadcast_binary_op_shape,
    traits=f"{POINTWISE} cost=linear function_gradient=yes",
    doc="The complex numbers `real + imag * i`.",
)

for _complex, _real in REAL_OF.items():

    @register_kernel(MAKE_COMPLEX, types={"T": _real, "Tout": _complex}, kind="elementwise")
    def make_complex(real: Any, imag: Any, *, xp: Any) -> Any:
        return complex_from_parts(real, imag, xp)


CONJ = register_op(
    "Conj(input: T) -> output: T",
    attrs=["T: {complex64, complex128, variant} = DT_COMPLEX64"],
    shape_fn=unchanged_shape,
    traits=f"{POINTWISE} cheap involution function_gradient=yes",
    doc="The complex conjugate of `input`.",
)
register_ufunc(CONJ, np.conjugate, COMPLEX)


def _declare_part(name: str, doc: str, part: Callable[[Any, Any], Any]) -> OpHandle:
    """An op that gives a real number for each complex one; `part` takes the tensor and `xp`."""
    op = register_op(
        f"{name}(input: T) -> output: Tout",
        attrs=[_COMPLEX_ATTR, _REAL_ATTR],
        shape_fn=unchanged_shape,
        traits=f"{POINTWISE} function_gradient=yes",
        doc=doc,
    )
    for complex_type, real_type in REAL_OF.items():

        @register_kernel(op, types={"T": complex_type, "Tout": real_type}, kind="elementwise")
        def kernel(input: Any, *, xp: Any) -> Any:
            return part(input, xp)

    return op


REAL = _declare_part("Real", "The real part of `input`.", lambda x, xp: xp.real(x).copy())
IMAG = _declare_part("Imag", "The imaginary part of `input`.", lambda x, xp: xp.imag(x).copy())
ANGLE = _declare_part(
    "Angle",
    "The angle of `input` in the complex plane, in radians.",
    lambda x, xp: xp.arctan2(xp.imag(x), xp.real(x)),
)

COMPLEX_ABS = register_op(
    "ComplexAbs(x: T) -> y: Tout",
    attrs=[_COMPLEX_ATTR, _REAL_ATTR],
    shape_fn=unchanged_shape,
    traits=POINTWISE,
    doc="The distance of `x` from 0.",
)


@register_kernel(COMPLEX_ABS, types={"T": COMPLEX}, kind="elementwise", factory=True)
def complex_abs(*, construction: OpKernelConstruction, T: DataType, xp: Any) -> Any:
    construction.match_signature([T], [REAL_OF[T]])
    return xp.abs
