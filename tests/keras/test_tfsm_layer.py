"""TFSMLayer: a SavedModel as a layer of Keras on each backend; values are formulas.

Keras takes its backend when it is imported, so each test has a process of its own.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Module, TensorSpec, Variable, raw_ops

if find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

BACKENDS = [
    pytest.param(name, marks=pytest.mark.skipif(find_spec(name) is None, reason=f"no {name}"))
    for name in ("numpy", "jax", "torch")
]
WEIGHTS = np.array([[1, -2], [3, 4], [-5, 6]], np.float32)


class Model(Module):
    """`serve` gives relu(x @ weights); `named` the same by name, and the sign, which XLA does not compile."""

    def __init__(self) -> None:
        self.weights = Variable(WEIGHTS, name="weights")

    @opkernel.function(input_signature=[TensorSpec([None, 3], opkernel.float32, "x")])
    def serve(self, x: Any) -> Any:
        return raw_ops.Relu(features=x @ self.weights)

    @opkernel.function(input_signature=[TensorSpec([None, 3], opkernel.float32, "x")])
    def named(self, x: Any) -> Any:
        number = raw_ops.StringLength(input=raw_ops.AsString(input=x))
        return {"y": raw_ops.Relu(features=x @ self.weights), "digits": number}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "saved"
    model = Model()
    opkernel.save(model, path, signatures={"named": model.named})
    return path


BEGIN = """
import sys
import keras, numpy as np
from opkernel.keras import TFSMLayer
folder = sys.argv[1]
weights = np.array([[1, -2], [3, 4], [-5, 6]], np.float32)
x = np.arange(12, dtype=np.float32).reshape(4, 3) - 6
y = np.maximum(x @ weights, 0)
close = lambda a, b: np.testing.assert_allclose(keras.ops.convert_to_numpy(a), b, rtol=1e-5)
"""


def run(backend: str, folder: Path, program: str) -> str:
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_layer_on_each_backend(folder: Path, backend: str) -> None:
    run(
        backend,
        folder,
        """
layer = TFSMLayer(folder)
close(layer(keras.ops.convert_to_tensor(x)), y)
assert not layer.trainable_variables
model = keras.Sequential([keras.Input((3,)), layer, keras.layers.Rescaling(2.0)])
assert model.output_shape == (None, 2), model.output_shape
close(model.predict(x, batch_size=3, verbose=0), 2 * y)
named = TFSMLayer(folder, call_endpoint="named")
found = named(keras.ops.convert_to_tensor(x))
close(found["y"], y)
digits = [[len("%f" % one) for one in row] for row in x]
close(found["digits"], digits)
inputs = keras.Input((3,))
outputs = named(inputs)
assert outputs["digits"].shape == (None, 3) and outputs["digits"].dtype == "int32"
found = keras.Model(inputs, outputs).predict(x, batch_size=3, verbose=0)
close(found["digits"], digits)
""",
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_model_with_the_layer_is_saved_by_its_path(
    folder: Path, backend: str, tmp_path: Path
) -> None:
    run(
        backend,
        folder,
        f"""
model = keras.Sequential([keras.Input((3,)), TFSMLayer(folder, name="loaded")])
model.save({str(tmp_path / "m.keras")!r})
again = keras.saving.load_model({str(tmp_path / "m.keras")!r}, custom_objects={{"TFSMLayer": TFSMLayer}}, safe_mode=False)
close(again.predict(x, verbose=0), y)
assert again.layers[-1].call_endpoint == "serve" and again.layers[-1].name == "loaded"
""",
    )


@pytest.mark.skipif(find_spec("jax") is None, reason="no jax")
def test_gradients_pass_with_jax(folder: Path) -> None:
    run(
        "jax",
        folder,
        """
import jax
layer = TFSMLayer(folder)
slope = jax.jit(jax.grad(lambda v: layer(v).sum()))(x)
close(slope, (y > 0).astype(np.float32) @ weights.T)
first = keras.layers.Dense(3, kernel_initializer="identity")
model = keras.Sequential([keras.Input((3,)), first, layer])
model.compile("sgd", "mse")
before = first.kernel.numpy().copy()
model.fit(x, y + 1, epochs=1, verbose=0)
assert (first.kernel.numpy() != before).any()
""",
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_refused(folder: Path, backend: str) -> None:
    told = run(
        backend,
        folder,
        """
from opkernel.errors import NotFoundError, OpError
for arguments in ({"call_endpoint": "nammed"}, {"filepath": folder + "/nowhere"}):
    try:
        TFSMLayer(**{"filepath": folder} | arguments)
    except NotFoundError as error:
        print(error.message)
try:
    TFSMLayer(folder)(keras.ops.convert_to_tensor(x[:, :2]))
except Exception as error:
    print(type(error).__name__)
""",
    ).splitlines()
    assert "no endpoint 'nammed'; perhaps you mean named; its signatures are named" in told[0]
    assert "nowhere" in told[1]
    assert len(told) == 3


@pytest.mark.skipif(find_spec("torch") is None, reason="no torch")
def test_torch_compiles_a_model_around_the_layer(folder: Path) -> None:
    run(
        "torch",
        folder,
        """
import torch
model = keras.Sequential([keras.Input((3,)), TFSMLayer(folder), keras.layers.Rescaling(2.0)])
compiled = torch.compile(model, backend="eager")
close(compiled(torch.tensor(x)), 2 * y)
close(compiled(torch.tensor(x[:2])), 2 * y[:2])
""",
    )


@pytest.mark.skipif(find_spec("torch") is None, reason="no torch")
def test_torch_trains_layers_behind_the_layer(folder: Path) -> None:
    run(
        "torch",
        folder,
        """
import torch
model = keras.Sequential([keras.Input((3,)), TFSMLayer(folder), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(1e-4), "mse")
before = model.layers[-1].get_weights()[0]
losses = model.fit(x, x[:, :1], epochs=3, verbose=0).history["loss"]
assert losses[2] < losses[0] and (model.layers[-1].get_weights()[0] != before).any()
close(model.layers[0](torch.tensor(x).T.contiguous().T), y)
""",
    )
