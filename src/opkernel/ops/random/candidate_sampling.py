"""Classes drawn beside the true ones: the candidate samplers, ComputeAccidentalHits.

Source: TensorFlow core/ops/candidate_sampling_ops.cc, core/kernels/candidate_sampler_ops.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from opkernel.device.opened_files import read_whole
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import OpKernel, OpKernelConstruction, OpKernelContext, check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes.rules import check_ranks, set_outputs
from opkernel.opdef.common_shapes.shape_rule import shape_rule
from opkernel.ops.input_checks import require_equal, require_rank
from opkernel.ops.int32_attr import int32_attr
from opkernel.ops.random.filling import GuardedPhilox
from opkernel.ops.random.samplers import (
    FixedUnigram,
    LearnedUnigram,
    LogUniform,
    Sampler,
    ScalarDraws,
    Uniform,
)
from opkernel.ops.random.stateful import SEEDS
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType

Array = np.ndarray[Any, Any]

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
        _name,
        inputs=["true_classes: int64"],
        outputs=[
            "sampled_candidates: int64",
            "true_expected_count: float",
            "sampled_expected_count: float",
        ],
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
        if self._unique and self._size > sampler.count:
            raise InvalidArgumentError("Sampler's range is too small.")
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


def _expected(probabilities: Array, size: int, tries: int) -> Array:
    """How often classes are expected among so many, drawn in so many tries."""
    if tries == size:
        return probabilities * np.float32(size)
    missed = np.expm1(tries * np.log1p(-probabilities.astype(np.float64)))
    expected: Array = -missed.astype(np.float32)
    return expected


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
    "ComputeAccidentalHits",
    inputs=["true_classes: int64", "sampled_candidates: int64"],
    outputs=["indices: int32", "ids: int64", "weights: float"],
    attrs=["num_true: int", *SEEDS],
    shape_fn=compute_accidental_hits_shape,
    doc="Where sampled classes are true ones: the row, the place in the sample, the least float.",
)


@register_kernel("ComputeAccidentalHits", factory=True)
def compute_accidental_hits(*, num_true: int) -> Callable[[Any, Any], tuple[Any, Any, Any]]:
    def hits(true: Any, sampled: Any) -> tuple[Any, Any, Any]:
        if true.ndim != 2 or true.shape[1] != num_true:
            raise InvalidArgumentError("true_candidates must be a batch_size * num_true matrix")
        if sampled.ndim != 1:
            raise InvalidArgumentError(
                "sampled_candidates must be a vector, which is typically an output from "
                "CandidateSampler"
            )
        classes, last = np.unique(sampled[::-1], return_index=True)
        flat = true.reshape(-1)
        place = np.minimum(np.searchsorted(classes, flat), max(len(classes) - 1, 0))
        hit = np.flatnonzero(classes[place] == flat) if len(classes) else np.zeros(0, np.int64)
        ids = len(sampled) - 1 - last[place[hit]] if hit.size else np.zeros(0, np.int64)
        weights = np.full(len(hit), np.finfo(np.float32).min, np.float32)
        return (hit // max(num_true, 1)).astype(np.int32), ids.astype(np.int64), weights

    return hits
