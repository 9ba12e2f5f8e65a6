"""The inputs of random ops: shapes, seeds, keys with counters, bounds; and shape functions of them.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops.cc, stateless_random_ops_v2.cc,
core/kernels/stateless_random_ops.cc (GenerateKey), stateless_random_ops_v2.h,
stateless_random_ops_v2_util.h, core/framework/rng_alg.h.
"""

from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, common_shapes
from opkernel.opdef.common_shapes.rules import check_ranks, check_scalars
from opkernel.ops.input_checks import require_equal, require_scalar
from opkernel.ops.random.philox import Philox
from opkernel.types import MAX_DIMENSIONS, DataType, TensorShape

PHILOX, THREEFRY, AUTO_SELECT = 1, 2, 3
"""The numbers of the algorithms."""

SEED_KEY = 0x02461E293EC8F720
"""The key of the stream that seeds are scrambled by."""

_COUNTER_SIZE = 2


def shape_of(tensor: Any, dtype: DataType, more: tuple[int, ...] = ()) -> tuple[int, ...]:
    """The value of a shape input, and `more` dimensions, for a tensor that may be allocated.

    Raises:
        InvalidArgumentError: the input is no vector, or has no shape.
        ResourceExhaustedError: the tensor is larger than the allocation limit.
    """
    if tensor.ndim != 1:
        raise InvalidArgumentError(
            f"shape must be a vector of {{int32,int64}}, got shape {TensorShape(tensor.shape)}"
        )
    return check_allocation([*tensor[: MAX_DIMENSIONS + 1].tolist(), *more], dtype)


def bounds_of(minval: Any, maxval: Any) -> tuple[int, int]:
    """The bounds of integers.

    Raises:
        InvalidArgumentError: one is no scalar, or they leave no integer.
    """
    check_scalar_bounds(minval, maxval)
    low, high = int(minval), int(maxval)
    if low >= high:
        raise InvalidArgumentError(f"Need minval < maxval, got {low} >= {high}")
    return low, high


def check_scalar_bounds(minval: Any, maxval: Any) -> None:
    """Refuse bounds that are no scalars."""
    for name, bound in (("minval", minval), ("maxval", maxval)):
        require_scalar(bound, f"{name} must be 0-D, got shape {{}}")


def check_seed(seed: Any) -> None:
    """Refuse a seed that is not two integers, or not of int32 or int64."""
    require_equal(seed.shape, (2,), "seed must have shape [2], not {}")


def check_signed(seed: Any) -> None:
    """Refuse an unsigned seed."""
    if seed.dtype.kind == "u":
        raise InvalidArgumentError(f"Invalid seed type: {seed.dtype}")


def of_seed(seed: Any) -> Philox:
    """The stream of a checked seed; raises InvalidArgumentError if it is unsigned."""
    check_signed(seed)
    first, second = (int(number) % (1 << 64) for number in seed)
    words = Philox(SEED_KEY, first | second << 64).blocks(1)[0].tolist()
    return Philox(words[0] | words[1] << 32, (words[2] | words[3] << 32) << 64)


def check_algorithm(alg: Any, index: int) -> int:
    """The number of the algorithm that an input names.

    Raises:
        InvalidArgumentError: it is no scalar.
    """
    require_scalar(alg, f"input {index} (0-based) must have shape [], not {{}}")
    return int(alg)


def key_and_counter(key: Any, counter: Any, alg: Any) -> int:
    """Check the inputs 1 to 3 of an op of a key and a counter; the number of the algorithm.

    Raises:
        InvalidArgumentError: their shapes are wrong.
    """
    algorithm = check_algorithm(alg, 3)
    algorithm = PHILOX if algorithm == AUTO_SELECT else algorithm
    if key.shape != (1,):
        raise InvalidArgumentError(
            f"key must have shape [1], not {TensorShape(key.shape)}. (Note that batched keys are not supported yet.)"
        )
    least = max(_COUNTER_SIZE, algorithm)  # TensorFlow takes the algorithm's number for a size
    if counter.ndim != 1 or counter.size < least:
        raise InvalidArgumentError(
            f"counter must be a vector with length at least {least}; got shape: "
            f"{TensorShape(counter.shape)}. (Note that batched counters are not supported yet.)"
        )
    return algorithm


def philox_of(key: Any, counter: Any, algorithm: int) -> Philox:
    """The stream of a checked key and counter.

    Raises:
        InvalidArgumentError: the algorithm is not Philox.
    """
    check_philox(algorithm)
    return of_key([int(word) for word in counter[:2]], int(key[0]))


def check_philox(algorithm: int) -> None:
    """Refuse every other algorithm, as TensorFlow does on the CPU."""
    require_equal(algorithm, PHILOX, "Unsupported algorithm id: {}")


def of_key(counter: list[int], key: int) -> Philox:
    """The place that two halves of a counter and a key say, all of 64 bits, signed or not."""
    low, high = (half % (1 << 64) for half in counter)
    return Philox(key % (1 << 64), low | high << 64)


_KEY_SIZE = 1
_SEED_SIZE = 2


def check_bounds(c: InferenceContext, first: int) -> None:
    """The inputs `minval` and `maxval` are scalars."""
    for i, name in enumerate(("minval", "maxval"), first):
        if c.rank_known(c.input(i)) and c.rank(c.input(i)) != 0:
            raise InvalidArgumentError(
                f"{name} must be a scalar; got a tensor of shape {c.input(i)}"
            )


def set_shape_held_by(c: InferenceContext, index: int) -> None:
    """The output has the shape that an input holds."""
    c.set_output(0, c.make_shape_from_shape_tensor(index))


def per_parameter_shape(c: InferenceContext) -> None:
    """For each element of input 1 as many numbers as input 0 says, before its dimensions."""
    c.set_output(0, c.concatenate(c.make_shape_from_shape_tensor(0), c.input(1)))


def check_seed_shape(c: InferenceContext, index: int) -> None:
    """The input is a seed: a vector of two."""
    c.with_value(c.dim(c.with_rank(c.input(index), 1), 0), _SEED_SIZE)


def seeded_shape(c: InferenceContext) -> None:
    """The shape, the seed."""
    check_seed_shape(c, 1)
    common_shapes.random_shape(c)


def seeded_int_shape(c: InferenceContext) -> None:
    """The shape, the seed, the bounds."""
    check_bounds(c, 2)
    seeded_shape(c)


def keyed_shape(c: InferenceContext) -> None:
    """The shape, the key, the counter, the algorithm."""
    check_ranks(c, 1, 1, 2)
    check_scalars(c, 3)
    c.with_value(c.dim(c.input(1), 0), _KEY_SIZE)
    common_shapes.random_shape(c)


def keyed_int_shape(c: InferenceContext) -> None:
    """The shape, the key, the counter, the algorithm, the bounds."""
    check_bounds(c, 4)
    keyed_shape(c)
