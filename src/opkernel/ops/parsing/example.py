"""Example messages as tensors: ParseExample, ParseExampleV2, ParseSingleExample.

Source: TensorFlow core/ops/parsing_ops.cc, core/kernels/example_parsing_ops.cc.
"""

from collections.abc import Callable, Sequence
from typing import Any

from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import register_op
from opkernel.ops.input_checks import require_rank_at_most, require_scalar, require_vector
from opkernel.ops.parsing.columns import DenseFeature, ragged_of, sparse_of
from opkernel.ops.parsing.features import Column, column_of, message_spans, spans_of_features
from opkernel.ops.parsing.shapes import (
    parse_example_shape,
    parse_example_v2_shape,
    parse_single_example_shape,
)
from opkernel.ops.registration import register_kernel
from opkernel.types import DataType, PartialTensorShape, TensorShape

PARSE_EXAMPLE = register_op(
    "ParseExample",
    inputs=[
        "serialized: string",
        "names: string",
        "sparse_keys: Nsparse * string",
        "dense_keys: Ndense * string",
        "dense_defaults: Tdense",
    ],
    outputs=[
        "sparse_indices: Nsparse * int64",
        "sparse_values: sparse_types",
        "sparse_shapes: Nsparse * int64",
        "dense_values: Tdense",
    ],
    attrs=[
        "Nsparse: int >= 0",
        "Ndense: int >= 0",
        "sparse_types: list({float, int64, string}) >= 0",
        "Tdense: list({float, int64, string}) >= 0",
        "dense_shapes: list(shape) >= 0",
    ],
    shape_fn=parse_example_shape,
    doc="The features of serialized Example messages, as sparse and dense tensors.",
)

_OUTPUTS = [
    "sparse_indices: num_sparse * int64",
    "sparse_values: sparse_types",
    "sparse_shapes: num_sparse * int64",
    "dense_values: Tdense",
]

PARSE_EXAMPLE_V2 = register_op(
    "ParseExampleV2",
    inputs=[
        "serialized: string",
        "names: string",
        "sparse_keys: string",
        "dense_keys: string",
        "ragged_keys: string",
        "dense_defaults: Tdense",
    ],
    outputs=[
        *_OUTPUTS,
        "ragged_values: ragged_value_types",
        "ragged_row_splits: ragged_split_types",
    ],
    attrs=[
        "Tdense: list({float, int64, string}) >= 0",
        "num_sparse: int >= 0",
        "sparse_types: list({float, int64, string}) >= 0",
        "ragged_value_types: list({float, int64, string}) >= 0",
        "ragged_split_types: list({int32, int64}) >= 0",
        "dense_shapes: list(shape) >= 0",
    ],
    shape_fn=parse_example_v2_shape,
    doc="The features of serialized Example messages, as sparse, dense and ragged tensors.",
)

PARSE_SINGLE_EXAMPLE = register_op(
    "ParseSingleExample",
    inputs=["serialized: string", "dense_defaults: Tdense"],
    outputs=_OUTPUTS,
    attrs=[
        "num_sparse: int >= 0",
        "sparse_keys: list(string) >= 0",
        "dense_keys: list(string) >= 0",
        "sparse_types: list({float, int64, string}) >= 0",
        "Tdense: list({float, int64, string}) >= 0",
        "dense_shapes: list(shape) >= 0",
    ],
    shape_fn=parse_single_example_shape,
    doc="The features of one serialized Example message.",
)


def text_of(key: bytes) -> str:
    """A key as it is shown."""
    return key.decode(errors="backslashreplace")


def columns_of(
    records: Sequence[bytes], keys: Sequence[bytes], types: Sequence[DataType]
) -> list[Column]:
    """The features of serialized examples."""
    with making_bytes("records") as made:
        spans = spans_of_features(*message_spans(records, 1, made), keys)
        return [
            column_of(span, dtype, text_of(key))
            for span, dtype, key in zip(spans, types, keys, strict=True)
        ]


def _check_equal(what: str, count: int, other: str, length: int) -> None:
    if count != length:
        raise InvalidArgumentError(f"len({what}) != len({other}): {count} vs. {length}")


def check_dense_shapes(shapes: Sequence[PartialTensorShape]) -> None:
    """Only the first size of a dense feature may be unknown."""
    for i, shape in enumerate(shapes):
        if shape.rank is None or None in shape.as_list()[1:]:
            raise InvalidArgumentError(
                f"dense_shapes[{i}] has unknown rank or unknown inner dimensions: {shape}"
            )


def _dense_features(
    keys: Sequence[bytes],
    types: Sequence[DataType],
    shapes: Sequence[PartialTensorShape],
    defaults: Sequence[Any],
) -> list[DenseFeature]:
    features = [
        DenseFeature(text_of(key), *rest)
        for key, *rest in zip(keys, types, shapes, defaults, strict=True)
    ]
    for feature in features:
        feature.check_default()
    return features


def _keys(tensors: Sequence[Any]) -> list[bytes]:
    for tensor in tensors:
        require_scalar(tensor, "Expected a scalar for each key")
    return [tensor.item() for tensor in tensors]


def _batch(serialized: Any, names: Any) -> list[bytes]:
    require_vector(serialized, "Expected serialized to be a vector, got shape: {}")
    check_names(serialized, names)
    records: list[bytes] = serialized.tolist()
    return records


def check_names(serialized: Any, names: Any) -> None:
    """There is a name for each example, or none at all."""
    if names.size and names.shape != serialized.shape:
        raise InvalidArgumentError(
            f"Expected len(names) == len(serialized), but got {TensorShape(names.shape)} and "
            f"{TensorShape(serialized.shape)}"
        )


@register_kernel(PARSE_EXAMPLE, factory=True)
def parse_example(
    *,
    Nsparse: int,
    Ndense: int,
    sparse_types: list[DataType],
    Tdense: list[DataType],
    dense_shapes: list[PartialTensorShape],
) -> Callable[..., Any]:
    check_dense_shapes(dense_shapes)
    _check_equal("sparse_keys", Nsparse, "sparse_types", len(sparse_types))
    _check_equal("dense_keys", Ndense, "dense_types", len(Tdense))
    _check_equal("dense_keys", Ndense, "dense_shapes", len(dense_shapes))

    def parse(
        serialized: Any, names: Any, sparse_keys: Any, dense_keys: Any, dense_defaults: Any
    ) -> Any:
        sparse, dense = _keys(sparse_keys), _keys(dense_keys)
        records = _batch(serialized, names)
        features = _dense_features(dense, Tdense, dense_shapes, dense_defaults)
        columns = columns_of(records, [*sparse, *dense], [*sparse_types, *Tdense])
        return (*_sparse(columns[:Nsparse]), _dense(features, columns[Nsparse:]))

    return parse


def _sparse(columns: Sequence[Column]) -> tuple[list[Any], list[Any], list[Any]]:
    parts = [sparse_of(column) for column in columns]
    return [p[0] for p in parts], [p[1] for p in parts], [p[2] for p in parts]


def _dense(features: Sequence[DenseFeature], columns: Sequence[Column]) -> list[Any]:
    pairs = zip(features, columns, strict=True)
    return [feature.tensor(column) for feature, column in pairs]


@register_kernel(PARSE_EXAMPLE_V2, factory=True)
def parse_example_v2(
    *,
    Tdense: list[DataType],
    num_sparse: int,
    sparse_types: list[DataType],
    ragged_value_types: list[DataType],
    ragged_split_types: list[DataType],
    dense_shapes: list[PartialTensorShape],
) -> Callable[..., Any]:
    check_dense_shapes(dense_shapes)
    _check_equal("sparse_keys", num_sparse, "sparse_types", len(sparse_types))
    _check_equal("dense_keys", len(Tdense), "dense_shapes", len(dense_shapes))
    ragged = len(ragged_value_types)
    _check_equal("ragged_keys", ragged, "ragged_split_types", len(ragged_split_types))

    def parse(
        serialized: Any, names: Any, sparse: Any, dense: Any, ragged: Any, dense_defaults: Any
    ) -> Any:
        counts = {"sparse": num_sparse, "dense": len(Tdense), "ragged": len(ragged_value_types)}
        for (name, count), keys in zip(counts.items(), (sparse, dense, ragged), strict=True):
            if keys.ndim != 1 or keys.size != count:
                raise InvalidArgumentError(
                    f"Expected {name}_keys to be a vector of {count} keys, got shape: "
                    f"{TensorShape(keys.shape)}"
                )
        require_rank_at_most(
            serialized, 1, "Expected serialized to be a scalar or vector, got shape: {}"
        )
        check_names(serialized, names)
        features = _dense_features(dense.tolist(), Tdense, dense_shapes, dense_defaults)
        columns = columns_of(
            serialized.reshape(-1).tolist(),
            [*sparse.tolist(), *dense.tolist(), *ragged.tolist()],
            [*sparse_types, *Tdense, *ragged_value_types],
        )
        outputs = _kinds(columns, num_sparse, features, ragged_split_types)
        return outputs if serialized.ndim else _of_one(*outputs)

    return parse


def _kinds(
    columns: list[Column],
    num_sparse: int,
    features: Sequence[DenseFeature],
    split_types: Sequence[DataType],
) -> tuple[list[Any], ...]:
    """Sparse, dense and ragged outputs."""
    dense_end = num_sparse + len(features)
    rows = [
        ragged_of(column, dtype)
        for column, dtype in zip(columns[dense_end:], split_types, strict=True)
    ]
    dense = _dense(features, columns[num_sparse:dense_end])
    return *_sparse(columns[:num_sparse]), dense, [r[0] for r in rows], [r[1] for r in rows]


def _of_one(
    indices: list[Any],
    values: list[Any],
    shapes: list[Any],
    dense: list[Any],
    ragged_values: list[Any] | None = None,
    splits: list[Any] | None = None,
) -> tuple[list[Any], ...]:
    """The outputs of a batch of one without the dimension of the batch."""
    outputs = ([one[:, 1:] for one in indices], values, [one[1:] for one in shapes])
    rest = [] if ragged_values is None or splits is None else [ragged_values, splits]
    if len(rest) == 2:  # one row needs no splits: TensorFlow gives none
        rest[1] = [one[:0] for one in rest[1]]
    return *outputs, [one[0] for one in dense], *rest


@register_kernel(PARSE_SINGLE_EXAMPLE, factory=True)
def parse_single_example(
    *,
    num_sparse: int,
    sparse_keys: list[str],
    dense_keys: list[str],
    sparse_types: list[DataType],
    Tdense: list[DataType],
    dense_shapes: list[PartialTensorShape],
) -> Callable[..., Any]:
    check_dense_shapes(dense_shapes)
    _check_equal("sparse_keys", len(sparse_keys), "sparse_types", len(sparse_types))
    _check_equal("num_sparse", num_sparse, "sparse_keys", len(sparse_keys))
    _check_equal("dense_keys", len(dense_keys), "dense_types", len(Tdense))
    _check_equal("dense_keys", len(dense_keys), "dense_shapes", len(dense_shapes))
    sparse, dense = (
        [key.encode("utf-8", "surrogateescape") for key in keys]
        for keys in (sparse_keys, dense_keys)
    )

    def parse(serialized: Any, dense_defaults: Any) -> Any:
        require_scalar(serialized, "Expected serialized to be a scalar, got shape: {}")
        features = _dense_features(dense, Tdense, dense_shapes, dense_defaults)
        columns = columns_of([serialized.item()], [*sparse, *dense], [*sparse_types, *Tdense])
        return _of_one(*_sparse(columns[:num_sparse]), _dense(features, columns[num_sparse:]))

    return parse
