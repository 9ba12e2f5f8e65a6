"""jax_function: a model as a pure function of JAX; values are formulas, or those of the model called directly."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Module, TensorSpec, Variable, raw_ops
from opkernel.errors import InvalidArgumentError, NotFoundError, OpError, UnimplementedError

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.jax

WEIGHTS = np.array([[1, -2], [3, 4], [-5, 6]], np.float32)
X = np.array([[1, 2, 3], [-1, 0, 2]], np.float32)


class Model(Module):
    """y = relu(x @ weights + bias); `counts` counts its calls; `looped` doubles while a sum is small."""

    def __init__(self) -> None:
        self.weights = Variable(WEIGHTS, name="weights")
        self.bias = Variable(np.array([1, 2], np.float32), name="bias")
        self.calls = Variable(np.int64(0), name="calls")

    @opkernel.function(input_signature=[TensorSpec([None, 3], opkernel.float32, "x")])
    def dense(self, x: Any) -> Any:
        return {"y": raw_ops.Relu(features=x @ self.weights + self.bias)}

    @opkernel.function(input_signature=[TensorSpec([], opkernel.float32, "x")])
    def counts(self, x: Any) -> Any:
        self.calls.assign_add(np.int64(2))
        return {"calls": raw_ops.Identity(input=self.calls), "x": x + 1}

    @opkernel.function(input_signature=[TensorSpec([2], opkernel.float32, "x")])
    def looped(self, x: Any) -> Any:
        done = opkernel.while_loop(
            lambda v: raw_ops.Sum(input=v, axis=[0]) < np.float32(100), lambda v: [v * 2], [x]
        )
        return {"y": done[0]}

    @opkernel.function(input_signature=[TensorSpec([None], opkernel.float32, "x")])
    def unique(self, x: Any) -> Any:
        return {"y": raw_ops.Unique(x=x, name="those")[0]}

    @opkernel.function(input_signature=[TensorSpec([None], opkernel.string, "x")])
    def text(self, x: Any) -> Any:
        return {"y": raw_ops.StringLength(input=x)}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    model, folder = Model(), tmp_path_factory.mktemp("model") / "saved"
    names = ("dense", "counts", "looped", "text", "unique")
    opkernel.save(model, folder, signatures={name: getattr(model, name) for name in names})
    return opkernel.load(folder)


def function(loaded: Any, name: str) -> Any:
    return opkernel.xla.jax_function(loaded, name)


def expected(x: Any, weights: Any = WEIGHTS) -> Any:
    return np.maximum(x @ weights + np.array([1, 2], np.float32), 0)


def test_values_are_the_models(loaded: Any) -> None:
    f = function(loaded, "dense")
    np.testing.assert_allclose(f(x=X)["y"], expected(X), rtol=1e-6)
    np.testing.assert_allclose(jax.jit(f)(x=X)["y"], expected(X), rtol=1e-6)
    assert {name: value.shape for name, value in f.variables.items()} == {
        "weights": (3, 2),
        "bias": (2,),
    }


def test_variables_are_a_pytree(loaded: Any) -> None:
    f = function(loaded, "dense")
    doubled = jax.tree.map(lambda value: value * 2, f.variables)
    outputs, after = f.apply(doubled, x=X)
    np.testing.assert_allclose(outputs["y"], np.maximum(2 * (X @ WEIGHTS) + [2, 4], 0), rtol=1e-6)
    np.testing.assert_array_equal(after["weights"], 2 * WEIGHTS)
    np.testing.assert_allclose(f(x=X)["y"], expected(X), rtol=1e-6)


def test_gradients(loaded: Any) -> None:
    f = function(loaded, "dense")
    slopes = jax.grad(lambda variables: f.apply(variables, x=X)[0]["y"].sum())(f.variables)
    passes = (expected(X) > 0).astype(np.float32)
    np.testing.assert_allclose(slopes["weights"], X.T @ passes, rtol=1e-6)
    np.testing.assert_allclose(slopes["bias"], passes.sum(0), rtol=1e-6)
    by_input = jax.jit(jax.grad(lambda x: f(x=x)["y"].sum()))(X)
    np.testing.assert_allclose(by_input, passes @ WEIGHTS.T, rtol=1e-6)


def test_vmap(loaded: Any) -> None:
    f = function(loaded, "dense")
    many = np.stack([X, 2 * X, -X])
    found = jax.vmap(lambda x: f(x=x)["y"])(many)
    np.testing.assert_allclose(found, expected(many), rtol=1e-6)
    weights = np.stack([WEIGHTS, -WEIGHTS])
    by_weights = jax.vmap(lambda w: f.apply({**f.variables, "weights": w}, x=X)[0]["y"])(weights)
    np.testing.assert_allclose(by_weights, expected(X, weights), rtol=1e-6)


def test_loops(loaded: Any) -> None:
    f = function(loaded, "looped")
    x = np.array([1, 2], np.float32)
    np.testing.assert_array_equal(f(x=x)["y"], 64 * x)
    many = np.stack([x, 50 * x])
    np.testing.assert_array_equal(jax.vmap(lambda v: f(x=v)["y"])(many), [64 * x, 50 * x])
    _, slope = jax.jvp(lambda v: f(x=v)["y"], [x], [np.ones(2, np.float32)])
    np.testing.assert_array_equal(slope, [64, 64])


def test_what_is_written_comes_back(loaded: Any) -> None:
    f = function(loaded, "counts")
    outputs, after = f.apply(f.variables, x=np.float32(1))
    assert (int(outputs["calls"]), float(outputs["x"]), int(after["calls"])) == (2, 2.0, 2)
    assert int(f.apply(after, x=np.float32(1))[1]["calls"]) == 4
    assert int(f.variables["calls"]) == 0


@pytest.mark.parametrize(("is_wide", "dtype"), [(False, "int32"), (True, "int64")])
def test_results_have_the_width_that_jax_is_set_to(loaded: Any, is_wide: bool, dtype: str) -> None:
    with jax.enable_x64(is_wide):
        f = function(loaded, "counts")
        assert f(x=np.float32(1))["calls"].dtype == dtype
        assert jax.jit(f)(x=np.float32(1))["calls"].dtype == dtype
        assert f.variables["calls"].dtype == dtype


def test_a_traced_function() -> None:
    scale = Variable(np.float32(3), name="scale")
    spec = TensorSpec([None], opkernel.float32, "v")
    made = opkernel.function(lambda v: [v * scale, (v,)]).get_concrete_function(spec)
    product, (same,) = opkernel.xla.jax_function(made)(v=np.ones(2, np.float32))
    assert (product.tolist(), same.tolist()) == ([3, 3], [1, 1])


def test_inputs_are_called_as_in_the_signature(tmp_path: Path) -> None:
    def call(**inputs: Any) -> Any:
        return {"difference of": inputs["b"] - inputs["a"]}

    specs = {name: TensorSpec([], opkernel.float32, name) for name in "ba"}
    made = opkernel.function(call).get_concrete_function(**specs)
    opkernel.save(Module(), tmp_path / "named", signatures={"named": made})
    f = opkernel.xla.jax_function(opkernel.load(tmp_path / "named"), "named")
    found = f(b=np.float32(5), a=np.float32(1))
    assert float(found["difference of"]) == 4


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "missing": ({}, TypeError, "The input 'x' is missing"),
    "unknown": ({"x": X, "z": X}, TypeError, "There is no input 'z'"),
    "shape": ({"x": X[:, :2]}, InvalidArgumentError, r"'x' has shape \(2, 2\), and takes \[\?,3\]"),
    "kind": ({"x": X + 1j}, InvalidArgumentError, "'x' has dtype complex64, and takes float32"),
}


@pytest.mark.parametrize("case", WRONG)
def test_arrays_that_do_not_fit(loaded: Any, case: str) -> None:
    inputs, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        function(loaded, "dense")(**inputs)


def test_variables_that_do_not_fit(loaded: Any) -> None:
    f = function(loaded, "dense")
    with pytest.raises(TypeError, match="The variable 'bias' is missing"):
        f.apply({"weights": WEIGHTS}, x=X)
    with pytest.raises(InvalidArgumentError, match="'weights' has shape"):
        f.apply({**f.variables, "weights": WEIGHTS.T}, x=X)


def test_what_does_not_compile_names_the_node(loaded: Any) -> None:
    with pytest.raises(OpError, match=r"Unique.*\(node 'those_0'") as caught:
        function(loaded, "unique")(x=X[0])
    assert not hasattr(caught.value, "__notes__")  # of JAX
    with pytest.raises(UnimplementedError, match="'x' takes string, which JAX has not"):
        function(loaded, "text")


def test_tables_are_refused() -> None:
    filled = opkernel.lookup.KeyValueTensorInitializer(np.array([5]), np.array([1]))
    table = opkernel.lookup.StaticHashTable(filled, -1)
    made = opkernel.function(table.lookup).get_concrete_function(TensorSpec([None], opkernel.int64))
    with pytest.raises(UnimplementedError, match="is a resource but not a variable"):
        opkernel.xla.jax_function(made)


def test_wrong_models(loaded: Any, tmp_path: Path) -> None:
    with pytest.raises(
        NotFoundError, match=r"no signature 'dence'; perhaps you mean dense; it has counts, dense"
    ):
        function(loaded, "dence")
    with pytest.raises(InvalidArgumentError, match=r"a model that opkernel\.load gives"):
        opkernel.xla.jax_function(str(tmp_path))  # type: ignore[arg-type]  # what is refused
