"""SequenceExample messages as tensors: ParseSequenceExample, ParseSequenceExampleV2, ParseSingleSequenceExample.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/example_parsing_ops.cc.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.kernel import from_attrs
from opkernel.opdef import register_op
from opkernel.ops.input_checks import require_scalar
from opkernel.ops.parsing.example import check_names
from opkernel.ops.parsing.sequence_features import Part, list_of_one, of_one, part_of
from opkernel.ops.parsing.shapes import (
    parse_sequence_example_shape,
    parse_sequence_example_v2_shape,
    parse_single_sequence_example_shape,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, PartialTensorShape, TensorShape

_CONTEXT = [
    "context_sparse_indices: Ncontext_sparse * int64",
    "context_sparse_values: context_sparse_types",
    "context_sparse_shapes: Ncontext_sparse * int64",
    "context_dense_values: Tcontext_dense",
]
_FEATURE_LISTS = [
    "feature_list_sparse_indices: Nfeature_list_sparse * int64",
    "feature_list_sparse_values: feature_list_sparse_types",
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64",
    "feature_list_dense_values: feature_list_dense_types",
]
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
    "ParseSequenceExample",
    inputs=["serialized: string", "debug_name: string", "context_dense_defaults: Tcontext_dense"],
    outputs=[
        *_CONTEXT,
        *_FEATURE_LISTS,
        "feature_list_dense_lengths: Nfeature_list_dense * int64",
    ],
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
        *_CONTEXT,
        "context_ragged_values: context_ragged_value_types",
        "context_ragged_row_splits: context_ragged_split_types",
        *_FEATURE_LISTS,
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
    outputs=[*_CONTEXT, *_FEATURE_LISTS],
    attrs=_ATTRS,
    shape_fn=parse_single_sequence_example_shape,
    doc="The context and the feature lists of one serialized SequenceExample message.",
)


def _records(serialized: Any, max_rank: int, min_rank: int, names: Any) -> list[bytes]:
    if not min_rank <= serialized.ndim <= max_rank:
        raise InvalidArgumentError(
            f"Expected serialized to be of rank {min_rank} to {max_rank}, got shape: "
            f"{TensorShape(serialized.shape)}"
        )
    check_names(serialized, names)
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


@register_kernel(PARSE_SEQUENCE_EXAMPLE, factory=True)
@from_attrs(context=_context, lists=_feature_lists)
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
    context: Part,
    lists: Part,
) -> Callable[..., Any]:
    numbers = (Ncontext_sparse, Nfeature_list_sparse, Nfeature_list_dense)
    if not (any(numbers) or context.types or lists.types):
        # TensorFlow does not run a node that gives nothing.
        return lambda *_: ([],) * 9
    context.check(Ncontext_sparse, Ncontext_dense)
    context.check_keys(context_sparse_keys, context_dense_keys)
    lists.check(Nfeature_list_sparse, Nfeature_list_dense)
    lists.check_keys(feature_list_sparse_keys, feature_list_dense_keys)
    optional = [key in feature_list_dense_missing_assumed_empty for key in feature_list_dense_keys]
    context_keys = _encoded([*context_sparse_keys, *context_dense_keys])
    list_keys = _encoded([*feature_list_sparse_keys, *feature_list_dense_keys])

    def parse(serialized: Any, debug_name: Any, context_dense_defaults: list[Any]) -> Any:
        records = _records(serialized, 1, 1, debug_name)
        of_context = context.context_outputs(records, context_keys, context_dense_defaults)
        of_lists = lists.list_outputs(records, list_keys, optional)
        return *of_context[:4], *of_lists[:5]

    return parse


def _encoded(keys: Sequence[str]) -> list[bytes]:
    return [key.encode("utf-8", "surrogateescape") for key in keys]


@register_kernel(PARSE_SEQUENCE_EXAMPLE_V2, factory=True)
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
    context = part_of(
        "context",
        context_sparse_types,
        Tcontext_dense,
        context_dense_shapes,
        context_ragged_value_types,
        context_ragged_split_types,
    )
    lists = part_of(
        "feature_list",
        feature_list_sparse_types,
        feature_list_dense_types,
        feature_list_dense_shapes,
        feature_list_ragged_value_types,
        feature_list_ragged_split_types,
    )
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
    context_keys = _key_vectors(context, context_sparse, context_dense, context_ragged)
    list_keys = _key_vectors(lists, list_sparse, list_dense, list_ragged)
    if missing_assumed_empty.shape != (len(lists.dense),):
        raise InvalidArgumentError(
            "Expected feature_list_dense_missing_assumed_empty to be a vector with one element "
            f"for each dense feature list, got shape: {TensorShape(missing_assumed_empty.shape)}"
        )
    of_context = context.context_outputs(records, context_keys, context_dense_defaults)
    of_lists = lists.list_outputs(records, list_keys, missing_assumed_empty.tolist())
    if serialized.ndim:
        return *of_context, *of_lists
    return *of_one(of_context), *list_of_one(of_lists)


def _key_vectors(part: Part, *keys: Any) -> list[bytes]:
    for tensor, types in zip(keys, (part.sparse, part.dense, part.ragged), strict=True):
        if tensor.shape != (len(types),):
            raise InvalidArgumentError(
                f"Expected a vector of {len(types)} keys, got shape: {TensorShape(tensor.shape)}"
            )
    return [key for tensor in keys for key in tensor.tolist()]


@register_kernel(PARSE_SINGLE_SEQUENCE_EXAMPLE, factory=True)
@from_attrs(context=_context, lists=_feature_lists)
def parse_single_sequence_example(
    *,
    Ncontext_sparse: int,
    Ncontext_dense: int,
    Nfeature_list_sparse: int,
    Nfeature_list_dense: int,
    context: Part,
    lists: Part,
) -> Callable[..., Any]:
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
    _check_scalars(debug_name, *context_sparse, *context_dense, *list_sparse, *list_dense)
    records = _records(serialized, 0, 0, debug_name)
    if missing_assumed_empty.ndim != 1:
        raise InvalidArgumentError(
            "Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: "
            f"{TensorShape(missing_assumed_empty.shape)}"
        )
    may_be_missing = missing_assumed_empty.tolist()
    optional = [key.item() in may_be_missing for key in list_dense]
    context_keys = [key.item() for key in (*context_sparse, *context_dense)]
    list_keys = [key.item() for key in (*list_sparse, *list_dense)]
    of_context = context.context_outputs(records, context_keys, context_dense_defaults)
    of_lists = lists.list_outputs(records, list_keys, optional)
    return *of_one(of_context)[:4], *list_of_one(of_lists)[:4]


def _check_scalars(*tensors: Any) -> None:
    for tensor in tensors:
        require_scalar(tensor, "Expected keys and debug_name to be scalars, got shape: {}")
