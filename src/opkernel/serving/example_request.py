"""`:classify` and `:regress`: examples in JSON, as serialized `tf.Example`s for a signature.

Source: TensorFlow Serving util/json_tensor.cc, servables/tensorflow/classifier.cc, regressor.cc.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opkernel.errors import InvalidArgumentError
from opkernel.interop import Signature
from opkernel.proto import Example
from opkernel.serving.json_tensors import is_beyond, text_or_bytes, to_json

_INPUTS = "inputs"
_FLOAT_MAX = float(np.finfo(np.float32).max)


def check_method(signature: Signature, method: str) -> None:
    """Raise InvalidArgumentError where a signature is not for a method, `classify` or `regress`."""
    expected = f"tensorflow/serving/{method}"
    if signature.method_name != expected:
        raise InvalidArgumentError(f"Expected the signature method_name to be {expected}. Was: {signature.method_name}")  # fmt: skip
    if signature.inputs.keys() != {_INPUTS}:
        raise InvalidArgumentError(f"Expected the one input '{_INPUTS}' of {signature}")


def example_inputs(body: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that the examples of a request are; each has the features of its context, too.

    Raises:
        InvalidArgumentError: there are no examples, or a feature has values of no type or several.
    """
    examples, context = body.get("examples"), body.get("context", {})
    if not isinstance(examples, list):
        raise InvalidArgumentError("Expecting 'examples' value to be a list/array")
    if not examples:
        raise InvalidArgumentError("'examples' value is an empty array")
    for one in (context, *examples):
        if not isinstance(one, dict):
            raise InvalidArgumentError("An example, and the context, must be a JSON object")
    array = np.empty(len(examples), object)
    array[:] = [_serialized({**context, **one}) for one in examples]
    return {_INPUTS: array}


def example_response(method: str, outputs: Mapping[str, Any], num_examples: int) -> dict[str, Any]:
    """The results for each example: labels with scores, or a value.

    Raises:
        InvalidArgumentError: the outputs have not the form that the method needs.
    """
    found = _classes(outputs) if method == "classify" else _values(outputs)
    if len(found) != num_examples:
        raise InvalidArgumentError(f"The signature gave {len(found)} results for {num_examples} examples")  # fmt: skip
    return {"results": found}


def _serialized(features: Mapping[str, Any]) -> bytes:
    example = Example()
    for name, value in features.items():
        try:
            feature = example.features.feature[name]
        except ValueError:
            raise InvalidArgumentError("The name of a feature is no text of Unicode") from None
        _fill(feature, name, value if isinstance(value, list) else [value])
    return example.SerializeToString()


def _fill(feature: Any, name: str, values: list[Any]) -> None:
    """Set the values of a feature, all of one type."""
    kinds = {_kind(one) for one in values}
    if None in kinds or len(kinds) > 1:
        raise InvalidArgumentError(f"Feature: {name} has elements with unexpected JSON types")
    if kinds == {"bytes"}:
        feature.bytes_list.value.extend([text_or_bytes(one) for one in values])
    elif kinds == {"float"}:
        if any(is_beyond(one, _FLOAT_MAX) for one in values):
            raise InvalidArgumentError(f"Feature: {name} has numbers beyond float")
        feature.float_list.value.extend(values)
    elif kinds == {"int"}:
        if any(not -(2**63) <= one < 2**63 for one in values):
            raise InvalidArgumentError(f"Feature: {name} has numbers beyond int64")
        feature.int64_list.value.extend([int(one) for one in values])


def _kind(value: Any) -> str | None:
    if isinstance(value, int):  # also true and false
        return "int"
    return {float: "float", str: "bytes", dict: "bytes"}.get(type(value))


def _classes(outputs: Mapping[str, Any]) -> list[Any]:
    classes: Any = outputs.get("classes")
    scores: Any = outputs.get("scores")
    for name, one in (("classes", classes), ("scores", scores)):
        if one is not None and np.ndim(one) != 2:
            raise InvalidArgumentError(f"Expected output '{name}' to be of shape [batch, classes]")
    if classes is None and scores is None:
        raise InvalidArgumentError("Expected classification signature outputs to contain at least one of 'classes' or 'scores'")  # fmt: skip
    shape = np.shape(scores if classes is None else classes)
    labels = np.full(shape, "", object) if classes is None else classes
    values = np.zeros(shape, np.float32) if scores is None else scores
    if np.shape(labels) != np.shape(values):
        raise InvalidArgumentError("Expected 'classes' and 'scores' to have the same shape")
    rows = zip(to_json("", labels), to_json("", values), strict=True)
    return [[[*pair] for pair in zip(*row, strict=True)] for row in rows]


def _values(outputs: Mapping[str, Any]) -> list[Any]:
    if "outputs" not in outputs:
        raise InvalidArgumentError("Expected the output 'outputs' of a regression signature")
    values = np.asarray(outputs["outputs"])
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind != "f":
        raise InvalidArgumentError("Expected the output 'outputs' to be floats of shape [batch] or [batch, 1]")  # fmt: skip
    found: list[Any] = to_json("", values)
    return found
