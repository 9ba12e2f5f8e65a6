"""Optimisers take over the slots of TF1's Savers and of Keras 2, and go on as TensorFlow does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import BundleWriter, Variable, optimizers
from opkernel.errors import InvalidArgumentError, NotFoundError

GRAD = np.array([1, -2], np.float32)
SLOT = ".ATTRIBUTES/VARIABLE_VALUE"


def written(path: Path, **values: Any) -> Path:
    with BundleWriter(path) as writer:
        for key, value in sorted(values.items()):
            writer.add(key, np.asarray(value))
    return path


def floats(*values: float) -> Any:
    return np.array(values, np.float32)


def test_slots_of_a_saver(tmp_path: Path) -> None:
    path = written(
        tmp_path / "ckpt",
        **{
            "w": floats(1, 2),
            "w/Adam": floats(3, 4),
            "w/Adam_1": floats(5, 6),
            "beta1_power": np.float32(0.9**8),
            "beta2_power": np.float32(0.999**8),
        },
    )
    w, adam = Variable(floats(1, 2), name="w"), optimizers.Adam()
    adam.restore(path, [w])
    assert adam.slot(w, "momentum").numpy().tolist() == [3, 4]
    assert adam.slot(w, "velocity").numpy().tolist() == [5, 6]
    assert int(adam.iterations) == 7
    with pytest.raises(NotFoundError, match="other/Adam"):
        adam.restore(path, {"other": w})
    with pytest.raises(NotFoundError, match="w/Mine"):
        adam.restore(path, [w], name="Mine")
    wrong = Variable(floats(1, 2, 3), name="w")
    with pytest.raises(
        InvalidArgumentError, match=r"float32\[3\], and the checkpoint has float32\[2\]"
    ):
        optimizers.Adam().restore(path, [wrong])
    with pytest.raises(InvalidArgumentError, match="same name"):
        adam.restore(path, [w, Variable(floats(1, 2), name="w")])


def test_slots_of_keras_2(tmp_path: Path) -> None:
    path = written(
        tmp_path / "ckpt",
        **{
            f"model/w/.OPTIMIZER_SLOT/optimizer/momentum/{SLOT}": floats(3, 4),
            f"optimizer/iter/{SLOT}": np.int64(5),
        },
    )
    model: Any = opkernel.Module()
    model.w = Variable(floats(1, 2))
    sgd = optimizers.SGD(0.5, momentum=0.5)
    sgd.restore(path, opkernel.Checkpoint(model=model))
    assert sgd.slot(model.w, "momentum").numpy().tolist() == [3, 4]
    assert int(sgd.iterations) == 5
    sgd.apply_gradients([(GRAD, model.w)])
    assert model.w.numpy().tolist() == [1 + 0.5 * 3 - 0.5, 2 + 0.5 * 4 + 1]


CASES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "momentum": (
        "MomentumOptimizer",
        {"momentum": 0.9},
        lambda: optimizers.SGD(0.1, momentum=0.9),
    ),
    "nesterov": (
        "MomentumOptimizer",
        {"momentum": 0.9, "use_nesterov": True},
        lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    ),
    "adam": ("AdamOptimizer", {}, lambda: optimizers.Adam(0.1, epsilon=1e-8)),
    "rmsprop": (
        "RMSPropOptimizer",
        {"momentum": 0.5},
        lambda: optimizers.RMSprop(0.1, momentum=0.5, epsilon=1e-10),
    ),
    "centered": (
        "RMSPropOptimizer",
        {"centered": True},
        lambda: optimizers.RMSprop(0.1, epsilon=1e-10, centered=True),
    ),
    "adagrad": ("AdagradOptimizer", {}, lambda: optimizers.Adagrad(0.1, epsilon=0)),
    "ftrl": ("FtrlOptimizer", {}, lambda: optimizers.Ftrl(0.1)),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", CASES)
def test_trainings_of_tf1_go_on(tf: Any, tmp_path: Path, kind: str) -> None:
    name, arguments, make = CASES[kind]
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        w = v1.get_variable("w", initializer=floats(1, 2), use_resource=True)
        optimizer = getattr(v1.train, name)(0.1, **arguments)
        train = optimizer.apply_gradients([(tf.constant(GRAD) * w, w)])
        session.run(v1.global_variables_initializer())
        for _ in range(4):
            session.run(train)
        path = v1.train.Saver().save(session, str(tmp_path / "ckpt"))
        value, after = session.run(w), []
        for _ in range(3):
            session.run(train)
            after.append(session.run(w))
    ours, fresh = Variable(value, name="w"), make()
    fresh.restore(path, [ours])
    for expected in after:
        fresh.apply_gradients([(GRAD * ours.numpy(), ours)])
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-5)


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_trainings_of_object_graphs_go_on(tf: Any, tmp_path: Path, kind: str) -> None:
    name, arguments, make = CASES[kind]
    w = tf.Variable(floats(1, 2))
    optimizer = getattr(tf.compat.v1.train, name)(0.1, **arguments)
    for _ in range(4):
        optimizer.apply_gradients([(tf.constant(GRAD) * w, w)])
    path = tf.train.Checkpoint(w=w, optimizer=optimizer).save(str(tmp_path / "ckpt"))
    ours, fresh = Variable(w.numpy()), make()
    fresh.restore(path, {"w": ours})
    for _ in range(3):
        optimizer.apply_gradients([(tf.constant(GRAD) * w, w)])
        fresh.apply_gradients([(GRAD * ours.numpy(), ours)])
        np.testing.assert_allclose(ours.numpy(), w.numpy(), rtol=1e-5)


KERAS_2: dict[str, tuple[str, dict[str, Any], Any]] = {
    "gradient_descent": (
        "SGD",
        {"momentum": 0.9, "nesterov": True},
        lambda: optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    ),
    "adam": ("Adam", {"amsgrad": True}, lambda: optimizers.Adam(0.1, amsgrad=True)),
    "rmsprop": ("RMSprop", {"centered": True}, lambda: optimizers.RMSprop(0.1, centered=True)),
    "adagrad": ("Adagrad", {}, lambda: optimizers.Adagrad(0.1)),
    "ftrl": ("Ftrl", {}, lambda: optimizers.Ftrl(0.1)),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("module", KERAS_2)
def test_trainings_of_keras_2_go_on(tf: Any, tmp_path: Path, module: str) -> None:
    name, arguments, make = KERAS_2[module]
    legacy = pytest.importorskip(f"tensorflow.python.keras.optimizer_v2.{module}")
    optimizer = getattr(legacy, name)(0.1, **arguments)
    w = tf.Variable(floats(1, 2))
    for _ in range(4):
        optimizer.apply_gradients([(tf.constant(GRAD) * w, w)])
    path = tf.train.Checkpoint(w=w, optimizer=optimizer).save(str(tmp_path / "ckpt"))
    ours, fresh = Variable(w.numpy()), make()
    fresh.restore(path, opkernel.Checkpoint(w=ours))
    assert int(fresh.iterations) == 4
    for _ in range(3):
        optimizer.apply_gradients([(tf.constant(GRAD) * w, w)])
        fresh.apply_gradients([(GRAD * ours.numpy(), ours)])
        np.testing.assert_allclose(ours.numpy(), w.numpy(), rtol=1e-5)
