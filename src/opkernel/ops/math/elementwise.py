"""Declaring ops that work element by element, and making their kernels.

A kernel that is one ufunc is registered as that ufunc. A kernel that takes several steps is a
*body*: a function of arrays and of the array namespace `xp`, written for one type. `register_body`
makes the kernel of it. A body takes the steps of TensorFlow's kernel, so that half and bfloat16 are
rounded after the same steps. Large arrays are computed block by block, so that the results between the
steps stay in the processor's cache.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from opkernel.kernel import KernelRegistry, Kind, shard
from opkernel.opdef import OpHandle, register_op
from opkernel.opdef.common_shapes import broadcast_binary_op_shape, unchanged_shape
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

Types = Sequence[DataType]
Op = OpHandle | str
"""An op, or its name."""

FLOATS_SPEC = "bfloat16, half, float, double"
COMPLEX_SPEC = "complex64, complex128"

POINTWISE = "pointwise cannot_fail"
"""The traits of most ops that work element by element."""

_NARROW = frozenset({DataType.DT_BFLOAT16, DataType.DT_HALF})
_BLOCK = 1 << 16  # with smaller ones threads wait for each other between the steps
_NUMBERS_OF_16_BITS = 1 << 16
_FEW = 1 << 12
_IN_BLOCKS_FROM = 1 << 18  # below, the results between the steps stay in the cache anyway
_EXPONENT, _SIGN, _MAGNITUDE = (
    np.uint16(0x7F80),
    np.uint16(0x8000),
    np.uint16(0x7FFF),
)  # of bfloat16
_ONE, _LARGEST_SUBNORMAL = np.uint16(1), np.uint16(0x7F)
_TINY = float(np.finfo(np.float32).tiny)
_TINY_DOUBLE = float(np.finfo(np.float64).tiny)


def unary_op(name: str, types: str, doc: str, *, traits: str = "", output: str = "T") -> OpHandle:
    """Declare an op of one tensor `x` that gives one of the same shape."""
    return register_op(
        f"{name}(x: T) -> y: {output}",
        attrs=[f"T: {{{types}}}"],
        shape_fn=unchanged_shape,
        traits=f"{POINTWISE} {traits}",
        doc=doc,
    )


def binary_op(
    name: str,
    types: str,
    doc: str,
    *,
    output: str = "T",
    traits: str = "",
    can_fail: bool = False,
    **rules: Any,
) -> OpHandle:
    """Declare an op of two tensors, `x` and `y` if no others follow the name, that are broadcast.

    `types` is the list of types, or the name of a group (`realnumbertype`); `rules` go to `register_op`.
    """
    return register_op(
        f"{name if '(' in name else f'{name}(x: T, y: T)'} -> z: {output}",
        attrs=[f"T: {types}" if types.endswith("numbertype") else f"T: {{{types}}}"],
        shape_fn=broadcast_binary_op_shape,
        traits=f"{'pointwise' if can_fail else POINTWISE} {traits}",
        doc=doc,
        **rules,
    )


def register_ufunc(op: Op, ufunc: np.ufunc, types: Types) -> None:
    """Register a ufunc as the CPU kernel of `op` for `types`."""
    register_kernel(op, types={"T": types}, kind="elementwise")(ufunc)


def register_body(
    op: Op,
    body: Callable[..., Any],
    types: Types,
    *,
    in_float: bool = False,
    kind: Kind = "elementwise",
    registry: KernelRegistry | None = None,
) -> None:
    """Register `body(*inputs, xp=...)` as the CPU kernel of `op` for `types`.

    Half and bfloat16 are rounded after each step; with `in_float` once, at the end. Numbers that the
    body names have the type of its inputs (`x.dtype.type(0.5)`): with a Python float, bfloat16 becomes
    float.
    """

    @register_kernel(op, types={"T": types}, kind=kind, factory=True, registry=registry)
    def make(*, T: DataType, xp: Any) -> Callable[..., Any]:
        return kernel_of_body(body, T, xp, in_float=in_float)


def kernel_of_body(
    body: Callable[..., Any], T: DataType, xp: Any, *, in_float: bool = False
) -> Callable[..., Any]:
    """The function of the inputs, of type `T`, that `body(*inputs, xp=...)` describes."""
    function: Callable[..., Any] = partial(body, xp=xp)
    if in_float and T in _NARROW:
        function = _in_float(function, T.numpy_dtype)
    if xp is np and T is DataType.DT_BFLOAT16:
        function = _flushed(function)
    if xp is np and T in _NARROW:
        function = _by_table(function, T.numpy_dtype)
    return in_blocks(function) if xp is np else function


def register_flushed(op: Op, ufunc: np.ufunc, types: Types) -> None:
    """Register a ufunc of inputs without subnormal numbers (`flush_subnormals`)."""

    def body(*inputs: Any, xp: Any) -> Any:
        return getattr(xp, ufunc.__name__)(*[flush_subnormals(tensor, xp) for tensor in inputs])

    register_body(op, body, types)


def _in_float(function: Callable[..., Any], dtype: "np.dtype[Any]") -> Callable[..., Any]:
    """The function computed in float, with a result of `dtype`."""

    def widened(*inputs: Any) -> Any:
        result = function(*[tensor.astype(np.float32) for tensor in inputs])
        return result.astype(dtype) if result.dtype == np.float32 else result

    return widened


def _flushed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without subnormal numbers, neither as inputs nor as result."""

    def flushed(*inputs: Any) -> Any:
        result = function(*[flush_subnormals(tensor, np) for tensor in inputs])
        return flush_subnormals(result, np)

    return flushed


def _by_table(function: Callable[..., Any], dtype: "np.dtype[Any]") -> Callable[..., Any]:
    """The function; of one large array, its results are looked up among those of all numbers of the type."""
    tables: list[Any] = []

    def looked_up(*inputs: Any) -> Any:
        if len(inputs) > 1 or inputs[0].size < _NUMBERS_OF_16_BITS:
            return function(*inputs)
        if not tables:
            numbers = np.arange(_NUMBERS_OF_16_BITS, dtype=np.uint16)
            tables.append(np.asarray(function(numbers.view(dtype))))
        return tables[0].take(np.asarray(inputs[0]).view(np.uint16))

    return looked_up


def in_blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function applied to large arrays of one shape block by block, on all threads."""

    def blockwise(*inputs: Any) -> Any:
        first = inputs[0]
        size = first.size
        if size < _IN_BLOCKS_FROM or any(tensor.shape != first.shape for tensor in inputs):
            return function(*inputs)
        flat = [tensor.reshape(-1) for tensor in inputs]
        head = function(*[tensor[:_BLOCK] for tensor in flat])
        result = np.empty(first.shape, head.dtype)
        whole = result.reshape(-1)
        whole[:_BLOCK] = head

        def compute(start: int) -> None:
            piece = slice(start, start + _BLOCK)
            whole[piece] = function(*[tensor[piece] for tensor in flat])

        shard(compute, range(_BLOCK, size, _BLOCK))
        return result

    return blockwise


def flush_subnormals(tensor: Any, xp: Any) -> Any:
    """The tensor with numbers too small for the normal format made 0, as TensorFlow's threads do.

    TensorFlow and XLA have processors do so for every operation. Under NumPy, only kernels do it whose
    result would differ by more than such a number, and kernels of several steps for bfloat16. Half has no
    such numbers: it is computed in float.
    """
    if xp is not np or tensor.dtype == np.float16 or tensor.dtype.kind in "iu":
        return tensor
    if tensor.dtype.itemsize == 2:
        bits = np.asarray(tensor).view(np.uint16)
        magnitudes = bits.reshape(-1) & _MAGNITUDE
        if not (magnitudes - _ONE < _LARGEST_SUBNORMAL).any():  # 0 less 1 is the largest
            return tensor
        kept = np.where(bits & _EXPONENT, bits, bits & _SIGN)
        return kept.view(tensor.dtype)
    sizes, tiny = np.abs(tensor), _TINY_DOUBLE if tensor.dtype == np.float64 else _TINY
    if np.min(sizes, initial=np.inf) >= tiny:
        return tensor
    return tensor * ~(sizes < tiny)  # NaN stays


def counts_as_zero(x: Any, xp: Any) -> Any:
    """Whether a number is 0, or too small for the normal format (`flush_subnormals`)."""
    if x.dtype.itemsize == 2:  # of half those count; bfloat16 has none left
        return x == 0
    return xp.abs(x) < (_TINY_DOUBLE if x.dtype == np.float64 else _TINY)


def choice(condition: Any, x: Any, y: Any, xp: Any) -> Any:
    """`where` of tensors of one shape and type.

    Of large arrays of float or double the bits are masked: NumPy's function takes a branch for each element,
    which costs four times as much where the processor cannot guess it.
    """
    if xp is not np or y.size <= _FEW or y.dtype.char not in "fd" or x.dtype != y.dtype:
        return xp.where(condition, x, y)
    integer = np.dtype(f"i{y.dtype.itemsize}")
    mask = condition.astype(integer)
    np.negative(mask, mask)
    bits = x.view(integer) ^ y.view(integer)
    bits &= mask
    bits ^= y.view(integer)
    return bits.view(y.dtype)


# Complex arithmetic as Eigen does it, which decides what zeros and infinities give.


def complex_from_parts(real: Any, imag: Any, xp: Any) -> Any:
    """The complex tensor of two real ones; `real + 1j * imag` would make NaN of infinities."""
    if xp is not np:
        return real + 1j * imag
    shape = np.broadcast_shapes(real.shape, imag.shape)
    result = np.empty(shape, np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imag
    return result


def complex_quotient(x: Any, y: Any, *, xp: Any) -> Any:
    """`x / y`, with `y` scaled so that its square neither overflows nor vanishes."""
    scale = xp.maximum(xp.abs(y.real), xp.abs(y.imag))
    real, imag = y.real / scale, y.imag / scale
    norm = real * real + imag * imag
    return complex_from_parts(
        (x.real * real + x.imag * imag) / norm / scale,
        (x.imag * real - x.real * imag) / norm / scale,
        xp,
    )
