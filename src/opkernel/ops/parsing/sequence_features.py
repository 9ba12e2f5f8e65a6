"""The two parts of sequence examples as tensors of each kind: the context, and the feature lists.

Source: TensorFlow core/kernels/example_parsing_ops.cc, core/util/example_proto_helper.cc.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opkernel.errors import InvalidArgumentError
from opkernel.ops.declared.rules import defined_shape
from opkernel.ops.parsing.columns import DenseFeature, ragged_of, sparse_of
from opkernel.ops.parsing.example import columns_of, text_of
from opkernel.ops.parsing.feature_lists import DenseFeatureList, step_columns
from opkernel.types import DataType, PartialTensorShape

__all__ = ["Part", "list_of_one", "of_one", "part_of"]

Types = Sequence[DataType]
Outputs = tuple[list[Any], ...]


@dataclass(frozen=True, slots=True)
class Part:
    """The features of the context, or the feature lists: types by their kind."""

    name: str
    sparse: Types
    dense: Types
    dense_shapes: Sequence[PartialTensorShape]
    ragged: Types
    splits: Types

    @property
    def types(self) -> list[DataType]:
        return [*self.sparse, *self.dense, *self.ragged]

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
            if len(values) != count:
                raise InvalidArgumentError(
                    f"num_{self.name}_{kind} ({count}) must match the size of {name} ({len(values)})"
                )

    def context_outputs(
        self, records: Sequence[bytes], keys: Sequence[bytes], defaults: Sequence[Any]
    ) -> Outputs:
        """Indices, values and shapes of sparse features, dense ones, ragged values and splits."""
        sparse, dense, ragged = self._by_kind(columns_of(records, keys, self.types))
        rows = [sparse_of(column) for column in sparse]
        features = self._dense_features(keys, defaults)
        tensors = [feature.tensor(column) for feature, column in zip(features, dense, strict=True)]
        splits = [
            ragged_of(column, dtype) for column, dtype in zip(ragged, self.splits, strict=True)
        ]
        return *_transposed(rows, 3), tensors, *_transposed(splits, 2)

    def list_outputs(
        self, records: Sequence[bytes], keys: Sequence[bytes], optional: Sequence[bool]
    ) -> Outputs:
        """As `context_outputs`; lengths after the dense ones, splits of examples and of steps."""
        sparse, dense, ragged = self._by_kind(step_columns(records, keys, self.types))
        rows = [steps.sparse() for steps in sparse]
        lists = map(DenseFeatureList, self.dense, self.dense_shapes, optional)
        tensors = [one.tensor(steps) for one, steps in zip(lists, dense, strict=True)]
        splits = [steps.ragged(dtype) for steps, dtype in zip(ragged, self.splits, strict=True)]
        return *_transposed(rows, 3), *_transposed(tensors, 2), *_transposed(splits, 3)

    def _by_kind(self, columns: Sequence[Any]) -> tuple[Any, Any, Any]:
        """The columns of each kind."""
        first, second = len(self.sparse), len(self.sparse) + len(self.dense)
        return columns[:first], columns[first:second], columns[second:]

    def _dense_features(self, keys: Sequence[bytes], defaults: Sequence[Any]) -> list[DenseFeature]:
        names = map(text_of, keys[len(self.sparse) :])
        features = [
            DenseFeature(*of_one)
            for of_one in zip(names, self.dense, self.dense_shapes, defaults, strict=False)
        ]
        for feature in features:
            feature.check_default()
        return features


def part_of(
    name: str,
    sparse: Types,
    dense: Types,
    dense_shapes: Sequence[PartialTensorShape],
    ragged: Types = (),
    splits: Types = (),
) -> Part:
    """A part whose dense shapes must be defined."""
    return Part(name, sparse, dense, list(map(defined_shape, dense_shapes)), ragged, splits)


def _transposed(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    return [[row[i] for row in rows] for i in range(width)]


def of_one(outputs: Outputs) -> Outputs:
    """Outputs of the context of a batch of one, without the dimension of the batch."""
    indices, values, shapes, dense, *ragged = outputs
    return (
        [one[:, 1:] for one in indices],
        values,
        [one[1:] for one in shapes],
        [one[0] for one in dense],
        *ragged,
    )


def list_of_one(outputs: Outputs) -> Outputs:
    """Outputs of the feature lists of a batch of one, without the dimension of the batch."""
    lengths = [one[0] for one in outputs[4]]
    return *of_one(outputs[:4]), lengths, *outputs[5:]
