"""SequenceExample messages as tensors: ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample.

A message has two parts (`Part`): the context, and the feature lists, which have a Feature for each step.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/example_parsing_ops.cc, core/example/example.proto,
core/util/example_proto_helper.cc, example_proto_fast_parsing.cc.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from types import MethodType
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import KernelRegistry, check_allocation, from_attrs
from opkernel.opdef import register_op
from opkernel.opdef.common_shapes.rules import defined_shape
from opkernel.ops.input_checks import require_equal, require_scalar, require_vector
from opkernel.ops.parsing.feature_maps import map_of_message, map_of_sequence_example
from opkernel.ops.parsing.feature_steps import StepColumn, steps_of
from opkernel.ops.parsing.feature_tensors import (
    Features,
    Outputs,
    Types,
    columns_of,
    of_one,
    parse_sequence_example_shape,
    parse_sequence_example_v2_shape,
    parse_single_sequence_example_shape,
    sparse_of,
    transposed,
)
from opkernel.ops.parsing.features import BY_COLUMNS, Reading
from opkernel.ops.ragged.gather_range import ranges
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, PartialTensorShape, TensorShape


@dataclass(frozen=True, slots=True)
class DenseFeatureList:
    """A feature list each of whose steps has a shape."""

    dtype: DataType
    shape: PartialTensorShape
    may_be_missing: bool
    """Whether an example without the list has no steps; it is an error else."""

    def tensor(self, steps: StepColumn) -> tuple[Any, Any]:
        """The values of all examples, zeros after their last steps, and how many steps they have."""
        inner = tuple(int(size or 0) for size in self.shape.as_list())
        size = prod(inner)
        if (steps.steps < 0).any() and not self.may_be_missing:
            raise InvalidArgumentError(
                f"Name: <unknown>, Feature list '{steps.name}' is required but could not be found. "
                "Did you mean to include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?"
            )
        wrong = steps.column.lengths != size
        if wrong.any():
            raise InvalidArgumentError(
                f"Feature list '{steps.name}' has an unexpected number of values. A step has "
                f"{steps.column.lengths[wrong.argmax()]}, which is not consistent with output "
                f"shape: {self.shape}"
            )
        lengths = steps.lengths
        longest = int(lengths.max(initial=0))
        shape = check_allocation((lengths.size, longest, *inner), self.dtype)
        output = np.zeros((lengths.size * longest, size), self.dtype.numpy_dtype)
        if self.dtype is DataType.DT_STRING:
            output[...] = b""
        rows = ranges(np.arange(lengths.size) * longest, lengths)
        output[rows] = steps.column.values.reshape(rows.size, size)
        return output.reshape(shape), lengths


@dataclass(frozen=True, slots=True)
class Part(Features):
    """The features of the context, or the feature lists."""

    def check(self, num_sparse: int, num_dense: int) -> None:
        """Raise InvalidArgumentError unless there are as many types and shapes as features."""
        self._check_lengths("sparse", num_sparse, sparse_types=self.sparse)
        self._check_lengths(
            "dense", num_dense, dense_types=self.dense, dense_shapes=self.dense_shapes
        )
        self._check_lengths("ragged", len(self.ragged), ragged_split_types=self.splits)

    def check_keys(self, sparse_keys: Sequence[str], dense_keys: Sequence[str]) -> None:
        """Raise InvalidArgumentError unless there is a key for each feature."""
        self._check_lengths("sparse", len(self.sparse), sparse_keys=sparse_keys)
        self._check_lengths("dense", len(self.dense), dense_keys=dense_keys)

    def _check_lengths(self, kind: str, count: int, **lists: Sequence[Any]) -> None:
        for name, values in lists.items():
            message = f"num_{self.name}_{kind} ({{}}) must match the size of {name} ({{}})"
            require_equal(count, len(values), message)

    def list_outputs(
        self, records: Sequence[bytes], keys: Sequence[bytes], optional: Sequence[bool]
    ) -> Outputs:
        """As `outputs`, of feature lists; lengths after the dense ones, splits of examples and of steps."""
        columns = columns_of(records, keys, self.types, 2, steps_of, self.reading)
        sparse, dense, ragged = self.by_kind(columns)
        rows = [sparse_of(one.column.values, one.lengths, one.column.lengths) for one in sparse]
        lists = map(DenseFeatureList, self.dense, self.dense_shapes, optional)
        tensors = [one.tensor(steps) for one, steps in zip(lists, dense, strict=True)]
        splits = [steps.ragged(dtype) for steps, dtype in zip(ragged, self.splits, strict=True)]
        return *transposed(rows, 3), *transposed(tensors, 2), *transposed(splits, 3)


def part_of(
    name: str,
    sparse: Types,
    dense: Types,
    dense_shapes: Sequence[PartialTensorShape],
    ragged: Types = (),
    splits: Types = (),
    reading: Reading = BY_COLUMNS,
) -> Part:
    """A part whose dense shapes must be defined."""
    shapes = list(map(defined_shape, dense_shapes))
    return Part(name, sparse, dense, shapes, ragged, splits, reading)


def list_of_one(outputs: Outputs) -> Outputs:
    """Outputs of the feature lists of a batch of one, without the dimension of the batch."""
    lengths = [one[0] for one in outputs[4]]
    return *of_one(outputs[:4]), lengths, *outputs[5:]


_CONTEXT = (
    "context_sparse_indices: Ncontext_sparse * int64, context_sparse_values: context_sparse_types, "
    "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense"
)
_FEATURE_LISTS = (
    "feature_list_sparse_indices: Nfeature_list_sparse * int64, "
    "feature_list_sparse_values: feature_list_sparse_types, "
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "
    "feature_list_dense_values: feature_list_dense_types"
)
_ATTRS = [
    "Ncontext_sparse: int >= 0 = 0",
    "Ncontext_dense: int >= 0 = 0",
    "Nfeature_list_sparse: int >= 0 = 0",
    "Nfeature_list_dense: int >= 0 = 0",
    "context_sparse_types: list({float, int64, string}) >= 0 = []",
    "Tcontext_dense: list({float, int64, string}) >= 0 = []",
    "feature_list_dense_types: list({float, int64, string}) >= 0 = []",
    "context_dense_shapes: list(shape) >= 0 = []",
    "feature_list_sparse_types: list({float, int64, string}) >= 0 = []",
    "feature_list_dense_shapes: list(shape) >= 0 = []",
]

PARSE_SEQUENCE_EXAMPLE = register_op(
    "ParseSequenceExample(serialized: string, debug_name: string, "
    f"context_dense_defaults: Tcontext_dense) -> {_CONTEXT}, {_FEATURE_LISTS}, "
    "feature_list_dense_lengths: Nfeature_list_dense * int64",
    attrs=[
        "feature_list_dense_missing_assumed_empty: list(string) >= 0",
        "context_sparse_keys: list(string) >= 0",
        "context_dense_keys: list(string) >= 0",
        "feature_list_sparse_keys: list(string) >= 0",
        "feature_list_dense_keys: list(string) >= 0",
        *_ATTRS,
    ],
    shape_fn=parse_sequence_example_shape,
    doc="The context and the feature lists of serialized SequenceExample messages.",
)

PARSE_SEQUENCE_EXAMPLE_V2 = register_op(
    "ParseSequenceExampleV2(serialized: string, debug_name: string, context_sparse_keys: string, "
    "context_dense_keys: string, context_ragged_keys: string, feature_list_sparse_keys: string, "
    "feature_list_dense_keys: string, feature_list_ragged_keys: string, "
    "feature_list_dense_missing_assumed_empty: bool, context_dense_defaults: Tcontext_dense) "
    f"-> {_CONTEXT}, context_ragged_values: context_ragged_value_types, "
    f"context_ragged_row_splits: context_ragged_split_types, {_FEATURE_LISTS}, "
    "feature_list_dense_lengths: Nfeature_list_dense * int64, "
    "feature_list_ragged_values: feature_list_ragged_value_types, "
    "feature_list_ragged_outer_splits: feature_list_ragged_split_types, "
    "feature_list_ragged_inner_splits: feature_list_ragged_split_types",
    attrs=[
        "Ncontext_sparse: int >= 0 = 0",
        "Tcontext_dense: list({float, int64, string}) >= 0 = []",
        "context_sparse_types: list({float, int64, string}) >= 0 = []",
        "context_ragged_value_types: list({float, int64, string}) >= 0 = []",
        "context_ragged_split_types: list({int32, int64}) >= 0 = []",
        "context_dense_shapes: list(shape) >= 0 = []",
        "Nfeature_list_sparse: int >= 0 = 0",
        "Nfeature_list_dense: int >= 0 = 0",
        "feature_list_dense_types: list({float, int64, string}) >= 0 = []",
        "feature_list_sparse_types: list({float, int64, string}) >= 0 = []",
        "feature_list_ragged_value_types: list({float, int64, string}) >= 0 = []",
        "feature_list_ragged_split_types: list({int32, int64}) >= 0 = []",
        "feature_list_dense_shapes: list(shape) >= 0 = []",
    ],
    shape_fn=parse_sequence_example_v2_shape,
    doc="The context and the feature lists of SequenceExample messages, ragged ones too.",
)

PARSE_SINGLE_SEQUENCE_EXAMPLE = register_op(
    "ParseSingleSequenceExample(serialized: string, "
    "feature_list_dense_missing_assumed_empty: string, "
    "context_sparse_keys: Ncontext_sparse * string, context_dense_keys: Ncontext_dense * string, "
    "feature_list_sparse_keys: Nfeature_list_sparse * string, "
    "feature_list_dense_keys: Nfeature_list_dense * string, "
    "context_dense_defaults: Tcontext_dense, debug_name: string) "
    f"-> {_CONTEXT}, {_FEATURE_LISTS}",
    attrs=_ATTRS,
    shape_fn=parse_single_sequence_example_shape,
    doc="The context and the feature lists of one serialized SequenceExample message.",
)


_OPTIONAL = "Expected feature_list_dense_missing_assumed_empty to be a vector"


def _records(serialized: Any, max_rank: int, min_rank: int, names: Any) -> list[bytes]:
    if not min_rank <= serialized.ndim <= max_rank:
        raise InvalidArgumentError(
            f"Expected serialized to be of rank {min_rank} to {max_rank}, got shape: "
            f"{TensorShape(serialized.shape)}"
        )
    if names.size:
        message = "Expected len(debug_name) == len(serialized), but got {} and {}"
        require_equal(names.size, serialized.size, message)
    records: list[bytes] = serialized.reshape(-1).tolist()
    return records


def _context(
    context_sparse_types: list[DataType],
    Tcontext_dense: list[DataType],
    context_dense_shapes: list[PartialTensorShape],
) -> Part:
    return part_of("context", context_sparse_types, Tcontext_dense, context_dense_shapes)


def _feature_lists(
    feature_list_sparse_types: list[DataType],
    feature_list_dense_types: list[DataType],
    feature_list_dense_shapes: list[PartialTensorShape],
) -> Part:
    types = feature_list_sparse_types, feature_list_dense_types
    return part_of("feature_list", *types, feature_list_dense_shapes)


@from_attrs(context=_context, lists=_feature_lists)
def parse_sequence_example(
    reading: Reading,
    *,
    feature_list_dense_missing_assumed_empty: list[str],
    context_sparse_keys: list[str],
    context_dense_keys: list[str],
    feature_list_sparse_keys: list[str],
    feature_list_dense_keys: list[str],
    Ncontext_sparse: int,
    Ncontext_dense: int,
    Nfeature_list_sparse: int,
    Nfeature_list_dense: int,
    context: Part,
    lists: Part,
) -> Callable[..., Any]:
    numbers = (Ncontext_sparse, Nfeature_list_sparse, Nfeature_list_dense)
    if not (any(numbers) or context.types or lists.types):
        # TensorFlow does not run a node that gives nothing.
        return lambda *_: ([],) * 9
    context, lists = replace(context, reading=reading), replace(lists, reading=reading)
    context.check(Ncontext_sparse, Ncontext_dense)
    context.check_keys(context_sparse_keys, context_dense_keys)
    lists.check(Nfeature_list_sparse, Nfeature_list_dense)
    lists.check_keys(feature_list_sparse_keys, feature_list_dense_keys)
    optional = [key in feature_list_dense_missing_assumed_empty for key in feature_list_dense_keys]
    context_keys = _encoded([*context_sparse_keys, *context_dense_keys])
    list_keys = _encoded([*feature_list_sparse_keys, *feature_list_dense_keys])

    def parse(serialized: Any, debug_name: Any, context_dense_defaults: list[Any]) -> Any:
        records = _records(serialized, 1, 1, debug_name)
        of_context = context.outputs(records, context_keys, context_dense_defaults)
        of_lists = lists.list_outputs(records, list_keys, optional)
        return *of_context[:4], *of_lists[:5]

    return parse


def _encoded(keys: Sequence[str]) -> list[bytes]:
    return [key.encode("utf-8", "surrogateescape") for key in keys]


def parse_sequence_example_v2(
    reading: Reading,
    *,
    Ncontext_sparse: int,
    Tcontext_dense: list[DataType],
    context_sparse_types: list[DataType],
    context_ragged_value_types: list[DataType],
    context_ragged_split_types: list[DataType],
    context_dense_shapes: list[PartialTensorShape],
    Nfeature_list_sparse: int,
    Nfeature_list_dense: int,
    feature_list_dense_types: list[DataType],
    feature_list_sparse_types: list[DataType],
    feature_list_ragged_value_types: list[DataType],
    feature_list_ragged_split_types: list[DataType],
    feature_list_dense_shapes: list[PartialTensorShape],
) -> Callable[..., Any]:
    of_context = context_sparse_types, Tcontext_dense, context_dense_shapes
    ragged = context_ragged_value_types, context_ragged_split_types
    context = part_of("context", *of_context, *ragged, reading)
    of_lists = feature_list_sparse_types, feature_list_dense_types, feature_list_dense_shapes
    ragged = feature_list_ragged_value_types, feature_list_ragged_split_types
    lists = part_of("feature_list", *of_lists, *ragged, reading)
    context.check(Ncontext_sparse, len(Tcontext_dense))
    lists.check(Nfeature_list_sparse, Nfeature_list_dense)
    return partial(_parse_v2, context, lists)


def _parse_v2(
    context: Part,
    lists: Part,
    serialized: Any,
    debug_name: Any,
    context_sparse: Any,
    context_dense: Any,
    context_ragged: Any,
    list_sparse: Any,
    list_dense: Any,
    list_ragged: Any,
    missing_assumed_empty: Any,
    context_dense_defaults: list[Any],
) -> Any:
    records = _records(serialized, 1, 0, debug_name)
    context_keys = context.keys(context_sparse, context_dense, context_ragged, expected="a vector")
    list_keys = lists.keys(list_sparse, list_dense, list_ragged, expected="a vector")
    if missing_assumed_empty.shape != (len(lists.dense),):
        shape = TensorShape(missing_assumed_empty.shape)
        raise InvalidArgumentError(
            f"{_OPTIONAL} with one element for each dense feature list, got shape: {shape}"
        )
    of_context = context.outputs(records, context_keys, context_dense_defaults)
    of_lists = lists.list_outputs(records, list_keys, missing_assumed_empty.tolist())
    if serialized.ndim:
        return *of_context, *of_lists
    return *of_one(of_context), *list_of_one(of_lists)


@from_attrs(context=_context, lists=_feature_lists)
def parse_single_sequence_example(
    reading: Reading,
    *,
    Ncontext_sparse: int,
    Ncontext_dense: int,
    Nfeature_list_sparse: int,
    Nfeature_list_dense: int,
    context: Part,
    lists: Part,
) -> Callable[..., Any]:
    context, lists = replace(context, reading=reading), replace(lists, reading=reading)
    context.check(Ncontext_sparse, Ncontext_dense)
    lists.check(Nfeature_list_sparse, Nfeature_list_dense)
    return partial(_parse_single, context, lists)


def _parse_single(
    context: Part,
    lists: Part,
    serialized: Any,
    missing_assumed_empty: Any,
    context_sparse: list[Any],
    context_dense: list[Any],
    list_sparse: list[Any],
    list_dense: list[Any],
    context_dense_defaults: list[Any],
    debug_name: Any,
) -> Any:
    for tensor in (debug_name, *context_sparse, *context_dense, *list_sparse, *list_dense):
        require_scalar(tensor, "Expected keys and debug_name to be scalars, got shape: {}")
    records = _records(serialized, 0, 0, debug_name)
    require_vector(missing_assumed_empty, f"{_OPTIONAL}, got shape: {{}}")
    may_be_missing = missing_assumed_empty.tolist()
    optional = [key.item() in may_be_missing for key in list_dense]
    context_keys = [key.item() for key in (*context_sparse, *context_dense)]
    list_keys = [key.item() for key in (*list_sparse, *list_dense)]
    of_context = context.outputs(records, context_keys, context_dense_defaults)
    of_lists = lists.list_outputs(records, list_keys, optional)
    return *of_one(of_context)[:4], *list_of_one(of_lists)[:4]


def register_sequence_examples(reading: Reading, registry: KernelRegistry | None = None) -> None:
    """Register the kernels that parse SequenceExample messages, which read them by these algorithms."""
    for op, parser, read_map in (
        (PARSE_SEQUENCE_EXAMPLE, parse_sequence_example, map_of_sequence_example),
        (PARSE_SEQUENCE_EXAMPLE_V2, parse_sequence_example_v2, map_of_sequence_example),
        (PARSE_SINGLE_SEQUENCE_EXAMPLE, parse_single_sequence_example, map_of_message),
    ):
        made = MethodType(parser, reading._replace(read_map=read_map))
        register_kernel(op, factory=True, registry=registry)(made)


register_sequence_examples(BY_COLUMNS)
