"""Shape functions that several random ops share.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops.cc, stateless_random_ops_v2.cc.
"""

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import InferenceContext, common_shapes
from opkernel.opdef.common_shapes.rules import check_ranks, check_scalars

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


def check_key(c: InferenceContext) -> None:
    """Inputs 1 to 3 are a key, a counter and the number of an algorithm."""
    check_ranks(c, 1, 1, 2)
    check_scalars(c, 3)
    c.with_value(c.dim(c.input(1), 0), _KEY_SIZE)


def keyed_shape(c: InferenceContext) -> None:
    """The shape, the key, the counter, the algorithm."""
    check_key(c)
    common_shapes.random_shape(c)


def keyed_int_shape(c: InferenceContext) -> None:
    """The shape, the key, the counter, the algorithm, the bounds."""
    check_bounds(c, 4)
    keyed_shape(c)
