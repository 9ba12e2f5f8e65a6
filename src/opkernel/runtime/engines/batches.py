"""Batches of many sizes by few programs: rows are added until there are as many as a power of two, and left out again.

That is right only where each row of the results depends on the same row of the arguments. A rule for each op tells; of
all other ops nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.graph import FunctionBody, Operation, Tensor
from opkernel.graph.edit.subgraph import prune_and_order
from opkernel.graph.inference.constant_values import constant_value
from opkernel.records import dataclass
from opkernel.runtime.engines.engine import (
    CompiledCluster,
    MeasuringCluster,
    OperationTime,
    ResourceUpdate,
)
from opkernel.types import Array, PartialTensorShape

_Shapes = Sequence[tuple[int, ...]]


@dataclass(frozen=True)
class PaddedBatch:
    """Arguments of a function that have a row for each element of a batch, where a larger one serves as well.

    Attributes:
        arguments, results: The numbers of what has such rows.
        size: How many rows there are.
        padded_size: How many the larger batch has.
    """

    arguments: frozenset[int]
    results: frozenset[int]
    size: int
    padded_size: int

    def padded(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs of the larger batch: more copies of the last row, which no kernel minds."""
        return [self._padded(one) if i in self.arguments else one for i, one in enumerate(inputs)]

    def _padded(self, array: Any) -> Any:
        more = np.broadcast_to(array[-1:], (self.padded_size - len(array), *array.shape[1:]))
        return np.concatenate([array, more])


class PaddedProgram:
    """A program for a larger batch."""

    resource_updates: Sequence[ResourceUpdate] = ()

    def __init__(self, program: CompiledCluster, batch: PaddedBatch) -> None:
        self._program, self._batch = program, batch

    def run(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Run it, as `CompiledCluster.run`."""
        results, written = self._program.run(self._batch.padded(inputs))
        return self._cut(results), written

    def prepare_to_measure(self) -> None:
        """Prepare the program of the larger batch, where it can measure."""
        if isinstance(self._program, MeasuringCluster):
            self._program.prepare_to_measure()

    def run_measured(
        self, inputs: Sequence[Any]
    ) -> tuple[list[Any], list[Any], Sequence[OperationTime]]:
        """Run it, as `MeasuringCluster.run_measured`; without times where the program has none."""
        if not isinstance(self._program, MeasuringCluster):
            return *self.run(inputs), ()
        results, written, times = self._program.run_measured(self._batch.padded(inputs))
        return self._cut(results), written, times

    def _cut(self, results: Sequence[Any]) -> list[Any]:
        """The results without the rows that were added."""
        size, rows = self._batch.size, self._batch.results
        return [one[:size] if i in rows else one for i, one in enumerate(results)]


class BatchSizes:
    """Finds the sizes of batches that programs of a function are compiled for: powers of two.

    Args:
        body: The function.
    """

    def __init__(self, body: FunctionBody) -> None:
        self._body = body
        self._results: dict[frozenset[int], frozenset[int] | None] = {}

    def larger(self, shapes: _Shapes, known: Iterable[_Shapes]) -> PaddedBatch | None:
        """The batch to which arguments of some shapes are padded.

        None where no other size of the batch has a program, where the size has a program of its own, and where rows
        may depend on each other.

        Args:
            shapes: The shapes of all arguments.
            known: Shapes for which there are programs.
        """
        varying = _varying(shapes, known)
        if not varying:
            return None
        if varying not in self._results:
            self._results[varying] = _results_with_rows(self._body, shapes, varying)
        results, size = self._results[varying], shapes[min(varying)][0]
        padded_size = 1 << max(size - 1, 0).bit_length()
        if results is None or not size or padded_size == size:
            return None
        return PaddedBatch(varying, results, size, padded_size)


def _varying(shapes: _Shapes, known: Iterable[_Shapes]) -> frozenset[int]:
    """The arguments whose first size alone differs from those of a program; none if more does."""
    for others in known:
        pairs = {i: (a, b) for i, (a, b) in enumerate(zip(shapes, others, strict=True)) if a != b}
        is_batch = all(a and b and a[1:] == b[1:] for a, b in pairs.values())
        if pairs and is_batch and len({(a[0], b[0]) for a, b in pairs.values()}) == 1:
            return frozenset(pairs)
    return frozenset()


def _results_with_rows(
    body: FunctionBody, shapes: _Shapes, varying: frozenset[int]
) -> frozenset[int] | None:
    """The results that have rows of their own; None where rows may depend on each other, or nothing is known.

    Args:
        body: The function.
        shapes: The shapes of its arguments, as they were once.
        varying: The arguments whose first sizes are that of the batch.
    """
    known = {
        tensor: PartialTensorShape([None, *shape[1:]] if i in varying else list(shape))
        for i, (tensor, shape) in enumerate(zip(body.inputs, shapes, strict=True))
    }
    try:
        found = body.graph.infer_shapes(known)
        order = prune_and_order(body.outputs, body.targets, body.inputs)
    except OpError:
        return None
    ranks = _Ranks(found)
    rows = {body.arg_nodes[i] for i in varying}
    for op in order:
        if op in body.arg_nodes:
            continue
        answer = _has_rows(op, rows, ranks)
        if answer is None:
            return None
        if answer:
            rows.add(op)
    return frozenset(i for i, tensor in enumerate(body.outputs) if tensor.op in rows)


class _Ranks:
    """The ranks of tensors, and whether their first sizes are 1."""

    def __init__(self, shapes: Mapping[Tensor, PartialTensorShape]) -> None:
        self._shapes = shapes

    def __getitem__(self, tensor: Tensor) -> int | None:
        return self._shapes[tensor].rank

    def size(self, tensor: Tensor, axis: int) -> int | None:
        """The size of an axis; None where it is not known."""
        return self._shapes[tensor].as_list()[axis]


def _has_rows(op: Operation, rows: set[Operation], ranks: _Ranks) -> bool | None:
    """Whether the outputs of an operation have rows, each of the same rows of inputs; None where they mix."""
    given = [source in rows for source in op.edges[::2]]
    if not any(given):
        return False
    if any(ranks[tensor] is None for tensor in (*op.inputs, *op.outputs)):
        return None
    rule: Callable[[Operation, list[bool], _Ranks], bool] | None = ROW_RULES.get(op.traits.row_rule)
    if op.traits.pointwise:
        rule = _pointwise
    elif op.traits.passes_on:
        rule = _first_alone
    elif op.traits.reduces:
        rule = _reduction
    if rule is None or not rule(op, given, ranks):
        return None
    return True


def _pointwise(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    """Inputs with rows have the rank of the output; others have a lower one, or a single row."""
    rank = ranks[op.outputs[0]] or 0
    for tensor, has_rows in zip(op.inputs, given, strict=True):
        own = ranks[tensor] or 0
        if has_rows and own != rank:
            return False
        if not has_rows and own == rank and ranks.size(tensor, 0) != 1:
            return False
    return rank > 0


def _first_alone(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    """The first input has rows, and no other one: it is convolved, multiplied by weights, shifted by a bias."""
    return given[0] and not any(given[1:])


def _first_with_rank(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    return _first_alone(op, given, ranks) and (ranks[op.inputs[0]] or 0) > 1


def _fused(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    """As `_first_alone`, and what is added to the product may have rows, too."""
    return given[0] and not given[1]


def _matrices(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    attrs = op.message.attr
    return _fused(op, given, ranks) and not (attrs["transpose_a"].b or attrs["transpose_x"].b)


def _batched_matrices(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    """Rows are matrices: in the first, or in both where the ranks are the same."""
    first, second = (ranks[tensor] or 0 for tensor in op.inputs)
    if first < 3 or not given[0]:
        return False
    return first == second if given[1] else second < first or ranks.size(op.inputs[1], 0) == 1


def _reduction(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    axes, rank = _constant(op.inputs[1]), ranks[op.inputs[0]] or 0
    return given[0] and axes is not None and not any(axis % rank == 0 for axis in axes.flat)


def _joined(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    axis, rank = _constant(op.inputs[-1]), ranks[op.outputs[0]] or 0
    return axis is not None and all(given[:-1]) and int(axis) % rank != 0


def _parts(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    axis, rank = _constant(op.inputs[0]), ranks[op.inputs[1]] or 0
    return axis is not None and given[1] and int(axis) % rank != 0


def _turned(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    perm = _constant(op.inputs[1])
    return perm is not None and given[0] and perm.flat[0] in (0, -perm.size)


def _with_axis(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    axis, rank = _constant(op.inputs[1]), ranks[op.outputs[0]] or 1
    return axis is not None and given[0] and int(axis) % rank != 0


def _filled(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    paddings = _constant(op.inputs[1])
    return _first_alone(op, given, ranks) and paddings is not None and not paddings[0].any()


def _reshaped(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    """The first size follows from the others, which hold all of a row."""
    sizes = _constant(op.inputs[1])
    if sizes is None or not given[0] or not sizes.size or sizes.flat[0] != -1:
        return False
    row = [ranks.size(op.inputs[0], axis) for axis in range(1, ranks[op.inputs[0]] or 0)]
    known = [size for size in row if size is not None]
    return len(known) == len(row) and int(np.prod(sizes.flat[1:])) == int(np.prod(known)) != 0


def _looked_up(op: Operation, given: list[bool], ranks: _Ranks) -> bool:
    """Indices with rows, into a table without."""
    axis = _constant(op.inputs[2])
    is_plain = axis is not None and int(axis) == 0 and op.message.attr["batch_dims"].i == 0
    return is_plain and given[1] and not given[0]


def _constant(tensor: Tensor) -> Array | None:
    return constant_value(tensor.op.node_def) if tensor.op.type == "Const" else None


ROW_RULES: Mapping[str, Callable[[Operation, list[bool], _Ranks], bool]] = {
    rule.__name__.strip("_"): rule
    for rule in (
        *(_batched_matrices, _filled, _first_alone, _first_with_rank, _fused, _joined, _looked_up),
        *(_matrices, _parts, _reshaped, _turned, _with_axis),
    )
}
"""The rules of ops that are not pointwise, as OpTraits.row_rule names them."""
