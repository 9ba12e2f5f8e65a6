"""ParseExampleDataset: the features of serialized Example messages, batch by batch.

The components of an element are the features in the order of their keys: dense tensors, and variants that hold sparse
and ragged ones.

Source: TensorFlow core/kernels/data/experimental/parse_example_dataset_op.cc.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from opkernel.errors import InvalidArgumentError, OutOfRangeError
from opkernel.kernel import KernelRegistry, Step
from opkernel.ops.data.dataset import DatasetBase, Element, InputIterator
from opkernel.ops.data.dataset_op import DatasetNode, declare, register_dataset
from opkernel.ops.data.iterator_resource import check_element, check_types
from opkernel.ops.data.maps import check_parallel_calls
from opkernel.ops.input_checks import require, require_equal
from opkernel.ops.parsing.feature_tensors import Features, check_dense_shapes
from opkernel.ops.parsing.features import BY_COLUMNS, Reading
from opkernel.ops.ragged.variant import RaggedVariant
from opkernel.ops.sparse.serialize import serialize_sparse
from opkernel.types import DataType, object_scalar

_OPS = ("ParseExampleDataset", "ParseExampleDatasetV2", "ExperimentalParseExampleDataset")

for _op in _OPS:
    declare(
        _op,
        doc="The features of the Example messages of each element, in the order of their keys.",
    )


class _ParseExampleIterator(InputIterator):
    def next(self, step: Step) -> Element | None:
        """The features of the next element of the input.

        Raises:
            InvalidArgumentError: a feature is not as it is expected to be.
        """
        try:
            element = self.input.next(step)
        except OutOfRangeError as error:  # it would end the dataset
            raise InvalidArgumentError(
                f"Function invocation produced OutOfRangeError: {error.message}"
            ) from error
        if element is None:
            return None
        found: Element = self.dataset.parsed(element)
        return found


class ParseExampleDataset(DatasetBase):
    """The features of the messages in each element of another dataset."""

    iterator_type = _ParseExampleIterator

    def __init__(self, node: DatasetNode, reading: Reading) -> None:
        source = node.dataset()
        super().__init__(node.dtypes, node.shapes, [source])
        check_parallel_calls(node.scalar("num_parallel_calls"))
        deterministic = node.attr("deterministic", "default")
        require(
            deterministic in ("default", "true", "false"),
            f"Unrecognized value for DeterminismPolicy: {deterministic}",
        )
        if any(dtype is not DataType.DT_STRING for dtype in source.dtypes):
            raise InvalidArgumentError(f"{node.op} parses strings, and its input has other tensors")
        shapes = node.attr("dense_shapes")
        check_dense_shapes(shapes)
        self._sparse, self._dense = node.attr("sparse_types"), node.attr("Tdense")
        self._ragged = node.attr("ragged_value_types", [])
        splits = node.attr("ragged_split_types", [])
        self._keys = _keys_of(node, len(self._sparse), len(self._dense), len(self._ragged))
        for name, given, wanted in (
            ("dense_shapes", shapes, self._dense),
            ("ragged_split_types", splits, self._ragged),
            ("output_types", self.dtypes, self._keys),
        ):
            require_equal(len(given), len(wanted), f"{name} has {{}} entries, and needs {{}}")
        self._features = Features(
            "", self._sparse, self._dense, shapes, self._ragged, splits, reading
        )
        self._defaults = node.tensors("dense_defaults")
        self._features.check_defaults(self._keys, self._defaults)
        self._order = sorted(range(len(self._keys)), key=self._keys.__getitem__)

    def cardinality(self) -> int:
        return self.input.cardinality()

    def parsed(self, element: Element) -> Element:
        """The features of the messages in all tensors of an element.

        Raises:
            InvalidArgumentError: a feature has another type or number of values, or is missing.
        """
        records = [record for tensor in element for record in tensor.reshape(-1).tolist()]
        outputs = self._features.outputs(records, self._keys, self._defaults)
        *sparse, dense, values, splits = outputs
        tensors = [
            *map(_sparse_variants, *sparse, self._sparse),
            *dense,
            *map(_ragged_variant, values, splits),
        ]
        variants = [DataType.DT_VARIANT]
        dtypes = variants * len(self._sparse) + self._dense + variants * len(self._ragged)
        check_types(self.dtypes, [dtypes[i] for i in self._order])
        found = tuple(tensors[i] for i in self._order)
        check_element(self.shapes, found)
        return found


def _sparse_variants(indices: Any, values: Any, shape: Any, dtype: DataType) -> Any:
    return serialize_sparse(indices, values, shape, T=dtype, out_type=DataType.DT_VARIANT)


def _ragged_variant(values: Any, splits: Any) -> Any:
    return object_scalar(RaggedVariant([splits], values))


def _keys_of(node: DatasetNode, *counts: int) -> list[bytes]:
    """The keys of sparse, dense and ragged features.

    Raises:
        InvalidArgumentError: there are more or fewer than types, or one stands twice.
    """
    keys: dict[bytes, None] = {}
    for kind, count in zip(("sparse", "dense", "ragged"), counts, strict=True):
        found: Sequence[str] = node.attr(f"{kind}_keys", [])
        require_equal(len(found), count, f"There are {{}} {kind} keys, and {{}} types for them")
        for text in found:
            key = text.encode("utf-8", "surrogateescape")
            require(key not in keys, f"Duplicate key not allowed: {key!r}")
            keys[key] = None
    return [*keys]


def register_parsed_examples(reading: Reading, registry: KernelRegistry | None = None) -> None:
    """Register the kernels of datasets of parsed examples, which read them by these algorithms."""
    register_dataset(*_OPS, make=partial(ParseExampleDataset, reading=reading), registry=registry)


register_parsed_examples(BY_COLUMNS)
