"""Complex arithmetic as Eigen does it, which decides what zeros and infinities give."""

from typing import Any

import numpy as np

__all__ = ["complex_from_parts", "complex_quotient"]


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
