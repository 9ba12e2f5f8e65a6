"""InferRequest: one run of a compiled model at a time, from NumPy arrays to NumPy arrays.

A small tensor is copied into the memory of OpenVINO's request and out of it, which takes less time than to hand over
another memory. A large one is not copied: the request reads the caller's array and writes to a new one, and gets its own
memory back when it is done, so that it holds nobody's array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkernel.engines.openvino.library import openvino
from opkernel.kernel import allocate
from opkernel.types import as_dtype

Array = np.ndarray[Any, Any]

_LARGE = 1 << 16
"""Bytes from which on a copy takes longer than to hand over memory: some 5 us."""


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
