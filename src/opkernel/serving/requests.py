"""What a request asks for, by its method and path, and the answer to it.

Source: TensorFlow Serving model_servers/http_rest_api_handler.cc.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from opkernel.errors import Code, InvalidArgumentError
from opkernel.serving.example_request import check_method, example_inputs, example_response
from opkernel.serving.metadata import model_metadata
from opkernel.serving.model_server import ModelServer
from opkernel.serving.predict_request import parsed_body, predict_request, predict_response

HTTP_STATUS = {
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
            inputs, is_row = predict_request(content, signature)
            return predict_response(servable.run(signature, inputs), is_row=is_row)
        check_method(signature, request.what)
        inputs = example_inputs(content)
        outputs = servable.run(signature, inputs)
        return example_response(request.what, outputs, len(content["examples"]))
