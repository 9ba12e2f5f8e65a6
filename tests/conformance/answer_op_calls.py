"""Answers recorded op calls (the areas `op_call` and `op_sequence`)."""

import base64
from typing import Any

import numpy as np

from opkernel.device.local_device import CPU
from opkernel.errors import FailedPreconditionError, OpError
from opkernel.kernel import get_registered_kernels_for_op
from opkernel.opdef import global_op_registry
from opkernel.runtime.calls.eager import execute
from opkernel.types import DataType, PartialTensorShape, as_dtype

UNSUPPORTED = {"unsupported": True}
ON_GPUS_ALONE = frozenset(
    {
        "SparseMatrixAdd",
        "SparseMatrixMul",
        "SparseMatrixSoftmax",
        "SparseMatrixSoftmaxGrad",
        "SparseMatrixZeros",
    }
)
"""Ops that TensorFlow has no CPU kernels of: that none is found is the right answer."""


def op_call(request: dict[str, Any]) -> dict[str, Any]:
    """Run one recorded call through the eager runtime."""
    return _answer_call(request, {})


def op_sequence(request: dict[str, Any]) -> dict[str, Any]:
    """Run recorded calls in order; later ones are given what earlier ones bound to names.

    A sequence starts without the resources that others made.
    """
    CPU.resource_manager.clear()
    bound: dict[str, Any] = {}
    answers = []
    for step in request["steps"]:
        answer = _answer_call(step, bound)
        if answer == UNSUPPORTED:
            return UNSUPPORTED
        answers.append(answer)
    return {"steps": answers}


def _answer_call(request: dict[str, Any], bound: dict[str, Any]) -> dict[str, Any]:
    """The answer to one call; adds to `bound` the outputs that the request binds."""
    name = request["op"]
    try:
        op_def = global_op_registry().look_up_op_def(name)
    except OpError:
        return UNSUPPORTED
    if name not in ON_GPUS_ALONE and not get_registered_kernels_for_op(name).kernel:
        return UNSUPPORTED
    try:
        inputs = {
            arg.name: _input(value, bound)
            for arg, value in zip(op_def.input_arg, request["inputs"], strict=True)
        }
        attrs = {key: _attr(value) for key, value in request["attrs"].items()}
        result = execute(name, inputs, attrs)
    except OpError as error:
        return {"ok": False, "error_code": error.code.name, "error_text": error.message}
    args = op_def.output_arg
    results = [] if not args else [result] if len(args) == 1 else list(result)
    binds = request.get("binds") or [None] * len(results)
    return {"outputs": [_output(r, bind, bound) for r, bind in zip(results, binds, strict=True)]}


def _input(value: Any, bound: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_input(item, bound) for item in value]
    if "ref" not in value:
        return _array(value)
    if value["ref"] not in bound:
        raise FailedPreconditionError(f"The call that binds {value['ref']} failed")
    return bound[value["ref"]]


def _output(value: Any, bind: Any, bound: dict[str, Any]) -> Any:
    if isinstance(value, list):
        binds = bind or [None] * len(value)
        return [_output(item, b, bound) for item, b in zip(value, binds, strict=True)]
    if bind is None:
        return _encoded(value)
    bound[bind] = value
    return {"bind": bind}


def _numpy_dtype(name: str) -> np.dtype[Any]:
    dtype = DataType.from_string(name)
    return np.dtype(dtype.as_numpy_dtype)


def _array(data: dict[str, Any]) -> np.ndarray[Any, Any]:
    if data["dtype"] == "string":
        flat = np.empty(len(data["values_b64"]), dtype=object)
        flat[:] = [base64.b64decode(value) for value in data["values_b64"]]
        return flat.reshape(data["shape"])
    raw = np.frombuffer(base64.b64decode(data["b64"]), dtype=_numpy_dtype(data["dtype"]))
    return raw.reshape(data["shape"])


def _attr(encoded: dict[str, Any]) -> Any:
    ((kind, value),) = encoded.items()
    if kind.startswith("list("):
        return [_attr({kind[5:-1]: item}) for item in value]
    if kind == "type":
        return DataType.from_string(value)
    if kind == "string":
        return base64.b64decode(value)
    if kind == "shape":
        return PartialTensorShape(None if value is None else [None if d < 0 else d for d in value])
    return _array(value) if kind == "tensor" else value


def _encoded(value: Any) -> dict[str, Any]:
    array = np.asarray(value, dtype=object if isinstance(value, bytes) else None)
    if array.dtype == object:
        values = [base64.b64encode(item).decode() for item in array.reshape(-1)]
        return {"dtype": "string", "shape": list(array.shape), "values_b64": values}
    name = as_dtype(array.dtype).tf_name
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": name, "shape": list(array.shape), "b64": data}
