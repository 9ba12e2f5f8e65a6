"""Classes drawn beside the true ones: the candidate samplers, the distributions they draw from, ComputeAccidentalHits.

Source: TensorFlow core/ops/candidate_sampling_ops.cc, core/kernels/candidate_sampler_ops.cc, range_sampler.cc,
core/lib/random/distribution_sampler.cc, weighted_picker.cc.
"""

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.device.opened_files import read_whole
from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_ranks, set_outputs, shape_rule
from opkernel.ops.input_checks import int32_attr, require, require_equal, require_rank
from opkernel.ops.random.philox import GuardedPhilox, ScalarDraws
from opkernel.ops.random.uniform_and_normal import SEEDS
from opkernel.ops.registration import register_kernel
from opkernel.types import Array, DataType

_OF_CLASS = 120
"""The bytes that a class takes while its alias is found."""


class Sampler:
    """Draws classes from 0 to a largest one.

    Attributes:
        count: How many classes there are.
    """

    def __init__(self, count: int) -> None:
        self.count = count

    def draw(self, draws: ScalarDraws) -> int:
        """A class."""
        raise NotImplementedError(f"{type(self).__name__} does not override draw")

    def probabilities(self, classes: Array) -> Array:
        """How likely each of some classes is: int64 [n] -> float32 [n]."""
        raise NotImplementedError(f"{type(self).__name__} does not override probabilities")

    def learn(self, classes: Array) -> None:
        """Note that these classes were seen."""

    def sample(self, draws: ScalarDraws, size: int, *, unique: bool) -> tuple[Array, int]:
        """So many classes, and how many were drawn until they were all there."""
        if not unique:
            found = [self.draw(draws) for _ in in_time(range(size))]
            return np.array(found, np.int64), size
        classes: dict[int, None] = {}
        for tries in in_time(itertools.count(1)):
            classes[self.draw(draws)] = None
            if len(classes) == size:
                return np.array([*classes], np.int64), tries
        raise AssertionError("counting never ends")


class Uniform(Sampler):
    """Each class is as likely."""

    def draw(self, draws: ScalarDraws) -> int:
        return draws.below_wide(self.count)

    def probabilities(self, classes: Array) -> Array:
        return np.full(classes.shape, 1 / self.count, np.float32)


class LogUniform(Sampler):
    """The logarithm of a class's number is uniform: classes are sorted by their frequency."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self._range = math.log1p(count)

    def draw(self, draws: ScalarDraws) -> int:
        return (int(math.exp(draws.uniform_double() * self._range)) - 1) % self.count

    def probabilities(self, classes: Array) -> Array:
        return (np.log((classes + 2.0) / (classes + 1.0)) / self._range).astype(np.float32)


class LearnedUnigram(Sampler):
    """Each class is as likely as it was seen often, and once before."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        check_allocation([count], DataType.DT_INT64)
        self._lock = threading.Lock()
        self._weights = np.ones(count, np.int64)
        self._sums = np.cumsum(self._weights)

    def draw(self, draws: ScalarDraws) -> int:
        place = draws.below(int(self._sums[-1]))
        return int(np.searchsorted(self._sums, place, side="right"))

    def probabilities(self, classes: Array) -> Array:
        total = np.float32(self._sums[-1])
        return self._weights[classes].astype(np.float32) / total

    def learn(self, classes: Array) -> None:
        with self._lock:
            np.add.at(self._weights, classes, 1)
            self._sums = np.cumsum(self._weights)


class FixedUnigram(Sampler):
    """Each class is as likely as a given weight to some power, by Walker's method of aliases.

    Args:
        weights: The weights of all classes that are not reserved.
        distortion: The power.
        reserved: How many classes before them are never drawn.
        shards: How many samplers share the classes.
        shard: Which of these this is.
    """

    def __init__(
        self, weights: Sequence[float], distortion: float, reserved: int, shards: int, shard: int
    ) -> None:
        powers = np.array(weights, np.float64) ** np.float64(distortion)
        own = np.zeros(len(range(shard, reserved, shards)), np.float32)
        # TensorFlow numbers the classes from the sampler's own reserved ones on
        kept = powers.astype(np.float32)[(shard - len(own)) % shards :: shards]
        self._weights = np.concatenate([own, kept])
        super().__init__(len(self._weights))
        self._total = np.cumsum(kept, dtype=np.float32)[-1] if kept.size else np.float32(0)
        self._chances, self._aliases = _aliases(self._weights)

    def draw(self, draws: ScalarDraws) -> int:
        chance = draws.uniform()
        index = draws.below(self.count)
        return index if chance < self._chances[index] else self._aliases[index]

    def probabilities(self, classes: Array) -> Array:
        weights: Array = self._weights[classes] / self._total
        return weights


def _aliases(weights: Array) -> tuple[list[float], list[int]]:
    """Of each class how likely it stands for itself, and which other one it stands for else."""
    count = len(weights)
    with making_bytes("aliases of classes", _OF_CLASS * count):
        return _paired(weights, count)


def _paired(weights: Array, count: int) -> tuple[list[float], list[int]]:
    scaled = (weights * np.float32(count)).astype(np.float64) / float(
        np.cumsum(weights, dtype=np.float64)[-1] if count else 1
    )
    chances: list[float] = scaled.tolist()
    aliases = [-1] * count
    low = [i for i in range(count) if chances[i] < 1]
    high = [i for i in range(count) if not chances[i] < 1]
    for _ in in_time(range(count)):
        if not (high and low):
            break
        small, large = low.pop(), high.pop()
        aliases[small] = large
        chances[large] -= 1 - chances[small]
        (low if chances[large] < 1 else high).append(large)
    for i in (*high, *low):  # by rounding
        chances[i], aliases[i] = 1.0, i
    return np.array(chances).astype(np.float32).tolist(), aliases


_WORDS_PER_CANDIDATE = 2048
_INT32_MAX = 2**31 - 1


_ATTRS = ["num_true: int >= 1", "num_sampled: int >= 1", "unique: bool"]
_RANGE = "range_max: int >= 1"

for _name, _more, _doc in (
    ("AllCandidateSampler", [], "All classes in order"),
    ("UniformCandidateSampler", [_RANGE], "Classes that are equally likely"),
    ("LogUniformCandidateSampler", [_RANGE], "Classes by Zipf's law, frequent ones first"),
    ("LearnedUnigramCandidateSampler", [_RANGE], "Classes as likely as they were true before"),
    ("ThreadUnsafeUnigramCandidateSampler", [_RANGE], "As LearnedUnigramCandidateSampler"),
    (
        "FixedUnigramCandidateSampler",
        [
            _RANGE,
            "vocab_file: string = ''",
            "distortion: float = 1",
            "num_reserved_ids: int = 0",
            "num_shards: int >= 1 = 1",
            "shard: int >= 0 = 0",
            "unigrams: list(float) = []",
        ],
        "Classes as likely as given weights to the power `distortion`",
    ),
):
    register_op(
        f"{_name}(true_classes: int64) "
        "-> sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float",
        attrs=[*_ATTRS, *_more, *SEEDS],
        shape_fn=shape_rule("[batch, ?] -> [{num_sampled}], [batch, {num_true}], [{num_sampled}]"),
        is_stateful=True,
        traits="reads_files file_attr=vocab_file" if "vocab_file: string = ''" in _more else "",
        doc=f"{_doc}; and how often each, and each of the true ones, is expected.",
    )


class CandidateSampler(OpKernel):
    """Draws candidates by the kernel's own stream."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._true = int32_attr("num_true", get("num_true"))
        self._size = int32_attr("num_sampled", get("num_sampled"))
        self._unique: bool = get("unique")
        self._generator = GuardedPhilox(construction)
        self._sampler: Sampler | None = None

    def sampler(self, ctx: OpKernelContext) -> Sampler:
        """The distribution of the classes."""
        raise NotImplementedError(f"{type(self).__name__} does not override sampler")

    def compute(self, ctx: OpKernelContext) -> None:
        """Draw them."""
        true = ctx.input(0)
        require_rank(true, 2, "true_classes must be a matrix")
        if true.shape[1] != self._true:
            raise InvalidArgumentError(
                f"true_classes must have num_true columns, expected: {true.shape[1]} was: {self._true}"
            )
        if self._sampler is None:
            self._sampler = self.sampler(ctx)
        sampler = self._sampler
        require(not self._unique or self._size <= sampler.count, "Sampler's range is too small.")
        check_allocation([self._size], DataType.DT_INT64)
        wrong = true[(true < 0) | (true >= sampler.count)]
        if wrong.size:
            raise InvalidArgumentError(
                f"`true_candidate` out of range [0, {sampler.count}), received {wrong[0]}"
            )
        for index, output in enumerate(self._drawn(sampler, true)):
            ctx.set_output(index, output)

    def _drawn(self, sampler: Sampler, true: Array) -> tuple[Array, Array, Array]:
        random = self._generator.reserve_words(_WORDS_PER_CANDIDATE * self._size)
        sampled, tries = sampler.sample(ScalarDraws(random), self._size, unique=self._unique)
        of_true, of_sampled = (
            _expected(sampler.probabilities(classes), self._size, tries)
            for classes in (true, sampled)
        )
        sampler.learn(true.reshape(-1))
        return sampled, of_true, of_sampled


def _expected(probabilities: Array, size: int, tries: int) -> Any:
    """How often classes are expected among so many, drawn in so many tries."""
    if tries == size:
        return probabilities * np.float32(size)
    missed = np.expm1(tries * np.log1p(-probabilities.astype(np.float64)))
    return -missed.astype(np.float32)


@register_kernel("AllCandidateSampler")
class AllCandidateSampler(CandidateSampler):
    """Gives all classes."""

    def sampler(self, ctx: OpKernelContext) -> Sampler:
        """One whose range is as large as the sample."""
        return Sampler(self._size)

    def _drawn(self, sampler: Sampler, true: Array) -> tuple[Array, Array, Array]:
        ones = np.ones(self._size, np.float32)
        return np.arange(self._size), np.ones(true.shape, np.float32), ones


def _of_range(sampler: Callable[[int], Sampler], most: int) -> type[CandidateSampler]:
    """The kernel of a sampler that only its range describes."""

    class OfRange(CandidateSampler):
        """Draws from a range of classes."""

        def __init__(self, construction: OpKernelConstruction) -> None:
            super().__init__(construction)
            range_max = construction.get_attr("range_max")
            if range_max >= most:
                raise InvalidArgumentError(
                    f"range_max must be less than {most} for unigram samplers, got {range_max}"
                )
            self._sampler = sampler(range_max)

    return OfRange


for _name, _sampler, _most in (
    ("UniformCandidateSampler", Uniform, 2**63),
    ("LogUniformCandidateSampler", LogUniform, 2**63),
    ("LearnedUnigramCandidateSampler", LearnedUnigram, _INT32_MAX),
    ("ThreadUnsafeUnigramCandidateSampler", LearnedUnigram, _INT32_MAX),
):
    register_kernel(_name)(_of_range(_sampler, _most))


@register_kernel("FixedUnigramCandidateSampler")
class FixedUnigramCandidateSampler(CandidateSampler):
    """Draws by given weights."""

    def __init__(self, construction: OpKernelConstruction) -> None:
        super().__init__(construction)
        get = construction.get_attr
        self._file, self._unigrams = get("vocab_file"), get("unigrams")
        if bool(self._file) == bool(self._unigrams):
            raise InvalidArgumentError(
                "Must only provide one of vocab_file and unigrams."
                if self._file
                else "Must provide either vocab_file or unigrams."
            )
        self._range: int = get("range_max")
        self._distortion: float = get("distortion")
        self._reserved, self._shards, self._shard = (
            get(name) for name in ("num_reserved_ids", "num_shards", "shard")
        )
        check_allocation([max(self._reserved, 0)], DataType.DT_FLOAT)
        if not self._file:
            self._sampler = self._of(self._unigrams)

    def sampler(self, ctx: OpKernelContext) -> Sampler:
        """That of the file."""
        return self._of(_weights(read_whole(ctx.permissions, self._file)))

    def _of(self, weights: Sequence[float]) -> Sampler:
        reserved = max(self._reserved, 0)
        sampler = FixedUnigram(weights, self._distortion, reserved, self._shards, self._shard)
        require_equal(self._range, sampler.count, "range is {} must be equal to weights size  {}")
        return sampler


def _weights(content: bytes) -> list[float]:
    """The last column of each line.

    Raises:
        InvalidArgumentError: it is no number.
    """
    weights = []
    for line in content.splitlines():
        try:
            weights.append(float(line.rpartition(b",")[2]))
        except ValueError:
            raise InvalidArgumentError(
                f"Wrong vocabulary format at line: {line.decode(errors='replace')}"
            ) from None
    return weights


def compute_accidental_hits_shape(c: InferenceContext) -> None:
    """True classes [batch, true] and sampled ones -> three vectors with a value for each hit."""
    c.with_value(c.dim(c.with_rank(c.input(0), 2), 1), c.get_attr("num_true"))
    check_ranks(c, 1, 1)
    set_outputs(c, [c.vector(None)] * 3)


register_op(
    "ComputeAccidentalHits(true_classes: int64, sampled_candidates: int64) "
    "-> indices: int32, ids: int64, weights: float",
    attrs=["num_true: int", *SEEDS],
    shape_fn=compute_accidental_hits_shape,
    doc="Where sampled classes are true ones: the row, the place in the sample, the least float.",
)


@register_kernel("ComputeAccidentalHits")
def compute_accidental_hits(true: Any, sampled: Any, *, num_true: int) -> tuple[Any, Any, Any]:
    if true.ndim != 2 or true.shape[1] != num_true:
        raise InvalidArgumentError("true_candidates must be a batch_size * num_true matrix")
    if sampled.ndim != 1:
        raise InvalidArgumentError(
            "sampled_candidates must be a vector, which is typically an output from CandidateSampler"
        )
    classes, last = np.unique(sampled[::-1], return_index=True)
    flat = true.reshape(-1)
    place = np.minimum(np.searchsorted(classes, flat), max(len(classes) - 1, 0))
    hit = np.flatnonzero(classes[place] == flat) if len(classes) else np.zeros(0, np.int64)
    ids = len(sampled) - 1 - last[place[hit]] if hit.size else np.zeros(0, np.int64)
    weights = np.full(len(hit), np.finfo(np.float32).min, np.float32)
    return (hit // max(num_true, 1)).astype(np.int32), ids.astype(np.int64), weights
