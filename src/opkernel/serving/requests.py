"""What a request asks for, by its method and path, and the answer to it.

`:predict` takes the inputs of a signature in rows or columns, and gives the outputs in the same form. `:classify`
and `:regress` take examples in JSON, which become serialized `tf.Example`s. The metadata of a model are its
signatures as TensorFlow Serving writes them.

Source: TensorFlow Serving model_servers/http_rest_api_handler.cc, util/json_tensor.cc,
servables/tensorflow/classifier.cc, regressor.cc, get_model_metadata_impl.cc.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.json_format import MessageToDict

from opkernel.errors import Code, InvalidArgumentError, UnimplementedError
from opkernel.graph import TensorSpec
from opkernel.interop import Signature
from opkernel.proto import Example, SignatureDef, TensorInfo, TensorShapeProto
from opkernel.serving.json_tensors import from_json, is_base64, text_or_bytes, to_json
from opkernel.serving.json_text import is_too_large, parsed
from opkernel.serving.model_server import ModelServer
from opkernel.serving.servable import EXAMPLES_INPUT, Servable
from opkernel.types import DataType

_ROWS, _COLUMNS = "instances", "inputs"


def parsed_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a request.

    Raises:
        InvalidArgumentError: it is no JSON, or no object.
    """
    value = parsed(body)
    if not isinstance(value, dict):
        raise InvalidArgumentError("The JSON value of a request has to be an object")
    if not isinstance(value.get("signature_name", ""), str):
        raise InvalidArgumentError("'signature_name' key must be a string value.")
    return value


def predict_inputs(body: Mapping[str, Any], signature: Signature) -> dict[str, Any]:
    """The inputs that a request has for a signature, by name.

    Raises:
        InvalidArgumentError: it has no inputs, both forms of them, or wrong ones.
        UnimplementedError: the signature takes sparse tensors.
    """
    specs = _specs(signature)
    if _ROWS in body and _COLUMNS in body:
        raise InvalidArgumentError(f"Expecting only one of '{_COLUMNS}' or '{_ROWS}' keys to exist")
    if _ROWS in body:
        return _of_rows(body[_ROWS], specs, signature)
    if _COLUMNS in body:
        return _of_columns(body[_COLUMNS], specs, signature)
    raise InvalidArgumentError(f"Missing '{_COLUMNS}' or '{_ROWS}' key")


def predict_response(body: Mapping[str, Any], outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs, in rows or columns as the request had its inputs.

    Raises:
        InvalidArgumentError: rows are asked for, and the outputs have no common first size; or JSON has
            no values of a type.
    """
    if not outputs:
        raise InvalidArgumentError("Cannot convert empty tensor map to JSON")
    is_row = _ROWS in body
    if is_row:
        _check_rows(outputs)
    columns = {name: to_json(name, outputs[name]) for name in sorted(outputs)}
    if len(columns) == 1:
        (values,) = columns.values()
        return {"predictions" if is_row else "outputs": values}
    if not is_row:
        return {"outputs": columns}
    rows = zip(*columns.values(), strict=True)
    return {"predictions": [dict(zip(columns, row, strict=True)) for row in rows]}


def _specs(signature: Signature) -> dict[str, TensorSpec]:
    for name, spec in signature.inputs.items():
        if not isinstance(spec, TensorSpec) or spec.dtype is None:
            raise UnimplementedError(f"Input {name!r} of {signature} has several parts, for which there is no JSON")  # fmt: skip
    return signature.inputs


def _of_rows(rows: Any, specs: Mapping[str, TensorSpec], signature: Signature) -> dict[str, Any]:
    if not isinstance(rows, list):
        raise InvalidArgumentError(f"Expecting '{_ROWS}' to be a list/array")
    if not rows:
        raise InvalidArgumentError(f"No values in '{_ROWS}' array")
    has_names = _has_names(rows[0])
    if has_names:
        _check_rows_of_names(rows, specs, signature)
        columns = {name: [row[name] for row in rows] for name in rows[0]}
    else:
        columns = {_only_name(specs, _ROWS): rows}
    for number, row in enumerate(rows):
        if _has_names(row) is not has_names:
            kinds = ("object", "list") if has_names else ("value/list", "object")
            raise InvalidArgumentError(f"Expecting {kinds[0]} but got {kinds[1]} at item {number} of input list")  # fmt: skip
    return _tensors(columns, specs)


def _check_rows_of_names(
    rows: list[Any], specs: Mapping[str, TensorSpec], signature: Signature
) -> None:
    """Raise InvalidArgumentError where a row has not the inputs of the signature, or other ones than the first."""
    for number, row in enumerate(rows):
        if not _has_names(row):
            raise InvalidArgumentError(f"Expecting object but got list at item {number} of input list")  # fmt: skip
        missing = specs.keys() - row.keys() - signature.defaults.keys()
        if missing or row.keys() - specs.keys() or row.keys() != rows[0].keys():
            raise InvalidArgumentError(f"Failed to process element: {number} of '{_ROWS}' list. Its keys must be equal to: {','.join(sorted(specs))}")  # fmt: skip


def _of_columns(
    columns: Any, specs: Mapping[str, TensorSpec], signature: Signature
) -> dict[str, Any]:
    if not _has_names(columns):
        columns = {_only_name(specs, _COLUMNS): columns}
    for name in specs:
        if name not in columns and name not in signature.defaults:
            raise InvalidArgumentError(f"Missing named input: {name} in '{_COLUMNS}' object.")
    return _tensors({name: columns[name] for name in specs if name in columns}, specs)


def _tensors(columns: Mapping[str, Any], specs: Mapping[str, TensorSpec]) -> dict[str, Any]:
    tensors = {}
    for name, value in columns.items():
        try:
            tensors[name] = from_json(value, specs[name].dtype)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"Failed to process input {name!r}: {error.message}") from None  # fmt: skip
    return tensors


def _has_names(value: Any) -> bool:
    return isinstance(value, dict) and not is_base64(value)


def _only_name(specs: Mapping[str, TensorSpec], key: str) -> str:
    if len(specs) != 1:
        raise InvalidArgumentError(f"'{key}' has a plain value/list, but objects are expected: the signature has {len(specs)} inputs")  # fmt: skip
    return next(iter(specs))


def _check_rows(outputs: Mapping[str, Any]) -> None:
    sizes: set[int] = set()
    for name, value in sorted(outputs.items()):
        shape = getattr(value, "shape", ())
        if not shape:
            raise InvalidArgumentError(f"Tensor name: {name} has no shape information: it has no rows. Ask with '{_COLUMNS}'")  # fmt: skip
        sizes.add(shape[0])
        if len(sizes) > 1:
            raise InvalidArgumentError(f"Tensor name: {name} has inconsistent batch size: {shape[0]}. Ask with '{_COLUMNS}'")  # fmt: skip


_FLOAT_MAX = float(np.finfo(np.float32).max)
_OUTPUTS = {"classify": ("classes", "scores"), "regress": ("outputs",)}


def check_method(signature: Signature, method: str) -> None:
    """Raise InvalidArgumentError where a signature has not the tensors of a method, `classify` or `regress`.

    Which method the signature says that it is for does not matter.
    """
    if signature.inputs.keys() != {EXAMPLES_INPUT}:
        raise InvalidArgumentError(f"Expected the one input '{EXAMPLES_INPUT}' of {signature}")
    outputs = _OUTPUTS[method]
    if not signature.outputs.keys() <= {*outputs} or not signature.outputs:
        names = " or ".join(map(repr, outputs))
        raise InvalidArgumentError(f"Expected the output {names}, and no others, of {signature}")


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
    return {EXAMPLES_INPUT: np.array([_serialized({**context, **one}) for one in examples], object)}


def example_results(method: str, outputs: Mapping[str, Any], num_examples: int) -> list[Any]:
    """The results for each example: labels with scores, or a value.

    Raises:
        InvalidArgumentError: the outputs have not the form that the method needs.
    """
    found = _classes(outputs) if method == "classify" else _values(outputs)
    if len(found) != num_examples:
        raise InvalidArgumentError(f"The signature gave {len(found)} results for {num_examples} examples")  # fmt: skip
    return found


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
        if any(abs(one) > _FLOAT_MAX for one in values if np.isfinite(one) or is_too_large(one)):
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


def model_metadata(servable: Servable) -> dict[str, Any]:
    """The metadata of a version of a model."""
    definitions = servable.model.meta_graph.signature_def
    signatures = {name: _signature(definitions[name]) for name in sorted(definitions)}
    return {
        "model_spec": {
            "name": servable.name,
            "signature_name": "",
            "version": str(servable.version),
        },
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _signature(definition: SignatureDef) -> dict[str, Any]:
    return {
        "inputs": _signature_tensors(definition.inputs),
        "outputs": _signature_tensors(definition.outputs),
        "method_name": definition.method_name,
        "defaults": {
            name: MessageToDict(definition.defaults[name], preserving_proto_field_name=True)
            for name in sorted(definition.defaults)
        },
    }


def _signature_tensors(infos: Mapping[str, TensorInfo]) -> dict[str, Any]:
    return {name: _tensor(infos[name]) for name in sorted(infos)}


def _tensor(info: TensorInfo) -> dict[str, Any]:
    described: dict[str, Any] = {
        "dtype": _dtype(info.dtype),
        "tensor_shape": _shape(info.tensor_shape),
    }
    encoding = info.WhichOneof("encoding")
    if encoding == "coo_sparse":
        sparse = info.coo_sparse
        names = ("values_tensor_name", "indices_tensor_name", "dense_shape_tensor_name")
        described["coo_sparse"] = {name: getattr(sparse, name) for name in names}
    elif encoding == "composite_tensor":
        parts = [_tensor(one) for one in info.composite_tensor.components]
        described["composite_tensor"] = {"components": parts}
    else:
        described["name"] = info.name
    return described


def _shape(shape: TensorShapeProto) -> dict[str, Any]:
    dims = [{"size": str(dim.size), "name": dim.name} for dim in shape.dim]
    return {"dim": dims, "unknown_rank": shape.unknown_rank}


def _dtype(number: int) -> str:
    try:
        return DataType(number).name
    except ValueError:
        return str(number)


HTTP_STATUS = {
    Code.OK: 200,
    Code.CANCELLED: 499,
    Code.UNKNOWN: 500,
    Code.INVALID_ARGUMENT: 400,
    Code.DEADLINE_EXCEEDED: 504,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.PERMISSION_DENIED: 403,
    Code.RESOURCE_EXHAUSTED: 429,
    Code.FAILED_PRECONDITION: 400,
    Code.ABORTED: 409,
    Code.OUT_OF_RANGE: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
    Code.DATA_LOSS: 500,
    Code.UNAUTHENTICATED: 401,
}
"""The status of HTTP for a status code, as TensorFlow Serving has it."""

_PATH = re.compile(
    r"/v1/models/([^/:]+)(?:/versions/([0-9]+)|/labels/([^/:]+))?(/metadata|:classify|:regress|:predict)?",
    re.IGNORECASE,
)
_MOST_VERSION = 2**63 - 1


class ModelRequest(NamedTuple):
    """What a request asks for.

    Attributes:
        name: The model.
        version: Its version; None for the newest, or for all.
        label: The label of the version.
        what: `predict`, `classify`, `regress`, `metadata` or `status`.
    """

    name: str
    version: int | None
    label: str | None
    what: str


def model_request(method: str, path: str) -> ModelRequest:
    """What the method and the path of a request ask for.

    Raises:
        InvalidArgumentError: nothing that there is.
    """
    match = _PATH.fullmatch(path)
    what = (match[4] or "/status")[1:].lower() if match else ""
    expected = "POST" if what in ("classify", "regress", "predict") else "GET"
    if (method, path) == ("GET", "/v1/models"):
        raise InvalidArgumentError("Missing model name in request.")
    if match is None or method != expected:
        raise InvalidArgumentError(f"Malformed request: {method} {path}")
    version = None
    if match[2] is not None:
        # Python itself refuses to read a number of thousands of digits.
        version = int(match[2]) if len(match[2]) < 20 else _MOST_VERSION + 1
        if version > _MOST_VERSION:
            raise InvalidArgumentError(f"Failed to convert version: {match[2]} to numeric.")
    return ModelRequest(match[1], version, match[3], what)


def answer(server: ModelServer, request: ModelRequest, body: bytes) -> dict[str, Any]:
    """The JSON object that answers a request.

    Raises:
        OpError: it cannot be answered.
    """
    version = request.version
    if request.label is not None:
        version = server.labelled(request.label)
    if request.what == "status":
        statuses = server.statuses(request.name, version)
        return {"model_version_status": [one.as_json() for one in statuses]}
    with server.use(request.name, version) as servable:
        if request.what == "metadata":
            return model_metadata(servable)
        content = parsed_body(body)
        signature = servable.signature(content.get("signature_name", ""))
        if request.what == "predict":
            outputs = servable.run(signature, predict_inputs(content, signature))
            return predict_response(content, outputs)
        check_method(signature, request.what)
        outputs = servable.run(signature, example_inputs(content))
        found = example_results(request.what, outputs, len(content["examples"]))
        return {"results": found}
