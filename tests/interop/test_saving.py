"""opkernel.save: modules and loaded models come back as they were; what cannot be saved is refused."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.interop.saved_modules import Dense, Many, Trainer, X, calls

import opkernel
from opkernel import Module, TensorSpec, Variable, raw_ops, value_and_grad
from opkernel.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    OpError,
    UnimplementedError,
)
from opkernel.graph.tracing.nested_structure import flatten, structure_of

FLOAT = TensorSpec([], opkernel.float32, "x")


load: Any = opkernel.load


def saved(module: Any, path: Path, **options: Any) -> Any:
    opkernel.save(module, path / "model", **options)
    return load(path / "model")


def assert_same(value: Any, expected: Any) -> None:
    assert structure_of(value) == structure_of(expected) or type(value).__name__ == "Point"
    for one, other in zip(flatten(value), flatten(expected), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_module_comes_back(tmp_path: Path) -> None:
    module: Any = Dense()
    module.bias.assign([1, 2])
    loaded = saved(module, tmp_path)
    assert loaded(X).tolist() == [[4, 5], [13, 14]]
    assert loaded.signatures["serving_default"](x=X)["output_0"].tolist() == [[4, 5], [13, 14]]
    assert [one.name for one in loaded.variables] == ["kernel", "bias"]
    assert loaded.bias.numpy().tolist() == [1, 2]


def test_functions_of_all_kinds_come_back(tmp_path: Path) -> None:
    module = Many().traced()
    loaded = saved(module, tmp_path)
    for name, args, kwargs in calls():
        assert_same(getattr(loaded, name)(*args, **kwargs), getattr(module, name)(*args, **kwargs))
    assert loaded.functions[0](np.float32(4)) == 8
    assert (loaded.step(), loaded.step(), int(module.count)) == (2, 3, 1)


def test_objects_that_are_shared_stay_shared(tmp_path: Path) -> None:
    module: Any = Many().traced()
    module.itself = module
    loaded = saved(module, tmp_path)
    assert loaded.layers[0].kernel is loaded.shared["kernel"]
    assert loaded.layers[1] is loaded.shared["layer"][0]
    assert loaded.itself is loaded
    assert loaded.count not in loaded.trainable_variables
    assert len(loaded.variables) == len(module.variables) == 7


def test_a_module_and_what_is_loaded_share_nothing(tmp_path: Path) -> None:
    module: Any = Dense()
    loaded = saved(module, tmp_path)
    module.kernel.assign(np.zeros((3, 2), np.float32))
    other = load(tmp_path / "model")
    loaded.bias.assign([5, 5])
    assert (loaded(X)[0, 0], other(X)[0, 0], module(X)[0, 0]) == (8, 3, 0)


def test_gradients_go_through_loaded_functions(tmp_path: Path) -> None:
    module = Many().traced()
    loaded = saved(module, tmp_path)
    for name, *arguments in (
        ("call", X),
        ("control", X, np.int32(3)),
        ("control", -X, np.int32(2)),
    ):

        def loss(*given: Any, of: Any = module, name: str = name) -> Any:
            found = getattr(of, name)(*given)
            y = found["y"] if name == "call" else found
            return raw_ops.Sum(input=y * y, axis=[0, 1])

        expected, found = (
            value_and_grad(
                functools.partial(loss, of=of), [of.layers[0].kernel, of.layers[1].bias]
            )(*arguments)[1]
            for of in (module, loaded)
        )
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_training_goes_on_in_a_loaded_model(tmp_path: Path) -> None:
    module = Trainer()
    module.train(X)
    loaded = saved(module, tmp_path)
    assert [loaded.train(X) for _ in range(3)] == [module.train(X) for _ in range(3)]
    assert int(loaded.optimizer._iterations) == 4


def test_a_loaded_model_is_trained_and_saved_again(tmp_path: Path) -> None:
    loaded = saved(Dense(), tmp_path)
    optimizer = opkernel.optimizers.SGD(0.01)

    def loss(x: Any) -> Any:
        y = loaded(x)
        return raw_ops.Sum(input=y * y, axis=[0, 1])

    losses = [optimizer.minimize(loss, loaded, X) for _ in range(3)]
    assert losses == sorted(losses, reverse=True)
    again = saved(loaded, tmp_path / "again")
    np.testing.assert_array_equal(again(X), loaded(X))
    assert len(again.trainable_variables) == 2


def test_checkpoints_of_a_loaded_model_and_its_optimizer(tmp_path: Path) -> None:
    first = saved(Many().traced(), tmp_path)
    optimizer = opkernel.optimizers.Adam(0.1)

    def loss(x: Any, model: Any = first) -> Any:
        y = model.call(x)["y"]
        return raw_ops.Sum(input=y * y, axis=[0, 1])

    optimizer.minimize(loss, first, X)
    path = opkernel.Checkpoint(model=first, optimizer=optimizer).save(tmp_path / "ckpt")
    other, fresh = load(tmp_path / "model"), opkernel.optimizers.Adam()
    assert opkernel.Checkpoint(model=other, optimizer=fresh).restore(path) == []
    module = Many()
    assert opkernel.Checkpoint(model=module).restore(path) == []
    kernel = first.layers[0].kernel.numpy()
    for model in (other, module):
        np.testing.assert_array_equal(model.layers[0].kernel.numpy(), kernel)
    fresh.minimize(functools.partial(loss, model=other), other, X)
    optimizer.minimize(loss, first, X)
    assert_same(other.call(X), first.call(X))
    assert load(tmp_path / "model").layers[0].kernel.numpy().tolist() == [[1] * 3] * 3


def test_a_loaded_model_may_be_saved_over_itself(tmp_path: Path) -> None:
    loaded = saved(Dense(), tmp_path)
    loaded.kernel.assign(np.full((3, 2), 7, np.float32))
    opkernel.save(loaded, tmp_path / "model")
    assert load(tmp_path / "model")(X).tolist() == loaded(X).tolist() == [[21] * 2, [84] * 2]


def test_signatures_are_saved_by_name(tmp_path: Path) -> None:
    module: Any = Dense()
    vector = TensorSpec([None], opkernel.float32, "a")
    add = opkernel.function(lambda a, b: {"sum": a + b, "bias": module.bias.value})
    pair = opkernel.function(lambda given: (given["p"], given["q"][0]))
    loaded = saved(
        module,
        tmp_path,
        signatures={
            "serving_default": module.__call__,
            "add": add.get_concrete_function(vector, TensorSpec([], opkernel.float32, "b")),
            "pair": pair.get_concrete_function({"p": vector, "q": [FLOAT]}),
        },
    )
    assert sorted(loaded.signatures) == ["add", "pair", "serving_default"]
    found = loaded.signatures["add"](a=np.array([1, 2], np.float32), b=np.float32(1))
    assert {key: value.tolist() for key, value in found.items()} == {"sum": [2, 3], "bias": [0, 0]}
    found = loaded.signatures["pair"](a=np.ones(1, np.float32), x=np.float32(2))
    assert {key: value.tolist() for key, value in found.items()} == {"output_0": [1], "output_1": 2}


def test_a_saved_model_runs_as_a_graph_in_a_session(tmp_path: Path) -> None:
    module: Any = Dense()
    module.bias.assign([1, 2])
    opkernel.save(module, tmp_path / "model")
    model = opkernel.load_as_session(tmp_path / "model")
    assert model.signatures["serving_default"](x=X)["output_0"].tolist() == [[4, 5], [13, 14]]


@pytest.mark.parametrize(
    "argument",
    [3, 2.5, "text", True, None, opkernel.float64, np.float32(2), opkernel.PartialTensorShape([1])],
)
def test_arguments_that_are_no_tensors_choose_among_functions(
    tmp_path: Path, argument: Any
) -> None:
    module: Any = Module()
    module.f = opkernel.function(lambda x, how: x if how == "other" else x * 2)
    module.f(np.float32(1), "other")
    module.f(np.float32(1), argument)
    loaded = saved(module, tmp_path)
    assert (loaded.f(np.float32(3), "other"), loaded.f(np.float32(3), argument)) == (3, 6)


def test_a_function_for_one_signature_may_be_an_attribute(tmp_path: Path) -> None:
    module: Any = Module()
    module.twice = opkernel.function(lambda x: x * 2).get_concrete_function(FLOAT)
    assert saved(module, tmp_path).twice(np.float32(3)) == 6


def test_any_number_of_arguments(tmp_path: Path) -> None:
    module: Any = Module()
    module.f = opkernel.function(lambda *xs, **named: xs[0] + xs[1] * named["s"])
    arguments = np.float32(1), np.float32(2)
    module.f(*arguments, s=np.float32(3))
    assert saved(module, tmp_path).f(*arguments, s=np.float32(3)) == 7


def outside_variable() -> Any:
    w = Variable(1.0, name="w")
    return opkernel.function(lambda x: x * w, [FLOAT])


def outside_table() -> Any:
    table = raw_ops.MutableHashTableV2(key_dtype=opkernel.string, value_dtype=opkernel.float32)
    return opkernel.function(
        lambda x: raw_ops.LookupTableFindV2(
            table_handle=table, keys=opkernel.constant("k"), default_value=x
        ),
        [FLOAT],
    )


def odd_argument() -> Any:
    function = opkernel.function(lambda x, how: x)
    function(np.float32(1), object())
    return function


def odd_default() -> Any:
    return opkernel.function(lambda x, how=b"bytes": x, [FLOAT])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (outside_variable, InvalidArgumentError, "uses <opkernel.Variable 'w' .*make it an attri"),
        (outside_table, UnimplementedError, "uses a table"),
        (odd_argument, InvalidArgumentError, "object cannot be a part of the signature"),
        (odd_default, InvalidArgumentError, "bytes cannot be a part of the signature"),
    ],
)
def test_functions_that_cannot_be_saved_leave_what_was_there(
    tmp_path: Path, make: Callable[[], Any], error: type[OpError], message: str
) -> None:
    opkernel.save(Dense(), tmp_path / "model")
    module: Any = Module()
    module.f = make()
    with pytest.raises(error, match=message):
        opkernel.save(module, tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]
    assert load(tmp_path / "model")(X)[0, 0] == 3


@pytest.mark.parametrize(
    ("signatures", "message"),
    [
        (lambda x: x, "needs a function for one signature"),
        (opkernel.function(lambda x: x), "needs a function for one signature"),
        (opkernel.function(lambda x: None, [FLOAT]), "Result 'output_0' .* is no tensor"),
        ({1: opkernel.function(lambda x: x, [FLOAT])}, "names of text, and not 1"),
    ],
)
def test_what_makes_no_signature_is_refused(tmp_path: Path, signatures: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        opkernel.save(Module(), tmp_path / "model", signatures=signatures)
    assert os.listdir(tmp_path) == []


def test_the_name_of_the_signatures_is_taken(tmp_path: Path) -> None:
    module: Any = Dense()
    module.signatures = [module.kernel]
    with pytest.raises(InvalidArgumentError, match="'signatures' of the module has the name"):
        opkernel.save(module, tmp_path / "model")


@pytest.mark.parametrize("wrong", [[Variable(1.0)], 3, None])
def test_what_is_no_model_is_refused(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="Modules and loaded models can be saved"):
        opkernel.save(wrong, tmp_path / "model")


def test_signatures_of_a_loaded_model_stay(tmp_path: Path) -> None:
    loaded = saved(Dense(), tmp_path)
    with pytest.raises(UnimplementedError, match="with the signatures that it has"):
        opkernel.save(loaded, tmp_path / "other", signatures={})


def test_other_things_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").touch()
    opkernel.save(Dense(), tmp_path / "model")
    (tmp_path / "model" / "mine.txt").touch()
    for name, message in (
        ("file", "is no SavedModel"),
        ("notes", "is no SavedModel"),
        ("model", "has 'mine.txt' beside a SavedModel"),
    ):
        with pytest.raises(AlreadyExistsError, match=message):
            opkernel.save(Dense(), tmp_path / name)
    assert (tmp_path / "notes" / "mine.txt").exists()
    assert (tmp_path / "model" / "mine.txt").exists()
    assert len(os.listdir(tmp_path)) == 3


def test_directories_are_made_and_links_are_followed(tmp_path: Path) -> None:
    opkernel.save(Dense(), f"{tmp_path}/deep/model/")
    (tmp_path / "link").symlink_to(tmp_path / "deep" / "model")
    opkernel.save(Dense(3, 4), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "deep" / "model").kernel.shape.as_list() == [3, 4]
    assert os.listdir(tmp_path / "deep") == ["model"]


def test_a_model_in_a_session_saves_the_values_of_now(tmp_path: Path) -> None:
    opkernel.save(Dense(), tmp_path / "model")
    model = opkernel.load_as_session(tmp_path / "model")
    bias = next(one for one in model.variables if "bias" in one.name)
    bias.assign(np.array([1, 2], np.float32))
    opkernel.save(model, tmp_path / "again")
    assert load(tmp_path / "again").bias.numpy().tolist() == [1, 2]
    assert load(tmp_path / "again")(X).tolist() == [[4, 5], [13, 14]]
    assert load(tmp_path / "model").bias.numpy().tolist() == [0, 0]
