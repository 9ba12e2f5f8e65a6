"""OpenVinoCluster: a compiled cluster, with the requests of OpenVINO that threads run it with.

A small tensor is copied into the memory of OpenVINO's request and out of it, which takes less time than to hand over
another memory. A large one is not copied: the request reads the caller's array and writes to a new one, and gets its own
memory back when it is done, so that it holds nobody's array.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from opkernel.engines.openvino.compiled_model import CompiledModel
from opkernel.engines.openvino.library import openvino
from opkernel.engines.openvino.model_builder import ModelBuilder, operation_of, translated
from opkernel.graph import FunctionBody
from opkernel.kernel import allocate
from opkernel.runtime.engines.engine import ClusterArgument, OperationTime, ResourceUpdate
from opkernel.runtime.engines.late_work import current_work
from opkernel.types import Array, as_dtype

_LARGE = 1 << 16
"""Bytes from which on a copy takes longer than to hand over memory: some 5 us."""


class OpenVinoCluster:
    """A cluster compiled for certain arguments, to compute in a precision where the processor can."""

    resource_updates: Sequence[ResourceUpdate] = ()

    def __init__(
        self,
        body: FunctionBody,
        arguments: Sequence[ClusterArgument],
        precision: str = "float32",
        *,
        counts_time: bool = False,
    ) -> None:
        self._counting = partial(OpenVinoCluster, body, arguments, precision, counts_time=True)
        self._arguments = tuple(arguments)
        builder = ModelBuilder(body, arguments)
        self._inputs = tuple(builder.parameters)
        parameters = [one.output(0) for one in builder.parameters.values()]
        computed, self._constants, self._results = _sorted(builder.results, parameters)
        self._num_computed = len(computed)
        self._compiled: CompiledModel | None = None
        if computed:
            model = builder.model(computed)
            self._compiled = CompiledModel.of(model, builder.arrays, precision, counts_time)
        self._free: deque[InferRequest] = deque()
        self._counts_time = counts_time
        self._times: Sequence[OperationTime] = ()

    def run(self, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Run it, as CompiledCluster says.

        Raises:
            InvalidArgumentError: an input has another shape or type than the argument.
            InternalError: OpenVINO fails.
        """
        given = [self._checked(index, inputs[index]) for index in self._inputs]
        values = [*self._computed(given), *given, *self._constants]
        return [
            np.array(values[place]) if is_shared else values[place]
            for place, is_shared in self._results
        ], []

    def prepare_to_measure(self) -> None:
        """Compile the cluster again, with counters."""
        _ = self._measuring

    def run_measured(
        self, inputs: Sequence[Any]
    ) -> tuple[list[Any], list[Any], Sequence[OperationTime]]:
        """Run it with counters, as MeasuringCluster says; those of OpenVINO count microseconds."""
        measuring = self._measuring
        results, updates = measuring.run(inputs)
        return results, updates, [*measuring._times]

    @cached_property
    def _measuring(self) -> OpenVinoCluster:
        """The same with counters, which cost time at each operation."""
        return self._counting()

    def _computed(self, given: Sequence[Array]) -> list[Array]:
        if self._compiled is None:
            return []
        try:
            request = self._free.pop()
        except IndexError:
            request = InferRequest(self._compiled.handle, len(given), self._num_computed)
        work = current_work()
        if work is not None:
            work.stop_by(request.cancel)
        try:
            results = request.run(given)
        except RuntimeError as error:  # the request is dropped
            raise translated(error) from error
        if self._counts_time:
            self._times = request.times()
        self._free.append(request)
        return results

    def _checked(self, index: int, value: Any) -> Array:
        array = np.asarray(value)
        self._arguments[index].check(index, array)
        return array


def _sorted(
    results: Sequence[Any], parameters: Sequence[Any]
) -> tuple[list[Any], list[Array], list[tuple[int, bool]]]:
    """What gives the results of a cluster.

    Returns:
        The outputs of nodes to compute; the constants; and for each result its place among the computed values, the
        parameters and the constants, in this order, and whether somebody else may see the array there.
    """
    constants = [one for one in results if isinstance(one, np.ndarray)]
    computed: list[Any] = []
    for one in results:
        if not isinstance(one, np.ndarray) and one not in parameters and one not in computed:
            computed.append(one)
    outputs = [*computed, *parameters]
    places, seen, remaining = [], set[int](), iter(range(len(constants)))
    for one in results:
        is_constant = isinstance(one, np.ndarray)
        place = len(outputs) + next(remaining) if is_constant else outputs.index(one)
        places.append((place, place in seen or place >= len(computed)))
        seen.add(place)
    return computed, constants, places


class InferRequest:
    """Runs a compiled model; for one thread at a time.

    Args:
        compiled: OpenVINO's compiled model.
        num_inputs, num_outputs: How many tensors it takes and gives.
    """

    def __init__(self, compiled: Any, num_inputs: int, num_outputs: int) -> None:
        self._request = request = compiled.create_infer_request()
        inputs = [request.get_input_tensor(i) for i in range(num_inputs)]
        outputs = [request.get_output_tensor(i) for i in range(num_outputs)]
        self._own_inputs = {i: one for i, one in enumerate(inputs) if one.byte_size >= _LARGE}
        self._own_outputs = {i: one for i, one in enumerate(outputs) if one.byte_size >= _LARGE}
        self._inputs = [one.data for one in inputs]
        self._outputs = [one.data for one in outputs]

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """The outputs, in memory that only the caller has, for inputs of the right shapes and types."""
        request = self._request
        held = []  # OpenVINO keeps no array alive
        for index, (own, array) in enumerate(zip(self._inputs, arrays, strict=True)):
            if index in self._own_inputs:
                held.append(_tensor_over(np.require(array, requirements=["C", "A"])))
                request.set_input_tensor(index, held[-1])
            else:
                own[...] = array
        results = [
            allocate(own.shape, as_dtype(own.dtype)) if index in self._own_outputs else own
            for index, own in enumerate(self._outputs)
        ]
        for index in self._own_outputs:
            request.set_output_tensor(index, _tensor_over(results[index]))
        request.infer(share_outputs=True)
        self._take_back()
        return [
            own.copy() if own is result else result
            for own, result in zip(self._outputs, results, strict=True)
        ]

    def times(self) -> list[OperationTime]:
        """What operations took in the last run, where the model counts; what is fused has one time."""
        took: dict[str, OperationTime] = {}
        for one in self._request.profiling_info:
            if one.status == one.EXECUTED:
                name = operation_of(one.node_name)
                known = took.get(name)
                seconds = one.real_time.total_seconds() + (known.seconds if known else 0.0)
                took[name] = OperationTime(name, one.node_type, seconds)
        return [*took.values()]

    def cancel(self) -> None:
        """Have a run that is under way on another thread end with RuntimeError, once its node is computed."""
        self._request.cancel()

    def _take_back(self) -> None:
        """Give the request its own memory again."""
        for index, tensor in self._own_inputs.items():
            self._request.set_input_tensor(index, tensor)
        for index, tensor in self._own_outputs.items():
            self._request.set_output_tensor(index, tensor)


def _tensor_over(array: Array) -> Any:
    """A tensor over the memory of an array, whose elements are in order; it holds the array."""
    ov = openvino()
    return ov.Tensor(array, list(array.shape), ov.Type(array.dtype))
