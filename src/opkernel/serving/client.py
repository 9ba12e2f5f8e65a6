"""Client: asks `opkernel serve`, or TensorFlow Serving, by REST or gRPC: NumPy arrays in and out.

REST needs nothing besides opkernel itself, gRPC the extra `opkernel[grpc]`.

Source: TensorFlow Serving apis/prediction_service.proto, model_service.proto, g3doc/api_rest.md.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import numpy as np
from google.protobuf.json_format import ParseDict

from opkernel.errors import (
    Code,
    DeadlineExceededError,
    InvalidArgumentError,
    OpError,
    UnavailableError,
    error_of_code,
)
from opkernel.escaping import json_text
from opkernel.interrupts import Closing
from opkernel.libraries import library
from opkernel.messages import did_you_mean
from opkernel.proto import POOL, SignatureDef, message_class
from opkernel.runtime.program.feeds_and_fetches import string_array
from opkernel.serving.json_tensors import from_json, is_base64
from opkernel.serving.json_text import parsed
from opkernel.serving.requests import HTTP_STATUS
from opkernel.types import Array, DataType, tensor_from_proto, tensor_to_proto

_PAUSE_S = 0.1
_DEFAULT = "serving_default"
_Answer = TypeVar("_Answer")
_Left = Callable[[], float]
"""The seconds that a call has left."""


class Asked(NamedTuple):
    """A model, or a version of it.

    Attributes:
        model: Its name.
        version: The number of the version; None for the newest.
        label: The label of the version.
    """

    model: str
    version: int | None = None
    label: str = ""


class ModelVersion(NamedTuple):
    """What has become of a version of a model.

    Attributes:
        version: Its number.
        state: `LOADING`, `AVAILABLE`, `UNLOADING` or `END`.
        code: Why it is not served; OK where nothing went wrong.
        message: The same in words.
    """

    version: int
    state: str
    code: Code
    message: str


class _Way(Protocol):
    """REST or gRPC. Its calls raise OpError, and take so many seconds at most."""

    def predict(
        self,
        asked: Asked,
        signature: str,
        inputs: Mapping[str, Array],
        seconds: float,
    ) -> Callable[[str, DataType], Array]:
        """Gives the outputs of a signature, by name and type."""

    def signatures(self, asked: Asked, seconds: float) -> dict[str, SignatureDef]:
        """The signatures of a model."""

    def statuses(self, asked: Asked, seconds: float) -> list[ModelVersion]:
        """What has become of its versions."""

    def close(self) -> None:
        """Let go of connections."""


class Client(Closing):
    """Asks a server of models.

        with opkernel.serving.Client("http://127.0.0.1:8501") as client:
            y = client.predict("half", {"x": np.float32([1, 2])})["output_0"]

    Args:
        target: `http://HOST:PORT` for REST, `HOST:PORT` for gRPC.
        timeout_s: The time that a call may take, with all its trials.
        retries: How often a call that found no server is made again, after ever longer pauses.

    Raises:
        UnimplementedError: gRPC is asked for and not installed.
    """

    def __init__(self, target: str, *, timeout_s: float = 30.0, retries: int = 3) -> None:
        is_rest = target.startswith(("http://", "https://"))
        self._way: _Way = _Rest(target.rstrip("/")) if is_rest else _Grpc(target)
        self._timeout_s, self._retries = timeout_s, retries
        self._signatures: dict[Asked, dict[str, SignatureDef]] = {}

    def predict(
        self,
        model: str,
        inputs: Any,
        *,
        signature_name: str = _DEFAULT,
        version: int | None = None,
        label: str = "",
        outputs: Sequence[str] = (),
        timeout_s: float | None = None,
    ) -> dict[str, Array]:
        """What a signature computes, by the names of its outputs.

        Args:
            model: The name of the model.
            inputs: Arrays by the names of inputs, or one array for the only input. They are converted to the type of the
                input.
            signature_name: The signature.
            version: The version; by default the newest.
            label: The label of the version, in place of its number.
            outputs: The outputs that are wanted; all by default.
            timeout_s: The time for this call.

        Raises:
            InvalidArgumentError: the inputs are not those of the signature, or there is no such signature, output or label.
            NotFoundError: the model or version is not served.
            UnavailableError, DeadlineExceededError: nobody answers, or not in time.
            OpError: whatever else the server says.
        """
        asked = Asked(model, version, label)

        def ask(left: _Left) -> dict[str, Array]:
            signature = self._signature(asked, signature_name, left)
            types = {name: DataType(info.dtype) for name, info in signature.outputs.items()}
            for name in outputs:
                if name not in types:
                    raise InvalidArgumentError(
                        f"{asked.model} has no output {name!r}{did_you_mean(name, types)}"
                    )
            named = _arrays(inputs, signature)
            try:
                answer = self._way.predict(asked, signature_name, named, left())
                return {name: answer(name, types[name]) for name in outputs or types}
            except InvalidArgumentError:
                self._signatures.pop(asked, None)  # a newer version may have others
                raise

        return self._tried(ask, timeout_s)

    def signatures(
        self, model: str, *, version: int | None = None, label: str = ""
    ) -> dict[str, SignatureDef]:
        """The signatures of a model by name; raises as `predict`."""
        asked = Asked(model, version, label)
        return self._tried(lambda left: self._way.signatures(asked, left()))

    def statuses(
        self, model: str, *, version: int | None = None, label: str = ""
    ) -> list[ModelVersion]:
        """What has become of the versions of a model, or of one; raises as `predict`."""
        asked = Asked(model, version, label)
        return self._tried(lambda left: self._way.statuses(asked, left()))

    def close(self) -> None:
        """Let go of connections."""
        self._way.close()

    def _signature(self, asked: Asked, name: str, left: _Left) -> SignatureDef:
        """A signature, which the server is asked for once."""
        known = self._signatures.get(asked, {})
        if name not in known:
            known = self._signatures[asked] = self._way.signatures(asked, left())
        if name not in known:
            raise InvalidArgumentError(
                f"Serving signature name: {name!r} not found; {asked.model} has "
                f"{', '.join(known) or 'none'}{did_you_mean(name, known)}"
            )
        return known[name]

    def _tried(self, ask: Callable[[_Left], _Answer], timeout_s: float | None = None) -> _Answer:
        """The answer to a call, which is made again where nobody was there."""
        seconds = self._timeout_s if timeout_s is None else timeout_s
        deadline, pause = time.monotonic() + seconds, _PAUSE_S
        for left in range(self._retries, -1, -1):
            try:
                return ask(lambda: max(deadline - time.monotonic(), 0.001))
            except UnavailableError:
                if not left or time.monotonic() + pause >= deadline:
                    raise
            time.sleep(pause)
            pause *= 2
        raise AssertionError  # the last trial has returned or raised


def _arrays(inputs: Any, signature: SignatureDef) -> dict[str, Array]:
    """The inputs as arrays of the types of a signature."""
    types = {name: DataType(info.dtype) for name, info in signature.inputs.items()}
    if not isinstance(inputs, Mapping):
        inputs = dict.fromkeys(types, inputs)
    return {name: _array(value, types.get(name)) for name, value in inputs.items()}


def _array(value: Any, dtype: DataType | None) -> Array:
    """A value as an array of the type of an input; text as bytes.

    Raises:
        InvalidArgumentError: it cannot be converted.
    """
    if dtype is DataType.DT_STRING:
        return string_array(value)
    try:
        return np.asarray(value, None if dtype is None else dtype.numpy_dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgumentError(f"An input is no tensor: {error}") from None


_CODE_OF_STATUS = {status: code for code, status in reversed(HTTP_STATUS.items())}
_CODE_OF_STATUS |= {408: Code.DEADLINE_EXCEEDED, 413: Code.RESOURCE_EXHAUSTED}


class _Rest:
    """By HTTP and JSON."""

    def __init__(self, target: str) -> None:
        self._target = target

    def predict(
        self, asked: Asked, signature: str, inputs: Mapping[str, Array], seconds: float
    ) -> Callable[[str, DataType], Array]:
        columns = {name: _json_of(array) for name, array in inputs.items()}
        body = json_text({"signature_name": signature, "inputs": columns}).encode()
        found = self._asked(asked, ":predict", seconds, body)["outputs"]

        def output(name: str, dtype: DataType) -> Array:
            is_named = isinstance(found, dict) and not is_base64(found)
            return from_json(found[name] if is_named else found, dtype)

        return output

    def signatures(self, asked: Asked, seconds: float) -> dict[str, SignatureDef]:
        found = self._asked(asked, "/metadata", seconds)["metadata"]["signature_def"]
        return {
            name: ParseDict(one, SignatureDef(), ignore_unknown_fields=True)
            for name, one in found["signature_def"].items()
        }

    def statuses(self, asked: Asked, seconds: float) -> list[ModelVersion]:
        return [
            ModelVersion(
                int(one["version"]),
                one["state"],
                Code[one["status"]["error_code"]],
                one["status"]["error_message"],
            )
            for one in self._asked(asked, "", seconds)["model_version_status"]
        ]

    def close(self) -> None:
        pass  # each call has a connection to itself

    def _asked(self, asked: Asked, what: str, seconds: float, body: bytes | None = None) -> Any:
        """The JSON object that answers a request."""
        path = f"/v1/models/{quote(asked.model, safe='')}"
        if asked.label:
            path += f"/labels/{quote(asked.label, safe='')}"
        elif asked.version is not None:
            path += f"/versions/{asked.version}"
        try:
            with urllib.request.urlopen(self._target + path + what, body, seconds) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise _error_of(error.code, error.read()) from None
        except (OSError, HTTPException) as error:
            if isinstance(getattr(error, "reason", error), TimeoutError):
                raise DeadlineExceededError(f"No answer within {seconds:g} s") from error
            raise UnavailableError(f"{self._target} does not answer: {error}") from error
        return parsed(text)


def _error_of(status: int, body: bytes) -> OpError:
    try:
        message = str(parsed(body)["error"])
    except (OpError, KeyError, TypeError):
        message = f"HTTP status {status}"
    return error_of_code(_CODE_OF_STATUS.get(status, Code.UNKNOWN), message)


def _json_of(array: Array) -> Any:
    """An input as JSON; all strings as base64, for they may be no text."""
    if array.dtype != object:
        return (array if array.dtype.isbuiltin == 1 else array.astype(np.float32)).tolist()
    texts = [{"b64": b64encode(one).decode()} for one in array.ravel()]
    whole = np.empty(len(texts), object)
    whole[:] = texts
    return whole.reshape(array.shape).tolist()


class _Grpc:
    """By gRPC; large tensors travel as they are."""

    def __init__(self, target: str) -> None:
        self._grpc: Any = library("grpc", "A client of gRPC")
        sizes = [(f"grpc.max_{way}_message_length", -1) for way in ("send", "receive")]
        self._channel = self._grpc.insecure_channel(target, options=sizes)

    def predict(
        self, asked: Asked, signature: str, inputs: Mapping[str, Array], seconds: float
    ) -> Callable[[str, DataType], Array]:
        request = _request("PredictRequest", asked, signature)
        for name, array in inputs.items():
            request.inputs[name].CopyFrom(tensor_to_proto(array))
        answer = self._call("PredictionService/Predict", request, "PredictResponse", seconds)

        def output(name: str, dtype: DataType) -> Array:
            return np.asarray(tensor_from_proto(answer.outputs[name]))

        return output

    def signatures(self, asked: Asked, seconds: float) -> dict[str, SignatureDef]:
        request = _request("GetModelMetadataRequest", asked)
        request.metadata_field.append("signature_def")
        method = "PredictionService/GetModelMetadata"
        answer = self._call(method, request, "GetModelMetadataResponse", seconds)
        packed = answer.metadata["signature_def"].value
        return dict(_message("SignatureDefMap").FromString(packed).signature_def)

    def statuses(self, asked: Asked, seconds: float) -> list[ModelVersion]:
        request = _request("GetModelStatusRequest", asked)
        method = "ModelService/GetModelStatus"
        answer = self._call(method, request, "GetModelStatusResponse", seconds)
        states = _message("ModelVersionStatus").DESCRIPTOR.enum_types_by_name["State"]
        return [
            ModelVersion(
                one.version,
                states.values_by_number[one.state].name,
                Code(one.status.error_code),
                one.status.error_message,
            )
            for one in answer.model_version_status
        ]

    def close(self) -> None:
        self._channel.close()

    def _call(self, method: str, request: Any, response: str, seconds: float) -> Any:
        call = self._channel.unary_unary(
            f"/tensorflow.serving.{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=_message(response).FromString,
        )
        try:
            return call(request, timeout=seconds)
        except self._grpc.RpcError as error:
            raise error_of_code(error.code().value[0], error.details()) from None


def _message(name: str) -> Any:
    return message_class(POOL.FindMessageTypeByName(f"tensorflow.serving.{name}"))


def _request(name: str, asked: Asked, signature: str = "") -> Any:
    """A request with a ModelSpec."""
    request = _message(name)()
    spec = request.model_spec
    spec.name, spec.signature_name = asked.model, signature
    if asked.label:
        spec.version_label = asked.label
    elif asked.version is not None:
        spec.version.value = asked.version
    return request
