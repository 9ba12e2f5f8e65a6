"""The methods of datasets that give other datasets.

Source: TensorFlow python/data/ops/dataset_ops.py and the modules of the single transformations beside it.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from opkernel.data.component_specs import DatasetSpec
from opkernel.data.structure import (
    checked_function,
    flat_specs,
    int64_of,
    normalized,
    path_of,
    spec_of_value,
    tensors_of,
)
from opkernel.data.structured_function import (
    StructuredFunction,
    call_op,
    graph_of,
    traced_for_states,
)
from opkernel.endpoints.global_seed import seeds_of
from opkernel.graph import TensorSpec
from opkernel.graph.tracing.nested_structure import map_structure
from opkernel.types import DataType

AUTOTUNE = -1


class Transformations(abc.ABC):
    """The methods; `Dataset` has them, and what they are made of.

    Attributes:
        element_spec: The spec of its elements.
    """

    element_spec: Any
    make: ClassVar[Callable[[Any, Any], Any]]

    @property
    @abc.abstractmethod
    def variant_tensor(self) -> Any:
        """The tensor that holds the dataset."""

    def _with(
        self,
        op: str,
        functions: dict[str, StructuredFunction] | None = None,
        spec: Any = None,
        captured: str = "other_arguments",
        **arguments: Any,
    ) -> Self:
        """The dataset that an op makes of this one.

        Args:
            op: The op.
            functions: The functions of its attrs.
            spec: The spec of its elements; that of this dataset's elements if None.
            captured: The input for the tensors that the function captures, where there is one function.
            arguments: Its further inputs and attrs.
        """
        spec = self.element_spec if spec is None else spec
        if functions and captured:
            (function,) = functions.values()
            arguments[captured] = function.captured(graph_of(self.variant_tensor))
        variant = call_op(
            op,
            functions,
            input_dataset=self.variant_tensor,
            **arguments,
            spec=spec,
        )
        made: Self = type(self).make(variant, spec)
        return made

    def _beside(self, op: str) -> Any:
        """The output of an op without inputs, in the graph of this dataset if that has one."""
        graph = graph_of(self.variant_tensor)
        if graph is None:
            return call_op(op)
        with graph.as_default():
            return call_op(op)

    def _function(
        self, function: Callable[..., Any], spec: Any = None, *values: Any
    ) -> StructuredFunction:
        """A function of this dataset's elements, or of a spec."""
        given = self.element_spec if spec is None else spec
        graph = graph_of(self.variant_tensor, *values)
        return StructuredFunction(function, given, graph, type(self).make)

    def _of_state(
        self,
        function: Callable[..., Any],
        state: Any,
        next_state: Callable[[Any], Any] = lambda spec: spec,
    ) -> tuple[StructuredFunction, Any]:
        """A function of a state and an element, and the spec of the state; see `traced_for_states`."""
        return traced_for_states(
            lambda spec: self._function(function, (spec, self.element_spec)), state, next_state
        )

    # Elements one by one

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """The results of a function for each element.

        Args:
            map_func: Takes an element, or its parts where it is a tuple; traced once.
            num_parallel_calls: How many calls may run side by side, or AUTOTUNE.
            deterministic: False allows calls of functions with state side by side. The order of elements stays.
            name: Ignored.
        """
        function = self._function(map_func)
        op, arguments = parallel_op(
            "MapDataset", "ParallelMapDatasetV2", num_parallel_calls, deterministic
        )
        arguments["preserve_cardinality"] = True
        return self._with(op, {"f": function}, function.output_spec, **arguments)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """The elements for which a function gives True."""
        function = self._function(predicate)
        return self._with("FilterDataset", {"predicate": function})

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Self:
        """The elements before the first for which a function gives False."""
        return self._with("TakeWhileDataset", {"predicate": self._function(predicate)})

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Self:
        """The elements of the datasets that a function gives, one dataset after the other."""
        function = self._function(map_func)
        return self._with("FlatMapDataset", {"f": function}, _nested_spec(function))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int | None = None,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """The elements of the datasets that a function gives, from several of them in turn.

        Args:
            map_func: Gives a dataset for an element.
            cycle_length: From how many datasets; AUTOTUNE or None for as many as there are processors.
            block_length: How many elements from each at a time.
            num_parallel_calls: How many calls may run side by side, or AUTOTUNE.
            deterministic: Whether the order stays; it does in any case.
            name: Ignored.
        """
        function = self._function(map_func)
        op, arguments = parallel_op(
            "InterleaveDataset", "ParallelInterleaveDatasetV4", num_parallel_calls, deterministic
        )
        if num_parallel_calls is not None:
            arguments |= {"buffer_output_elements": AUTOTUNE, "prefetch_input_elements": AUTOTUNE}
        return self._with(
            op,
            {"f": function},
            _nested_spec(function),
            cycle_length=int64_of(AUTOTUNE if cycle_length is None else cycle_length),
            block_length=int64_of(1 if block_length is None else block_length),
            **arguments,
        )

    def scan(
        self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None
    ) -> Self:
        """The results of a function that has a state: it takes state and element, and gives the next state and a result.

        Raises:
            TypeError: the function gives something else, or a state of other types.
        """
        state = normalized(initial_state)
        function, state_spec = self._of_state(scan_func, spec_of_value(state), _next_state_of_scan)
        return self._with(
            "ScanDataset",
            {"f": function},
            function.output_spec[1],
            initial_state=tensors_of(state, state_spec),
            preserve_cardinality=True,
        )

    # Selections

    def take(self, count: Any, name: str | None = None) -> Self:
        """The first elements; all where `count` is -1."""
        return self._with("TakeDataset", count=int64_of(count))

    def skip(self, count: Any, name: str | None = None) -> Self:
        """All but the first elements; none where `count` is -1."""
        return self._with("SkipDataset", count=int64_of(count))

    def repeat(self, count: Any = None, name: str | None = None) -> Self:
        """The elements so many times; for ever where `count` is None or -1."""
        return self._with("RepeatDataset", count=int64_of(-1 if count is None else count))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Self:
        """Every n-th element, beginning with the one of a number."""
        return self._with("ShardDataset", num_shards=int64_of(num_shards), index=int64_of(index))

    def unique(self, name: str | None = None) -> Self:
        """Each element once: int32, int64 or strings.

        Raises:
            TypeError: elements are of another type.
            InvalidArgumentError: an element is not one tensor.
        """
        for one in flat_specs(self.element_spec):
            if one.dtype not in (DataType.DT_INT32, DataType.DT_INT64, DataType.DT_STRING):
                raise TypeError(f"`unique` takes int32, int64 and strings, not {one}")
        return self._with("UniqueDataset")

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Self:
        """The elements that can be computed."""
        return self._with("IgnoreErrorsDataset", log_warning=log_warning)

    # Orders, and parts of several elements

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Self:
        """The elements in random order, the same as TensorFlow's for the same seed.

        Args:
            buffer_size: The elements that each is drawn from.
            seed: The seed; the system's if None, unless `opkernel.random.set_seed` was called.
            reshuffle_each_iteration: Whether each pass has another order; it has if None.
            name: Ignored.
        """
        seeds = {key: int64_of(value) for key, value in seeds_of(seed).items()}
        return self._with(
            "ShuffleDatasetV3",
            buffer_size=int64_of(buffer_size),
            seed_generator=self._beside("DummySeedGenerator"),
            reshuffle_each_iteration=reshuffle_each_iteration is not False,
            **seeds,
        )

    def window(
        self,
        size: Any,
        shift: Any = None,
        stride: Any = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Self:
        """Datasets of `size` elements that are `stride` apart; each begins `shift` elements, or `size`, after the last."""
        spec = map_structure(DatasetSpec, self.element_spec)
        return self._with(
            "WindowDataset",
            spec=spec,
            size=int64_of(size),
            shift=int64_of(size if shift is None else shift),
            stride=int64_of(stride),
            drop_remainder=drop_remainder,
        )

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """The elements of the datasets that a function makes of windows of elements with one key.

        Args:
            key_func: Gives the key of an element, an int64.
            reduce_func: Takes a key and a dataset of elements, and gives a dataset.
            window_size: How many elements a window has.
            window_size_func: Gives that for a key.
            name: Ignored.
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                "Either the `window_size` or the `window_size_func` argument must be specified."
            )
        size = int64_of(0 if window_size is None else window_size)
        sizes = window_size_func or (lambda _: size)
        checked_function(key_func), checked_function(sizes)
        key = TensorSpec([], DataType.DT_INT64)
        functions = {
            "key_func": self._function(lambda *parts: int64_of(key_func(*parts)), self._as_tuple()),
            "reduce_func": self._function(reduce_func, (key, DatasetSpec(self.element_spec))),
            "window_size_func": self._function(lambda one: int64_of(sizes(one)), key),
        }
        graph = graph_of(self.variant_tensor)
        captured = {f"{n}_other_arguments": f.captured(graph) for n, f in functions.items()}
        spec = _nested_spec(functions["reduce_func"])
        return self._with("GroupByWindowDataset", functions, spec, "", **captured)

    def _as_tuple(self) -> Any:
        spec = self.element_spec
        return spec if type(spec) is tuple else (spec,)

    # What changes no element

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Self:
        """The same elements, of which some may be computed ahead."""
        return self._with("PrefetchDataset", buffer_size=int64_of(buffer_size))

    def cache(self, filename: Any = "", name: str | None = None) -> Self:
        """The same elements, which are computed in the first pass and kept: in files of a name, or in memory."""
        cache = self._beside("DummyMemoryCache")
        return self._with("CacheDatasetV2", filename=path_of(filename), cache=cache)

    def enumerate(self, start: int = 0, name: str | None = None) -> Self:
        """Pairs of a number and an element."""
        numbers = type(self).range(start, np.iinfo(np.int64).max)  # type: ignore[attr-defined]  # Dataset has it
        return type(self).zip((numbers, self))  # type: ignore[attr-defined,no-any-return]  # Dataset has it

    def apply(self, transformation_func: Callable[[Any], Any]) -> Any:
        """What a function makes of this dataset."""
        return checked_function(transformation_func)(self)


def parallel_op(
    op: str, parallel_op: str, calls: int | None, deterministic: bool | None
) -> tuple[str, dict[str, Any]]:
    """The op for a number of parallel calls, and its arguments for that."""
    if calls is None:
        return op, {}
    order = "default" if deterministic is None else "true" if deterministic else "false"
    return parallel_op, {"num_parallel_calls": int64_of(calls), "deterministic": order}


def _nested_spec(function: StructuredFunction) -> Any:
    """The element spec of the datasets that a function gives.

    Raises:
        TypeError: it gives something else.
    """
    spec = function.output_spec
    if not isinstance(spec, DatasetSpec):
        raise TypeError(f"The function must return a `Dataset`, not {spec}")
    return spec.element_spec


def _next_state_of_scan(spec: Any) -> Any:
    if not isinstance(spec, tuple) or len(spec) != 2:
        raise TypeError(f"scan_func gives the next state and a result, not {spec}")
    return spec[0]
