"""Shapes of random numbers: stateful, of a generator resource, and of a seed or a key.

Source: TensorFlow core/ops/random_ops.cc, stateful_random_ops.cc, stateless_random_ops.cc,
stateless_random_ops_v2.cc, random_index_shuffle_ops.cc, stochastic_cast_op.cc.
"""

from functools import partial

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import UNKNOWN_DIM, InferenceContext, OpShapeInferenceFn, common_shapes
from opkernel.ops.declared.rules import (
    check_ranks_at_most,
    check_scalars,
    fixed_shapes,
)
from opkernel.ops.random.shapes import (
    check_bounds,
    check_key,
    check_seed_shape,
    keyed_shape,
    per_parameter_shape,
    seeded_shape,
    set_shape_held_by,
)

__all__ = ["SHAPE_FNS", "TRAITS"]

_INDEX_SHUFFLE_INPUTS = ("Index", "Seed", "Max index")
_KEY_SIZE = 1
_SEED_SIZE = 2


def _parameterized_truncated_normal_shape(c: InferenceContext) -> None:
    check_ranks_at_most(c, 1, 1, 2, 3, 4)
    common_shapes.random_shape(c)


def _multinomial_shape(c: InferenceContext) -> None:
    """Logits [batch, classes] -> [batch, samples], as many as input 1 holds."""
    logits = c.with_rank(c.input(0), 2)
    check_scalars(c, 1)
    c.set_output(0, c.matrix(c.dim(logits, 0), c.make_dim_for_scalar_input(1)))


# Numbers of a generator: a resource, the algorithm, the shape


def _generator_shape(c: InferenceContext) -> None:
    """Input 2 holds the shape."""
    check_scalars(c, 1)
    set_shape_held_by(c, 2)


def _generator_int_shape(c: InferenceContext) -> None:
    check_scalars(c, 1)
    check_bounds(c, 3)
    set_shape_held_by(c, 2)


def _rng_read_and_skip_shape(c: InferenceContext) -> None:
    """The state: a counter of two and a key."""
    check_scalars(c, 1, 2)
    c.set_output(0, c.vector(2 + _KEY_SIZE))


# Numbers of a seed: the shape, the seed


def _seeded_truncated_normal_shape(c: InferenceContext) -> None:
    """The shape that input 0 holds; the four parameters can be broadcast."""
    check_seed_shape(c, 1)
    shape = common_shapes.broadcast_binary_op_output_shape(c, c.input(2), c.input(3))
    shape = common_shapes.broadcast_binary_op_output_shape(c, c.input(4), shape)
    common_shapes.broadcast_binary_op_output_shape(c, c.input(5), shape)
    common_shapes.random_shape(c)


def _seeded_multinomial_shape(c: InferenceContext) -> None:
    check_seed_shape(c, 2)
    _multinomial_shape(c)


# Numbers of a key: the shape, the key, a counter, the algorithm


def _stochastic_cast_shape(c: InferenceContext) -> None:
    check_key(c)
    c.set_output(0, c.input(0))


def _random_index_shuffle_shape(c: InferenceContext) -> None:
    """Index, seed [3] and largest index, or vectors of them, of which those of 1 are repeated."""
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
    "StatelessRandomPoisson",
)
_KEYED = ("StatelessRandomGammaV3",)
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
    ],
    "any_order",  # their state is a generator of their own
)

SHAPE_FNS: dict[str, OpShapeInferenceFn] = {
    "NonDeterministicInts": common_shapes.random_shape,
    **dict.fromkeys(("RandomGamma", "RandomPoisson", "RandomPoissonV2"), per_parameter_shape),
    **dict.fromkeys(_OF_GENERATORS, _generator_shape),
    **dict.fromkeys(_SEEDED, seeded_shape),
    **dict.fromkeys(_KEYED, keyed_shape),
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
    "RngReadAndSkip": _rng_read_and_skip_shape,
    "RngSkip": lambda c: check_scalars(c, 1, 2),
    "StatefulRandomBinomial": partial(set_shape_held_by, index=2),
    "StatefulStandardNormal": partial(set_shape_held_by, index=1),
    "StatefulUniformInt": _generator_int_shape,
    "StatelessMultinomial": _seeded_multinomial_shape,
    "StatelessParameterizedTruncatedNormal": _seeded_truncated_normal_shape,
    "StatelessShuffle": common_shapes.unchanged_shape,
    "StochasticCastToInt": _stochastic_cast_shape,
}
