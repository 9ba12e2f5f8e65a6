"""`Dataset`: a pipeline of elements.

Source: DatasetV2 in TensorFlow python/data/ops/dataset_ops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from opkernel.data.component_specs import (
    RaggedTensorSpec,
    SparseTensorSpec,
    encoded_rows,
    row_of,
)
from opkernel.data.iteration import DatasetIterator, iterator_in_graph
from opkernel.data.options import WithOptions
from opkernel.data.python_generator import PythonGeneratorDataset
from opkernel.data.ragged_batches import RaggedBatches
from opkernel.data.resampling import Resampling
from opkernel.data.saved_elements import SavedElements
from opkernel.data.sequence_batches import SequenceBatches
from opkernel.data.structure import (
    covering,
    element_packer,
    flag_of,
    int64_of,
    normalized,
    number_of,
    spec_of_value,
    tensors_of,
    types_of,
)
from opkernel.data.structured_function import call_op, graph_of
from opkernel.endpoints.global_seed import seeds_of
from opkernel.errors import FailedPreconditionError, InvalidArgumentError
from opkernel.graph import Tensor, TensorSpec
from opkernel.graph.core.default_graph import innermost_default
from opkernel.graph.tracing.nested_structure import flatten, map_structure, packer
from opkernel.messages import short_repr
from opkernel.ops.data.dataset import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, dataset_of
from opkernel.types import DataType, PartialTensorShape, as_dtype, object_scalar


class Dataset(Resampling, SequenceBatches, RaggedBatches, WithOptions, SavedElements):
    """A pipeline: where elements come from, and what becomes of them.

        numbers = opkernel.data.Dataset.range(10).map(lambda x: x * x).batch(4)
        for batch in numbers:
            print(batch)

    Nothing is computed before an element is asked for. Outside of graphs the elements are arrays; in a graph a dataset
    is a tensor, for `make_initializable_iterator`. Datasets are made by the class methods, and by methods of others.

    Args:
        variant_tensor: The tensor that holds the dataset: an array, or a tensor of a graph.
        element_spec: What is known of its elements: TensorSpecs and DatasetSpecs in tuples and dicts.
    """

    def __init__(self, variant_tensor: Any, element_spec: Any) -> None:
        if not isinstance(variant_tensor, Tensor):
            variant_tensor = _as_array(variant_tensor)
        self._variant, self.element_spec = variant_tensor, element_spec

    def __repr__(self) -> str:
        return f"<opkernel.data.Dataset element_spec={self.element_spec}>"

    @property
    def variant_tensor(self) -> Any:
        """The tensor that holds the dataset; in a function that is being traced, what stands for it there.

        Raises:
            FailedPreconditionError: a graph for sessions is being built, and the dataset was made outside of graphs.
        """
        graph = innermost_default()
        if graph is None or isinstance(self._variant, Tensor):
            return self._variant
        if not graph.building_function:
            raise FailedPreconditionError(
                "A dataset that was made outside of graphs cannot be used in a graph for sessions: "
                "make it inside of `with graph.as_default():`"
            )
        return graph.tensor_of(self)

    # As a value that traced functions take from outside (CapturedValue)

    name = "dataset"
    captured_spec = (DataType.DT_VARIANT, PartialTensorShape([]))
    handle_facts = None

    @property
    def captured_value(self) -> Any:
        """The tensor that holds the dataset, outside of graphs."""
        return self._variant

    # Sources

    @classmethod
    def from_tensors(cls, tensors: Any, name: str | None = None) -> Dataset:
        """A dataset with one element."""
        element = normalized(tensors)
        spec = spec_of_value(element)
        return cls._made("TensorDataset", spec, components=tensors_of(element, spec))

    @classmethod
    def from_tensor_slices(cls, tensors: Any, name: str | None = None) -> Dataset:
        """A dataset whose elements are the rows of tensors.

        Raises:
            ValueError: a tensor is a scalar.
            InvalidArgumentError: they have different numbers of rows, or a sparse tensor has the rank 1.
        """
        element = normalized(tensors)
        whole = spec_of_value(element)
        components = tensors_of(element, whole, encoded_rows)
        spec = map_structure(row_of, whole)
        return cls._made("TensorSliceDataset", spec, components=components)

    @classmethod
    def range(
        cls, *args: Any, output_type: Any = DataType.DT_INT64, name: str | None = None
    ) -> Dataset:
        """The numbers of a range: `range(stop)`, `range(start, stop)` or `range(start, stop, step)`."""
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Dataset.range takes one to three numbers, not {len(args)}")
        start, stop, *steps = (0, *args) if len(args) == 1 else args
        numbers = zip(("start", "stop", "step"), (start, stop, *(steps or [1])), strict=True)
        arguments = {key: int64_of(number) for key, number in numbers}
        return cls._made("RangeDataset", TensorSpec([], as_dtype(output_type)), **arguments)

    @classmethod
    def counter(
        cls, start: Any = 0, step: Any = 1, dtype: Any = DataType.DT_INT64, name: str | None = None
    ) -> Dataset:
        """The numbers `start`, `start + step` and so on, without end: `Dataset.counter(10, 5)`.

        Raises:
            TypeError: a number is none of the type.
        """
        kind = as_dtype(dtype)
        first, increment = number_of(start, kind), number_of(step, kind)
        endless = cls.from_tensors(np.int32(0)).repeat()
        return endless.scan(first, lambda state, _: (state + increment, state))

    @classmethod
    def random(
        cls,
        seed: int | None = None,
        rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Random numbers from 0 to 2^32, without end."""
        seeds = {key: np.int64(value) for key, value in seeds_of(seed).items()}
        return cls._made(
            "RandomDatasetV2",
            TensorSpec([], DataType.DT_INT64),
            seed_generator=call_op("DummySeedGenerator"),
            rerandomize_each_iteration=flag_of(
                False if rerandomize_each_iteration is None else rerandomize_each_iteration
            ),
            **seeds,
        )

    @classmethod
    def from_generator(
        cls,
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """The elements that a Python generator gives; outside of graphs only.

        Args:
            generator: Called with `args` at the beginning of each pass; gives an iterable.
            output_types: The types of the components, where there is no signature.
            output_shapes: Their shapes; unknown if None.
            args: The arguments of the generator.
            output_signature: The spec of the elements.
            name: Ignored.

        Raises:
            TypeError: an argument is of another kind.
            ValueError: there are more or fewer shapes than types.
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        if args is not None and not isinstance(args, tuple | list):
            raise TypeError(f"`args` is a tuple of arguments, not {short_repr(args)}")
        spec = output_signature
        if spec is None:
            types = flatten(output_types)
            shapes = [None] * len(types) if output_shapes is None else _shapes(output_shapes)
            if len(shapes) != len(types):
                raise ValueError(f"There are {len(types)} types, and {len(shapes)} shapes")
            specs = [TensorSpec(s, as_dtype(t)) for s, t in zip(shapes, types, strict=True)]
            spec = packer(output_types)(specs)
        for one in flatten(spec):
            if not isinstance(one, TensorSpec | SparseTensorSpec | RaggedTensorSpec):
                raise TypeError(f"`output_signature` has specs of tensors, not {short_repr(one)}")
        return Dataset(PythonGeneratorDataset(generator, tuple(args or ()), spec), spec)

    @classmethod
    def list_files(
        cls,
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset:
        """The names of the files that match a pattern, or one of several.

        Args:
            file_pattern: The patterns.
            shuffle: Whether the names come in random order; they do if None.
            seed: The seed of that order.
            name: Ignored.

        Raises:
            InvalidArgumentError: no file matches.
        """
        names = call_op("MatchingFiles", pattern=file_pattern)
        if not isinstance(names, Tensor) and not names.size:
            raise InvalidArgumentError(f"No files matched pattern: {file_pattern}")
        found = cls.from_tensor_slices(names)
        if shuffle is False:
            return found
        return found.shuffle(-2 if isinstance(names, Tensor) else names.size, seed)

    @classmethod
    def zip(cls, *args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """The elements of several datasets side by side, nested as the datasets are."""
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        parts = flatten(given)
        for part in parts:
            if not isinstance(part, Dataset):
                raise TypeError(f"zip takes Datasets, not {short_repr(part)}")
        spec = packer(given)([part.element_spec for part in parts])
        return cls._made("ZipDataset", spec, input_datasets=[p.variant_tensor for p in parts])

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Self:
        """The elements of this dataset, then those of another.

        Raises:
            TypeError: the elements of the other are of other types, or have another structure.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"concatenate takes a Dataset, not {short_repr(dataset)}")
        if types_of(self.element_spec) != types_of(dataset.element_spec):
            raise TypeError(
                f"Incompatible types of datasets: {self.element_spec} vs. {dataset.element_spec}."
            )
        spec = covering(self.element_spec, dataset.element_spec)
        return self._with("ConcatenateDataset", spec=spec, another_dataset=dataset.variant_tensor)

    @classmethod
    def _made(cls, op: str, spec: Any, **arguments: Any) -> Dataset:
        return Dataset(call_op(op, **arguments, spec=spec), spec)

    @classmethod
    def make(cls, variant_tensor: Any, element_spec: Any) -> Dataset:  # type: ignore[override]
        """A dataset of a tensor."""
        return Dataset(variant_tensor, element_spec)

    # Elements

    def __iter__(self) -> DatasetIterator:
        """A pass over the dataset; in a traced function an `Iterator`, which begins at each call.

        Raises:
            FailedPreconditionError: the dataset is a tensor of a graph for sessions.
        """
        graph, pack = innermost_default(), element_packer(self.element_spec, Dataset)
        if graph is not None and graph.building_function:
            found: DatasetIterator = iterator_in_graph(
                self.variant_tensor, self.element_spec, pack, self._known_count
            )
            return found
        if isinstance(self._variant, Tensor):
            raise FailedPreconditionError(
                "A dataset of a graph has no elements before the graph runs: use "
                "make_initializable_iterator, or make the dataset outside of the graph"
            )
        return DatasetIterator(dataset_of(self._variant), self.element_spec, pack)

    @property
    def _known_count(self) -> int | None:
        """The number of elements; None where that is infinite, or not known before the graph runs."""
        is_tensor = isinstance(self._variant, Tensor)
        count = UNKNOWN_CARDINALITY if is_tensor else dataset_of(self._variant).cardinality()
        return None if count < 0 else count

    def as_numpy_iterator(self) -> DatasetIterator:
        """The elements as arrays, as `iter` gives them."""
        return iter(self)

    def reduce(
        self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None
    ) -> Any:
        """The state after a function was called with the state and each element.

        Raises:
            TypeError: the function gives a state of other types.
        """
        state = normalized(initial_state)
        function, spec = self._of_state(reduce_func, spec_of_value(state))
        results = call_op(
            "ReduceDataset",
            {"f": function},
            input_dataset=self.variant_tensor,
            initial_state=tensors_of(state, spec),
            other_arguments=function.captured(graph_of(self.variant_tensor)),
            spec=spec,
        )
        return element_packer(spec, Dataset)(results)

    def get_single_element(self, name: str | None = None) -> Any:
        """The only element.

        Raises:
            InvalidArgumentError: there is none, or more than one.
        """
        results = call_op(
            "DatasetToSingleElement",
            dataset=self.variant_tensor,
            spec=self.element_spec,
        )
        return element_packer(self.element_spec, Dataset)(results)

    def at(self, index: Any) -> Any:
        """The element of a number, without those before it, as by `tf.data.experimental.at`.

        Args:
            index: The number, from 0 on.

        Raises:
            UnimplementedError: a stage has no random access; `cache` the elements first.
            FailedPreconditionError: the number of elements is infinite or not known.
            OutOfRangeError: there is no such element.
        """
        results = call_op(
            "GetElementAtIndex",
            dataset=self.variant_tensor,
            index=int64_of(index),
            spec=self.element_spec,
        )
        return element_packer(self.element_spec, Dataset)(results)

    def global_shuffle(
        self, seed: int | None = None, reshuffle_each_iteration: bool = True
    ) -> Self:
        """All elements in random order, which needs no buffer: each is asked for by its number.

        The order for a seed is TensorFlow's.

        Args:
            seed: As for `shuffle`.
            reshuffle_each_iteration: Whether each pass has another order.

        Raises:
            FailedPreconditionError: a stage cannot give its elements in any order: `filter`, `shuffle`, `batch`
                without `drop_remainder` and others.
            InvalidArgumentError: the number of elements is 0, infinite or not known.
        """
        return self._with(
            "GlobalShuffleDataset",
            seed_generator=self._beside("DummySeedGenerator"),
            reshuffle_each_iteration=reshuffle_each_iteration,
            **{key: int64_of(value) for key, value in seeds_of(seed).items()},
        )

    def cardinality(self, name: str | None = None) -> Any:
        """The number of elements; INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return call_op("DatasetCardinality", input_dataset=self.variant_tensor)

    def __len__(self) -> int:
        """The number of elements.

        Raises:
            TypeError: it is infinite or not known.
        """
        count = int(self.cardinality())
        for special, what in ((INFINITE_CARDINALITY, "infinite"), (UNKNOWN_CARDINALITY, "unknown")):
            if count == special:
                raise TypeError(
                    f"The dataset is {what}." if special == -1 else "The dataset length is unknown."
                )
        return count

    def __bool__(self) -> bool:
        return True


def _as_array(variant: Any) -> Any:
    return variant if isinstance(variant, np.ndarray) else object_scalar(variant)


def _shapes(given: Any) -> list[Any]:
    """Shapes in tuples, where a list, None or a shape is a leaf; TypeError for what is none."""
    is_shape = given is None or isinstance(given, list | PartialTensorShape)
    if is_shape or (isinstance(given, tuple) and all(isinstance(n, int | None) for n in given)):
        return [given]
    if not isinstance(given, tuple | dict):
        raise TypeError(f"`output_shapes` has shapes in tuples and dicts, not {short_repr(given)}")
    parts = given.values() if isinstance(given, dict) else given
    return [shape for part in parts for shape in _shapes(part)]
