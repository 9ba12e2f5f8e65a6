"""Loops of half numbers: each is made a float, and the result a half number again, by instructions of the processor.

NumPy does both one by one, in 2 to 3 ns a number.
"""

import importlib
import platform
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from opkernel.ops.math import arithmetic
from opkernel.ops.math.elementwise import kernel_of_body
from opkernel.providers.loops.compiled_loop import instruction_in_loops
from opkernel.providers.loops.elementwise import register_elements
from opkernel.types import DataType

_F = np.float32


def _instructions(numba: ModuleType) -> Any:
    """The instructions of LLVM; raises where it would call a function of a library instead, which may be missing."""
    is_host = numba.config.CPU_NAME is None and numba.config.CPU_FEATURES is None
    features = importlib.import_module("llvmlite.binding").get_host_cpu_features()
    is_arm = platform.machine().lower() in ("arm64", "aarch64")
    if not is_arm and not (is_host and features.get("f16c")):
        raise NotImplementedError("this processor has no instructions for half numbers")
    return importlib.import_module("llvmlite.ir")


def _widening(numba: ModuleType) -> Callable[..., Any]:
    ir = _instructions(numba)

    def typed(_: Any, bits: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return builder.fpext(builder.bitcast(given[0], ir.HalfType()), ir.FloatType())

        return numba.types.float32(numba.types.uint16), build

    widen = numba.extending.intrinsic(typed)
    return lambda bits: widen(bits)


def _rounding(numba: ModuleType) -> Callable[..., Any]:
    ir = _instructions(numba)

    def typed(_: Any, x: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            return builder.bitcast(builder.fptrunc(given[0], ir.HalfType()), ir.IntType(16))

        return numba.types.uint16(numba.types.float32), build

    narrow = numba.extending.intrinsic(typed)
    return lambda x: narrow(x)


@instruction_in_loops(_widening)
def widened(bits: Any) -> Any:
    """The half number of these 16 bits as float."""
    return _F(np.uint16(bits).view(np.float16))


@instruction_in_loops(_rounding)
def rounded(x: Any) -> Any:
    """The 16 bits of the half number nearest to a float."""
    return np.float16(x).view(np.uint16)


def _reciprocal(x: Any) -> Any:
    return rounded(_F(1) / widened(x))


def _floor_div(x: Any, y: Any) -> Any:
    return rounded(np.floor(widened(rounded(widened(x) / widened(y)))))


def _truncate_div(x: Any, y: Any) -> Any:
    return rounded(np.trunc(widened(rounded(widened(x) / widened(y)))))


def _floor_mod(x: Any, y: Any) -> Any:
    divisor = widened(y)
    remainder = np.fmod(widened(x), divisor)
    if remainder != 0 and (divisor < 0) != (remainder < 0):
        remainder = remainder + divisor
    return rounded(remainder)


# A choice between quotients, or what is computed for one side, would become a branch.


def _div_no_nan(x: Any, y: Any) -> Any:
    number, divisor = widened(x), widened(y)
    number = _F(0) if divisor == 0 else number
    return rounded(number / (_F(1) if divisor == 0 else divisor))


def _xdivy(x: Any, y: Any) -> Any:
    number, divisor = widened(x), widened(y)
    return rounded(number / (_F(1) if number == 0 else divisor))


def register_narrow(
    op: Any,
    each: Callable[..., Any],
    body: Callable[..., Any],
    type: DataType = DataType.DT_HALF,
    *,
    in_float: bool = False,
) -> None:
    """Register the kernel of an op of one or two tensors of 16 bits.

    Args:
        op: The op.
        each: Computes the bits of an element of those of the inputs; a part of loops.
        body: Computes the same, as `register_body` takes it.
        type: The type.
        in_float: As of `register_body`.
    """
    general = kernel_of_body(body, type, np, in_float=in_float)
    register_elements(op, each, general, type, seen_as=np.uint16)


for _op in (arithmetic.INV, arithmetic.RECIPROCAL):
    register_narrow(_op, _reciprocal, arithmetic.reciprocal, in_float=True)
register_narrow(arithmetic.DIV_NO_NAN, _div_no_nan, arithmetic.div_no_nan, in_float=True)
register_narrow(arithmetic.XDIVY, _xdivy, arithmetic.quotient_or_zero, in_float=True)
register_narrow(arithmetic.FLOOR_DIV, _floor_div, arithmetic.floor_div)
register_narrow(arithmetic.TRUNCATE_DIV, _truncate_div, arithmetic.truncate_div)
register_narrow(arithmetic.FLOOR_MOD, _floor_mod, arithmetic.floor_mod)
