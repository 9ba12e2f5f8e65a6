"""`:predict`: the inputs of a signature in rows or columns, and its outputs in the same form.

Source: TensorFlow Serving util/json_tensor.cc.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import TensorSpec
from opkernel.graph.core.garbage_collection import paused_garbage_collection
from opkernel.interop import Signature
from opkernel.serving.json_tensors import CONSTANTS, from_json, is_base64, to_json

_ROWS, _COLUMNS = "instances", "inputs"
_DECODER = json.JSONDecoder(parse_constant=CONSTANTS.__getitem__)


class PredictRequest(NamedTuple):
    """What is asked for.

    Attributes:
        inputs: The inputs of the signature, by name.
        is_row: Whether they came as `instances`.
    """

    inputs: dict[str, Any]
    is_row: bool


def parsed_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a request; NaN and the infinities are values.

    Raises:
        InvalidArgumentError: it is no JSON, or no object.
    """
    if not body:
        raise InvalidArgumentError("JSON Parse error: The document is empty")
    try:
        with paused_garbage_collection():  # millions of new lists, and none is garbage
            value = _DECODER.decode(body.decode("utf-8-sig"))
    except RecursionError:
        raise InvalidArgumentError("JSON Parse error: the lists are too deep") from None
    except ValueError as error:  # also for text that is not UTF-8, and numbers that are too long
        raise InvalidArgumentError(f"JSON Parse error: {error}") from None
    if not isinstance(value, dict):
        raise InvalidArgumentError("The JSON value of a request has to be an object")
    if not isinstance(value.get("signature_name", ""), str):
        raise InvalidArgumentError("'signature_name' key must be a string value.")
    return value


def predict_request(body: Mapping[str, Any], signature: Signature) -> PredictRequest:
    """The inputs that a request has for a signature.

    Raises:
        InvalidArgumentError: it has no inputs, both forms of them, or wrong ones.
        UnimplementedError: the signature takes sparse tensors.
    """
    specs = _specs(signature)
    if _ROWS in body and _COLUMNS in body:
        raise InvalidArgumentError(f"Expecting only one of '{_COLUMNS}' or '{_ROWS}' keys to exist")
    if _ROWS in body:
        return PredictRequest(_of_rows(body[_ROWS], specs, signature), is_row=True)
    if _COLUMNS in body:
        return PredictRequest(_of_columns(body[_COLUMNS], specs, signature), is_row=False)
    raise InvalidArgumentError(f"Missing '{_COLUMNS}' or '{_ROWS}' key")


def predict_response(outputs: Mapping[str, Any], *, is_row: bool) -> dict[str, Any]:
    """The outputs, in rows or columns as the request had its inputs.

    Raises:
        InvalidArgumentError: rows are asked for, and the outputs have no common first size; or JSON has
            no values of a type.
    """
    if not outputs:
        raise InvalidArgumentError("Cannot convert empty tensor map to JSON")
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
    if not has_names:
        name = _only_name(specs, _ROWS)
        columns = {name: rows}
    else:
        _check_rows_of_names(rows, specs, signature)
        columns = {name: [row[name] for row in rows] for name in rows[0]}
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
