"""Random numbers, which differ from call to call; `set_seed` makes runs repeat them.

Source: TensorFlow python/ops/random_ops.py, candidate_sampling_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opkernel import raw_ops
from opkernel.endpoints.global_seed import seeds_of
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
    composed,
    convert,
    like,
    shape_vector,
)
from opkernel.types import DataType, as_dtype


@composed
def uniform(
    shape: ShapeLike,
    minval: TensorLike = 0,
    maxval: TensorLike | None = None,
    dtype: DTypeLike = DataType.DT_FLOAT,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers from `minval` up to, and without, `maxval`, all equally likely.

    Args:
        shape: the shape.
        minval: the least number.
        maxval: the limit; 1 if None. Integers need it.
        dtype: float16, bfloat16, float32, float64, int32 or int64.
        seed: a seed beside the global one.
        name: a name for the scope of nodes in a graph.

    Raises:
        ValueError: integers are wanted without `maxval`.
    """
    wanted, sizes = as_dtype(dtype), shape_vector(shape)
    check_uniform(wanted, maxval)
    if wanted.is_integer:
        return raw_ops.RandomUniformInt(
            shape=sizes,
            minval=like(minval, wanted),
            maxval=like(maxval, wanted),
            **seeds_of(seed, sizes),
        )
    numbers = raw_ops.RandomUniform(shape=sizes, dtype=wanted, **seeds_of(seed, sizes))
    return between(numbers, minval, maxval)


@composed
def normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = DataType.DT_FLOAT,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers of the normal distribution with this mean and standard deviation."""
    sizes = shape_vector(shape)
    numbers = raw_ops.RandomStandardNormal(shape=sizes, dtype=dtype, **seeds_of(seed, sizes))
    return scaled(numbers, mean, stddev)


@composed
def truncated_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = DataType.DT_FLOAT,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers of the normal distribution that are at most two standard deviations from its mean."""
    sizes = shape_vector(shape)
    numbers = raw_ops.TruncatedNormal(shape=sizes, dtype=dtype, **seeds_of(seed, sizes))
    return scaled(numbers, mean, stddev)


@composed
def gamma(
    shape: ShapeLike,
    alpha: TensorLike,
    beta: TensorLike | None = None,
    dtype: DTypeLike = DataType.DT_FLOAT,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers of gamma distributions.

    Args:
        shape: how many of each distribution; the result has this shape and then that of the parameters.
        alpha: the shapes of the distributions.
        beta: their rates; 1 if None.
        dtype: float16, float32 or float64.
        seed: a seed beside the global one.
        name: a name for the scope of nodes in a graph.
    """
    sizes = shape_vector(shape)
    shapes, rates = gamma_parts(alpha, beta, dtype)
    return at_rate(raw_ops.RandomGamma(shape=sizes, alpha=shapes, **seeds_of(seed, sizes)), rates)


@composed
def poisson(
    shape: ShapeLike,
    lam: TensorLike,
    dtype: DTypeLike = DataType.DT_FLOAT,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Numbers of Poisson distributions with the means `lam`; `shape` of each."""
    sizes = shape_vector(shape)
    return raw_ops.RandomPoissonV2(
        shape=sizes, rate=convert(lam), dtype=dtype, **seeds_of(seed, sizes)
    )


@composed
def categorical(
    logits: TensorLike,
    num_samples: TensorLike,
    dtype: DTypeLike | None = None,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes drawn by their logits: `num_samples` for each row, int64 unless `dtype` says otherwise."""
    return raw_ops.Multinomial(
        logits=logits,
        num_samples=num_samples,
        output_dtype=DataType.DT_INT64 if dtype is None else dtype,
        **seeds_of(seed, logits),
    )


@composed
def shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Any:
    """The entries of the first axis in another order."""
    return raw_ops.RandomShuffle(value=value, **seeds_of(seed, value))


def _sampled(op: Callable[..., Any], classes: Any, seed: int | None, **attrs: Any) -> Any:
    return op(true_classes=like(classes, DataType.DT_INT64), **attrs, **seeds_of(seed, classes))


@composed
def uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes from 0 to `range_max` - 1, all equally likely.

    Args:
        true_classes: the right classes, int64 of the shape [batch, `num_true`].
        num_true: how many right classes an example has.
        num_sampled: how many classes to draw.
        unique: draw each class once at most.
        range_max: how many classes there are.
        seed: a seed beside the global one.
        name: a name for the scope of nodes in a graph.

    Returns:
        The classes drawn, and how often each right and each drawn class is to be expected.
    """
    attrs = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique}
    return _sampled(
        raw_ops.UniformCandidateSampler, true_classes, seed, **attrs, range_max=range_max
    )


@composed
def log_uniform_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes in the order of how frequent they are; see `uniform_candidate_sampler`."""
    attrs = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique}
    return _sampled(
        raw_ops.LogUniformCandidateSampler, true_classes, seed, **attrs, range_max=range_max
    )


@composed
def learned_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes as often as they were right so far; see `uniform_candidate_sampler`."""
    attrs = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique}
    return _sampled(
        raw_ops.LearnedUnigramCandidateSampler, true_classes, seed, **attrs, range_max=range_max
    )


@composed
def all_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """All classes: `num_sampled` is how many there are; see `uniform_candidate_sampler`."""
    attrs = {"num_true": num_true, "num_sampled": num_sampled, "unique": unique}
    return _sampled(raw_ops.AllCandidateSampler, true_classes, seed, **attrs)


@composed
def fixed_unigram_candidate_sampler(
    true_classes: TensorLike,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes as often as a file or a list says; see `uniform_candidate_sampler`.

    Args:
        true_classes: the right classes, int64 of the shape [batch, `num_true`].
        num_true: how many right classes an example has.
        num_sampled: how many classes to draw.
        unique: draw each class once at most.
        range_max: how many classes there are.
        vocab_file: a file of which each line ends with the count of a class.
        distortion: the power that counts are raised to.
        num_reserved_ids: how many first classes are never drawn.
        num_shards: how many parts the classes are in.
        shard: which of the parts to draw from.
        unigrams: the counts, where there is no file.
        seed: a seed beside the global one.
        name: a name for the scope of nodes in a graph.
    """
    return _sampled(
        raw_ops.FixedUnigramCandidateSampler,
        true_classes,
        seed,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=[*unigrams],
    )
