"""What opkernel saves beside TensorFlow: it loads with equal values, answers and signatures, and is trained there."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.interop.saved_modules import Dense, Many, Point, Trainer, X, calls

import opkernel
from opkernel import Module, TensorSpec, Variable, raw_ops, value_and_grad
from opkernel.graph.tracing.nested_structure import flatten, map_structure

pytestmark = pytest.mark.tensorflow

TYPES: list[Any] = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64, np.int8]
TYPES += [np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_]


load: Any = opkernel.load


def assert_equal(value: Any, expected: Any) -> None:
    one, other = np.asarray(value), np.asarray(expected)
    assert one.shape == other.shape
    assert one.tolist() == other.tolist()
    assert one.dtype == other.dtype or {one.dtype.kind, other.dtype.kind} <= {"S", "O"}


def assert_same(tf: Any, value: Any, expected: Any) -> None:
    """Equal structures of equal tensors."""
    tf.nest.assert_same_structure(value, expected, check_types=False)
    for one, other in zip(tf.nest.flatten(value), tf.nest.flatten(expected), strict=True):
        assert_equal(one, other)


# Modules of any structure.

names = st.text("abz_.A0", min_size=1, max_size=4)
arrays = st.builds(
    lambda dtype, shape, seed: np.random.default_rng(seed).integers(0, 2, shape).astype(dtype),
    st.sampled_from(TYPES),
    st.lists(st.integers(0, 3), max_size=3),
    st.integers(0, 9),
)
strings = st.lists(st.binary(max_size=20), max_size=3).map(lambda texts: np.array(texts, object))
plans = st.recursive(
    st.tuples(st.just("variable"), arrays | strings, st.booleans())
    | st.tuples(st.just("shared"), st.integers(0, 5)),
    lambda inner: (
        st.tuples(st.sampled_from(["module", "dict"]), st.dictionaries(names, inner, max_size=3))
        | st.tuples(st.just("list"), st.lists(inner, max_size=3))
    ),
    max_leaves=10,
)


def built(plan: Any, made: list[Any]) -> Any:
    kind, content = plan[:2]
    if kind == "variable":
        made.append(Variable(content, trainable=plan[2], name=f"v{len(made)}"))
        return made[-1]
    if kind == "shared":
        return made[content % len(made)] if made else []
    if kind == "list":
        return [built(part, made) for part in content]
    parts = {f"m{name}": built(part, made) for name, part in content.items()}
    if kind == "dict":
        return parts
    module: Any = Module()
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def check_loaded(loaded: Any, original: Any, seen: dict[int, Any]) -> None:
    """The same objects in the same places."""
    assert seen.setdefault(id(original), loaded) is loaded
    if isinstance(original, Variable):
        assert_equal(loaded.numpy(), original.numpy())
        assert (loaded.trainable, str(loaded.name)) in (
            (original.trainable, original.name),
            (original.trainable, f"{original.name}:0"),
        )
    elif isinstance(original, list):
        assert len(loaded) == len(original)
        for index, part in enumerate(original):
            check_loaded(loaded[index], part, seen)
    else:
        is_dict = isinstance(original, dict)
        for name, part in (original if is_dict else vars(original)).items():
            check_loaded(loaded[name] if is_dict else getattr(loaded, name), part, seen)


@given(st.dictionaries(names, plans, min_size=1, max_size=4))
@settings(max_examples=60)
def test_modules_of_any_structure_load(tf: Any, tmp_path_factory: Any, plan: Any) -> None:
    path = str(tmp_path_factory.mktemp("saved") / "model")
    made = list[Any]()
    module = built(("module", plan), made)
    opkernel.save(module, path)
    theirs = tf.saved_model.load(path)
    check_loaded(theirs, module, {})
    check_loaded(load(path), module, {})
    expected = [f"{one.name}:0" for one in module.trainable_variables]
    assert [one.name for one in theirs.trainable_variables] == expected
    assert len(theirs.variables) == len(made)


# Functions with arguments of any structure.

specs = st.builds(
    lambda dtype, shape: TensorSpec(shape, dtype),
    st.sampled_from([opkernel.float32, opkernel.int32, opkernel.float64, opkernel.string]),
    st.lists(st.sampled_from([None, 1, 2]), max_size=2),
)
structures = st.recursive(
    specs,
    lambda inner: (
        st.lists(inner, min_size=1, max_size=2)
        | st.lists(inner, min_size=1, max_size=2).map(tuple)
        | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, min_size=1, max_size=2)
        | st.builds(Point, inner, inner)
    ),
    max_leaves=4,
)
constants = (
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("xyz", max_size=3) | st.floats(0, 1)
)


def example_of(spec: Any, seed: int = 0) -> Any:
    shape = [2 if size is None else size for size in spec.shape.as_list()]
    values = np.random.default_rng(seed).integers(0, 9, shape)
    if spec.dtype == opkernel.string:
        return np.array(values.astype(str).astype(object), object)
    return values.astype(spec.dtype.numpy_dtype)


class Caller(Module):
    def __init__(self) -> None:
        self.v = Variable(np.float32(3))

    @opkernel.function
    def f(self, first: Any, constant: Any = 0, *, named: Any = None) -> Any:
        def twice(x: Any) -> Any:
            return x if x.dtype == opkernel.string else x + x

        return {
            "first": map_structure(twice, first),
            "named": (named, [self.v * 2]),
            "chosen": opkernel.constant(str(constant)),
        }


@given(structures, structures, st.lists(constants, min_size=1, max_size=2))
@settings(max_examples=30)
def test_functions_of_any_arguments_load(
    tf: Any, tmp_path_factory: Any, first: Any, named: Any, choices: Any
) -> None:
    path = str(tmp_path_factory.mktemp("saved") / "model")
    module = Caller()
    for constant in choices:
        module.f.get_concrete_function(first, constant, named=named)
        module.f.get_concrete_function(first, constant)
    opkernel.save(module, path)
    theirs, ours = tf.saved_model.load(path), load(path)
    first, named = (map_structure(example_of, one) for one in (first, named))

    def tensors(structure: Any) -> Any:
        return map_structure(
            lambda x: (
                tf.constant(x.tolist(), tf.string, x.shape) if x.dtype == object else tf.constant(x)
            ),
            structure,
        )

    for constant in choices:
        for kwargs in ({}, {"named": named}):
            expected = module.f(first, constant, **kwargs)
            found = theirs.f(tensors(first), constant, **map_structure(tensors, kwargs))
            assert_same(tf, found, expected)
            assert_same(tf, ours.f(first, constant, **kwargs), expected)


def test_functions_of_all_kinds_answer_the_same(tf: Any, tmp_path: Path) -> None:
    module = Many().traced()
    opkernel.save(module, tmp_path / "model")
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    for name, args, kwargs in calls():
        expected = getattr(module, name)(*args, **kwargs)
        given = map_structure(
            lambda x: x if np.isscalar(x) and not hasattr(x, "dtype") else tf.constant(x), args
        )
        assert_same(tf, getattr(loaded, name)(*given, **kwargs), expected)
    assert loaded.functions[0](tf.constant(4.0)) == 8
    assert loaded.layers[0].kernel is loaded.shared["kernel"]


def test_gradients_in_tensorflow_are_those_here(tf: Any, tmp_path: Path) -> None:
    module = Many().traced()
    kernel, bias = module.layers[0].kernel, module.layers[1].bias
    opkernel.save(module, tmp_path / "model")
    theirs, ours = tf.saved_model.load(str(tmp_path / "model")), load(tmp_path / "model")
    turns = np.int32(3)
    for name, arguments in (("call", [X]), ("control", [X, turns]), ("control", [-X, turns])):

        def loss(*given: Any, of: Any = module, name: str = name) -> Any:
            found = getattr(of, name)(*given)
            y = found["y"] if name == "call" else found
            return raw_ops.Sum(input=y * y, axis=[0, 1])

        expected = value_and_grad(loss, [kernel, bias])(*arguments)[1]
        again = value_and_grad(
            lambda *given: loss(*given, of=ours), [ours.layers[0].kernel, ours.layers[1].bias]
        )(*arguments)[1]
        with tf.GradientTape() as tape:
            found = getattr(theirs, name)(*map(tf.constant, arguments))
            y = tf.reduce_sum((found["y"] if name == "call" else found) ** 2)
        found = tape.gradient(y, [theirs.layers[0].kernel, theirs.layers[1].bias])
        for one, mine, other in zip(found, again, expected, strict=True):
            if one is None or other is None:
                assert one is mine is other is None or not np.any(one if other is None else other)
            else:
                np.testing.assert_allclose(one, other, rtol=1e-5)
                np.testing.assert_allclose(mine, other, rtol=1e-6)


def test_training_goes_on_in_tensorflow(tf: Any, tmp_path: Path) -> None:
    module = Trainer()
    module.train(X)
    opkernel.save(module, tmp_path / "model")
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    for _ in range(3):
        np.testing.assert_allclose(loaded.train(tf.constant(X)), module.train(X), rtol=1e-5)
    optimizer = tf.keras.optimizers.SGD(0.01)
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(loaded(tf.constant(X)) ** 2)
        variables = [loaded.kernel, loaded.bias]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True)
    tf.saved_model.save(loaded, str(tmp_path / "again"))
    np.testing.assert_allclose(load(tmp_path / "again")(X), loaded(tf.constant(X)))


def test_signatures_are_those_of_tensorflow(tf: Any, tmp_path: Path) -> None:
    module: Any = Dense()
    add = opkernel.function(lambda a, b: {"sum": a + b, "bias": module.bias.value})
    opkernel.save(
        module,
        tmp_path / "model",
        signatures={
            "serving_default": module.__call__,
            "add": add.get_concrete_function(
                TensorSpec([None], opkernel.float32, "a"), TensorSpec([], opkernel.float32, "b")
            ),
        },
    )
    signatures = tf.saved_model.load(str(tmp_path / "model")).signatures
    assert sorted(signatures) == ["add", "serving_default"]
    function = signatures["add"]
    assert function.structured_input_signature[1] == {
        "a": tf.TensorSpec([None], tf.float32, "a"),
        "b": tf.TensorSpec([], tf.float32, "b"),
    }
    assert {key: spec.shape.as_list() for key, spec in function.structured_outputs.items()} == {
        "sum": [None],
        "bias": [2],
    }
    found = function(a=tf.constant([1.0, 2]), b=tf.constant(1.0))
    assert {key: value.numpy().tolist() for key, value in found.items()} == {
        "sum": [2, 3],
        "bias": [0, 0],
    }
    assert signatures["serving_default"](tf.constant(X))["output_0"][0, 0] == 3


def test_sessions_and_the_command_line_of_tensorflow_run_it(tf: Any, tmp_path: Path) -> None:
    opkernel.save(Dense(), tmp_path / "model")
    with tf.compat.v1.Session(graph=tf.Graph()) as session:
        meta_graph = tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        signature = meta_graph.signature_def["serving_default"]
        feeds = {signature.inputs["x"].name: X}
        assert session.run(signature.outputs["output_0"].name, feeds)[0, 0] == 3
    tool = shutil.which("saved_model_cli", path=os.path.dirname(sys.executable))
    assert tool is not None
    np.save(tmp_path / "x.npy", X)
    model = ["--dir", str(tmp_path / "model")]
    what = ["--tag_set", "serve", "--signature_def", "serving_default"]
    shown, done = (
        subprocess.run([tool, *arguments], capture_output=True, text=True, check=True).stdout
        for arguments in (
            ["show", *model, "--all"],
            ["run", *model, *what, "--inputs", f"x={tmp_path / 'x.npy'}"],
        )
    )
    assert "inputs['x'] tensor_info:\n        dtype: DT_FLOAT\n        shape: (-1, 3)" in shown
    assert "Function Name: '__call__'" in shown
    assert "[[ 3.  3.]\n [12. 12.]]" in done


def test_an_export_of_keras_is_saved_again(tf: Any, tmp_path: Path) -> None:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((3,)),
            layers.Dense(4, activation="relu"),
            layers.BatchNormalization(),
            layers.Dense(2),
        ]
    )
    model.export(str(tmp_path / "export"), verbose=False)
    loaded = load(tmp_path / "export")
    opkernel.save(loaded, tmp_path / "same")
    same = tf.saved_model.load(str(tmp_path / "same"))
    np.testing.assert_array_equal(same.serve(tf.constant(X)), model(X))
    assert len(same.trainable_variables) == 6

    def loss(x: Any) -> Any:
        y = loaded.serve(x)
        return raw_ops.Mean(input=y * y, axis=[0, 1])

    optimizer = opkernel.optimizers.Adam(0.1)
    for _ in range(3):
        optimizer.minimize(loss, loaded, X)
    opkernel.save(loaded, tmp_path / "trained")
    trained = tf.saved_model.load(str(tmp_path / "trained"))
    np.testing.assert_allclose(trained.serve(tf.constant(X)), loaded.serve(X), rtol=1e-5)
    assert np.abs(trained.serve(tf.constant(X)) - model(X)).max() > 0.01
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(trained.serve(tf.constant(X)))
    assert all(grad is not None for grad in tape.gradient(y, trained.trainable_variables))


def test_custom_gradients_of_tensorflow_are_kept(tf: Any, tmp_path: Path) -> None:
    class Model(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = tf.Variable(2.0)

        @tf.function(input_signature=[tf.TensorSpec([], tf.float32)])
        def __call__(self, x):
            @tf.custom_gradient
            def twice(x):
                return x * 2, lambda dy: dy * 100.0

            return twice(x * self.w)

    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(Model(), str(tmp_path / "model"), options=options)
    loaded = load(tmp_path / "model")
    opkernel.save(loaded, tmp_path / "again")
    again, x = tf.saved_model.load(str(tmp_path / "again")), tf.constant(3.0)
    with tf.GradientTape() as tape:
        y = again(x)
    assert (float(y), float(tape.gradient(y, again.w))) == (12, 300)
    assert value_and_grad(lambda x: loaded(x), [loaded.w])(np.float32(3)) == (12, [300])


def test_a_checkpoint_of_the_module_restores_what_tensorflow_loaded(
    tf: Any, tmp_path: Path
) -> None:
    module = Many().traced()
    opkernel.save(module, tmp_path / "model")
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    module.layers[1].bias.assign([7, 8, 9])
    path = opkernel.Checkpoint(model=module).save(tmp_path / "ckpt")
    tf.train.Checkpoint(model=loaded).restore(path)
    assert loaded.layers[1].bias.numpy().tolist() == [7, 8, 9]
    assert len(flatten(module.variables)) == 7


def test_a_model_of_tensorflow_1_is_saved_again(tf: Any, tmp_path: Path) -> None:
    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf1.Session() as session:
        x = tf1.placeholder(tf.float32, [None, 3], name="x")
        kernel = tf1.get_variable(
            "kernel", initializer=np.ones((3, 2), np.float32), use_resource=False
        )
        parted = tf1.get_variable(
            "parted",
            shape=[6],
            initializer=tf1.ones_initializer(),
            partitioner=tf1.fixed_size_partitioner(2),
        )
        y = tf.matmul(x, kernel) + tf.reduce_sum(tf.convert_to_tensor(parted))
        session.run(tf1.global_variables_initializer())
        tf1.saved_model.simple_save(session, str(tmp_path / "model"), {"x": x}, {"y": y})
    model = load(tmp_path / "model")
    assert model.signatures["serving_default"](x=X)["y"][0, 0] == 9
    next(one for one in model.variables if one.name.startswith("kernel")).assign(
        np.zeros((3, 2), np.float32)
    )
    opkernel.save(model, tmp_path / "again")
    again = tf.saved_model.load(str(tmp_path / "again"))
    assert again.signatures["serving_default"](tf.constant(X))["y"].numpy().tolist() == [[6, 6]] * 2
    assert load(tmp_path / "again").signatures["serving_default"](x=X)["y"][0, 0] == 6
