"""Checkpoints of objects: bytes of TensorFlow's, what is restored where, what is refused. Files of `data/` are TensorFlow's."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.training.object_graphs import everything

import opkernel
from opkernel import Checkpoint, CheckpointManager, Module, Variable, optimizers
from opkernel.checkpoint import ObjectGraph
from opkernel.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)

DATA = Path(__file__).parent / "data"
AFTER_TRAINING = [0.06294848024845123, 2.083263874053955]  # as make_checkpoints.py prints it


def model_with(value: Any = 1.0) -> Any:
    model: Any = Module()
    model.w = Variable(np.array([value, value], np.float32), name="w")
    return model


@pytest.mark.parametrize("suffix", [".index", ".data-00000-of-00001"])
def test_the_bytes_are_those_of_tensorflow(tmp_path: Path, suffix: str) -> None:
    step = Variable(np.int64(7), name="step")
    path = Checkpoint(model=everything(Module, Variable), step=step).write(tmp_path / "objects")
    assert Path(path + suffix).read_bytes() == (DATA / f"objects{suffix}").read_bytes()


def test_what_tensorflow_saved_is_restored() -> None:
    model = everything(Module, Variable)
    for variable in model.variables:
        value = variable.numpy()
        variable.assign(np.full_like(value, b"" if value.dtype == object else 0))
    assert Checkpoint(model=model).restore(DATA / "objects") == []
    expected = everything(Module, Variable)
    for name, variable in expected.named_variables.items():
        np.testing.assert_array_equal(model.named_variables[name].numpy(), variable.numpy())


def test_training_that_keras_began_goes_on_as_it_would_there() -> None:
    model, optimizer = model_with(), optimizers.Adam()
    assert Checkpoint(model=model, optimizer=optimizer).restore(DATA / "trained") == []
    assert (int(optimizer.iterations), optimizer.learning_rate) == (3, 0.25)
    optimizer.apply_gradients([(np.ones(2, np.float32), model.w)])
    np.testing.assert_allclose(model.w.numpy(), AFTER_TRAINING, atol=1e-6)


def test_a_restored_training_goes_on_as_the_first_one(tmp_path: Path) -> None:
    def step(model: Any, optimizer: Any) -> Any:
        optimizer.minimize(lambda: model.w * model.w, model)
        return model.w.numpy().tolist()

    first, optimizer = model_with(), optimizers.RMSprop(0.1, momentum=0.5, centered=True)
    step(first, optimizer)
    path = Checkpoint(model=first, optimizer=optimizer).save(tmp_path / "ckpt")
    other, fresh = model_with(5), optimizers.RMSprop(0.3, momentum=0.5, centered=True)
    assert Checkpoint(model=other, optimizer=fresh).restore(path) == []
    assert step(other, fresh) == step(first, optimizer)


def test_an_optimizer_without_its_model_asks_for_its_slots() -> None:
    optimizer, w = optimizers.Adam(), Variable(np.zeros(2, np.float32))
    with pytest.raises(FailedPreconditionError, match="Adam has no slots for the values"):
        Checkpoint(optimizer=optimizer).restore(DATA / "trained")
    optimizer.build([w])
    Checkpoint(optimizer=optimizer).restore(DATA / "trained")
    assert optimizer.slot(w, "momentum").numpy().tolist() != [0, 0]


def test_an_optimizer_without_slots_needs_no_variables(tmp_path: Path) -> None:
    model, optimizer = model_with(), optimizers.SGD(0.25)
    optimizer.minimize(lambda: model.w * model.w, model)
    path = Checkpoint(optimizer=optimizer).write(tmp_path / "ckpt")
    fresh = optimizers.SGD()
    assert Checkpoint(optimizer=fresh).restore(path) == []
    assert (fresh.learning_rate, int(fresh.iterations)) == (0.25, 1)


def test_saves_are_numbered_and_the_latest_is_found(tmp_path: Path) -> None:
    model = model_with()
    checkpoint = Checkpoint(model=model)
    paths = [checkpoint.save(tmp_path / "run" / "ckpt") for _ in range(2)]
    assert [os.path.basename(path) for path in paths] == ["ckpt-1", "ckpt-2"]
    assert opkernel.latest_checkpoint(tmp_path / "run") == paths[-1]
    other: Any = Checkpoint(model=model_with(9))
    other.restore(tmp_path / "run")
    assert other.model.w.numpy().tolist() == [1, 1]
    assert other.save(tmp_path / "run" / "ckpt").endswith("ckpt-3")


def test_a_manager_keeps_the_last_ones(tmp_path: Path) -> None:
    model = model_with(0)
    checkpoint, manager = Checkpoint(model=model), CheckpointManager(tmp_path, max_to_keep=2)
    for _ in range(4):
        model.w.assign_add([1, 1])
        manager.save(checkpoint.write)
    assert sorted(path.name for path in tmp_path.glob("*.index")) == [
        "ckpt-3.index",
        "ckpt-4.index",
    ]
    checkpoint.restore(manager.checkpoints[0])
    assert model.w.numpy().tolist() == [3, 3]


def test_the_parts_of_a_root_are_saved_under_their_own_names(tmp_path: Path) -> None:
    path = Checkpoint(model_with(3), step=Variable(1)).save(tmp_path / "root")
    with opkernel.load_checkpoint(path) as reader:
        graph = ObjectGraph.of(reader)
        assert graph.key("w") == "w/.ATTRIBUTES/VARIABLE_VALUE"
        assert [graph.find(name) for name in ("root", "step")] == [0, 2]
    other = model_with()
    assert Checkpoint(root=other).restore(path) == []
    assert other.w.numpy().tolist() == [3, 3]


def test_variables_that_a_checkpoint_lacks_are_named_and_stay(tmp_path: Path) -> None:
    path = Checkpoint(model=model_with(3)).write(tmp_path / "ckpt")
    model = model_with()
    model.more = [Variable(5.0)]
    assert Checkpoint(model=model).restore(path) == ["model/more/0"]
    assert (model.w.numpy().tolist(), float(model.more[0])) == ([3, 3], 5)


@pytest.mark.parametrize("wrong", [np.zeros(3, np.float32), np.zeros(2)])
def test_a_value_that_does_not_fit_restores_nothing(tmp_path: Path, wrong: Any) -> None:
    saved: Any = Module()
    saved.first, saved.w = Variable(7.0), Variable(wrong)
    path = Checkpoint(model=saved).write(tmp_path / "ckpt")
    model = model_with()
    model.first = Variable(1.0)
    with pytest.raises(InvalidArgumentError, match=r"Variable 'w' is float32\[2\], and the check"):
        Checkpoint(model=model).restore(path)
    assert (float(model.first), model.w.numpy().tolist()) == (1, [1, 1])


def test_a_checkpoint_of_other_objects_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="has values for none of the objects"):
        Checkpoint(something=model_with()).restore(DATA / "objects")


def test_no_checkpoint_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(NotFoundError):
            Checkpoint(model=model_with()).restore(path)


def test_a_damaged_checkpoint_restores_nothing(tmp_path: Path) -> None:
    path = Checkpoint(model=model_with(3)).write(tmp_path / "ckpt")
    data = Path(f"{path}.data-00000-of-00001")
    damaged = bytearray(data.read_bytes())
    damaged[0] ^= 1
    data.write_bytes(damaged)
    model = model_with()
    with pytest.raises(DataLossError):
        Checkpoint(model=model).restore(path)
    assert model.w.numpy().tolist() == [1, 1]


def test_what_cannot_be_saved_is_refused_and_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="'step' cannot be saved: int is no variable"):
        Checkpoint(step=3)
    model = model_with()
    model.by_number = {1: Variable(1.0)}
    checkpoint = Checkpoint(model=model)
    with pytest.raises(InvalidArgumentError, match="A dict with the key 1 cannot be saved"):
        checkpoint.save(tmp_path / "ckpt")
    assert list(tmp_path.iterdir()) == []
    model.by_number = {}
    assert checkpoint.save(tmp_path / "ckpt").endswith("ckpt-1")


def test_variables_of_a_model_and_those_it_shares_are_saved_once(tmp_path: Path) -> None:
    model = model_with()
    model.again = [model.w]
    path = Checkpoint(model=model).write(tmp_path / "ckpt")
    names = [name for name, _ in opkernel.list_variables(path)]
    assert names == ["_CHECKPOINTABLE_OBJECT_GRAPH", "model/w/.ATTRIBUTES/VARIABLE_VALUE"]
