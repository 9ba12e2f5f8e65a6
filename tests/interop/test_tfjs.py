"""Graph models of TensorFlow.js, made by its converter (`make_tfjs_samples.py`), give TensorFlow's answers."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.device.budget import Budget, spending
from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from opkernel.graph import load_graph, load_graph_def
from opkernel.graph.io.tfjs_model import load_tfjs_model
from opkernel.proto import GraphDef

SAMPLES = Path(__file__).parent / "tfjs"
TOLERANCES = {"uint8": 5e-2, "uint16": 1e-4, "float16": 2e-3}
"""How far quantised weights lead from the answers of the model that was quantised."""

Sample = Callable[..., Path]


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """Gives the folder of a model, whose `model.json` a function may change."""

    def unpacked(name: str, change: Callable[[dict[str, Any]], object] | None = None) -> Path:
        folder = tmp_path / name
        with zipfile.ZipFile(SAMPLES / f"{name}.zip") as archive:
            archive.extractall(folder)
        if change is not None:
            document = json.loads((folder / "model.json").read_text())
            change(document)
            (folder / "model.json").write_text(json.dumps(document))
        return folder

    return unpacked


def loaded(path: Path) -> Any:
    """The model at a path."""
    return opkernel.load(path)


def call_of(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The inputs of a model's call, and TensorFlow's outputs."""
    call = json.loads((folder / "expected.json").read_text())
    return call["inputs"], call["outputs"]


def weight(document: dict[str, Any]) -> Any:
    """The first weight that has elements."""
    return next(one for one in document["weightsManifest"][0]["weights"] if one["shape"])


@pytest.mark.parametrize("name", sorted(path.stem for path in SAMPLES.glob("*.zip")))
@pytest.mark.parametrize("file", [".", "model.json"])
def test_answers_of_tensorflow(sample: Sample, name: str, file: str) -> None:
    folder = sample(name)
    inputs, outputs = call_of(folder)
    with loaded(folder / file) as model:
        (signature,) = model.signatures.values()
        for _ in range(2):
            found = signature(
                **{key: np.array(value, _type(value)) for key, value in inputs.items()}
            )
            assert found.keys() == outputs.keys()
            for key, value in outputs.items():
                tolerance = TOLERANCES.get(name, 1e-6)
                np.testing.assert_allclose(found[key], value, rtol=0, atol=tolerance)


def _type(value: Any) -> Any:
    return np.float32 if np.array(value).dtype.kind == "f" else object


def test_a_graph_has_ops_that_tensorflow_has(sample: Sample) -> None:
    """The converter's own ops are gone, so that TensorFlow reads what is frozen here."""
    folder = sample("fused")
    ops = {
        node["op"]
        for node in json.loads((folder / "model.json").read_text())["modelTopology"]["node"]
    }
    assert {"Prelu", "FusedDepthwiseConv2dNative"} <= ops
    graph = load_graph(folder)
    assert {op.device for op in graph.get_operations()} == {""}, "so that one cluster takes all"
    assert {op.type for op in graph.get_operations()}.isdisjoint(
        {"Prelu", "FusedDepthwiseConv2dNative"}
    )
    inputs, outputs = call_of(folder)
    (name,), (value,) = inputs, inputs.values()
    with opkernel.Session(graph) as session:
        found = session.run("Identity:0", {f"{name}:0": np.array(value, np.float32)})
    np.testing.assert_allclose(found, outputs["output_0"], rtol=0, atol=1e-6)


def test_what_a_model_says_about_itself(sample: Sample) -> None:
    with loaded(sample("fused")) as model:
        assert model.user_defined_metadata == {"labels": ["cat", "dog", "owl"]}
        assert model.meta_graph.meta_info_def.tensorflow_version == "2.21.0"
    with loaded(sample("uint8")) as model:
        assert model.user_defined_metadata == {}


def test_tables_are_filled_once_and_are_no_inputs(sample: Sample) -> None:
    with loaded(sample("table")) as model:
        signature = model.signatures["serving_default"]
        assert list(signature.inputs) == ["words"]
        assert signature(words=["c", "d"])["ids"].tolist() == [31, 0]
        (lookup,) = [op for op in model.graph.get_operations() if op.type == "LookupTableFindV2"]
        (table,) = lookup.inputs[0].op.inputs
        assert table.op.type == "HashTableV2", "what fills it is no part of a step"


def test_nodes_may_be_colocated_with_nodes_that_are_gone(sample: Sample) -> None:
    def colocate(document: dict[str, Any]) -> None:
        for node in document["modelTopology"]["node"]:
            node["attr"]["_class"] = {"list": {"s": ["bG9jOkBnb25l"]}}  # loc:@gone

    assert load_graph(sample("while", colocate)).get_operations()


def test_the_form_of_2018(sample: Sample, tmp_path: Path) -> None:
    """A binary GraphDef without weights, and the list of them in a file of its own."""
    folder = sample("while")
    document = json.loads((folder / "model.json").read_text())
    graph_def = load_graph_def(folder)
    for node in _all_nodes(graph_def):
        if node.op == "Const":
            tensor = node.attr["value"].tensor
            for field in ("tensor_content", "string_val"):
                tensor.ClearField(field)
    (folder / "tensorflowjs_model.pb").write_bytes(graph_def.SerializeToString())
    (folder / "weights_manifest.json").write_text(json.dumps(document["weightsManifest"]))
    (folder / "model.json").unlink()
    inputs, outputs = call_of(folder)
    (value,) = inputs.values()
    for path in (folder, folder / "tensorflowjs_model.pb"):
        with loaded(path) as model:
            signature = model.signatures["serving_default"]
            (name,) = signature.inputs
            assert name.endswith(":0"), (
                "there is no signature: tensors have the names that the graph gives them"
            )
            found = signature(**{name.removesuffix(":0"): np.array(value, np.float32)})
        np.testing.assert_allclose(found["Identity:0"], outputs["output_0"], rtol=0, atol=1e-6)
    with pytest.raises(InvalidArgumentError, match="load the tensorflowjs_model"):
        opkernel.load(folder / "weights_manifest.json")


def _all_nodes(graph_def: GraphDef) -> Any:
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def


def test_a_signature_among_the_metadata(sample: Sample) -> None:
    """Older converters put it there."""

    def move(document: dict[str, Any]) -> None:
        document["userDefinedMetadata"] = {"signature": document.pop("signature")}

    with loaded(sample("uint16", move)) as model:
        assert list(model.signatures["serving_default"].outputs) == ["output_0"]
        assert model.user_defined_metadata == {}


def test_the_graph_tells_what_a_signature_lacks(sample: Sample) -> None:
    """TensorFlow.js reads the names of a signature alone, and takes placeholders where it has no inputs."""

    def shorten(document: dict[str, Any]) -> None:
        (output,) = document["signature"]["outputs"].values()
        document["signature"] = {"outputs": {"scores": {"name": output["name"].removesuffix(":0")}}}

    folder = sample("fused", shorten)
    ((given, value),) = call_of(folder)[0].items()
    with loaded(folder) as model:
        signature = model.signatures["serving_default"]
        (spec,) = signature.outputs.values()
        assert (spec.dtype, spec.shape.dims) == (opkernel.float32, (None, 3))
        assert list(signature.inputs) == [f"{given}:0"]
        found = signature(**{given: np.array(value, np.float32)})["scores"]
    np.testing.assert_allclose(found, call_of(folder)[1]["output_0"], rtol=0, atol=1e-6)


# What is refused.


def refused(path: Path) -> OpError:
    with pytest.raises(OpError) as raised:
        opkernel.load(path)
    return raised.value


def test_a_layers_model_is_told_what_to_do(sample: Sample) -> None:
    folder = sample("fused")
    topology = {
        "keras_version": "2.2.4",
        "model_config": {"class_name": "Sequential", "config": []},
    }
    (folder / "model.json").write_text(
        json.dumps({"modelTopology": topology, "weightsManifest": []})
    )
    for path in (folder, folder / "model.json"):
        error = refused(path)
        assert isinstance(error, InvalidArgumentError)
        assert "layers model" in error.message
        assert f"tfjs_graph_model {folder / 'model.json'} graph_model" in error.message


def test_a_layers_model_that_does_not_begin_like_one(sample: Sample) -> None:
    def become(document: dict[str, Any]) -> None:
        document["modelTopology"] = {"node": [], "model_config": {}}

    assert "layers model" in refused(sample("fused", become)).message


def test_a_wrapped_model_is_told_what_to_do(sample: Sample) -> None:
    folder = sample("fused")
    (folder / "model.min.js").write_text("module.exports=" + (folder / "model.json").read_text())
    message = refused(folder / "model.min.js").message
    assert "wrapped in JavaScript" in message
    assert f"cd {folder}" in message


PLACES = {
    "../group1-shard1of1.bin": "lies outside",
    "/etc/hostname": "lies outside",
    "a/../../b": "lies outside",
    "": "not the name of a file",
    ".": "not the name of a file",
    "a\0b": "not the path of a file",
}


@pytest.mark.parametrize("name", PLACES)
def test_files_of_weights_lie_in_the_folder(sample: Sample, name: str) -> None:
    def move(document: dict[str, Any]) -> None:
        document["weightsManifest"][0]["paths"] = [name]

    error = refused(sample("fused", move))
    assert isinstance(error, InvalidArgumentError | DataLossError)
    assert PLACES[name] in error.message


def test_no_link_leads_out_of_the_folder(sample: Sample, tmp_path: Path) -> None:
    folder = sample("fused")
    shutil.move(folder / "group1-shard1of1.bin", tmp_path / "elsewhere.bin")
    (folder / "group1-shard1of1.bin").symlink_to(tmp_path / "elsewhere.bin")
    assert isinstance(refused(folder), PermissionDeniedError)


def test_links_to_one_place_as_caches_have_them(sample: Sample, tmp_path: Path) -> None:
    folder, cache = sample("fused"), tmp_path / "cache"
    cache.mkdir()
    for number, name in enumerate(("model.json", "group1-shard1of1.bin")):
        shutil.move(folder / name, cache / str(number))
        (folder / name).symlink_to(cache / str(number))
    with loaded(folder) as model:
        assert model.signatures["serving_default"].inputs


def test_damaged_files_of_weights(sample: Sample) -> None:
    folder = sample("float16")
    shard = folder / "group1-shard2of2.bin"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1])
    assert refused(folder).message.endswith("group1-shard1of2.bin, group1-shard2of2.bin hold 511")
    shard.write_bytes(whole + b"!")
    assert "512 bytes" in refused(folder).message
    shard.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    assert "git lfs pull" in refused(folder).message
    shard.unlink()
    assert isinstance(refused(folder), NotFoundError)


DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no nodes": (lambda d: d.update(modelTopology={}), "modelTopology"),
    "no topology": (lambda d: d.update(modelTopology=None), "modelTopology"),
    "no weights": (lambda d: d.pop("weightsManifest"), "weightsManifest"),
    "no list": (lambda d: d.update(weightsManifest={"a": 1}), "must be a list"),
    "a missing weight": (lambda d: weight(d).update(name="other"), "lacks the constant"),
    "a weight twice": (
        lambda d: [one.update(name="same") for one in d["weightsManifest"][0]["weights"]], "listed twice"),
    "a file twice": (
        lambda d: d["weightsManifest"][0].update(paths=["group1-shard1of1.bin"] * 2), "twice"),
    "another shape": (lambda d: weight(d)["shape"].insert(0, 1), "has the shape"),
    "another type": (lambda d: weight(d).update(dtype="float32"), "and its weight float32"),
    "an unknown type": (lambda d: weight(d).update(dtype="float7"), "float7"),
    "numbers for strings": (
        lambda d: [one["attr"].update(dtype={"type": "DT_STRING"})
                   for one in d["modelTopology"]["node"] if one["op"] == "Const"], "is string, and its weight"),
    "a type that no constant has": (
        lambda d: [one["attr"].update(dtype={"type": "DT_RESOURCE"})
                   for one in d["modelTopology"]["node"] if one["op"] == "Const"], "is resource, and its weight"),
    "a negative size": (lambda d: weight(d).update(shape=[-2, -4]), "has the shape"),
    "a size that is no number": (lambda d: weight(d).update(shape=[True]), "has the shape"),
    "a huge size": (lambda d: weight(d).update(shape=[1 << 40, 1 << 40]), "has the shape"),
    "a large size": (lambda d: weight(d).update(shape=[1 << 40]), "take at least"),
    "a scale that is no number": (
        lambda d: weight(d).update(dtype="float32", quantization={"dtype": "uint8", "scale": "1", "min": 0}), "scale"),
    "a scale beyond numbers": (
        lambda d: weight(d).update(dtype="float32", quantization={"dtype": "uint8", "scale": 10**400, "min": 0}),
        "scale"),
    "a quantization of strings": (
        lambda d: weight(d).update(dtype="string", quantization={"dtype": "uint8", "scale": 1, "min": 0}),
        "quantization"),
    "nodes that are none": (lambda d: d["modelTopology"].update(node=[1]), "the graph cannot be read"),
    "an attr that is none": (
        lambda d: d["modelTopology"]["node"][0].update(attr=["dtype"]), "the graph cannot be read"),
    "a type that is none": (
        lambda d: d["modelTopology"]["node"][0]["attr"].update(dtype={"type": "DT_ANY"}),
        "is damaged: "),
    "a signature that is none": (lambda d: d.update(signature={"inputs": 3}), "the signature cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_documents(sample: Sample, what: str) -> None:
    change, told = DAMAGE[what]
    error = refused(sample("while", change))
    assert isinstance(error, DataLossError | InvalidArgumentError)
    assert told in error.message


@pytest.mark.parametrize(
    "text",
    [
        '{"format": "graph-model", "modelTopology": ' + "[" * 200_000,
        '{"format": "graph-model", "modelTopology": {"node": [{"attr": ' + '{"a":' * 5000,
        '{"format": "graph-model", "modelTopology": {"node": ' + "9" * 100_000 + "}}",
        (
            '{"format": "graph-model", "modelTopology": {"node": [], "versions": {"producer": 1e999}}, '
            '"weightsManifest": []}'
        ),
        (
            '{"format": "graph-model", "modelTopology": {"node": [{"name": "\\ud800", "op": "NoOp"}]}, '
            '"weightsManifest": []}'
        ),
        '{"format": "graph-model", "a": \xff}',
        '{"format": "graph-model"',
    ],
)
def test_hostile_documents(tmp_path: Path, text: str) -> None:
    (tmp_path / "model.json").write_text(text, encoding="latin-1")
    assert isinstance(refused(tmp_path), DataLossError)


@pytest.mark.parametrize("seed", range(4))
def test_any_damage_is_an_error_of_ours(sample: Sample, seed: int) -> None:
    folder = sample(("fused", "table", "frames", "uint8")[seed])
    draws = random.Random(seed)
    texts = {name: (folder / name).read_bytes() for name in ("model.json", "group1-shard1of1.bin")}
    for _ in range(40):
        name = draws.choice(["model.json", "model.json", "group1-shard1of1.bin"])
        damaged = bytearray(texts[name])
        start = draws.randrange(len(damaged))
        damaged[start : start + draws.choice([0, 1, 9])] = draws.choice(
            [b"", b"0", b'"', b"9e99", b"null", b"[]", b"{}", b"-1"]
        )
        (folder / name).write_bytes(damaged)
        with contextlib.suppress(OpError):
            load_tfjs_model(folder)
        (folder / name).write_bytes(texts[name])


VALUES = [None, True, -1, 10**30, 1e308, "", "../a", [], {}, [1], {"a": 1}, "DT_FLOAT", "\ud800"]


@pytest.mark.parametrize("name", ["fused", "table", "shared_table", "while"])
def test_any_value_in_any_place_is_an_error_of_ours(sample: Sample, name: str) -> None:
    folder, draws = sample(name), random.Random(name)
    text = (folder / "model.json").read_text()
    places = list(_places(json.loads(text)))
    for _ in range(60):
        document = json.loads(text)
        *path, last = draws.choice(places)
        parent = document
        for key in path:
            parent = parent[key]
        parent[last] = draws.choice(VALUES)
        (folder / "model.json").write_text(json.dumps(document))
        with contextlib.suppress(OpError):
            repr(opkernel.load_as_session(folder).signatures)


@pytest.mark.parametrize("key", ["dtype", "shape", "name", "quantization"])
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_any_value_for_a_fact_of_a_weight(sample: Sample, key: str, value: Any) -> None:
    folder = sample("while", lambda document: weight(document).update({key: value}))
    if (key, value) != ("quantization", None):
        refused(folder)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in entries:
        yield (*path, key)
        yield from _places(inner, (*path, key))


def test_the_memory_limit_counts_weights_as_they_become(tmp_path: Path) -> None:
    size = 100_000
    entry = {"name": "c", "shape": [size], "dtype": "float32"}
    quantization = {"dtype": "uint8", "scale": 1.0, "min": 0}
    manifest = [{"paths": ["g.bin"], "weights": [{**entry, "quantization": quantization}]}]
    document = {"format": "graph-model", "modelTopology": {"node": []}, "weightsManifest": manifest}
    (tmp_path / "model.json").write_text(json.dumps(document))
    (tmp_path / "g.bin").write_bytes(bytes(size))
    with spending(Budget(6 * size)):
        load_tfjs_model(tmp_path)
    with spending(Budget(4 * size)), pytest.raises(ResourceExhaustedError, match="the weights of"):
        load_tfjs_model(tmp_path)
