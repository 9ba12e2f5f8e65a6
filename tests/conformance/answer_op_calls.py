"""Answers recorded op calls (the area `op_call`)."""

import base64
from typing import Any

import numpy as np

from opkernel.errors import OpError
from opkernel.kernel import get_registered_kernels_for_op
from opkernel.opdef import global_op_registry
from opkernel.runtime.eager import execute
from opkernel.types import DataType, PartialTensorShape, as_dtype


def op_call(request: dict[str, Any]) -> dict[str, Any]:
    """Run one recorded call through the eager runtime."""
    name = request["op"]
    try:
        op_def = global_op_registry().look_up_op_def(name)
    except OpError:
        return {"unsupported": True}
    if not get_registered_kernels_for_op(name).kernel:
        return {"unsupported": True}
    inputs = {
        arg.name: [_array(v) for v in value] if isinstance(value, list) else _array(value)
        for arg, value in zip(op_def.input_arg, request["inputs"], strict=True)
    }
    try:
        attrs = {key: _attr(value) for key, value in request["attrs"].items()}
        result = execute(name, inputs, attrs)
    except OpError as error:
        return {"ok": False, "error_code": error.code.name, "error_text": error.message}
    args = op_def.output_arg
    results = [] if not args else [result] if len(args) == 1 else list(result)
    return {
        "outputs": [
            [_encoded(item) for item in r] if isinstance(r, list) else _encoded(r) for r in results
        ]
    }


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
