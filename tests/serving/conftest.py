"""Models that are small enough to know their answers, and clients of servers that serve them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.proto import SavedModel
from opkernel.serving import ModelServer, ServingOptions, application

FLOATS = opkernel.TensorSpec([None], opkernel.float32, name="x")
ROWS = opkernel.TensorSpec([None, 2], opkernel.float32, name="x")
STRINGS = opkernel.TensorSpec([None], opkernel.string, name="text")
SERIALIZED = opkernel.TensorSpec([None], opkernel.string, name="inputs")

Serve = Callable[..., Any]


class Model(opkernel.Module):
    """Signatures of several kinds; `scale` tells versions apart."""

    def __init__(self, scale: float) -> None:
        self.scale = opkernel.Variable(np.float32(scale))

    @opkernel.function(input_signature=[FLOATS])
    def half_plus(self, x):
        return x * 0.5 + self.scale.value

    @opkernel.function(
        input_signature=[ROWS, opkernel.TensorSpec([None], opkernel.int64, name="n")]
    )
    def pair(self, x, n):
        return {"sum": raw_ops.Sum(input=x, axis=[1]), "next": n + 1}

    @opkernel.function(input_signature=[STRINGS])
    def echo(self, text):
        return {"text": text, "text_bytes": text}

    @opkernel.function(input_signature=[FLOATS])
    def finite(self, x):
        return raw_ops.CheckNumerics(tensor=x, message="not finite")

    @opkernel.function(input_signature=[FLOATS])
    def twice(self, x):
        return raw_ops.ConcatV2(values=[x, x], axis=0)

    @opkernel.function(input_signature=[FLOATS])
    def total(self, x):
        return raw_ops.Sum(input=x, axis=[0])

    @opkernel.function(input_signature=[FLOATS])
    def endless(self, x):
        return opkernel.while_loop(lambda y: y[0] < 1e30, lambda y: (y * 1.0,), [x])[0]

    @opkernel.function(input_signature=[FLOATS])
    def large(self, x):
        return raw_ops.Tile(input=x, multiples=[1_000_000])

    @opkernel.function(input_signature=[SERIALIZED])
    def regress(self, inputs):
        return {"outputs": self._features(inputs) * 0.5 + self.scale.value}

    @opkernel.function(input_signature=[SERIALIZED])
    def classify(self, inputs):
        x = self._features(inputs)
        scores = raw_ops.ConcatV2(values=[x, x * 2], axis=1)
        return {"scores": scores, "classes": raw_ops.AsString(input=scores, precision=1)}

    def _features(self, inputs):
        """The feature x of Examples, times the feature `times`, which is 1 by default."""
        return feature(inputs, b"x") * feature(inputs, b"times", [1])


class Reader(opkernel.Module):
    """Reads the file that a request names."""

    @opkernel.function(input_signature=[STRINGS])
    def read(self, text):
        content = raw_ops.ReadFile(filename=raw_ops.Reshape(tensor=text, shape=[]))
        return raw_ops.Reshape(tensor=content, shape=[1])


def save_reader(directory: Path) -> None:
    """Save a model that reads files."""
    reader = Reader()
    opkernel.save(reader, directory, signatures=reader.read)


def feature(serialized, name: bytes, default=()):
    """A feature of one float of serialized Examples, `[batch, 1]`."""
    parsed = raw_ops.ParseExampleV2(
        serialized=serialized,
        names=np.array([], object),
        sparse_keys=np.array([], object),
        dense_keys=np.array([name], object),
        ragged_keys=np.array([], object),
        dense_defaults=[np.array(default, np.float32)],
        num_sparse=0,
        sparse_types=[],
        ragged_value_types=[],
        ragged_split_types=[],
        dense_shapes=[[1]],
    )
    return parsed.dense_values[0]


SIGNATURES = (
    *("pair", "echo", "finite", "twice", "total", "endless", "large", "regress", "classify"),
)


def save(directory: Path, scale: float = 3.0) -> Path:
    """Save the model with all its signatures."""
    model = Model(scale)
    signatures = {name: getattr(model, name) for name in SIGNATURES}
    signatures["serving_default"] = model.half_plus
    methods = {name: name for name in ("regress", "classify")}
    return save_with_methods(model, directory, signatures, methods)


def save_with_methods(
    model: opkernel.Module, directory: Path, signatures: Any, methods: dict[str, str]
) -> Path:
    """Save a model with signatures that are not for `predict`."""
    opkernel.save(model, directory, signatures=signatures)
    file = directory / "saved_model.pb"
    message = SavedModel.FromString(file.read_bytes())
    for name, method in methods.items():
        definition = message.meta_graphs[0].signature_def[name]
        definition.method_name = f"tensorflow/serving/{method}"
    file.write_bytes(message.SerializeToString())
    return directory


@pytest.fixture(autouse=True)
def libraries() -> None:
    """Skip where the libraries that serve are not installed."""
    for module in ("starlette", "uvicorn", "prometheus_client", "httpx"):
        pytest.importorskip(module, reason="needs opkernel[serve] and httpx")


@pytest.fixture(scope="session")
def saved(tmp_path_factory: Any) -> Path:
    """A directory with version 1 of the model `half`, for tests that leave it as it is."""
    directory: Path = tmp_path_factory.mktemp("models") / "half"
    save(directory / "1")
    return directory


@pytest.fixture
def serve(libraries: None) -> Iterator[Serve]:
    """Gives a client of a server for a directory; `poll` of its `server` looks at the directory."""
    from starlette.testclient import TestClient

    with ExitStack() as clients:

        def started(directory: Path, *, versions: str = "latest", **options: Any) -> Any:
            server = ModelServer(directory, ServingOptions(**options), versions=versions)
            client: Any = TestClient(application(server, poll_s=0), raise_server_exceptions=False)
            client.server = server
            return clients.enter_context(client)

        yield started


@pytest.fixture
def client(serve: Serve, saved: Path) -> Any:
    """A client of a server with the model `half`."""
    return serve(saved)
