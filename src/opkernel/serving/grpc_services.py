"""What TensorFlow Serving's gRPC services answer: each function fills the answer to a request.

Source: TensorFlow Serving servables/tensorflow/predict_util.cc, classifier.cc, regressor.cc, multi_inference.cc,
get_model_metadata_impl.cc; model_servers/get_model_status_impl.cc; gRPC's health/v1/health.proto.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from opkernel.errors import Code, InvalidArgumentError, NotFoundError, UnimplementedError
from opkernel.graph import TensorSpec
from opkernel.interop import Signature
from opkernel.proto import POOL, message_class
from opkernel.serving.model_server import ModelServer
from opkernel.serving.requests import check_method, example_results
from opkernel.serving.servable import EXAMPLES_INPUT, Servable, serialized_examples
from opkernel.types import DataType, tensor_from_proto, tensor_to_proto

Answer = Callable[[ModelServer, Any, Any], None]
"""Given the server and a request, fills the answer; raises OpError where there is none."""

_Use = Callable[[Servable, Signature], None]
_PREFIX = "tensorflow/serving/"
_METADATA, _SIGNATURES = "signature_def", "tensorflow.serving.SignatureDefMap"


def _used(server: ModelServer, spec: Any, answered: Any, use: _Use) -> None:
    """Use the signature of a ModelSpec; `answered` is told which it was."""
    if not spec.name:
        raise InvalidArgumentError("Missing ModelSpec")
    with server.use(spec.name, _version(server, spec)) as servable:
        signature = servable.signature(spec.signature_name)
        use(servable, signature)
        answered.name, answered.signature_name = spec.name, signature.name
        answered.version.value = servable.version


def _version(server: ModelServer, spec: Any) -> int | None:
    choice = spec.WhichOneof("version_choice")
    if choice == "version_label":
        return server.labelled(spec.version_label)
    return spec.version.value if choice == "version" else None


def predict(server: ModelServer, request: Any, answer: Any) -> None:
    """The outputs of a signature, all or those of the filter."""

    def use(servable: Servable, signature: Signature) -> None:
        wanted = _wanted(signature, request.output_filter)
        outputs = servable.run(signature, _inputs(signature, request.inputs))
        for name in wanted:
            spec = signature.outputs[name]
            if not isinstance(spec, TensorSpec):
                raise UnimplementedError(f"Output {name!r} of {signature} has several parts")
            answer.outputs[name].CopyFrom(_proto(outputs[name], spec.dtype))

    _used(server, request.model_spec, answer.model_spec, use)


def _proto(value: Any, dtype: DataType | None) -> Any:
    is_text = isinstance(value, str | bytes)
    return tensor_to_proto(np.asarray(value, object if is_text else None), dtype)


def _inputs(signature: Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    known = _listed(signature.inputs)
    missing = signature.inputs.keys() - given.keys() - signature.defaults.keys()
    if missing:
        extra = given.keys() - signature.inputs.keys()
        raise InvalidArgumentError(
            f"input size does not match signature: {len(given)}!={len(signature.inputs)} "
            f"len({_listed(given)}) != len({known}). Sent extra: {_listed(extra)}. "
            f"Missing but required: {_listed(missing)}."
        )
    found = {}
    for name, proto in given.items():
        spec = signature.inputs.get(name)
        if spec is None:
            raise InvalidArgumentError(
                f"input tensor alias not found in signature: {name}. Inputs expected to be in the set {known}."
            )
        if not isinstance(spec, TensorSpec):
            raise UnimplementedError(f"Input {name!r} of {signature} has several parts")
        if proto.dtype != spec.dtype:
            told = DataType(proto.dtype).string if proto.dtype in {*DataType} else proto.dtype
            raise InvalidArgumentError(
                f"Expects arg[{name}] to be {spec.dtype.string} but {told} is provided"
            )
        found[name] = tensor_from_proto(proto)
    return found


def _wanted(signature: Signature, names: Iterable[str]) -> list[str]:
    """The outputs that a filter names, each once; all for none."""
    wanted: list[str] = []
    for name in names:
        if name not in signature.outputs:
            raise InvalidArgumentError(
                f"output tensor alias not found in signature: {name} Outputs expected to be in the "
                f"set {_listed(signature.outputs)}."
            )
        if name in wanted:
            raise InvalidArgumentError(f"duplicate output tensor alias: {name}")
        wanted.append(name)
    return wanted or [*signature.outputs]


def _listed(names: Iterable[str]) -> str:
    return "{" + ",".join(sorted(names)) + "}"


def classify(server: ModelServer, request: Any, answer: Any) -> None:
    """Labels with scores for each example."""

    def use(servable: Servable, signature: Signature) -> None:
        outputs = _run_on_examples(servable, signature, "classify", request.input)
        _fill_classes(answer.result, outputs)

    _used(server, request.model_spec, answer.model_spec, use)


def regress(server: ModelServer, request: Any, answer: Any) -> None:
    """A value for each example."""

    def use(servable: Servable, signature: Signature) -> None:
        outputs = _run_on_examples(servable, signature, "regress", request.input)
        _fill_values(answer.result, outputs)

    _used(server, request.model_spec, answer.model_spec, use)


def _run_on_examples(
    servable: Servable, signature: Signature, method: str, examples: Any
) -> list[Any]:
    """The results of a method, one for each example."""
    check_method(signature, method)
    inputs = serialized_examples(examples)
    if not inputs.size:
        raise InvalidArgumentError("Input is empty.")
    outputs = servable.run(signature, {EXAMPLES_INPUT: inputs})
    return example_results(method, outputs, inputs.size)


def _fill_classes(result: Any, found: list[Any]) -> None:
    for classes in found:
        classifications = result.classifications.add()
        for label, score in classes:
            classifications.classes.add(label=label, score=score)


def _fill_values(result: Any, found: list[Any]) -> None:
    for value in found:
        result.regressions.add(value=value)


def multi_inference(server: ModelServer, request: Any, answer: Any) -> None:
    """Several signatures of one model on the same examples."""
    if not request.tasks:
        raise InvalidArgumentError("Inference request must have at least one task")
    if len({task.model_spec.name for task in request.tasks}) > 1:
        raise InvalidArgumentError(
            "All ModelSpecs in a MultiInferenceRequest must access the same model name."
        )
    seen: set[str] = set()
    for task in request.tasks:
        method = task.method_name.removeprefix(_PREFIX)
        if method not in ("classify", "regress"):
            raise UnimplementedError(f"Unsupported signature method_name: {task.method_name}")
        if task.model_spec.signature_name in seen:
            raise InvalidArgumentError(
                f"Duplicate evaluation of signature: {task.model_spec.signature_name}"
            )
        seen.add(task.model_spec.signature_name)
        _infer(server, task.model_spec, method, request.input, answer.results.add())


def _infer(server: ModelServer, spec: Any, method: str, examples: Any, result: Any) -> None:
    def use(servable: Servable, signature: Signature) -> None:
        found = _run_on_examples(servable, signature, method, examples)
        if method == "classify":
            _fill_classes(result.classification_result, found)
        else:
            _fill_values(result.regression_result, found)

    _used(server, spec, result.model_spec, use)


def model_metadata(server: ModelServer, request: Any, answer: Any) -> None:
    """The signatures of a version of a model."""
    if not request.model_spec.name:
        raise InvalidArgumentError("Missing ModelSpec")
    if not request.metadata_field:
        raise InvalidArgumentError(
            "GetModelMetadataRequest must specify at least one metadata_field"
        )
    for name in request.metadata_field:
        if name != _METADATA:
            raise InvalidArgumentError(f"Metadata field {name} is not supported")
    spec = request.model_spec
    with server.use(spec.name, _version(server, spec)) as servable:
        signatures: Any = message_class(POOL.FindMessageTypeByName(_SIGNATURES))()
        for name, definition in servable.model.meta_graph.signature_def.items():
            signatures.signature_def[name].CopyFrom(definition)
        answer.model_spec.name = spec.name
        answer.model_spec.version.value = servable.version
    packed = answer.metadata[_METADATA]
    packed.type_url = f"type.googleapis.com/{signatures.DESCRIPTOR.full_name}"
    packed.value = signatures.SerializeToString()


def model_status(server: ModelServer, request: Any, answer: Any) -> None:
    """What has become of the versions of a model."""
    spec = request.model_spec
    if not spec.name:
        raise InvalidArgumentError("Missing ModelSpec")
    states = answer.DESCRIPTOR.fields_by_name["model_version_status"].message_type
    numbers = states.enum_types_by_name["State"].values_by_name
    for one in server.statuses(spec.name, _version(server, spec)):
        status = answer.model_version_status.add(version=one.version)
        status.state = numbers[one.state].number
        status.status.error_code = (Code.OK if one.error is None else one.error.code).value
        status.status.error_message = "" if one.error is None else one.error.message


_SERVING, _NOT_SERVING = 1, 2


def health(server: ModelServer, request: Any, answer: Any) -> None:
    """Whether any model is served; for the server as a whole, or one of its services."""
    services = {name.rpartition("/")[0] for name in METHODS}
    if request.service and request.service not in services:
        raise NotFoundError(f"Unknown service: {request.service}")
    answers = any(map(server.versions, server.names))
    answer.status = _SERVING if answers else _NOT_SERVING


class Method(NamedTuple):
    """A procedure of a service.

    Attributes:
        name: What metrics call it.
        request, response: The names of its messages.
        answer: Fills the answer.
    """

    name: str
    request: str
    response: str
    answer: Answer


def _method(name: str, messages: str, answer: Answer) -> Method:
    request, response = f"{messages}Request", f"{messages}Response"
    return Method(name, f"tensorflow.serving.{request}", f"tensorflow.serving.{response}", answer)


_PREDICTION = "tensorflow.serving.PredictionService"
_HEALTH = "grpc.health.v1"
METHODS = {
    f"{_PREDICTION}/Predict": _method("predict", "Predict", predict),
    f"{_PREDICTION}/Classify": _method("classify", "Classification", classify),
    f"{_PREDICTION}/Regress": _method("regress", "Regression", regress),
    f"{_PREDICTION}/MultiInference": _method("multi_inference", "MultiInference", multi_inference),
    f"{_PREDICTION}/GetModelMetadata": _method("metadata", "GetModelMetadata", model_metadata),
    "tensorflow.serving.ModelService/GetModelStatus": _method(
        "status", "GetModelStatus", model_status
    ),
    f"{_HEALTH}.Health/Check": Method(
        "health", f"{_HEALTH}.HealthCheckRequest", f"{_HEALTH}.HealthCheckResponse", health
    ),
}
"""The procedures by service and name."""
