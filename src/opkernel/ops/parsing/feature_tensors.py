"""Features of serialized Example and SequenceExample messages as dense, sparse and ragged tensors: values, and shapes.

A feature of a SequenceExample belongs to the context or to a feature list. Values of a feature list have a
dimension for the steps before their own dimensions.

Source: TensorFlow core/ops/parsing_ops.cc, core/util/example_proto_fast_parsing.cc, example_proto_helper.cc.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from opkernel.device.made_bytes import making_bytes
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.opdef import DimensionHandle, InferenceContext, ShapeHandle
from opkernel.opdef.common_shapes.rules import check_input_ranks, defined_shape, set_outputs
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.parsing.feature_spans import Spans, spans_of_features
from opkernel.ops.parsing.features import BY_COLUMNS, Column, Reading, column_of, text_of
from opkernel.ops.parsing.few_records import FEW_BYTES, columns_one_by_one
from opkernel.ops.ragged.gather_range import lengths_to_splits, ranges
from opkernel.types import DataType, PartialTensorShape, TensorShape

Types = Sequence[DataType]
_Read = Callable[[Spans, DataType, str, Reading], Any]
Outputs = tuple[list[Any], ...]

_ARRAYS = 3
"""For each dimension, that the indices of sparse values are made with."""
_FEW = 12
"""So many records are read sooner by Python than by calls of functions for all of them at once."""


def columns_of(
    records: Sequence[bytes],
    keys: Sequence[bytes],
    types: Types,
    number: int,
    column: _Read,
    reading: Reading,
) -> list[Any]:
    """The features of serialized examples, or those in the field of a number of sequence examples.

    Args:
        records: The examples.
        keys: The names of the features.
        types: Their types.
        number: The number of the field: 1 for features and for the context, 2 for feature lists.
        column: Reads a feature.
        reading: The algorithms.
    """
    if len(records) <= _FEW and column is column_of and sum(map(len, records)) <= FEW_BYTES:
        return columns_one_by_one(records, keys, types, number, reading.read_map)
    with making_bytes("records") as made:
        algorithms = reading.find_features, reading.read_map
        spans = spans_of_features(records, number, keys, *algorithms, made)
        return [
            column(span, dtype, text_of(key), reading)
            for span, dtype, key in zip(spans, types, keys, strict=True)
        ]


def sparse_of(values: Any, *lengths: Any) -> tuple[Any, Any, Any]:
    """Indices, values and shape of values in rows, which may be in rows again: the lengths of these, the outer first."""
    rank = 1 + len(lengths)
    check_allocation((values.size, rank), DataType.DT_INT64)
    with making_bytes("indices of values", _ARRAYS * rank * 8 * values.size):
        columns = [np.arange(lengths[0].size)]
        for one in lengths:
            columns = [np.repeat(column, one) for column in columns]
            columns.append(ranges(np.zeros(one.size, np.int64), one))
        indices = np.stack(columns, axis=1).astype(np.int64, copy=False)
    shape = [lengths[0].size, *(one.max(initial=0) for one in lengths)]
    return indices, values, np.array(shape, np.int64)


@dataclass(frozen=True, slots=True)
class DenseFeature:
    """A feature with a shape, whose first size may vary.

    Attributes:
        dtype: Its type.
        shape: Its shape.
        is_variable: Whether examples may have values of different lengths.
        inner: The sizes that are fixed.
        stride: Their product.
    """

    dtype: DataType
    shape: PartialTensorShape
    is_variable: bool = field(init=False)
    inner: tuple[int, ...] = field(init=False)
    stride: int = field(init=False)

    def __post_init__(self) -> None:
        sizes = self.shape.as_list()
        is_variable = bool(sizes) and sizes[0] is None
        inner = tuple(int(size or 0) for size in sizes[is_variable:])
        for name, value in zip(self.__slots__[2:], (is_variable, inner, prod(inner)), strict=True):
            object.__setattr__(self, name, value)

    def check_default(self, name: bytes, default: Any) -> None:
        """Raise InvalidArgumentError unless the default value fits the shape."""
        if self.is_variable:
            if default.size != 1:
                raise InvalidArgumentError(
                    f"dense_shape[{text_of(name)}] is a variable length shape: its default must have "
                    f"exactly one element, not {default.size}"
                )
        elif default.size and default.shape != self.inner:
            raise InvalidArgumentError(
                f"def_value[{text_of(name)}].shape() == {list(default.shape)} is not compatible "
                f"with dense_shapes_[{text_of(name)}] == {self.shape}"
            )

    def tensor(self, name: bytes, column: Column, default: Any) -> Any:
        """The values of all examples, with the default for those that are missing."""
        fill = self._padded if self.is_variable else self._fixed
        return fill(name, column, default)

    def _fixed(self, name: bytes, column: Column, default: Any) -> Any:
        size, shape, counts = self.stride, (column.counts.size, *self.inner), column.counts
        if counts[0] == size if counts.size == 1 else (counts == size).all():
            return column.values.reshape(check_allocation(shape, self.dtype))
        is_missing = counts < 0
        wrong = ~is_missing & (counts != size)
        if wrong.any():
            at = int(wrong.argmax())
            raise InvalidArgumentError(
                f"Key: {text_of(name)}, Index: {at}. Number of {self.dtype.string} values != "
                f"expected. Values size: {counts[at]} but output shape: {self.shape}"
            )
        if is_missing.any() and not default.size:
            raise InvalidArgumentError(
                f"Feature: {text_of(name)} (data type: {self.dtype.string}) is required but could "
                "not be found."
            )
        shape = check_allocation(shape, self.dtype)
        output = np.empty((counts.size, size), self.dtype.numpy_dtype)
        output[~is_missing] = column.values.reshape(np.count_nonzero(~is_missing), size)
        output[is_missing] = default.reshape(-1)
        return output.reshape(shape)

    def _padded(self, name: bytes, column: Column, default: Any) -> Any:
        stride, lengths = self.stride, column.lengths
        wrong = lengths % max(stride, 1) != 0
        if wrong.any():
            at = int(wrong.argmax())
            raise InvalidArgumentError(
                f"Key: {text_of(name)}, Index: {at}. Number of {self.dtype.string} values is not "
                f"a multiple of stride length. Values size: {lengths[at]} but output shape: "
                f"{self.shape}"
            )
        longest = int(lengths.max(initial=0)) // max(stride, 1)
        shape = check_allocation((lengths.size, longest, *self.inner), self.dtype)
        width = longest * stride
        output = np.empty(lengths.size * width, self.dtype.numpy_dtype)
        output[...] = default.reshape(-1)[0]
        output[ranges(np.arange(lengths.size) * width, lengths)] = column.values
        return output.reshape(shape)


@dataclass(frozen=True, slots=True)
class Features:
    """The features that are asked for: types by their kind.

    Attributes:
        name: What they are called in messages.
        reading: The algorithms that read them.
        types: The types of all features, the sparse ones first and the ragged ones last.
        dense_features: The dense ones with their shapes.
    """

    name: str
    sparse: Types
    dense: Types
    dense_shapes: Sequence[PartialTensorShape]
    ragged: Types = ()
    splits: Types = ()
    reading: Reading = BY_COLUMNS
    types: list[DataType] = field(init=False)
    dense_features: list[DenseFeature] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", [*self.sparse, *self.dense, *self.ragged])
        features = [*map(DenseFeature, self.dense, self.dense_shapes)]
        object.__setattr__(self, "dense_features", features)

    def keys(self, *keys: Any, expected: str) -> list[bytes]:
        """The keys that tensors of any shape hold, one for each kind; `{}` in `expected` stands for the kind.

        Raises:
            InvalidArgumentError: a tensor has more or fewer keys than there are features.
        """
        kinds = zip(
            ("sparse", "dense", "ragged"), (self.sparse, self.dense, self.ragged), strict=True
        )
        for tensor, (kind, types) in zip(keys, kinds, strict=True):
            if tensor.size != len(types):
                raise InvalidArgumentError(
                    f"Expected {expected.format(kind)} of {len(types)} keys, got shape: "
                    f"{TensorShape(tensor.shape)}"
                )
        return [key for tensor in keys for key in tensor.flat]

    def check_defaults(self, keys: Sequence[bytes], defaults: Sequence[Any]) -> None:
        """Raise InvalidArgumentError where the default of a dense feature does not fit; `keys` are those of all features."""
        names = keys[len(self.sparse) :]
        for feature, name, default in zip(self.dense_features, names, defaults, strict=False):
            feature.check_default(name, default)

    def outputs(
        self, records: Sequence[bytes], keys: Sequence[bytes], defaults: Sequence[Any]
    ) -> Outputs:
        """Indices, values and shapes of sparse features, dense ones, ragged values and splits."""
        self.check_defaults(keys, defaults)
        sparse, dense, ragged = self.by_kind(
            columns_of(records, keys, self.types, 1, column_of, self.reading)
        )
        rows = [sparse_of(column.values, column.lengths) for column in sparse]
        names = keys[len(sparse) : len(sparse) + len(dense)]
        tensors = [
            feature.tensor(*of_one)
            for feature, *of_one in zip(self.dense_features, names, dense, defaults, strict=True)
        ]
        splits = [
            (column.values, lengths_to_splits(column.lengths, dtype))
            for column, dtype in zip(ragged, self.splits, strict=True)
        ]
        return *transposed(rows, 3), tensors, *transposed(splits, 2)

    def by_kind(self, columns: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The columns of each kind."""
        first, second = len(self.sparse), len(self.sparse) + len(self.dense)
        return columns[:first], columns[first:second], columns[second:]


def transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """The first parts of all rows, the second ones and so on."""
    return [[row[i] for row in rows] for i in range(width)]


def of_one(outputs: Outputs) -> Outputs:
    """Outputs for a batch of one without the dimension of the batch; ragged ones stay."""
    indices, values, shapes, dense, *ragged = outputs
    return (
        [one[:, 1:] for one in indices],
        values,
        [one[1:] for one in shapes],
        [one[0, ...] for one in dense],  # a string stays an array
        *ragged,
    )


_PARTS = ("context", "feature_list")


# Outputs of a kind of features


def _sparse(
    c: InferenceContext, count: int, batch: ShapeHandle, inner_rank: int
) -> Iterator[ShapeHandle]:
    """Indices, values and shapes of `count` sparse tensors, `inner_rank` more than the batch's."""
    rank = c.rank(batch) + inner_rank if c.rank_known(batch) else None
    yield from [c.matrix(None, rank) for _ in range(count)]
    yield from [c.vector(None) for _ in range(count)]
    yield from [c.vector(rank) for _ in range(count)]


def _dense(
    c: InferenceContext, shapes: Sequence[PartialTensorShape], prefix: ShapeHandle
) -> Iterator[ShapeHandle]:
    """Dense tensors of these shapes, with the dimensions of `prefix` before."""
    for shape in shapes:
        yield c.concatenate(prefix, c.make_shape_from_partial_shape(shape))


def _ragged(
    c: InferenceContext, count: int, examples: DimensionHandle, ragged_rank: int
) -> Iterator[ShapeHandle]:
    """Values and row splits, the outermost first, of `count` ragged tensors."""
    splits = c.add(examples, 1)
    yield from [c.vector(None) for _ in range(count)]
    yield from [c.vector(splits) for _ in range(count)]
    yield from [c.vector(None) for _ in range(count * (ragged_rank - 1))]


def _number_of_examples(c: InferenceContext, batch: ShapeHandle) -> DimensionHandle:
    return c.dim(batch, 0) if c.rank(batch) == 1 else c.unknown_dim()


# Attrs


def _check_equal(c: InferenceContext, what: str, count: int, *lists: str) -> None:
    """`count`, that of `what`, must be the length of these list attrs."""
    lengths = [len(c.get_attr(name)) for name in lists]
    if any(length != count for length in lengths):
        named = [f"{name} ({length})" for name, length in zip(lists, lengths, strict=True)]
        raise InvalidArgumentError(f"{what} ({count}) must match the size of {' and '.join(named)}")


def _check_same_length(count: int, keys: str, other: int, name: str) -> None:
    require_equal(count, other, f"len({keys}) != len({name})")


def check_dense_shapes(shapes: Sequence[PartialTensorShape]) -> None:
    """Only the first dimension of a dense feature may be unknown: its length then varies."""
    for i, shape in enumerate(shapes):
        message = f"dense_shapes[{i}] has unknown rank or unknown inner dimensions: {shape}"
        require(shape.rank is not None and None not in shape.as_list()[1:], message)


def _defined_shapes(c: InferenceContext, part: str) -> list[PartialTensorShape]:
    """The shapes of the dense features of a part of a SequenceExample."""
    return [defined_shape(shape) for shape in c.get_attr(f"{part}_dense_shapes")]


# Example


def parse_example_shape(c: InferenceContext) -> None:
    check_dense_shapes(c.get_attr("dense_shapes"))
    _check_example_attrs(c, c.get_attr("Nsparse"), c.get_attr("Ndense"))
    batch, _ = check_input_ranks(c, 1, 1)
    sparse = _sparse(c, c.get_attr("Nsparse"), batch, 1)
    set_outputs(c, [*sparse, *_dense(c, c.get_attr("dense_shapes"), batch)])


def _check_example_attrs(c: InferenceContext, sparse: int, dense: int) -> None:
    _check_same_length(sparse, "sparse_keys", len(c.get_attr("sparse_types")), "sparse_types")
    _check_same_length(dense, "dense_keys", len(c.get_attr("Tdense")), "dense_types")
    _check_same_length(dense, "dense_keys", len(c.get_attr("dense_shapes")), "dense_shapes")


def parse_example_v2_shape(c: InferenceContext) -> None:
    check_dense_shapes(c.get_attr("dense_shapes"))
    ragged = len(c.get_attr("ragged_value_types"))
    _check_example_attrs(c, c.get_attr("num_sparse"), len(c.get_attr("Tdense")))
    splits = len(c.get_attr("ragged_split_types"))
    _check_same_length(ragged, "ragged_keys", splits, "ragged_split_types")
    batch = c.with_rank_at_most(c.input(0), 1)
    c.with_rank_at_most(c.input(1), 1)
    outputs = [
        *_sparse(c, c.get_attr("num_sparse"), batch, 1),
        *_dense(c, c.get_attr("dense_shapes"), batch),
        *_ragged(c, ragged, _number_of_examples(c, batch), 1),
    ]
    set_outputs(c, outputs)


def parse_single_example_shape(c: InferenceContext) -> None:
    count = c.get_attr("num_sparse")
    _check_equal(c, "num_sparse", count, "sparse_keys", "sparse_types")
    check_dense_shapes(c.get_attr("dense_shapes"))
    _check_example_attrs(c, count, len(c.get_attr("dense_keys")))
    (example,) = check_input_ranks(c, 0)
    sparse = _sparse(c, count, example, 1)
    set_outputs(c, [*sparse, *_dense(c, c.get_attr("dense_shapes"), example)])


# SequenceExample


def _check_sequence_attrs(c: InferenceContext, dense: dict[str, int]) -> None:
    """Each kind of features has as many types and shapes as features."""
    for part in _PARTS:
        count = c.get_attr(f"N{part}_sparse")
        _check_equal(c, f"num_{part}_sparse", count, f"{part}_sparse_types")
        types = "Tcontext_dense" if part == "context" else "feature_list_dense_types"
        _check_equal(c, f"num_{part}_dense", dense[part], types, f"{part}_dense_shapes")


def _sequence_outputs(
    c: InferenceContext,
    batch: ShapeHandle,
    shapes: Sequence[Sequence[PartialTensorShape]],
    ragged: Sequence[int] = (0, 0),
) -> Iterator[ShapeHandle]:
    """The outputs of features of the context, then of feature lists, whose lengths follow them."""
    context_shapes, list_shapes = shapes
    examples = _number_of_examples(c, batch)
    steps = c.concatenate(batch, c.vector(None))
    yield from _sparse(c, c.get_attr("Ncontext_sparse"), batch, 1)
    yield from _dense(c, context_shapes, batch)
    yield from _ragged(c, ragged[0], examples, 1)
    yield from _sparse(c, c.get_attr("Nfeature_list_sparse"), batch, 2)
    yield from _dense(c, list_shapes, steps)
    yield from [batch] * len(list_shapes)
    yield from _ragged(c, ragged[1], examples, 2)


def parse_sequence_example_shape(c: InferenceContext) -> None:
    shapes = [_defined_shapes(c, part) for part in _PARTS]
    dense = {}
    for part in _PARTS:
        for kind in ("sparse", "dense"):
            count = c.get_attr(f"N{part}_{kind}")
            _check_equal(c, f"num_{part}_{kind}", count, f"{part}_{kind}_keys")
        dense[part] = c.get_attr(f"N{part}_dense")
    _check_sequence_attrs(c, dense)
    batch, _ = check_input_ranks(c, 1, 1)
    set_outputs(c, _sequence_outputs(c, batch, shapes))


def parse_sequence_example_v2_shape(c: InferenceContext) -> None:
    shapes = [_defined_shapes(c, part) for part in _PARTS]
    dense = {
        "context": len(c.get_attr("Tcontext_dense")),
        "feature_list": c.get_attr("Nfeature_list_dense"),
    }
    _check_sequence_attrs(c, dense)
    ragged = []
    for part in _PARTS:
        types = f"{part}_ragged_value_types", f"{part}_ragged_split_types"
        ragged.append(len(c.get_attr(types[0])))
        _check_equal(c, f"num_{part}_ragged", ragged[-1], *types)
    batch = c.with_rank_at_most(c.input(0), 1)
    c.with_rank_at_most(c.input(1), 1)
    set_outputs(c, _sequence_outputs(c, batch, shapes, ragged))


def parse_single_sequence_example_shape(c: InferenceContext) -> None:
    context_shapes, list_shapes = (_defined_shapes(c, part) for part in _PARTS)
    types = {"context": "Tcontext_dense", "feature_list": "feature_list_dense_types"}
    for kind in ("sparse", "dense"):
        for part in _PARTS:
            name = f"{part}_{kind}_types"
            given = len(c.get_attr(types[part] if kind == "dense" else name))
            _check_same_length(c.get_attr(f"N{part}_{kind}"), f"{part}_{kind}_keys", given, name)
    dense = c.get_attr("Ncontext_dense")
    _check_same_length(dense, "context_dense_keys", len(context_shapes), "context_dense_shapes")
    example, _ = check_input_ranks(c, 0, 1)
    outputs = [
        *_sparse(c, c.get_attr("Ncontext_sparse"), example, 1),
        *_dense(c, context_shapes, example),
        *_sparse(c, c.get_attr("Nfeature_list_sparse"), example, 2),
        *_dense(c, list_shapes, c.vector(None)),
    ]
    set_outputs(c, outputs[: c.num_outputs()])
