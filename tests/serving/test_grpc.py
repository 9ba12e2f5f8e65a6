"""TensorFlow Serving's gRPC services: what they answer and refuse, with TensorFlow Serving's messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkernel.errors import Code, FailedPreconditionError
from opkernel.proto import POOL, Example, message_class
from opkernel.serving import GrpcServer, ModelServer, ServingOptions
from opkernel.types import tensor_from_proto, tensor_to_proto

grpc = pytest.importorskip("grpc")
SERVING, HEALTH = "tensorflow.serving", "grpc.health.v1"
METHODS = {
    "Predict": ("PredictionService/Predict", "Predict"),
    "Classify": ("PredictionService/Classify", "Classification"),
    "Regress": ("PredictionService/Regress", "Regression"),
    "MultiInference": ("PredictionService/MultiInference", "MultiInference"),
    "GetModelMetadata": ("PredictionService/GetModelMetadata", "GetModelMetadata"),
    "GetModelStatus": ("ModelService/GetModelStatus", "GetModelStatus"),
}


def message(name: str) -> Any:
    return message_class(POOL.FindMessageTypeByName(name))


def request(method: str, signature: str = "", model: str = "half") -> Any:
    made = message(f"{SERVING}.{METHODS[method][1]}Request")()
    if method != "MultiInference":
        made.model_spec.name, made.model_spec.signature_name = model, signature
    return made


class Asking:
    """Calls the procedures of a server; `told` are the requests that its metrics count."""

    def __init__(self, server: GrpcServer) -> None:
        self.told: list[tuple[str, str, Code]] = []
        server.observe = lambda model, method, code, seconds: self.told.append(
            (model, method, code)
        )
        self.channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")

    def __call__(self, method: str, asked: Any, timeout: float = 30) -> Any:
        path, messages = METHODS[method]
        return self.raw(f"{SERVING}.{path}", asked, f"{SERVING}.{messages}Response", timeout)

    def raw(self, path: str, asked: Any, response: str, timeout: float = 30) -> Any:
        data = asked if isinstance(asked, bytes) else asked.SerializeToString()
        call = self.channel.unary_unary(
            f"/{path}", response_deserializer=message(response).FromString
        )
        return call(data, timeout=timeout)

    def error(self, method: str, asked: Any, timeout: float = 30) -> tuple[str, str]:
        with pytest.raises(grpc.RpcError) as caught:
            self(method, asked, timeout)
        return caught.value.code().name, caught.value.details()


@pytest.fixture(scope="module")
def ask(saved: Path) -> Iterator[Asking]:
    models = ModelServer(saved, ServingOptions(labels={"old": 1}, max_request_bytes=100_000))
    models.poll()
    server = GrpcServer(models, "127.0.0.1:0")
    server.start()
    asking = Asking(server)
    yield asking
    asking.channel.close()
    server.stop()
    models.close()


def fed(asked: Any, **inputs: Any) -> Any:
    for name, value in inputs.items():
        asked.inputs[name].CopyFrom(tensor_to_proto(value))
    return asked


def with_examples(asked: Any, *values: float, times: float = 0) -> Any:
    examples = asked.input.example_list
    if times:
        examples = asked.input.example_list_with_context
        examples.context.features.feature["times"].float_list.value.append(times)
    for value in values:
        example = Example()
        example.features.feature["x"].float_list.value.append(value)
        examples.examples.append(example)
    return asked


def test_predict(ask):
    answer = ask("Predict", fed(request("Predict"), x=np.array([1, 2, 5], np.float32)))
    assert tensor_from_proto(answer.outputs["output_0"]).tolist() == [3.5, 4, 5.5]
    assert (
        answer.outputs["output_0"].tensor_content == np.array([3.5, 4, 5.5], np.float32).tobytes()
    )
    spec = answer.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("half", 1, "serving_default")


def test_predict_gives_the_outputs_of_the_filter(ask):
    asked = fed(request("Predict", "pair"), x=np.ones((1, 2), np.float32), n=np.array([1]))
    asked.output_filter.append("next")
    assert ask("Predict", asked).outputs.keys() == {"next"}
    asked.output_filter.append("next")
    assert ask.error("Predict", asked) == (
        "INVALID_ARGUMENT",
        "duplicate output tensor alias: next",
    )
    asked.output_filter[:] = ["other"]
    assert ask.error("Predict", asked) == (
        "INVALID_ARGUMENT",
        "output tensor alias not found in signature: other Outputs expected to be in the set {next,sum}.",
    )


def test_predict_by_version_and_label(ask):
    asked = fed(request("Predict"), x=np.array([1], np.float32))
    asked.model_spec.version.value = 1
    assert ask("Predict", asked).model_spec.version.value == 1
    asked.model_spec.version_label = "old"
    assert ask("Predict", asked).model_spec.version.value == 1
    asked.model_spec.version_label = "new"
    told = "Unrecognized servable version label: new"
    assert ask.error("Predict", asked) == ("INVALID_ARGUMENT", told)
    asked.model_spec.version.value = 7
    told = "Servable not found for request: Specific(half, 7)"
    assert ask.error("Predict", asked) == ("NOT_FOUND", told)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({}, "input size does not match signature: 0!=1 len({}) != len({x})."),
        (
            {"y": np.float32(1)},
            "input size does not match signature: 1!=1 len({y}) != len({x}). Sent extra: {y}. Missing but required: {x}.",
        ),
        (
            {"x": np.float32(1), "y": np.float32(1)},
            "input tensor alias not found in signature: y. Inputs expected to be in the set {x}.",
        ),
        ({"x": np.array([1])}, "to be float but int64 is provided"),
    ],
)
def test_wrong_inputs_are_told(ask, inputs, told):
    code, message = ask.error("Predict", fed(request("Predict"), **inputs))
    assert code == "INVALID_ARGUMENT"
    assert told in message


def test_classify(ask):
    answer = ask("Classify", with_examples(request("Classify", "classify"), 1, 2.5))
    found = [[(one.label, one.score) for one in c.classes] for c in answer.result.classifications]
    assert found == [[("1.0", 1.0), ("2.0", 2.0)], [("2.5", 2.5), ("5.0", 5.0)]]
    assert answer.model_spec.signature_name == "classify"


def test_regress_with_a_context(ask):
    answer = ask("Regress", with_examples(request("Regress", "regress"), 1, 2, times=4))
    assert [one.value for one in answer.result.regressions] == [5, 7]


def test_methods_need_their_tensors(ask):
    code, told = ask.error("Regress", with_examples(request("Regress"), 1))
    assert (code, "the one input 'inputs'" in told) == ("INVALID_ARGUMENT", True)
    assert ask.error("Classify", request("Classify", "classify")) == (
        "INVALID_ARGUMENT",
        "Input is empty.",
    )


def tasks(*named: tuple[str, str]) -> Any:
    asked = with_examples(request("MultiInference"), 1)
    for signature, method in named:
        task = asked.tasks.add(method_name=f"tensorflow/serving/{method}")
        task.model_spec.name, task.model_spec.signature_name = "half", signature
    return asked


def test_several_signatures_on_the_same_examples(ask):
    answer = ask("MultiInference", tasks(("regress", "regress"), ("classify", "classify")))
    first, second = answer.results
    assert first.regression_result.regressions[0].value == 3.5
    assert second.classification_result.classifications[0].classes[1].score == 2
    assert second.model_spec.signature_name == "classify"


@pytest.mark.parametrize(
    ("named", "code", "told"),
    [
        ([], "INVALID_ARGUMENT", "at least one task"),
        ([("regress", "regress")] * 2, "INVALID_ARGUMENT", "Duplicate evaluation of signature: regress"),
        ([("regress", "predict")], "UNIMPLEMENTED", "Unsupported signature method_name: tensorflow/serving/predict"),
    ],
)  # fmt: skip
def test_wrong_tasks_are_told(ask, named, code, told):
    found, message = ask.error("MultiInference", tasks(*named))
    assert (found, told in message) == (code, True)


def test_metadata(ask):
    asked = request("GetModelMetadata")
    told = "GetModelMetadataRequest must specify at least one metadata_field"
    assert ask.error("GetModelMetadata", asked) == ("INVALID_ARGUMENT", told)
    asked.metadata_field.append("signature_def")
    answer = ask("GetModelMetadata", asked)
    packed = answer.metadata["signature_def"]
    assert packed.type_url == "type.googleapis.com/tensorflow.serving.SignatureDefMap"
    signatures = message(f"{SERVING}.SignatureDefMap").FromString(packed.value).signature_def
    assert signatures["regress"].method_name == "tensorflow/serving/regress"
    asked.metadata_field[:] = ["other"]
    assert ask.error("GetModelMetadata", asked)[1] == "Metadata field other is not supported"


def test_status(ask):
    (one,) = ask("GetModelStatus", request("GetModelStatus")).model_version_status
    assert (one.version, one.state, one.status.error_code) == (1, 30, 0)
    told = "Could not find any versions of model other"
    assert ask.error("GetModelStatus", request("GetModelStatus", model="other")) == (
        "NOT_FOUND",
        told,
    )


def test_health(ask):
    asked = message(f"{HEALTH}.HealthCheckRequest")
    for service in ("", f"{SERVING}.PredictionService"):
        answer = ask.raw(
            f"{HEALTH}.Health/Check", asked(service=service), f"{HEALTH}.HealthCheckResponse"
        )
        assert answer.status == 1
    with pytest.raises(grpc.RpcError) as caught:
        ask.raw(f"{HEALTH}.Health/Check", asked(service="other"), f"{HEALTH}.HealthCheckResponse")
    assert caught.value.code().name == "NOT_FOUND"


def test_deadlines_and_limits(ask):
    asked = fed(request("Predict", "endless"), x=np.array([0], np.float32))
    assert ask.error("Predict", asked, timeout=0.5)[0] == "DEADLINE_EXCEEDED"
    large = fed(request("Predict"), x=np.zeros(100_000, np.float32))
    assert ask.error("Predict", large)[0] == "RESOURCE_EXHAUSTED"
    assert ask.error("Predict", b"\xff" * 20)[0] in ("INTERNAL", "UNKNOWN")
    ask("Predict", fed(request("Predict"), x=np.array([1], np.float32)))


def test_a_port_is_of_one_server(saved):
    models = ModelServer(saved)
    first = GrpcServer(models, "127.0.0.1:0")
    with pytest.raises(FailedPreconditionError, match=f"Cannot listen at 127.0.0.1:{first.port}"):
        GrpcServer(models, f"127.0.0.1:{first.port}")
    first.stop()


def test_requests_are_counted(ask):
    ask.told.clear()
    ask("Predict", fed(request("Predict"), x=np.array([1], np.float32)))
    ask.error("Predict", request("Predict", model="other"))
    assert ask.told == [("half", "predict", Code.OK), ("", "predict", Code.NOT_FOUND)]
