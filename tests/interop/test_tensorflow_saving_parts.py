"""TensorFlow loads what opkernel saves of modules with loaded models and tables, with equal values and gradients."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.interop.saved_modules import X
from tests.interop.test_saving_parts import KEYS, WORDS, Tables, Transfer, check_tables

import opkernel
from opkernel import Module, TensorSpec, value_and_grad

pytestmark = pytest.mark.tensorflow
load: Any = opkernel.load


def test_a_loaded_base_with_a_head_trains_the_same(tf: Any, sample: Any, tmp_path: Path) -> None:
    model = Transfer(load(sample("linear")))
    path = str(tmp_path / "model")
    opkernel.save(model, path)
    theirs, ours = tf.saved_model.load(path), load(path)
    optimizer, other = opkernel.optimizers.SGD(0.01), tf.keras.optimizers.SGD(0.01)

    def loss(x: Any) -> Any:
        y = ours(x)
        return opkernel.raw_ops.Sum(input=y * y, axis=[0, 1])

    for _ in range(3):
        with tf.GradientTape() as tape:
            value = tf.reduce_sum(theirs(X) ** 2)
        grads = tape.gradient(value, theirs.trainable_variables)
        other.apply_gradients(zip(grads, theirs.trainable_variables, strict=True))
        np.testing.assert_allclose(optimizer.minimize(loss, ours, X), value, rtol=1e-6)
    np.testing.assert_allclose(ours.base(X), theirs.base(X), rtol=1e-5)
    signature = theirs.signatures["serving_default"]
    np.testing.assert_allclose(signature(x=tf.constant(X))["output_0"], ours(X), rtol=1e-5)
    nested = theirs.base.signatures["serving_default"]
    np.testing.assert_allclose(nested(x=tf.constant(X))["output_0"], ours.base(X), rtol=1e-5)


@pytest.mark.parametrize(
    "name",
    [
        "nested_modules",
        "control_flow",
        "shared_names",
        "optimizer_slots",
        "small_convolutional",
        "transformer",
    ],
)
def test_loaded_models_as_parts(tf: Any, sample: Any, tmp_path: Path, name: str) -> None:
    base, module = load(sample(name)), Module()
    module.part = base  # type: ignore[attr-defined]  # modules take any attribute
    opkernel.save(module, tmp_path / "model")
    theirs, ours = tf.saved_model.load(str(tmp_path / "model")), load(tmp_path / "model")
    original = tf.saved_model.load(str(tmp_path / name))
    for one, other in zip(theirs.variables, module.variables, strict=True):
        np.testing.assert_array_equal(one, other.numpy())
    for key, signature in base.signatures.items():
        given = {
            one: np.random.default_rng(0)
            .integers(0, 3, [2 if size is None else size for size in spec.shape.as_list()])
            .astype(spec.dtype.numpy_dtype)
            for one, spec in signature.inputs.items()
        }
        tensors = {one: tf.constant(value) for one, value in given.items()}
        expected = original.signatures[key](**tensors)
        for found in (
            theirs.part.signatures[key](**tensors),
            ours.part.saved_attributes["signatures"].saved_attributes[key].call([*given.values()]),
        ):
            assert {*found} == {*expected}
            for one in expected:
                np.testing.assert_allclose(found[one], expected[one], rtol=1e-4, atol=1e-6)


def test_tables_of_a_loaded_model(tf: Any, sample: Any, tmp_path: Path) -> None:
    module: Any = Module()
    module.base = load(sample("tables"))
    module.base.insert(np.array([9], np.int64), np.full((1, 2), 7, np.float32))
    opkernel.save(module, tmp_path / "model")
    theirs = tf.saved_model.load(str(tmp_path / "model"))
    for found, expected in zip(theirs.base.f(KEYS), module.base.f(KEYS), strict=True):
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(theirs.base.index(WORDS.tolist()), [2, 0, -1])


def test_tables_of_a_module(tf: Any, tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_text("zero\none\ntwo\n")
    module = Tables(file)
    module.rows[0].insert([5], [[1, 2]])
    module.names.insert([2], ["zwei"])
    signatures = {"numbers": module.__call__, "words": module.index}
    opkernel.save(module, tmp_path / "model", signatures=signatures)
    file.unlink()

    class AsArrays:
        """TensorFlow's model, of which the functions give arrays."""

        def __init__(self, model: Any) -> None:
            self.model = model

        def __call__(self, keys: Any) -> Any:
            return [one.numpy() for one in self.model(tf.constant(keys))]

        def index(self, words: Any) -> Any:
            return [one.numpy() for one in self.model.index(tf.constant(words.tolist()))]

    theirs = tf.saved_model.load(str(tmp_path / "model"))
    check_tables(AsArrays(theirs))
    assert theirs.count(tf.constant([5, 6], tf.int64)).numpy() == 2
    tf.saved_model.save(theirs, str(tmp_path / "again"))
    for again in (AsArrays(tf.saved_model.load(str(tmp_path / "again"))), load(tmp_path / "again")):
        assert again(np.array([5, 6]))[1].tolist() == [[2, 3], [1, 1]]
        assert again.index(WORDS)[0].tolist() == [2, 0, -1]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        model = tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path / "model"))
        numbers, words = (model.signature_def[name] for name in ("numbers", "words"))
        found = session.run(numbers.outputs["output_1"].name, {numbers.inputs["k"].name: [1, 5]})
        assert found.tolist() == [[0, 0], [1, 2]]
        found = session.run(words.outputs["output_0"].name, {words.inputs["w"].name: WORDS})
        assert found.tolist() == [2, 0, -1]


def test_custom_gradients(tf: Any, sample: Any, tmp_path: Path) -> None:
    module: Any = Module()
    module.a, module.b = (load(sample("custom_gradient")) for _ in range(2))
    module.f = opkernel.function(
        lambda x: module.a.loss(x) + module.b.loss(x) * 2, [TensorSpec([3], opkernel.float32)]
    )
    opkernel.save(module, tmp_path / "model")
    theirs = tf.saved_model.load(str(tmp_path / "model"))
    x = np.array([0.1, 0.2, -0.3], np.float32)
    with tf.GradientTape() as tape:
        value = theirs.f(x)
    found = tape.gradient(value, [theirs.a.w, theirs.b.w])
    expected, grads = value_and_grad(module.f, [module.a.w, module.b.w])(x)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    for one, other in zip(found, grads, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_checkpoints_of_tables(tf: Any, tmp_path: Path) -> None:
    from opkernel import lookup

    theirs = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)
    theirs.insert(tf.constant([5], tf.int64), [2.0])
    path = tf.train.Checkpoint(table=theirs).save(str(tmp_path / "theirs"))
    ours = lookup.MutableHashTable(opkernel.int64, opkernel.float32, 0.0)
    assert opkernel.Checkpoint(table=ours).restore(path) == []
    assert ours.lookup([5, 6]).tolist() == [2, 0]
    ours.insert([6], [3.0])
    path = opkernel.Checkpoint(table=ours).save(tmp_path / "ours")
    tf.train.Checkpoint(table=theirs).restore(path).assert_consumed()
    assert theirs.lookup(tf.constant([5, 6, 7], tf.int64)).numpy().tolist() == [2, 3, 0]
