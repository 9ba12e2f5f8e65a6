"""EditDistance: Levenshtein distances of the sequences of two sparse tensors.

Source: TensorFlow core/ops/array_ops.cc, core/kernels/edit_distance_op.cc.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from opkernel.device.work_clock import SLOW, array_work, in_time
from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import InferenceContext, register_op
from opkernel.opdef.common_shapes import unknown_shape
from opkernel.ops.registration import POD_OR_STRING, register_kernel
from opkernel.ops.sparse.tensors import runs
from opkernel.types import DataType, TensorShape

_RANKS = (2, 1, 1, 2, 1, 1)


def edit_distance_shape(c: InferenceContext) -> None:
    """The larger of both shapes without the last dimension, which the sequences run along."""
    for index, rank in enumerate(_RANKS):
        c.with_rank(c.input(index), rank)
    hypothesis, truth = c.input_tensor(2), c.input_tensor(5)
    if hypothesis is None or truth is None:
        unknown_shape(c)
        return
    if hypothesis.size != truth.size:
        raise InvalidArgumentError(
            f"Num elements of hypothesis_shape does not match truth_shape: {hypothesis.size} vs. {truth.size}"
        )
    sizes = zip(hypothesis.tolist()[:-1], truth.tolist()[:-1], strict=True)
    c.set_output(0, c.make_shape([max(pair) for pair in sizes]))


EDIT_DISTANCE = register_op(
    "EditDistance(hypothesis_indices: int64, hypothesis_values: T, hypothesis_shape: int64, "
    "truth_indices: int64, truth_values: T, truth_shape: int64) -> output: float",
    attrs=["normalize: bool = true", "T: type"],
    shape_fn=edit_distance_shape,
    doc="How many changes each sequence is away from the true one, over its length if `normalize`.",
    traits="function_gradient=none",
)


@register_kernel(EDIT_DISTANCE, types={"T": POD_OR_STRING}, factory=True)
def edit_distance(*, normalize: bool) -> Callable[..., Any]:
    def distances(*inputs: Any) -> Any:
        of_hypotheses, of_truths = inputs[:3], inputs[3:]
        _check("hypothesis", *of_hypotheses)
        _check("truth", *of_truths)
        shape = _output_shape(of_hypotheses[2], of_truths[2])
        output = np.zeros(math.prod(shape), np.float32)
        strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        hypotheses, truths = _sequences(*of_hypotheses[:2]), _sequences(*of_truths[:2])
        for group, hypothesis, truth in in_time(_pairs(hypotheses, truths), SLOW):
            place = sum(map(int.__mul__, group, strides))
            if not 0 <= place < len(output):
                raise InternalError(
                    f"Got an inner product {place} which would require writing to outside of the "
                    f"buffer for the output tensor (max elements {len(output)})"
                )
            output[place] = _distance(hypothesis, truth, normalize)
        return output.reshape(shape)

    return distances


def _check(name: str, indices: Any, values: Any, shape: Any) -> None:
    """Raise InvalidArgumentError unless these make a sparse tensor of rank 2 or more."""
    for part, tensor, rank in (("indices", indices, 2), ("values", values, 1), ("shape", shape, 1)):
        if tensor.ndim != rank:
            kind = "matrix" if rank == 2 else "vector"
            raise InvalidArgumentError(
                f"{name}_{part} should be a {kind}, but got shape: {TensorShape(tensor.shape)}"
            )
    rows, columns = indices.shape
    for part, length, size, what in (
        ("values", len(values), rows, "rows"),
        ("shape", len(shape), columns, "cols"),
    ):
        if length != size:
            raise InvalidArgumentError(
                f"Expected {name}_{part}.NumElements == #{what}({name}_indices), their shapes are: "
                f"[{length}] and {TensorShape(indices.shape)}"
            )
    if len(shape) < 2:
        raise InvalidArgumentError(
            f"Input SparseTensors must have rank at least 2, but {name}_shape rank is: {len(shape)}"
        )


def _output_shape(hypothesis_shape: Any, truth_shape: Any) -> tuple[int, ...]:
    if len(hypothesis_shape) != len(truth_shape):
        raise InvalidArgumentError(
            "Expected truth and hypothesis to have matching ranks, but their shapes are: "
            f"[{len(truth_shape)}] and [{len(hypothesis_shape)}]"
        )
    pairs = zip(TensorShape(hypothesis_shape), TensorShape(truth_shape), strict=True)
    shape = TensorShape([max(pair) for pair in pairs][:-1])
    if shape.num_elements() == 0:
        raise InvalidArgumentError(f"Got output shape {shape} which has 0 elements")
    return check_allocation(shape, DataType.DT_FLOAT)


_Group = tuple[int, ...]
_BEHIND_ALL = (2**63,)

_KEPT_BYTES = 1 << 24
"""So much memory the places of values may take that are kept."""


def _sequences(indices: Any, values: Any) -> Iterator[tuple[_Group, Any]]:
    """The runs of values whose indices differ in the last dimension only."""
    groups = indices[:, :-1]
    for begin, end in runs(groups):
        yield tuple(groups[begin].tolist()), values[begin:end]


def _pairs(
    hypotheses: Iterator[tuple[_Group, Any]], truths: Iterator[tuple[_Group, Any]]
) -> Iterator[tuple[_Group, Any, Any]]:
    """The sequences of both, side by side where they belong to the same group."""
    empty = np.empty(0)
    nothing = _BEHIND_ALL, empty
    heads, rest = [next(hypotheses, nothing), next(truths, nothing)], (hypotheses, truths)
    while (group := min(heads[0][0], heads[1][0])) != _BEHIND_ALL:
        taken = [head[1] if head[0] == group else empty for head in heads]
        yield group, taken[0], taken[1]
        for i, head in enumerate(heads):
            if head[0] == group:
                heads[i] = next(rest[i], nothing)


def _distance(hypothesis: Any, truth: Any, normalize: bool) -> float:
    """The distance; over the length of the truth if `normalize`, infinite for an empty truth."""
    if not len(truth):
        return math.inf if normalize else len(hypothesis)
    changes = levenshtein_distance(hypothesis, truth)
    return changes / len(truth) if normalize else changes


def levenshtein_distance(first: Any, second: Any) -> int:
    """The least number of insertions, deletions and replacements that make one of the other.

    Row by row of the table of distances of all prefixes. Neighbours in a row differ by one at most: bits say
    where the right one is larger, and where it is smaller, so that a row is a few operations on integers.

    Source: Hyyro, Explaining and extending the bit-parallel approximate string matching algorithm of Myers
    (2001).
    """
    if not len(second):
        return len(first)
    places, distance = _Places(second), len(second)
    last = 1 << len(second) - 1
    larger, smaller = (last << 1) - 1, 0
    for value in in_time(first.tolist(), array_work(len(second) >> 3)):
        equal = places.of(value)
        diagonal = (((equal & larger) + larger) ^ larger) | equal | smaller
        rises, falls = smaller | ~(diagonal | larger), larger & diagonal
        distance += (rises & last > 0) - (falls & last > 0)
        rises, falls = (rises << 1 | 1) & ((last << 1) - 1), falls << 1
        larger, smaller = (falls | ~(diagonal | rises)) & ((last << 1) - 1), rises & diagonal
    return distance


class _Places:
    """Where each value stands in a sequence, as the bits of an integer."""

    def __init__(self, sequence: Any) -> None:
        self._size = (len(sequence) >> 3) + 1
        self._places: dict[Any, list[int]] = {}
        for place, value in enumerate(in_time(sequence.tolist())):
            self._places.setdefault(value, []).append(place)
        self._bits: dict[Any, int] = {}

    def of(self, value: Any) -> int:
        """The bits of the places that have a value; those of the first values are kept."""
        bits = self._bits.get(value)
        if bits is not None:
            return bits
        field = bytearray(self._size)
        for place in self._places.get(value, ()):
            field[place >> 3] |= 1 << (place & 7)
        bits = int.from_bytes(field, "little")
        if len(self._bits) * self._size < _KEPT_BYTES:
            self._bits[value] = bits
        return bits
