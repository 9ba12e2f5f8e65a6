"""Shapes of random numbers: stateful, of a generator resource, and of a seed or a key.

Source: TensorFlow core/ops/random_ops.cc, stateful_random_ops.cc, stateless_random_ops.cc,
stateless_random_ops_v2.cc, random_index_shuffle_ops.cc, stochastic_cast_op.cc.
"""

from functools import partial

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import UNKNOWN_DIM, InferenceContext, OpShapeInferenceFn, common_shapes
from opkernel.ops.declared.rules import (
    check_ranks,
    check_ranks_at_most,
    check_scalars,
    fixed_shapes,
)

__all__ = ["SHAPE_FNS", "TRAITS"]

_INDEX_SHUFFLE_INPUTS = ("Index", "Seed", "Max index")
_KEY_SIZE = 1
_SEED_SIZE = 2


def _check_bounds(c: InferenceContext, first: int) -> None:
    """The inputs `minval` and `maxval` are scalars."""
    for i, name in enumerate(("minval", "maxval"), first):
        if c.rank_known(c.input(i)) and c.rank(c.input(i)) != 0:
            raise InvalidArgumentError(
                f"{name} must be a scalar; got a tensor of shape {c.input(i)}"
            )


def _set_shape_held_by(c: InferenceContext, index: int) -> None:
    c.set_output(0, c.make_shape_from_shape_tensor(index))


def _random_uniform_int_shape(c: InferenceContext) -> None:
    _check_bounds(c, 1)
    common_shapes.random_shape(c)


def _parameterized_truncated_normal_shape(c: InferenceContext) -> None:
    check_ranks_at_most(c, 1, 1, 2, 3, 4)
    common_shapes.random_shape(c)


def _per_parameter_shape(c: InferenceContext) -> None:
    """For each element of input 1 as many numbers as input 0 says, before its dimensions."""
    c.set_output(0, c.concatenate(c.make_shape_from_shape_tensor(0), c.input(1)))


def _multinomial_shape(c: InferenceContext) -> None:
    """Logits [batch, classes] -> [batch, samples], as many as input 1 holds."""
    logits = c.with_rank(c.input(0), 2)
    check_scalars(c, 1)
    c.set_output(0, c.matrix(c.dim(logits, 0), c.make_dim_for_scalar_input(1)))


# Numbers of a generator: a resource, the algorithm, the shape


def _generator_shape(c: InferenceContext) -> None:
    """Input 2 holds the shape."""
    check_scalars(c, 1)
    _set_shape_held_by(c, 2)


def _generator_int_shape(c: InferenceContext) -> None:
    check_scalars(c, 1)
    _check_bounds(c, 3)
    _set_shape_held_by(c, 2)


def _rng_read_and_skip_shape(c: InferenceContext) -> None:
    """The state: a counter of two and a key."""
    check_scalars(c, 1, 2)
    c.set_output(0, c.vector(2 + _KEY_SIZE))


# Numbers of a seed: the shape, the seed


def _check_seed(c: InferenceContext, index: int) -> None:
    """The input is a seed: a vector of two."""
    c.with_value(c.dim(c.with_rank(c.input(index), 1), 0), _SEED_SIZE)


def _seeded_shape(c: InferenceContext) -> None:
    _check_seed(c, 1)
    common_shapes.random_shape(c)


def _seeded_int_shape(c: InferenceContext) -> None:
    _check_bounds(c, 2)
    _seeded_shape(c)


def _seeded_truncated_normal_shape(c: InferenceContext) -> None:
    """The shape that input 0 holds; the four parameters can be broadcast."""
    _check_seed(c, 1)
    shape = common_shapes.broadcast_binary_op_output_shape(c, c.input(2), c.input(3))
    shape = common_shapes.broadcast_binary_op_output_shape(c, c.input(4), shape)
    common_shapes.broadcast_binary_op_output_shape(c, c.input(5), shape)
    common_shapes.random_shape(c)


def _seeded_multinomial_shape(c: InferenceContext) -> None:
    _check_seed(c, 2)
    _multinomial_shape(c)


def _key_counter_shape(c: InferenceContext) -> None:
    """A seed -> a key, a counter and, perhaps, the algorithm."""
    _check_seed(c, 0)
    shapes = (c.vector(_KEY_SIZE), c.vector(2), c.scalar())
    for i in range(c.num_outputs()):
        c.set_output(i, shapes[i])


# Numbers of a key: the shape, the key, a counter, the algorithm


def _check_key(c: InferenceContext) -> None:
    """Inputs 1 to 3 are a key, a counter and the number of an algorithm."""
    check_ranks(c, 1, 1, 2)
    check_scalars(c, 3)
    c.with_value(c.dim(c.input(1), 0), _KEY_SIZE)


def _keyed_shape(c: InferenceContext) -> None:
    _check_key(c)
    common_shapes.random_shape(c)


def _keyed_int_shape(c: InferenceContext) -> None:
    _check_bounds(c, 4)
    _keyed_shape(c)


def _stochastic_cast_shape(c: InferenceContext) -> None:
    _check_key(c)
    c.set_output(0, c.input(0))


def _random_index_shuffle_shape(c: InferenceContext) -> None:
    """Index, seed [3] and largest index, or vectors of these; a vector of 1 element is repeated."""
    check_ranks_at_most(c, 1, 0)
    seed = c.with_rank_at_most(c.with_rank_at_least(c.input(1), 1), 2)
    check_ranks_at_most(c, 1, 2)
    sizes = [dim.value for dim in seed.dims or ()]
    if sizes and sizes[-1] != 3:
        raise InvalidArgumentError(f"Seed must have shape [3] or [n, 3] but got {sizes}.")
    ranks = [c.rank(c.input(0)), c.rank(seed) - 1, c.rank(c.input(2))]
    if 1 not in ranks:
        c.set_output(0, c.scalar() if ranks == [0, 0, 0] else c.unknown_shape())
        return
    count = UNKNOWN_DIM
    for i in range(3):
        if ranks[i] == 1:
            count = _repeated(count, c.dim(c.input(i), 0).value, _INDEX_SHUFFLE_INPUTS[i])
    c.set_output(0, c.vector(count))


def _repeated(count: int, size: int, name: str) -> int:
    """The length of a batch after one more input; refused if both are longer than 1 and differ."""
    if count == UNKNOWN_DIM:
        return size
    if count > 1 and size > 1 and size != count:
        raise InvalidArgumentError(f"{name} has length {size} but must have length {count}.")
    return count


_SEEDED = (
    "StatelessRandomBinomial",
    "StatelessRandomGammaV2",
    "StatelessRandomNormal",
    "StatelessRandomPoisson",
    "StatelessRandomUniform",
    "StatelessRandomUniformFullInt",
    "StatelessTruncatedNormal",
)
_KEYED = (
    "StatelessRandomGammaV3",
    "StatelessRandomNormalV2",
    "StatelessRandomUniformFullIntV2",
    "StatelessRandomUniformV2",
    "StatelessTruncatedNormalV2",
)
_OF_GENERATORS = (
    "StatefulStandardNormalV2",
    "StatefulTruncatedNormal",
    "StatefulUniform",
    "StatefulUniformFullInt",
)

TRAITS = dict.fromkeys(
    [
        "Multinomial",
        "ParameterizedTruncatedNormal",
        "RandomGamma",
        "RandomGammaGrad",
        "RandomPoisson",
        "RandomPoissonV2",
        "RandomShuffle",
        "RandomStandardNormal",
        "RandomUniform",
        "RandomUniformInt",
        "TruncatedNormal",
    ],
    "any_order",  # their state is a generator of their own
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    **dict.fromkeys(
        ("NonDeterministicInts", "RandomStandardNormal", "RandomUniform", "TruncatedNormal"),
        common_shapes.random_shape,
    ),
    **dict.fromkeys(("RandomGamma", "RandomPoisson", "RandomPoissonV2"), _per_parameter_shape),
    **dict.fromkeys(_OF_GENERATORS, _generator_shape),
    **dict.fromkeys(_SEEDED, _seeded_shape),
    **dict.fromkeys(_KEYED, _keyed_shape),
    "AnonymousRandomSeedGenerator": fixed_shapes((), ()),
    "AnonymousSeedGenerator": fixed_shapes((), ()),
    "DeleteRandomSeedGenerator": common_shapes.no_outputs,
    "DeleteSeedGenerator": common_shapes.no_outputs,
    "DummySeedGenerator": common_shapes.scalar_shape,
    "Multinomial": _multinomial_shape,
    "ParameterizedTruncatedNormal": _parameterized_truncated_normal_shape,
    "RandomGammaGrad": common_shapes.broadcast_binary_op_shape,
    "RandomIndexShuffle": _random_index_shuffle_shape,
    "RandomShuffle": common_shapes.unchanged_shape,
    "RandomUniformInt": _random_uniform_int_shape,
    "RngReadAndSkip": _rng_read_and_skip_shape,
    "RngSkip": lambda c: check_scalars(c, 1, 2),
    "StatefulRandomBinomial": partial(_set_shape_held_by, index=2),
    "StatefulStandardNormal": partial(_set_shape_held_by, index=1),
    "StatefulUniformInt": _generator_int_shape,
    "StatelessMultinomial": _seeded_multinomial_shape,
    "StatelessParameterizedTruncatedNormal": _seeded_truncated_normal_shape,
    "StatelessRandomGetAlg": common_shapes.scalar_shape,
    "StatelessRandomGetKeyCounter": _key_counter_shape,
    "StatelessRandomGetKeyCounterAlg": _key_counter_shape,
    "StatelessRandomUniformInt": _seeded_int_shape,
    "StatelessRandomUniformIntV2": _keyed_int_shape,
    "StatelessShuffle": common_shapes.unchanged_shape,
    "StochasticCastToInt": _stochastic_cast_shape,
}
