"""Examples: the features of a batch of examples, and the weights of the model with their changes.

Source: TensorFlow core/kernels/sdca_internal.cc, sdca_internal.h.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from opkernel.device.work_clock import in_time
from opkernel.errors import InvalidArgumentError
from opkernel.kernel import check_allocation
from opkernel.ops.input_checks import require, require_rank
from opkernel.types import Array, DataType


class Regularization:
    """The weights of l1 and l2; l2 is not 0 where a model is trained."""

    def __init__(self, l1: float, l2: float) -> None:
        self.l2 = np.float64(np.float32(l2))
        with np.errstate(all="ignore"):
            self._shrinkage = np.float64(np.float32(l1) / np.float32(l2))

    def shrunk(self, weights: Array) -> Array:
        """The weights with their absolute values less l1 / l2, and 0 for smaller ones."""
        shrinkage = weights.dtype.type(self._shrinkage)
        found: Array = np.sign(weights) * np.maximum(np.abs(weights) - shrinkage, 0)
        return found


class SparseGroup:
    """Features that few examples have.

    Args:
        examples: The number of the example of each feature, in ascending order; those after a descent do not count.
        features: The index of each feature.
        values: Its value, or None for 1.
        indices: The indices of the features that have weights.
        weights: These weights.
        count: How many examples there are.

    Raises:
        InvalidArgumentError: sizes differ, or an example has a feature without a weight, or a feature twice.
    """

    def __init__(
        self,
        examples: Array,
        features: Array,
        values: Array | None,
        *,
        indices: Array,
        weights: Array,
        count: int,
    ) -> None:
        sizes = f"[{examples.size}] vs [{features.size}]"
        message = f"Found mismatched example_indices and feature_indices {sizes}"
        require(examples.size == features.size, message)
        if values is not None and values.size < features.size:
            raise InvalidArgumentError(f"Found {values.size} values of {features.size} features")
        message = f"Found {indices.size} sparse_indices of {weights.size} sparse_weights"
        require(indices.size == weights.size, message)
        self.weights = weights
        self.deltas = np.zeros(weights.size, np.float32)
        self._set_bounds(examples.reshape(-1), count)
        used = int(self._bounds[-1])
        self._places = _places(features.reshape(-1)[:used], indices.reshape(-1))
        self._check_once(count)
        ones = np.ones(used) if values is None else values.reshape(-1)[:used].astype(np.float64)
        self._values = ones

    def _set_bounds(self, examples: Array, count: int) -> None:
        """Where the features of each example begin and end."""
        falls = np.flatnonzero(np.diff(examples) < 0)
        used = examples[: falls[0] + 1] if falls.size else examples
        if used.size and used[0] < 0:
            used = used[:0]
        self._bounds = np.searchsorted(used, np.arange(count + 1))

    def _check_once(self, count: int) -> None:
        owners = np.repeat(np.arange(count), np.diff(self._bounds))
        order = np.lexsort((self._places, owners))
        same = (np.diff(owners[order]) == 0) & (np.diff(self._places[order]) == 0)
        require(not same.any(), "Duplicate index in sparse vector.")

    def features(self, example: int) -> tuple[Array, Array]:
        """The places of an example's features in the weights, and their values."""
        part = slice(self._bounds[example], self._bounds[example + 1])
        return self._places[part], self._values[part]

    def squares(self, example: int) -> float:
        """The sum of the squares of the values."""
        values = self.features(example)[1]
        return float(values @ values)

    def products(
        self, example: int, partitions: int, regularization: Regularization
    ) -> tuple[float, float]:
        """What the changed weights and those before predict."""
        places, values = self.features(example)
        before = self.weights[places]
        now = before + self.deltas[places] * np.float32(partitions)
        return tuple(  # type: ignore[return-value]  # there are two
            float(values @ regularization.shrunk(one.astype(np.float64))) for one in (now, before)
        )

    def add(self, example: int, step: float) -> None:
        """Change the weights along the example."""
        places, values = self.features(example)
        self.deltas[places] = (self.deltas[places] + values * step).astype(np.float32)


def _places(features: Array, indices: Array) -> Array:
    """Where features stand among the indices, the last one of equal indices."""
    order = np.argsort(indices, kind="stable")
    found = np.searchsorted(indices[order], features, side="right") - 1
    places: Array = order[np.maximum(found, 0)] if indices.size else found
    is_known = indices[places] == features if indices.size else np.zeros(len(features), bool)
    if not np.all(is_known):
        raise InvalidArgumentError(
            f"Found sparse feature indices out of valid range: {features[~is_known][0]}"
        )
    return places


class DenseGroup:
    """Features that each example has.

    Args:
        features: [examples, features].
        weights: [features].

    Raises:
        InvalidArgumentError: the sizes differ.
    """

    def __init__(self, features: Array, weights: Array, index: int, count: int) -> None:
        message = f"Dense features at index {index} must be rank 2 but is rank {features.ndim}"
        require_rank(features, 2, message)
        columns = features.shape[1]
        if not 0 < columns <= weights.size:
            raise InvalidArgumentError(
                f"More dense features than we have parameters for: {columns}"
            )
        message = (
            f"Dense features at index {index} are {columns}, but there are {weights.size} weights"
        )
        require(columns == weights.size, message)
        message = (
            f"Dense features at index {index} are of {len(features)} examples instead of {count}"
        )
        require(len(features) == count, message)
        self._features = features
        self.weights = weights
        self.deltas = np.zeros(columns, np.float32)

    def squares(self, example: int) -> float:
        """The sum of the squares of the values."""
        row = self._features[example]
        return float(np.sum(row * row))

    def products(
        self, example: int, partitions: int, regularization: Regularization
    ) -> tuple[float, float]:
        """What the changed weights and those before predict."""
        row = self._features[example]
        now = self.weights + self.deltas * np.float32(partitions)
        return tuple(  # type: ignore[return-value]  # there are two
            float(np.sum(row * regularization.shrunk(one))) for one in (now, self.weights)
        )

    def add(self, example: int, step: float) -> None:
        """Change the weights along the example."""
        self.deltas += self._features[example] * np.float32(step)


class Examples:
    """The examples of a batch.

    Attributes:
        labels, weights: One of each example.
        sparse, dense: The groups of their features.
        squares: The squared norm of each example.
    """

    def __init__(self, inputs: dict[str, Any]) -> None:
        self.weights = inputs["example_weights"].reshape(-1)
        self.labels = inputs["example_labels"].reshape(-1)
        count = len(self.weights)
        message = f"Expected {count} example labels but got {len(self.labels)}"
        require(len(self.labels) == count, message)
        for group in (*inputs["sparse_example_indices"], *inputs["sparse_weights"]):
            check_allocation((4, group.size), DataType.DT_INT64)
        values = [*inputs["sparse_feature_values"], *[None] * len(inputs["sparse_indices"])]
        self.sparse = [
            SparseGroup(*given, indices=indices, weights=weights.reshape(-1), count=count)
            for *given, indices, weights in zip(
                inputs["sparse_example_indices"],
                inputs["sparse_feature_indices"],
                values[: len(inputs["sparse_indices"])],
                inputs["sparse_indices"],
                inputs["sparse_weights"],
                strict=True,
            )
        ]
        pairs: Sequence[tuple[Any, Any]] = [
            *zip(inputs["dense_features"], inputs["dense_weights"], strict=True)
        ]
        self.dense = [
            DenseGroup(features, weights.reshape(-1), index, count)
            for index, (features, weights) in enumerate(pairs)
        ]
        self.squares = [
            sum(group.squares(example) for group in self.groups)
            for example in in_time(range(count))
        ]

    @property
    def groups(self) -> Iterator[SparseGroup | DenseGroup]:
        """All groups of features."""
        yield from self.sparse
        yield from self.dense

    def predictions(
        self, example: int, partitions: int, regularization: Regularization
    ) -> tuple[Any, Any]:
        """What the changed weights, and those before, predict for an example."""
        now = before = np.float64(0)
        for group in self.groups:
            products = group.products(example, partitions, regularization)
            now, before = now + products[0], before + products[1]
        return now, before
