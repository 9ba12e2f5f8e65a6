"""Marks of nodes: no file can bring one, none leaves the process, and models share none."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.origins.file_ops import fill, scalar

import opkernel
from opkernel import Permissions, raw_ops
from opkernel.device.permissions import (
    NO_PERMISSIONS,
    OWN_CODE,
    PROGRAM,
    mark_of,
    marks_in,
    permissions_of,
)
from opkernel.distributed import LocalCluster, Saver, predict
from opkernel.errors import PermissionDeniedError
from opkernel.proto import GraphDef, NodeDef, SavedModel


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "files")
    return tmp_path / "files"


def reading(path: Path) -> Any:
    return raw_ops.ReadFile(filename=scalar(path), name="content")


def graph_def_reading(path: Path) -> GraphDef:
    with opkernel.Graph().as_default() as graph:
        reading(path)
    return graph.as_graph_def()


def imported(graph_def: GraphDef) -> Any:
    return first(opkernel.import_graph_def(graph_def, return_elements=["content:0"]))


def first(elements: Any) -> Any:
    return elements[0]


class Reader(opkernel.Module):
    """A model that reads the files that its caller names."""

    def __init__(self) -> None:
        self.v = opkernel.Variable(np.float32(1))

    @opkernel.function(input_signature=[opkernel.TensorSpec([], opkernel.string)])
    def read(self, name: Any) -> Any:
        return raw_ops.ReadFile(filename=name)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    opkernel.save(Reader(), tmp_path / "model")
    return tmp_path / "model"


# What a file says of origins counts for nothing.


@pytest.mark.parametrize("mark", ["program", "model"])
def test_an_imported_graph_brings_no_mark(mark: str, folder: Path) -> None:
    graph_def = graph_def_reading(folder / "in.txt")
    stolen = PROGRAM if mark == "program" else mark_of(Permissions(read=[folder]))
    for node in graph_def.node:
        node.attr["_origin"].s = stolen
    with opkernel.Graph().as_default() as graph:
        imported(graph_def)
    assert marks_in(graph.as_graph_def()) == {}
    for given in (graph_def, GraphDef.FromString(graph_def.SerializeToString())):
        with pytest.raises(PermissionDeniedError):
            opkernel.function(lambda given=given: imported(given))()
    path = folder.parent / "graph.pb"
    path.write_bytes(graph_def.SerializeToString())
    assert marks_in(opkernel.load_graph(path).as_graph_def()) == {}


def test_a_function_of_an_imported_library_brings_no_mark(folder: Path) -> None:
    f = opkernel.function(lambda: reading(folder / "in.txt")).get_concrete_function()
    with opkernel.Graph().as_default() as graph:
        f()
    graph_def = graph.as_graph_def()
    assert marks_in(graph_def) == {PROGRAM: None}
    call = next(node.name for node in graph_def.node if "PartitionedCall" in node.op)

    @opkernel.function
    def caller() -> Any:
        return first(opkernel.import_graph_def(graph_def, return_elements=[f"{call}:0"]))

    with pytest.raises(PermissionDeniedError):
        caller()


def test_unknown_marks_permit_nothing() -> None:
    node = NodeDef(name="n", op="ReadFile")
    assert permissions_of(node, OWN_CODE, NO_PERMISSIONS) is NO_PERMISSIONS
    node.attr["_origin"].s = b"another process's"
    assert permissions_of(node, OWN_CODE, OWN_CODE) is NO_PERMISSIONS
    node.attr["_origin"].s = PROGRAM
    assert permissions_of(node, OWN_CODE, NO_PERMISSIONS) is OWN_CODE


def test_marks_stay_in_the_process(folder: Path, tmp_path: Path) -> None:
    module: Any = opkernel.Module()
    module.f = opkernel.function(lambda: reading(folder / "in.txt"), [])
    opkernel.save(module, tmp_path / "saved")
    saved = SavedModel.FromString((tmp_path / "saved" / "saved_model.pb").read_bytes())
    concrete = module.f.get_concrete_function()
    opkernel.save_graph(concrete.graph, tmp_path / "graph.pb")
    opkernel.save_graph(concrete.graph, tmp_path / "graph.pbtxt")
    assert marks_in(concrete.graph.as_graph_def())
    for data in (
        saved.SerializeToString(),
        (tmp_path / "graph.pb").read_bytes(),
        (tmp_path / "graph.pbtxt").read_bytes(),
        pickle.dumps(concrete.graph),
    ):
        assert b"_origin" not in data
        assert PROGRAM not in data


def test_names_of_functions_are_the_same_in_every_process(folder: Path) -> None:
    program = (
        "import opkernel, numpy as np\n"
        "from opkernel import raw_ops\n"
        "f = opkernel.function(lambda: raw_ops.ReadFile(filename=np.array(b'x', object)))\n"
        "print(f.get_concrete_function().graph.function_def.signature.name)\n"
    )
    names = {subprocess.check_output([sys.executable, "-c", program]) for _ in range(2)}
    assert len(names) == 1


def test_functions_that_differ_in_their_origin_have_two_names(folder: Path) -> None:
    graph_def = graph_def_reading(folder / "in.txt")

    def name_of(body: Any) -> str:
        function = opkernel.function(body).get_concrete_function()
        function.graph.name = "f"
        return str(function.graph.function_def.signature.name)

    def permitted(*paths: Path) -> Any:
        return opkernel.import_graph_def(
            graph_def, return_elements=["content:0"], permissions=Permissions(read=paths)
        )

    names = [
        name_of(lambda: imported(graph_def)),
        name_of(lambda: permitted(folder)),
        name_of(lambda: permitted(folder / "in.txt")),
        name_of(lambda: permitted()),
    ]
    assert len({*names}) == 4
    assert name_of(lambda: permitted(folder)) == names[1]


def test_permissions_travel() -> None:
    given = Permissions(read=["data"], write=["out"]).saving("a/b").restoring("c")
    assert pickle.loads(pickle.dumps(given)) == given != Permissions(read=["data"], write=["out"])
    for copied in (pickle.loads(pickle.dumps(OWN_CODE)), copy.deepcopy(OWN_CODE)):
        assert copied is OWN_CODE


# Models.


def test_models_in_one_function_share_nothing(model: Path, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    opkernel.save(Reader(), other)
    (model / "assets").mkdir(exist_ok=True)
    (model / "assets" / "own.txt").write_text("own")
    trusted = opkernel.load(model, permissions=Permissions(read=[folder]))
    unknown = opkernel.load(other)

    @opkernel.function
    def both(a: Any, b: Any) -> Any:
        return trusted.read(a), unknown.read(b)

    allowed = scalar(folder / "in.txt")
    own = scalar(model / "assets" / "own.txt")
    index = scalar(other / "variables" / "variables.index")
    assert both(allowed, index)[0] == b"one\ntwo\n"
    assert both(own, index)[0] == b"own"
    for path in (allowed, own, scalar(model / "variables" / "variables.index")):
        with pytest.raises(PermissionDeniedError):
            both(own, path)


def test_a_model_saved_again_has_the_permissions_of_its_new_place(
    model: Path, folder: Path, tmp_path: Path
) -> None:
    module: Any = opkernel.Module()
    module.base = opkernel.load(model, permissions=Permissions(read=[folder]))
    module.read = opkernel.function(
        lambda name: module.base.read(name), [opkernel.TensorSpec([], opkernel.string)]
    )
    opkernel.save(module, tmp_path / "again")
    name = scalar(folder / "in.txt")
    assert module.read(name) == b"one\ntwo\n"
    for one in (module, module.base):
        assert one.read(name) == b"one\ntwo\n"
    loaded = opkernel.load(tmp_path / "again")
    for one in (loaded, loaded.base):
        with pytest.raises(PermissionDeniedError):
            one.read(name)
    loaded = opkernel.load(tmp_path / "again", permissions=Permissions(read=[folder]))
    for one in (loaded, loaded.base):
        assert one.read(name) == b"one\ntwo\n"


def test_a_model_of_a_graph_that_is_imported_again_has_nothing(model: Path, folder: Path) -> None:
    loaded = opkernel.load(model, permissions=Permissions(read=[folder]))
    body = loaded.read.concrete_functions[0].graph.as_graph_def()
    assert marks_in(body)  # while it stays where it is
    name = next(node.name for node in body.node if node.op == "ReadFile")
    argument = next(node.name for node in body.node if node.op in ("Placeholder", "_Arg"))

    @opkernel.function
    def again() -> Any:
        given = {f"{argument}:0": opkernel.constant(scalar(folder / "in.txt"))}
        return first(
            opkernel.import_graph_def(body, input_map=given, return_elements=[f"{name}:0"])
        )

    with pytest.raises(PermissionDeniedError):
        again()


@pytest.mark.parametrize("concurrency", [None, 1])
def test_predict_reads_what_it_may(concurrency: int | None, folder: Path, tmp_path: Path) -> None:
    module: Any = opkernel.Module()
    spec = opkernel.TensorSpec([None], opkernel.string, "name")

    @opkernel.function(input_signature=[spec])
    def read(name: Any) -> Any:
        content = raw_ops.ReadFile(filename=raw_ops.Reshape(tensor=name, shape=[]))
        return {"content": raw_ops.Reshape(tensor=content, shape=[1])}

    module.read = read
    opkernel.save(module, tmp_path / "reader", signatures=module.read)
    rows = {"name": np.array([str(folder / "in.txt").encode()], object)}
    given: dict[str, Any] = {"batch_size": 1, "concurrency": concurrency}
    permissions = Permissions(read=[folder])
    (outputs,) = predict(tmp_path / "reader", rows, permissions=permissions, **given)
    assert outputs["content"].tolist() == [b"one\ntwo\n"]
    with pytest.raises(PermissionDeniedError):
        list(predict(tmp_path / "reader", rows, **given))


# The Saver.


def saving_graph(folder: Path) -> opkernel.Graph:
    with opkernel.Graph().as_default() as graph:
        variable = raw_ops.VarHandleOp(dtype=opkernel.float32, shape=[], name="v")
        raw_ops.AssignVariableOp(resource=variable, value=np.float32(3), name="init")
        Saver(graph)
    return graph


def test_a_saver_gives_the_nodes_of_the_graph_nothing(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "ckpt"
    for op, is_save in (("WriteFile", True), ("ReadFile", True), ("ReadFile", False)):
        graph = saving_graph(folder)
        path = place / "foreign.py" if op == "WriteFile" else place / "model.index"
        with graph.as_default():
            foreign: Any = (
                raw_ops.WriteFile(filename=scalar(path), contents=scalar("import os"))
                if op == "WriteFile"
                else reading(path).op
            )
            name = "save/control_dependency" if is_save else "save/restore_all"
            graph.get_operation_by_name(name).add_control_input(foreign)
        plain = saving_graph(folder)
        with opkernel.Session(plain) as session:
            session.run("init")
            Saver.of(plain).save(session, place / "model")
            plain_saver = Saver.of(plain)
            plain_saver.restore(session, place / "model")
        with opkernel.Session(graph) as session:
            session.run("init")
            saver = Saver.of(graph)
            act = saver.save if is_save else saver.restore
            with pytest.raises(PermissionDeniedError):
                act(session, place / "model")
        assert not (place / "foreign.py").exists()


def test_a_saver_writes_only_the_checkpoint_that_it_is_asked_for(tmp_path: Path) -> None:
    """Also where the nodes are those of the graph: the names of files come from it."""
    with opkernel.Graph().as_default() as graph:
        prefix = raw_ops.PlaceholderWithDefault(input=scalar("model"), shape=[], name="save/Const")
        other = raw_ops.StringJoin(inputs=[prefix, scalar("-other")])
        save = raw_ops.SaveV2(
            prefix=other,
            tensor_names=np.array([b"a"], object),
            shape_and_slices=np.array([b""], object),
            tensors=[np.float32(1)],
        )
        with graph.control_dependencies([save]):
            raw_ops.Identity(input=prefix, name="save/control_dependency")
        raw_ops.NoOp(name="save/restore_all")
    with opkernel.Session(graph) as session, pytest.raises(PermissionDeniedError):
        Saver.of(graph).save(session, tmp_path / "ckpt" / "model")
    assert [one.name for one in (tmp_path / "ckpt").iterdir()] == []


def test_a_saver_works_on_a_cluster(tmp_path: Path) -> None:
    graph = saving_graph(tmp_path)
    with (
        LocalCluster({"worker": 2}) as cluster,
        opkernel.Session(graph, target=cluster) as session,
    ):
        session.run("init")
        saver = Saver.of(graph)
        saver.save(session, tmp_path / "ckpt" / "model")
        saver.restore(session, tmp_path / "ckpt" / "model")
    with opkernel.load_checkpoint(tmp_path / "ckpt" / "model") as checkpoint:
        assert checkpoint.get("v") == 3
