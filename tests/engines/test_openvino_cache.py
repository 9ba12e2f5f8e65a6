"""What OpenVINO compiled, for other processes and for other sessions of one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import opkernel
from opkernel import raw_ops
from opkernel.runtime.engines import program_cache

pytest.importorskip("openvino")

ROOT = Path(__file__).parents[2]

WRITE_MODELS = """
import json, sys
from pathlib import Path
import numpy as np, opkernel
from opkernel.engines.openvino import compiled_model
from opkernel.engines.openvino.library import openvino, opset
folder, numbers, *graphs = sys.argv[1:]
for _ in range(int(numbers)):  # OpenVINO numbers the nodes of a process
    opset().parameter([1], np.float32)
written = []
def key(model, settings):
    name = f"{folder}/{len(written)}"
    written.append(name)
    openvino().serialize(model, f"{name}.xml", f"{name}.bin")
compiled_model._key = key
for path in graphs:
    graph = opkernel.load_graph(path)
    manifest = Path(path).with_name("manifest.json")
    if manifest.exists():
        fetches = json.loads(manifest.read_text())["fetches"]
        with np.load(manifest.with_name("case.npz")) as case:
            feeds = {one[5:]: case[one] for one in case.files if one.startswith("feed:")}
    else:
        (x,) = [op for op in graph.get_operations() if op.type == "Placeholder"]
        shape = [size or 1 for size in x.outputs[0].shape.as_list()]
        feeds = {x.outputs[0]: np.ones(shape, np.float32)}
        fetches = [graph.get_operations()[-1].outputs[0]]
    opkernel.Session(graph, jit="openvino!").run(fetches, feeds)
"""


def files_of_models(folder, numbers, graphs, seed):
    """The bytes of the models that a process builds for some graphs, by the names of their files."""
    folder.mkdir()
    subprocess.run(
        [sys.executable, "-c", WRITE_MODELS, str(folder), str(numbers), *map(str, graphs)],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        check=True,
    )
    return {one.name: one.read_bytes() for one in folder.iterdir()}


def check_models(tmp_path, graphs, at_least):
    one = files_of_models(tmp_path / "one", 0, graphs, 1)
    other = files_of_models(tmp_path / "other", 7, graphs, 2)
    assert len(one) >= 2 * at_least
    assert one.keys() == other.keys()
    assert [name for name in one if one[name] != other[name]] == []


def test_a_model_is_the_same_in_two_processes(tmp_path):
    check_models(tmp_path, [ROOT / "examples/digits/digits.pb"], 1)


@pytest.mark.shared
def test_models_of_networks_are_the_same_in_two_processes(tmp_path, shared):
    names = "mlp", "mobilenet_v2", "conv_mix", "bert_tiny"
    check_models(tmp_path, [shared / "models" / one / "graph.pb" for one in names], len(names))


PROGRAM = """
import sys
import numpy as np, opkernel
from opkernel import raw_ops
from opkernel.engines.openvino import compiled_model
from opkernel.engines.openvino.library import core
from opkernel.runtime.engines import program_cache
program_cache._LEAST_S = 0.0
weight = float(sys.argv[1])
found = []
load = compiled_model.CompiledModel._loaded
compiled_model.CompiledModel._loaded = lambda *given: found.append("loaded") or load(*given)
compiled = compiled_model.CompiledModel._compiled
compiled_model.CompiledModel._compiled = lambda *given: found.append("compiled") or compiled(*given)
with opkernel.Graph().as_default() as graph:
    x = opkernel.placeholder(opkernel.float32, [100, 100], name="x")
    y = raw_ops.Relu(features=raw_ops.MatMul(a=x, b=np.full((100, 100), weight, np.float32)))
    raw_ops.Tanh(x=raw_ops.Neg(x=y), name="y")
given = np.eye(100, dtype=np.float32)
for _ in range(2):
    session = opkernel.Session(graph, jit="openvino!")
    assert np.allclose(session.run("y:0", {"x:0": given}), np.tanh(np.full((100, 100), -weight)))
    first = globals().setdefault("first", session)
print(*found)
"""


def run(folder, weight=0.5, **environment):
    """How a process came to its program under the folder, the files there afterwards, and what was logged."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(weight)],
        env={**os.environ, "OPKERNEL_CACHE": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), sorted(folder.glob("openvino/*")), done.stderr


def test_another_process_finds_the_program_and_two_sessions_share_it(tmp_path):
    folder = tmp_path / "programs"
    first, files, _ = run(folder)
    assert first == "compiled"
    assert len(files) == 1
    assert not {one.stat().st_mode & 0o077 for one in (folder, folder / "openvino")} - {0}
    assert run(folder)[:2] == ("loaded", files)


def test_other_weights_are_another_program(tmp_path):
    assert run(tmp_path, 0.5)[0] == "compiled"
    found, files, _ = run(tmp_path, 0.25)
    assert (found, len(files)) == ("compiled", 2)


@pytest.mark.parametrize("damage", ["cut", "bit", "empty", "other name"])
def test_a_damaged_program_is_compiled_again(tmp_path, damage):
    (file,) = run(tmp_path)[1]
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[:-1])
    elif damage == "bit":
        place = len(content) // 2
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    elif damage == "empty":
        file.write_bytes(b"")
    else:  # the program of another model
        (file,) = {*run(tmp_path, 0.25)[1]} - {file}
        file.write_bytes(content)
    weight = 0.25 if damage == "other name" else 0.5
    assert run(tmp_path, weight)[0] == "compiled"
    assert run(tmp_path, weight)[0] == "loaded"


def test_a_folder_that_others_may_write_to_is_not_used(tmp_path):
    folder = tmp_path / "programs"
    folder.mkdir()
    folder.chmod(0o777)
    found, files, told = run(folder)
    assert (found, files) == ("compiled", [])
    assert "others may write to it" in told


def test_it_can_be_off(tmp_path):
    assert run(tmp_path / "programs", OPKERNEL_CACHE="off")[:2] == ("compiled", [])


def test_without_a_place_to_describe_a_model_it_is_compiled(monkeypatch):
    def no_place():
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr("tempfile.TemporaryDirectory", no_place)
    monkeypatch.setattr(program_cache.ProgramCache, "program", None)
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, [2], name="x")
        for _ in range(4):
            x = raw_ops.Neg(x=raw_ops.Abs(x=x))
        raw_ops.Identity(input=x, name="y")
    session = opkernel.Session(graph, jit="openvino!")
    assert session.run("y:0", {"x:0": [1, -2]}).tolist() == [-1, -2]
