"""Rows in random order: RandomShuffle, StatelessShuffle.

RandomIndexShuffle: where an index comes to lie when all indices are shuffled.

Source: TensorFlow core/ops/random_ops.cc, stateless_random_ops_v2.cc, core/kernels/random_shuffle_op.cc,
core/ops/random_index_shuffle_ops.cc, core/kernels/random_index_shuffle_ops.cc, random_index_shuffle.cc;
Beaulieu et al., The Simon and Speck families of lightweight block ciphers (2013).
"""

import math
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from opkernel.device.budget import check_time
from opkernel.device.work_clock import SLOW, array_work, in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, OpKernelContext
from opkernel.opdef import UNKNOWN_DIM, InferenceContext, common_shapes, register_op
from opkernel.opdef.common_shapes.rules import check_ranks_at_most
from opkernel.ops.input_checks import require
from opkernel.ops.random.inputs import key_and_counter, philox_of
from opkernel.ops.random.philox import Philox, StreamKernel
from opkernel.ops.random.uniform_and_normal import KEY, SEEDS
from opkernel.ops.registration import ALL, register_kernel
from opkernel.types import Array, DataType, TensorShape

_INT32_MAX = 2**31 - 1
_AT_ONCE = 1 << 15
"""So many rows are moved at once."""

register_op(
    "RandomShuffle(value: T) -> output: T",
    attrs=[*SEEDS, "T: type"],
    shape_fn=common_shapes.unchanged_shape,
    is_stateful=True,
    traits="any_order clustering=stateful_random",
    doc="The rows of a tensor in random order.",
)
register_op(
    f"StatelessShuffle(value: T, {KEY}) -> output: T",
    attrs=["T: type"],
    shape_fn=common_shapes.unchanged_shape,
    doc="The rows of a tensor in an order that a key and a counter determine.",
)


@register_kernel("RandomShuffle", types={"T": ALL})
class RandomShuffle(StreamKernel):
    """Shuffles by the kernel's own stream."""

    def compute(self, ctx: OpKernelContext) -> None:
        """Shuffle."""
        value = ctx.input(0)
        if value.size > 1 and len(value) > 1:
            value = _shuffled(value, self.generator.reserve_words(len(value) - 1))
        ctx.set_output(0, value)


@register_kernel("StatelessShuffle", types={"T": ALL}, kind="view")
def stateless_shuffle(value: Any, key: Any, counter: Any, alg: Any) -> Any:
    random = philox_of(key, counter, key_and_counter(key, counter, alg))
    return _shuffled(value, random) if value.size > 1 and len(value) > 1 else value


def _shuffled(value: Any, random: Philox) -> Any:
    """Each row in turn changes places with itself or one of those after it."""
    count = len(value)
    order = array("q", range(count)) if count > _INT32_MAX else array("i", range(count))
    for start in in_time(range(0, count - 1, _AT_ONCE), SLOW):
        rows = np.arange(start, min(start + _AT_ONCE, count - 1))
        words = random.skip(start // 4).blocks(-(-len(rows) // 4)).reshape(-1)[: len(rows)]
        others = rows + (words % (count - rows).astype(np.uint32)).astype(np.intp)
        for row, other in enumerate(others.tolist(), start):
            order[row], order[other] = order[other], order[row]
    result = np.empty_like(value)
    for start in in_time(range(0, count, _AT_ONCE), SLOW):
        result[start : start + _AT_ONCE] = value[np.array(order[start : start + _AT_ONCE])]
    return result


_INPUTS = ("Index", "Seed", "Max index")
_SEED_SIZE = 3
_LEAST_BLOCK_BITS = 16
_BLOCK_AT_ONCE = 1 << 12
"""So much of a block is enciphered at once, in the processor's cache."""
_OF_INDEX = 1 << 10
"""The work of an index."""
_LEAST_ROUNDS = 4
_TURNS_TOGETHER = 32
"""Turns that indices with different keys walk side by side; who walks on through the least block is in for thousands."""
_INT64_MAX = np.uint64(2**63 - 1)
_TYPES = (DataType.DT_INT32, DataType.DT_UINT32, DataType.DT_INT64, DataType.DT_UINT64)
_ROUND_BITS = 0x7369F885192C0EF5
_ROUND_CONSTANT = 0xFFFFFFFC


def random_index_shuffle_shape(c: InferenceContext) -> None:
    """Index, seed [3] and largest index, or vectors of them, of which those of 1 are repeated."""
    check_ranks_at_most(c, 1, 0)
    seed = c.with_rank_at_most(c.with_rank_at_least(c.input(1), 1), 2)
    check_ranks_at_most(c, 1, 2)
    sizes = [dim.value for dim in seed.dims or ()]
    if sizes and sizes[-1] != _SEED_SIZE:
        raise InvalidArgumentError(f"Seed must have shape [3] or [n, 3] but got {sizes}.")
    ranks = [c.rank(c.input(0)), c.rank(seed) - 1, c.rank(c.input(2))]
    if 1 not in ranks:
        c.set_output(0, c.scalar() if ranks == [0, 0, 0] else c.unknown_shape())
        return
    count = UNKNOWN_DIM
    for i in range(3):
        if ranks[i] == 1:
            count = _repeated(count, c.dim(c.input(i), 0).value, _INPUTS[i])
    c.set_output(0, c.vector(count))


def _repeated(count: int, size: int, name: str) -> int:
    """The length of a batch after one more input; refused if both are longer than 1 and differ."""
    if count == UNKNOWN_DIM:
        return size
    if count > 1 and size > 1 and size != count:
        raise InvalidArgumentError(f"{name} has length {size} but must have length {count}.")
    return count


register_op(
    "RandomIndexShuffle(index: dtype, seed: Tseed, max_index: dtype) -> output: dtype",
    attrs=[
        "rounds: int = 4",
        "dtype: {int32, uint32, int64, uint64}",
        "Tseed: {int32, uint32, int64, uint64}",
    ],
    shape_fn=random_index_shuffle_shape,
    doc="Where `index` comes to lie when the numbers from 0 to `max_index` are shuffled.",
)


Walk = Callable[[Array, Array, Array, int], Array]
"""A function of indices, their round keys [n, rounds] and the largest indices, all uint64, and of the bits of half a block:
each index enciphered until it is none too large."""


def _check_indices(indices: Array, largest: Array) -> None:
    too_large = np.flatnonzero((indices > largest) | (largest > _INT64_MAX))
    if too_large.size:
        first = too_large[0]
        raise InvalidArgumentError(
            f"max_index must be >= index, but {largest[first]} < {indices[first]}"
        )


def _shuffled_indices(
    walk: Walk, indices: Array, seeds: Array, largest: Array, rounds: int
) -> Array:
    output = np.zeros(len(indices), np.uint64)
    bits = np.array([_block_bits(one) for one in in_time(largest.tolist(), _OF_INDEX)], np.int64)
    for size in np.unique(bits[largest > 0]):
        rows = np.flatnonzero((bits == size) & (largest > 0))
        word = int(size) // 2
        keys = np.stack(_round_keys(seeds[rows], word, rounds), 1)
        output[rows] = walk(indices[rows], keys, largest[rows], word)
    return output


def _count(index: Any, seed: Any, max_index: Any) -> int:
    """How many indices there are.

    Raises:
        InvalidArgumentError: the inputs do not fit each other.
    """
    count: int = max(index.size, max_index.size, seed.size // _SEED_SIZE)
    require(index.shape in ((), (count,)), "Index must be a scalar or vector.")
    if seed.shape not in ((_SEED_SIZE,), (count, _SEED_SIZE)):
        raise InvalidArgumentError(
            f"Seed must be a vector of size [3] or a matrix of size [{count}, 3] but got {TensorShape(seed.shape)}."
        )
    if max_index.shape not in ((), (count,)):
        raise InvalidArgumentError(
            f"Maxval must be a scalar or a vector of the same size as index but got {TensorShape(max_index.shape)}"
        )
    return count


def _block_bits(largest: int) -> int:
    """The even number of bits of the blocks that are shuffled, which all indices fit."""
    bits = math.ceil(math.log2(float(largest))) if largest else 0
    return int(max(bits + bits % 2, _LEAST_BLOCK_BITS))


def walk_by_numpy(index: Array, keys: Array, largest: Array, word: int) -> Array:
    """All indices that are too large take a turn side by side."""
    result = index.copy()
    rows = np.arange(len(index))
    turns, together = 0, 1 if (keys == keys[:1]).all() else _TURNS_TOGETHER
    while rows.size and (turns < together or 2 * word > _LEAST_BLOCK_BITS):
        result[rows] = _enciphered(result[rows], [*keys[rows].T], word)
        rows = rows[result[rows] > largest[rows]]
        turns += 1
        check_time("shuffling indices")
    if rows.size:
        result[rows] = _walk_in_tables(result[rows], keys[rows], largest[rows], word)
    return result


def _walk_in_tables(values: Array, keys: Array, largest: Array, word: int) -> Array:
    """What `walk_by_numpy` gives, by a table of the whole block for each row of keys and bound that differ."""
    result = values.copy()
    block = np.arange(1 << 2 * word, dtype=np.uint64)
    following, spare = np.empty(block.size, np.intp), np.empty(block.size, np.intp)
    rules = np.column_stack([keys, largest])
    different, numbers = np.unique(rules, axis=0, return_inverse=True)
    order = np.argsort(numbers.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(numbers.reshape(-1), minlength=len(different))).tolist()
    for own, begin, end in zip(in_time(different, SLOW), [0, *ends], ends, strict=False):
        rows, bound = order[begin:end], own[-1]
        for start in range(0, block.size, _BLOCK_AT_ONCE):
            part = slice(start, start + _BLOCK_AT_ONCE)
            following[part] = _enciphered(block[part], [*own[:-1]], word)
        following[: int(bound) + 1] = block[: int(bound) + 1]  # who is inside stays
        places = result[rows].astype(np.intp)
        while (following[places] > bound).any():
            check_time("shuffling indices")
            np.take(following, following, out=spare, mode="clip")  # twice as many turns
            following, spare = spare, following
        result[rows] = following[places]
    return result


def _round_keys(seeds: Array, word: int, rounds: int) -> list[Array]:
    """The keys of the rounds, of words of so many bits."""
    mask = np.uint64((1 << word) - 1)
    keys = [seeds[:, i] & mask for i in range(_SEED_SIZE)]
    bits = _ROUND_BITS & int(mask)
    for i in in_time(range(_SEED_SIZE, rounds), array_work(len(seeds))):
        constant = np.uint64(_ROUND_CONSTANT) & mask ^ np.uint64(bits & 1)
        turned = _turned(keys[-1], word - 3, word) ^ _turned(keys[-1], word - 4, word)
        keys.append(constant ^ keys[i - 3] ^ turned)
        bits >>= 1
    return keys


def _enciphered(value: Array, keys: list[Array], word: int) -> Array:
    """Simon's rounds, two at a time."""
    mask = np.uint64((1 << word) - 1)
    left, right = value >> np.uint64(word) & mask, value & mask
    pairs = zip(keys[::2], keys[1::2], strict=False)
    for first, second in in_time(pairs, array_work(value.size, 16)):
        left = left ^ _mixed(right, word) ^ first
        right = right ^ _mixed(left, word) ^ second
    return left << np.uint64(word) | right


def _mixed(x: Array, word: int) -> Array:
    return _turned(x, 1, word) & _turned(x, 8, word) ^ _turned(x, 2, word)


def _turned(x: Array, bits: int, word: int) -> Array:
    """The bits of a word moved to the left, those that leave it coming in again."""
    mask = np.uint64((1 << word) - 1)
    return (x << np.uint64(bits) | x >> np.uint64(word - bits)) & mask


def random_index_shuffle(
    *, rounds: int, dtype: DataType, walk: Walk = walk_by_numpy
) -> Callable[[Any, Any, Any], Any]:
    """The kernel of RandomIndexShuffle with these attrs, and with an algorithm."""
    if rounds < _LEAST_ROUNDS or rounds % 2:
        raise InvalidArgumentError(
            f"rounds must be even and at least {_LEAST_ROUNDS}, got {rounds}"
        )

    def shuffled(index: Any, seed: Any, max_index: Any) -> Any:
        count = _count(index, seed, max_index)
        shape = () if index.ndim == 0 and seed.ndim == 1 and max_index.ndim == 0 else (count,)
        indices, largest = (
            np.broadcast_to(one, (count,)).astype(np.uint64) for one in (index, max_index)
        )
        _check_indices(indices, largest)
        seeds = np.broadcast_to(seed, (count, _SEED_SIZE)).astype(np.uint32).astype(np.uint64)
        output = _shuffled_indices(walk, indices, seeds, largest, rounds)
        return output.astype(dtype.numpy_dtype).reshape(shape)

    return shuffled


def register_index_shuffle(walk: Walk, registry: KernelRegistry | None = None) -> None:
    """Register the kernel of RandomIndexShuffle with an algorithm."""

    @register_kernel("RandomIndexShuffle", types={"dtype": _TYPES}, factory=True, registry=registry)
    def make(*, rounds: int, dtype: DataType) -> Callable[[Any, Any, Any], Any]:
        return random_index_shuffle(rounds=rounds, dtype=dtype, walk=walk)


register_index_shuffle(walk_by_numpy)
