"""OpenVinoCluster: a compiled cluster, with the requests of OpenVINO that threads run it with."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.device.intra_op import intra_op_threads
from opkernel.engines.openvino.infer_request import Array, InferRequest
from opkernel.engines.openvino.library import core
from opkernel.engines.openvino.model_builder import ModelBuilder, translated
from opkernel.errors import InvalidArgumentError
from opkernel.graph import FunctionBody
from opkernel.runtime.engines.engine import ClusterArgument, ResourceUpdate
from opkernel.runtime.engines.late_work import current_work


class OpenVinoCluster:
    """A cluster compiled for certain arguments, to compute in a precision where the processor can."""

    resource_updates: Sequence[ResourceUpdate] = ()

    def __init__(
        self,
        body: FunctionBody,
        arguments: Sequence[ClusterArgument],
        precision: str = "float32",
    ) -> None:
        self._arguments = tuple(arguments)
        builder = ModelBuilder(body, arguments)
        self._arrays = builder.arrays  # constants of the model show their memory
        self._inputs = tuple(builder.parameters)
        parameters = [one.output(0) for one in builder.parameters.values()]
        computed, self._constants, self._results = _sorted(builder.results, parameters)
        self._num_computed = len(computed)
        self._compiled = _compiled(builder.model(computed), precision) if computed else None
        self._free: deque[InferRequest] = deque()

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

    def _computed(self, given: Sequence[Array]) -> list[Array]:
        if self._compiled is None:
            return []
        try:
            request = self._free.pop()
        except IndexError:
            request = InferRequest(self._compiled, len(given), self._num_computed)
        work = current_work()
        if work is not None:
            work.stop_by(request.cancel)
        try:
            results = request.run(given)
        except RuntimeError as error:  # the request is dropped
            raise translated(error) from error
        self._free.append(request)
        return results

    def _checked(self, index: int, value: Any) -> Array:
        argument, array = self._arguments[index], np.asarray(value)
        if array.shape != argument.shape or array.dtype != argument.dtype.numpy_dtype:
            raise InvalidArgumentError(
                f"Argument {index} of a compiled function is {array.dtype}{list(array.shape)}, and it "
                f"was compiled for {argument.dtype.string}{list(argument.shape)}"
            )
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
        if isinstance(one, np.ndarray):
            place = len(outputs) + next(remaining)
        else:
            place = outputs.index(one)
        places.append((place, place in seen or place >= len(computed)))
        seen.add(place)
    return computed, constants, places


_HINTS = {"float32": "f32", "bfloat16": "bf16"}


def _compiled(model: Any, precision: str) -> Any:
    """The model, compiled for this machine: results in float32, soon, on the threads that kernels may use."""
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": _HINTS[precision],
        "EXECUTION_MODE_HINT": "ACCURACY",
        "INFERENCE_NUM_THREADS": intra_op_threads(),
        "ENABLE_CPU_PINNING": False,  # a thread that may not move waits for whoever has its processor
    }
    try:
        return core().compile_model(model, "CPU", settings)
    except RuntimeError as error:
        raise translated(error) from error
