"""SequenceExample messages as tensors: ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/example_parsing_ops.cc.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.ops.declared.rules import defined_shape
from opkernel.ops.parsing.columns import DenseFeature, ragged_of, sparse_of
from opkernel.ops.parsing.example import check_names, columns_of, text_of
from opkernel.ops.parsing.feature_lists import DenseFeatureList, step_columns
from opkernel.ops.parsing.shapes import (
    parse_sequence_example_shape,
    parse_sequence_example_v2_shape,
    parse_single_sequence_example_shape,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, PartialTensorShape, TensorShape

PARSE_SEQUENCE_EXAMPLE = register_op(
    "ParseSequenceExample",
    inputs=["serialized: string", "debug_name: string", "context_dense_defaults: Tcontext_dense"],
    outputs=[
        "context_sparse_indices: Ncontext_sparse * int64",
        "context_sparse_values: context_sparse_types",
        "context_sparse_shapes: Ncontext_sparse * int64",
        "context_dense_values: Tcontext_dense",
        "feature_list_sparse_indices: Nfeature_list_sparse * int64",
        "feature_list_sparse_values: feature_list_sparse_types",
        "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
        "feature_list_dense_values: feature_list_dense_types",
        "feature_list_dense_lengths: Nfeature_list_dense * int64",
    ],
    attrs=[
        "feature_list_dense_missing_assumed_empty: list(string) >= 0",
        "context_sparse_keys: list(string) >= 0",
        "context_dense_keys: list(string) >= 0",
        "feature_list_sparse_keys: list(string) >= 0",
        "feature_list_dense_keys: list(string) >= 0",
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
    ],
    shape_fn=parse_sequence_example_shape,
    doc="The context and the feature lists of serialized SequenceExample messages.",
)

PARSE_SEQUENCE_EXAMPLE_V2 = register_op(
    "ParseSequenceExampleV2",
    inputs=[
        "serialized: string",
        "debug_name: string",
        "context_sparse_keys: string",
        "context_dense_keys: string",
        "context_ragged_keys: string",
        "feature_list_sparse_keys: string",
        "feature_list_dense_keys: string",
        "feature_list_ragged_keys: string",
        "feature_list_dense_missing_assumed_empty: bool",
        "context_dense_defaults: Tcontext_dense",
    ],
    outputs=[
        "context_sparse_indices: Ncontext_sparse * int64",
        "context_sparse_values: context_sparse_types",
        "context_sparse_shapes: Ncontext_sparse * int64",
        "context_dense_values: Tcontext_dense",
        "context_ragged_values: context_ragged_value_types",
        "context_ragged_row_splits: context_ragged_split_types",
        "feature_list_sparse_indices: Nfeature_list_sparse * int64",
        "feature_list_sparse_values: feature_list_sparse_types",
        "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
        "feature_list_dense_values: feature_list_dense_types",
        "feature_list_dense_lengths: Nfeature_list_dense * int64",
        "feature_list_ragged_values: feature_list_ragged_value_types",
        "feature_list_ragged_outer_splits: feature_list_ragged_split_types",
        "feature_list_ragged_inner_splits: feature_list_ragged_split_types",
    ],
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
    "ParseSingleSequenceExample",
    inputs=[
        "serialized: string",
        "feature_list_dense_missing_assumed_empty: string",
        "context_sparse_keys: Ncontext_sparse * string",
        "context_dense_keys: Ncontext_dense * string",
        "feature_list_sparse_keys: Nfeature_list_sparse * string",
        "feature_list_dense_keys: Nfeature_list_dense * string",
        "context_dense_defaults: Tcontext_dense",
        "debug_name: string",
    ],
    outputs=[
        "context_sparse_indices: Ncontext_sparse * int64",
        "context_sparse_values: context_sparse_types",
        "context_sparse_shapes: Ncontext_sparse * int64",
        "context_dense_values: Tcontext_dense",
        "feature_list_sparse_indices: Nfeature_list_sparse * int64",
        "feature_list_sparse_values: feature_list_sparse_types",
        "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
        "feature_list_dense_values: feature_list_dense_types",
    ],
    attrs=[
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
    ],
    shape_fn=parse_single_sequence_example_shape,
    doc="The context and the feature lists of one serialized SequenceExample message.",
)

Types = Sequence[DataType]
Shapes = Sequence[PartialTensorShape]


@dataclass(frozen=True, slots=True)
class _Part:
    """The features of the context, or the feature lists: types by their kind."""

    sparse: Types
    dense: Types
    dense_shapes: Shapes
    ragged: Types = ()
    splits: Types = ()

    @property
    def types(self) -> list[DataType]:
        return [*self.sparse, *self.dense, *self.ragged]

    def parts(self, columns: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The columns of each kind."""
        first, second = len(self.sparse), len(self.sparse) + len(self.dense)
        return columns[:first], columns[first:second], columns[second:]


def _check_lengths(part: str, counts: dict[str, int]) -> None:
    """All these counts are that of the first."""
    (first, count), *others = counts.items()
    for name, other in others:
        if other != count:
            raise InvalidArgumentError(
                f"num_{part}_{first} ({count}) must match the size of {name} ({other})"
            )


def _context_outputs(
    part: _Part, records: Sequence[bytes], keys: Sequence[bytes], defaults: Sequence[Any]
) -> tuple[list[Any], ...]:
    """Indices, values and shapes of sparse features, dense ones, ragged values and splits."""
    sparse, dense, ragged = part.parts(columns_of(records, keys, part.types))
    rows = [sparse_of(column) for column in sparse]
    names = map(text_of, keys[len(part.sparse) :])
    features = [
        DenseFeature(name, dtype, shape, default)
        for name, dtype, shape, default in zip(
            names, part.dense, part.dense_shapes, defaults, strict=False
        )
    ]
    for feature in features:
        feature.check_default()
    tensors = [feature.tensor(column) for feature, column in zip(features, dense, strict=True)]
    splits = [ragged_of(column, dtype) for column, dtype in zip(ragged, part.splits, strict=True)]
    return *_transposed(rows, 3), tensors, *_transposed(splits, 2)


def _list_outputs(
    part: _Part, records: Sequence[bytes], keys: Sequence[bytes], optional: Sequence[bool]
) -> tuple[list[Any], ...]:
    """As `_context_outputs`; lengths after the dense ones, splits of examples and of steps."""
    sparse, dense, ragged = part.parts(step_columns(records, keys, part.types))
    rows = [steps.sparse() for steps in sparse]
    lists = map(DenseFeatureList, part.dense, part.dense_shapes, optional)
    tensors = [one.tensor(steps) for one, steps in zip(lists, dense, strict=True)]
    splits = [steps.ragged(dtype) for steps, dtype in zip(ragged, part.splits, strict=True)]
    return *_transposed(rows, 3), *_transposed(tensors, 2), *_transposed(splits, 3)


def _transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(width)]


def _encoded(keys: Sequence[str]) -> list[bytes]:
    return [key.encode("utf-8", "surrogateescape") for key in keys]


def _records(serialized: Any, max_rank: int, min_rank: int, names: Any) -> list[bytes]:
    if not min_rank <= serialized.ndim <= max_rank:
        raise InvalidArgumentError(
            f"Expected serialized to be of rank {min_rank} to {max_rank}, got shape: "
            f"{TensorShape(serialized.shape)}"
        )
    check_names(serialized, names)
    records: list[bytes] = serialized.reshape(-1).tolist()
    return records


@register_kernel(PARSE_SEQUENCE_EXAMPLE, device="CPU", factory=True)
def parse_sequence_example(
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
    context_sparse_types: list[DataType],
    Tcontext_dense: list[DataType],
    feature_list_dense_types: list[DataType],
    context_dense_shapes: list[PartialTensorShape],
    feature_list_sparse_types: list[DataType],
    feature_list_dense_shapes: list[PartialTensorShape],
) -> Callable[..., Any]:
    context = _Part(
        context_sparse_types, Tcontext_dense, [defined_shape(one) for one in context_dense_shapes]
    )
    lists = _Part(
        feature_list_sparse_types,
        feature_list_dense_types,
        [defined_shape(one) for one in feature_list_dense_shapes],
    )
    numbers = (Ncontext_sparse, Nfeature_list_sparse, Nfeature_list_dense)
    if not (any(numbers) or context.types or lists.types):
        # TensorFlow does not run a node that gives nothing.
        return lambda *_: ([],) * 9
    for name, part, keys, counts in (
        (
            "context",
            context,
            (context_sparse_keys, context_dense_keys),
            (Ncontext_sparse, Ncontext_dense),
        ),
        (
            "feature_list",
            lists,
            (feature_list_sparse_keys, feature_list_dense_keys),
            (Nfeature_list_sparse, Nfeature_list_dense),
        ),
    ):
        _check_lengths(
            name,
            {"sparse": counts[0], "sparse_keys": len(keys[0]), "sparse_types": len(part.sparse)},
        )
        _check_lengths(
            name,
            {
                "dense": counts[1],
                "dense_keys": len(keys[1]),
                "dense_types": len(part.dense),
                "dense_shapes": len(part.dense_shapes),
            },
        )
    optional = [key in feature_list_dense_missing_assumed_empty for key in feature_list_dense_keys]
    context_keys = _encoded([*context_sparse_keys, *context_dense_keys])
    list_keys = _encoded([*feature_list_sparse_keys, *feature_list_dense_keys])

    def parse(serialized: Any, debug_name: Any, context_dense_defaults: list[Any]) -> Any:
        records = _records(serialized, 1, 1, debug_name)
        of_context = _context_outputs(context, records, context_keys, context_dense_defaults)
        of_lists = _list_outputs(lists, records, list_keys, optional)
        return *of_context[:4], *of_lists[:5]

    return parse


@register_kernel(PARSE_SEQUENCE_EXAMPLE_V2, device="CPU", factory=True)
def parse_sequence_example_v2(
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
    context = _Part(
        context_sparse_types,
        Tcontext_dense,
        [defined_shape(one) for one in context_dense_shapes],
        context_ragged_value_types,
        context_ragged_split_types,
    )
    lists = _Part(
        feature_list_sparse_types,
        feature_list_dense_types,
        [defined_shape(one) for one in feature_list_dense_shapes],
        feature_list_ragged_value_types,
        feature_list_ragged_split_types,
    )
    for name, part, sparse, dense in (
        ("context", context, Ncontext_sparse, len(Tcontext_dense)),
        ("feature_list", lists, Nfeature_list_sparse, Nfeature_list_dense),
    ):
        _check_lengths(name, {"sparse": sparse, "sparse_types": len(part.sparse)})
        _check_lengths(
            name,
            {
                "dense": dense,
                "dense_types": len(part.dense),
                "dense_shapes": len(part.dense_shapes),
            },
        )
        _check_lengths(name, {"ragged": len(part.ragged), "ragged_split_types": len(part.splits)})

    def parse(
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
        context_keys = _key_vectors(context, context_sparse, context_dense, context_ragged)
        list_keys = _key_vectors(lists, list_sparse, list_dense, list_ragged)
        if missing_assumed_empty.shape != (len(lists.dense),):
            raise InvalidArgumentError(
                "Expected feature_list_dense_missing_assumed_empty to be a vector with one element "
                f"for each dense feature list, got shape: {TensorShape(missing_assumed_empty.shape)}"
            )
        of_context = _context_outputs(context, records, context_keys, context_dense_defaults)
        optional = missing_assumed_empty.tolist()
        of_lists = _list_outputs(lists, records, list_keys, optional)
        if serialized.ndim:
            return *of_context, *of_lists
        return *_of_one(of_context[:4]), *of_context[4:], *_of_one_list(of_lists)

    return parse


def _key_vectors(part: _Part, *keys: Any) -> list[bytes]:
    for tensor, types in zip(keys, (part.sparse, part.dense, part.ragged), strict=True):
        if tensor.shape != (len(types),):
            raise InvalidArgumentError(
                f"Expected a vector of {len(types)} keys, got shape: {TensorShape(tensor.shape)}"
            )
    return [key for tensor in keys for key in tensor.tolist()]


def _of_one(outputs: Sequence[list[Any]]) -> tuple[list[Any], ...]:
    """Sparse and dense outputs of a batch of one, without the dimension of the batch."""
    indices, values, shapes, dense = outputs
    return (
        [one[:, 1:] for one in indices],
        values,
        [one[1:] for one in shapes],
        [one[0] for one in dense],
    )


def _of_one_list(outputs: Sequence[list[Any]]) -> tuple[list[Any], ...]:
    lengths, values, outer, inner = outputs[4:]
    return *_of_one(outputs[:4]), [one[0] for one in lengths], values, outer, inner


@register_kernel(PARSE_SINGLE_SEQUENCE_EXAMPLE, device="CPU", factory=True)
def parse_single_sequence_example(
    *,
    Ncontext_sparse: int,
    Ncontext_dense: int,
    Nfeature_list_sparse: int,
    Nfeature_list_dense: int,
    context_sparse_types: list[DataType],
    Tcontext_dense: list[DataType],
    feature_list_dense_types: list[DataType],
    context_dense_shapes: list[PartialTensorShape],
    feature_list_sparse_types: list[DataType],
    feature_list_dense_shapes: list[PartialTensorShape],
) -> Callable[..., Any]:
    context = _Part(
        context_sparse_types, Tcontext_dense, [defined_shape(one) for one in context_dense_shapes]
    )
    lists = _Part(
        feature_list_sparse_types,
        feature_list_dense_types,
        [defined_shape(one) for one in feature_list_dense_shapes],
    )
    for name, part, sparse, dense in (
        ("context", context, Ncontext_sparse, Ncontext_dense),
        ("feature_list", lists, Nfeature_list_sparse, Nfeature_list_dense),
    ):
        _check_lengths(name, {"sparse": sparse, "sparse_types": len(part.sparse)})
        _check_lengths(
            name,
            {
                "dense": dense,
                "dense_types": len(part.dense),
                "dense_shapes": len(part.dense_shapes),
            },
        )

    def parse(
        serialized: Any,
        missing_assumed_empty: Any,
        context_sparse_keys: list[Any],
        context_dense_keys: list[Any],
        list_sparse_keys: list[Any],
        list_dense_keys: list[Any],
        context_dense_defaults: list[Any],
        debug_name: Any,
    ) -> Any:
        keys = (context_sparse_keys, context_dense_keys, list_sparse_keys, list_dense_keys)
        for tensor in (debug_name, *(key for group in keys for key in group)):
            if tensor.ndim:
                raise InvalidArgumentError(
                    f"Expected keys and debug_name to be scalars, got shape: {TensorShape(tensor.shape)}"
                )
        records = _records(serialized, 0, 0, debug_name)
        if missing_assumed_empty.ndim != 1:
            raise InvalidArgumentError(
                "Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: "
                f"{TensorShape(missing_assumed_empty.shape)}"
            )
        plain = [[key.item() for key in group] for group in keys]
        optional = [key in missing_assumed_empty.tolist() for key in plain[3]]
        context_keys, list_keys = [*plain[0], *plain[1]], [*plain[2], *plain[3]]
        of_context = _context_outputs(context, records, context_keys, context_dense_defaults)
        of_lists = _list_outputs(lists, records, list_keys, optional)
        return *_of_one(of_context[:4]), *_of_one(of_lists[:4])

    return parse
