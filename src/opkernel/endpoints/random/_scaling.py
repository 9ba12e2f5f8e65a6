"""Numbers of a standard distribution as numbers of another one."""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.tensors import DTypeLike, dtype_of, like, shape_of
from opkernel.types import DataType, as_dtype


def scaled(numbers: Any, mean: Any, stddev: Any) -> Any:
    """`numbers * stddev + mean`, both of the type of the numbers."""
    dtype = dtype_of(numbers)
    product = raw_ops.Mul(x=numbers, y=like(stddev, dtype))
    return raw_ops.AddV2(x=product, y=like(mean, dtype))


def between(numbers: Any, minval: Any, maxval: Any) -> Any:
    """Numbers from 0 to 1 as numbers from `minval` to `maxval`."""
    dtype = dtype_of(numbers)
    high = like(1 if maxval is None else maxval, dtype)
    if isinstance(minval, int | float) and minval == 0:
        is_unit = maxval is None or (isinstance(maxval, int | float) and maxval == 1)
        return numbers if is_unit else raw_ops.Mul(x=numbers, y=high)
    low = like(minval, dtype)
    return raw_ops.AddV2(x=raw_ops.Mul(x=numbers, y=raw_ops.Sub(x=high, y=low)), y=low)


def check_uniform(dtype: DataType, maxval: Any) -> None:
    """Raise ValueError where integers have no limit."""
    if dtype.is_integer and maxval is None:
        raise ValueError(f"maxval has to be given for the integers of {dtype.tf_name}")


def gamma_parts(alpha: Any, beta: Any, dtype: DTypeLike) -> tuple[Any, Any]:
    """The shape and rate of gamma distributions, `alpha` in the shape that both are broadcast to."""
    wanted = as_dtype(dtype)
    shapes, rates = like(alpha, wanted), like(1 if beta is None else beta, wanted)
    both = raw_ops.BroadcastArgs(s0=shape_of(shapes), s1=shape_of(rates))
    return raw_ops.BroadcastTo(input=shapes, shape=both), rates


def at_rate(numbers: Any, rates: Any) -> Any:
    """Gamma numbers of rate 1 as those of other rates: above 0."""
    least = np.array(np.finfo(dtype_of(numbers).numpy_dtype).tiny)
    return raw_ops.Maximum(x=least, y=raw_ops.RealDiv(x=numbers, y=rates))
