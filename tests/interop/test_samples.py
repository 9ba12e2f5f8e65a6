"""Models that TensorFlow saved give what TensorFlow gave; `make_samples.py` recorded both."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.interop.calls import difference, from_json, ours, part_of, plain

import opkernel

DATA = Path(__file__).parent / "data"
F32 = np.float32
SIGNED = [
    "dense",
    "gru_with_mask",
    "linear",
    "main_op",
    "signatures",
    "small_convolutional",
    "transformer",
]
"""Models whose signatures are called."""


@pytest.mark.parametrize("name", sorted(file.stem for file in DATA.glob("*.zip")))
def test_calls_give_what_tensorflow_gave(name):
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        expected = json.loads(archive.read("expected.json"))
    model = opkernel.load(DATA / f"{name}.zip")
    for call in expected["calls"]:
        args, kwargs = ours(from_json(call["args"])), ours(from_json(call["kwargs"]))
        found = plain(part_of(model, call["path"])(*args, **kwargs))
        assert not difference(found, from_json(call["result"])), call["path"]


@pytest.mark.parametrize("name", SIGNED)
def test_a_session_gives_what_the_objects_give(name):
    """As TensorFlow Serving runs it: the graph with its Saver and its initialisation."""
    with zipfile.ZipFile(DATA / f"{name}.zip") as archive:
        expected = json.loads(archive.read("expected.json"))
    with opkernel.load_as_session(DATA / f"{name}.zip") as model:
        for call in expected["calls"]:
            if call["path"].startswith("signatures."):
                signature = part_of(model, call["path"])
                by_place = dict(zip(signature.inputs, from_json(call["args"]), strict=False))
                kwargs = from_json(call["kwargs"]) or by_place
                kwargs = {key.replace("odd_", "odd-"): value for key, value in kwargs.items()}
                found = plain(signature(**kwargs))
                assert not difference(found, from_json(call["result"])), call["path"]


def test_attributes_are_those_of_the_module(sample):
    model = opkernel.load(sample("nested_modules"))
    assert model.parent is model
    assert model.layers[1] is model.layers[:2][1]
    assert model.named["first"] is model.layers[0]
    assert [*model.named] == ["first", "scale"]
    assert len(model.layers) == 3
    assert model.shared is model.layers[1].w
    assert model.pair[1].trainable is False
    assert model.named_pair[1][0].numpy() == 7
    assert {"layers", "named", "pair", "total", "signatures"} <= {*dir(model)}


def test_a_cycle_leads_back(sample):
    model = opkernel.load(sample("cycle"))
    assert model.other is not model
    assert model.other.other is model


def test_an_attribute_that_was_not_saved_is_told_with_those_that_were(sample):
    model = opkernel.load(sample("nested_modules"))
    with pytest.raises(AttributeError, match="no attribute 'layer'; perhaps you mean layers"):
        _ = model.layer
    with pytest.raises(TypeError, match="without __call__; it has f, g, order"):
        opkernel.load(sample("structures"))()


def test_arguments_that_nothing_was_saved_for_are_told_with_what_was(sample):
    model = opkernel.load(sample("polymorphic"))
    with pytest.raises(ValueError, match="f was saved for other arguments than") as error:
        model.f(np.zeros((2, 2, 2), F32))
    assert "saved for:" in str(error.value)
    assert str(error.value).count("\n  ") == 7
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        model.f(np.zeros(2, F32), color=1)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        model.f()


def test_signatures_tell_what_they_take_and_give(sample):
    signatures = opkernel.load(sample("signatures")).signatures
    assert [*signatures] == ["constant", "pair", "serving_default", "unnamed"]
    scaled = signatures["serving_default"]
    assert {name: str(spec) for name, spec in scaled.inputs.items()} == {
        "scale": "float32[]",
        "x": "float32[?]",
    }
    assert {name: str(spec) for name, spec in scaled.outputs.items()} == {
        "n": "int32[]",
        "y": "float32[?]",
    }
    with pytest.raises(KeyError, match="no signature 'pear'; the model has constant, pair"):
        signatures["pear"]
    with pytest.raises(TypeError, match="missing its input 'scale'"):
        scaled(x=np.ones(2, F32))
    with pytest.raises(TypeError, match="takes its inputs by name"):
        scaled(np.ones(2, F32), F32(1))


def test_an_input_whose_name_is_none_in_python_has_a_second_one(sample):
    pair = opkernel.load(sample("signatures")).signatures["pair"]
    assert [*pair.inputs] == ["b", "odd-name"]
    one, two = np.ones(2, F32), np.full(2, 2, F32)
    assert pair(**{"odd-name": two, "b": one})["output_1"].tolist() == [1, 1]
    assert pair(odd_name=two, b=one)["output_1"].tolist() == [1, 1]


def test_inputs_of_signatures_have_the_defaults_that_were_saved(sample):
    signature = opkernel.load(sample("default_inputs")).signatures["serving_default"]
    x = np.array([1, 2], F32)
    assert signature.defaults["scale"] == 3
    assert signature(x=x)["y"].tolist() == [3, 6]
    assert signature(x=x, scale=F32(5))["y"].tolist() == [5, 10]


def test_partitions_of_a_variable_are_variables(sample):
    model = opkernel.load(sample("partitioned"))
    shapes = {variable.name: variable.shape.as_list() for variable in model.variables}
    assert shapes == {
        "part/table/part_0:0": [3, 4],
        "part/table/part_1:0": [2, 4],
        "part/table/part_2:0": [2, 4],
        "ref/matrix/part_0:0": [4, 2],
        "ref/matrix/part_1:0": [4, 2],
    }


def test_gradients_go_through_a_custom_gradient_of_the_model(sample):
    model = opkernel.load(sample("custom_gradient"))
    x = np.array([1, -1, 0.5], F32)
    loss, (grad,) = opkernel.value_and_grad(model.loss, [model.w])(x)
    w = np.array([0.1, 2, -3], F32)
    np.testing.assert_allclose(loss, np.sum((w * x) ** 2), rtol=1e-6)
    np.testing.assert_allclose(grad, 0.5 * x)  # its gradient is 3, cut off at 0.5


def test_models_are_trained_further(sample):
    model = opkernel.load(sample("linear"))
    x, y = np.eye(3, dtype=F32), np.ones((3, 2), F32)
    optimizer = opkernel.optimizers.SGD(0.1)

    def loss(x, y):
        error = model(x) - y
        return opkernel.raw_ops.Sum(input=error * error, axis=[0, 1])

    losses = [float(optimizer.minimize(loss, model.variables, x, y)) for _ in range(40)]
    assert losses[-1] < losses[0] / 1000
    np.testing.assert_allclose(model(x), y, atol=0.02)


def test_gradients_go_through_functions_that_call_others(sample):
    model = opkernel.load(sample("nested_modules"))
    x = np.ones((2, 3), F32)
    _, (grad,) = opkernel.value_and_grad(lambda x: model(x)[0, 0], [model.pair[1]])(x)
    assert grad == 1


def test_attributes_are_found_by_name_where_the_class_has_another_use_for_it(sample):
    def rename(meta_graph):
        for child in meta_graph.object_graph_def.nodes[0].children:
            if child.local_name == "w":
                child.local_name = "path"

    directory = sample("linear", rename)
    model = opkernel.load(directory)
    assert model.path == str(directory)
    assert model.saved_attributes["path"].shape.as_list() == [3, 2]
    assert [*model.saved_attributes] == ["path", "b", "__call__", "signatures"]
