"""Random numbers that depend on their seed only: the same seed, the same numbers, in every call.

A seed is two integers. Source: TensorFlow python/ops/stateless_random_ops.py, random_ops_util.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from opkernel import raw_ops
from opkernel.endpoints.random._scaling import (
    at_rate,
    between,
    check_uniform,
    gamma_parts,
    scaled,
)
from opkernel.endpoints.tensors import (
    DTypeLike,
    ShapeLike,
    TensorLike,
    cast_to,
    composed,
    convert,
    dtype_of,
    like,
    shape_vector,
)
from opkernel.errors import InvalidArgumentError
from opkernel.types import DataType, as_dtype

_ALGORITHMS = {"philox": 1, "threefry": 2, "auto_select": 3}


def _generator(seed: Any, alg: str) -> dict[str, Any]:
    """The inputs of an op that draws: key, counter and algorithm."""
    number = _ALGORITHMS.get(alg)
    if number is None:
        raise ValueError(f'alg is "philox", "threefry" or "auto_select", and not {alg!r}')
    key, counter = raw_ops.StatelessRandomGetKeyCounter(seed=seed)
    return {"key": key, "counter": counter, "alg": np.int32(number)}


@composed
def stateless_uniform(
    shape: ShapeLike,
    seed: TensorLike,
    minval: TensorLike | None = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
    alg: str = "auto_select",
) -> Any:
    """Numbers from `minval` up to, and without, `maxval`, all equally likely.

    Args:
        shape: the shape.
        seed: two integers.
        minval: the least number; None for all integers of the type.
        maxval: the limit; 1 if None. Integers need it, unless `minval` is None.
        dtype: a floating type, int32, int64, uint32 or uint64.
        name: a name for the scope of nodes in a graph.
        alg: "philox", "threefry" or "auto_select".

    Raises:
        ValueError: integers are wanted with one limit, or unsigned ones with limits.
    """
    wanted, sizes = as_dtype(dtype), shape_vector(shape)
    drawn = _generator(seed, alg)
    if not wanted.is_integer:
        numbers = raw_ops.StatelessRandomUniformV2(shape=sizes, dtype=wanted, **drawn)
        return between(numbers, 0 if minval is None else minval, maxval)
    if minval is None and maxval is None:
        return raw_ops.StatelessRandomUniformFullIntV2(shape=sizes, dtype=wanted, **drawn)
    if minval is None:
        raise ValueError("minval and maxval are both None, or both given, for integers")
    check_uniform(wanted, maxval)
    return raw_ops.StatelessRandomUniformIntV2(
        shape=sizes, minval=like(minval, wanted), maxval=like(maxval, wanted), **drawn
    )


@composed
def stateless_normal(
    shape: ShapeLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
    alg: str = "auto_select",
) -> Any:
    """Numbers of the normal distribution with this mean and standard deviation."""
    numbers = raw_ops.StatelessRandomNormalV2(
        shape=shape_vector(shape), dtype=dtype, **_generator(seed, alg)
    )
    return scaled(numbers, mean, stddev)


@composed
def stateless_truncated_normal(
    shape: ShapeLike,
    seed: TensorLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
    alg: str = "auto_select",
) -> Any:
    """Numbers of the normal distribution that are at most two standard deviations from its mean."""
    numbers = raw_ops.StatelessTruncatedNormalV2(
        shape=shape_vector(shape), dtype=dtype, **_generator(seed, alg)
    )
    return scaled(numbers, mean, stddev)


@composed
def stateless_gamma(
    shape: ShapeLike,
    seed: TensorLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = DataType.DT_FLOAT,
    name: str | None = None,
) -> Any:
    """Numbers of gamma distributions; `shape` ends with the shape of `alpha` and `beta`."""
    shapes, rates = gamma_parts(alpha, beta, dtype)
    numbers = raw_ops.StatelessRandomGammaV3(
        shape=shape_vector(shape), alpha=shapes, **_generator(seed, "auto_select")
    )
    return at_rate(numbers, rates)


@composed
def stateless_poisson(
    shape: ShapeLike,
    seed: TensorLike,
    lam: TensorLike,
    dtype: DTypeLike = DataType.DT_INT32,
    name: str | None = None,
) -> Any:
    """Numbers of Poisson distributions; `shape` ends with the shape of the means `lam`."""
    return raw_ops.StatelessRandomPoisson(
        shape=shape_vector(shape), seed=seed, lam=convert(lam), dtype=dtype
    )


@composed
def stateless_binomial(
    shape: ShapeLike,
    seed: TensorLike,
    counts: TensorLike,
    probs: TensorLike,
    output_dtype: DTypeLike = DataType.DT_INT32,
    name: str | None = None,
) -> Any:
    """How many of `counts` trials succeed, each with the probability `probs`."""
    chances = convert(probs)
    trials = cast_to(counts, dtype_of(chances))
    return raw_ops.StatelessRandomBinomial(
        shape=shape_vector(shape), seed=seed, counts=trials, probs=chances, dtype=output_dtype
    )


@composed
def stateless_categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    seed: TensorLike,
    dtype: DTypeLike = DataType.DT_INT64,
    name: str | None = None,
) -> Any:
    """Classes drawn by their logits: `num_samples` for each row."""
    return raw_ops.StatelessMultinomial(
        logits=logits, num_samples=num_samples, seed=seed, output_dtype=dtype
    )


@composed
def stateless_parameterized_truncated_normal(
    shape: ShapeLike,
    seed: TensorLike,
    means: TensorLike = 0.0,
    stddevs: TensorLike = 1.0,
    minvals: TensorLike = -2.0,
    maxvals: TensorLike = 2.0,
    name: str | None = None,
) -> Any:
    """Numbers of normal distributions between limits; the parameters are broadcast to `shape`."""
    return raw_ops.StatelessParameterizedTruncatedNormal(
        shape=shape_vector(shape),
        seed=seed,
        means=means,
        stddevs=stddevs,
        minvals=minvals,
        maxvals=maxvals,
    )


@composed
def split(seed: TensorLike, num: int = 2, alg: str = "auto_select") -> Any:
    """`num` new seeds from one: a matrix of [`num`, 2] integers of the seed's type."""
    given = convert(seed)
    return stateless_uniform([num, 2], given, None, None, dtype_of(given), alg=alg)


@composed
def fold_in(seed: TensorLike, data: TensorLike, alg: str = "auto_select") -> Any:
    """A new seed from a seed and an integer, the number of a step for example.

    Raises:
        InvalidArgumentError: `data` is not an integer.
    """
    number = convert(data)
    if not dtype_of(number).is_integer:
        raise InvalidArgumentError(f"fold_in takes an integer, and got {dtype_of(number).tf_name}")
    first = stateless_uniform([], seed, None, None, dtype_of(number), alg=alg)
    return raw_ops.Pack(values=[first, number])
