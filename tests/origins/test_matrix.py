"""Which files a node may open depends on where the node came from, and not on the way in which it runs.

Each op that opens files, in each way of running a graph, from each origin.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.origins.file_ops import FILE_OPS, FileOp, fill

import opkernel
from opkernel import Permissions, raw_ops
from opkernel.distributed import LocalCluster
from opkernel.errors import PermissionDeniedError
from opkernel.opdef import global_op_registry
from opkernel.ops.catalogue import MODULE_OF_OP
from opkernel.proto import GraphDef

Body = Callable[[], Any]
"""Adds nodes to the default graph; the tensor to fetch, which is 1 once the files were opened."""
Way = Callable[[Body, Permissions | None], Any]
"""Runs a body; with permissions where the way gives some to what it runs."""

IN_FUNCTIONS = [op for op in FILE_OPS.values() if op.in_functions]


def test_every_op_that_opens_files_is_here() -> None:
    registry = global_op_registry()
    opening = {
        name
        for name in MODULE_OF_OP
        if (traits := registry.traits(name)).reads_files or traits.writes_files
    }
    publishing = {name for name in opening if registry.traits(name).file_attr == "debug_urls"}
    assert opening - publishing == {*FILE_OPS}  # the kernels of the others refuse all places


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "files")
    return tmp_path / "files"


def all_in(folder: Path) -> Permissions:
    return Permissions(read=[folder], write=[folder])


# Bodies: a file op and what is fetched behind it.


def opening(op: FileOp, folder: Path) -> Any:
    """Adds the nodes of an op to the default graph, as the program's own."""
    graph = opkernel.graph.get_default_graph()
    made: Any = op.build(folder)
    flat = [made] if not isinstance(made, list | tuple) else [*made]
    with graph.control_dependencies([one if hasattr(one, "node_def") else one.op for one in flat]):
        return raw_ops.Identity(input=np.int32(1), name="done")


def graph_def_of(op: FileOp, folder: Path) -> GraphDef:
    graph = opkernel.Graph()
    if not op.in_functions:
        graph.graph_def_versions.producer = 21  # those ops are deprecated
    with graph.as_default():
        opening(op, folder)
    return graph.as_graph_def()


def imported(graph_def: GraphDef, permissions: Permissions | None = None) -> Any:
    elements: Any = opkernel.import_graph_def(
        graph_def, return_elements=["done:0"], permissions=permissions
    )
    return elements[0]


def model_of(op: FileOp, folder: Path, place: Path) -> Path:
    """A SavedModel whose function opens the files."""
    module: Any = opkernel.Module()
    module.touch = opkernel.function(lambda: opening(op, folder), [])
    opkernel.save(module, place)
    return place


# Ways in which Python calls a function: what the program's own nodes do there, they may.


def traced(body: Body, permissions: Permissions | None) -> Any:
    return opkernel.function(body)()


def traced_twice(body: Body, permissions: Permissions | None) -> Any:
    inner = opkernel.function(body)
    return opkernel.function(lambda: inner() + 0)()


def method(body: Body, permissions: Permissions | None) -> Any:
    class Touching(opkernel.Module):
        @opkernel.function
        def touch(self) -> Any:
            return body()

    return Touching().touch()


def branch(body: Body, permissions: Permissions | None) -> Any:
    f = opkernel.function(lambda c: opkernel.cond(c, body, lambda: np.int32(0)))
    return f(np.True_)


def loop(body: Body, permissions: Permissions | None) -> Any:
    def turn(i: Any, found: Any) -> Any:
        return i + 1, body() + found * 0

    f = opkernel.function(
        lambda n: opkernel.while_loop(lambda i, _: i < n, turn, [np.int32(0), np.int32(0)])[1]
    )
    return f(np.int32(1))


def recorded_gradient(body: Body, permissions: Permissions | None) -> Any:
    @opkernel.function
    def f(x: Any) -> Any:
        y = x * raw_ops.Cast(x=body(), DstT=opkernel.float32)
        return opkernel.gradients(y, [x])[0]

    return f(np.float32(2))


def with_engine(body: Body, permissions: Permissions | None) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPKERNEL_JIT", "openvino!")
        return opkernel.function(body)()


def copied(body: Body, permissions: Permissions | None) -> Any:
    """The body's FunctionDef in another graph, called by name."""
    f = opkernel.function(body).get_concrete_function()

    @opkernel.function
    def caller() -> Any:
        graph = opkernel.graph.get_default_graph()
        f.graph.add_to(graph)
        name = f.graph.function_def.signature.name
        return raw_ops.StatefulPartitionedCall(
            args=[], Tout=[opkernel.int32], f=opkernel.proto.NameAttrList(name=name)
        )[0]

    return caller()


FUNCTION_WAYS = [
    traced,
    traced_twice,
    method,
    branch,
    loop,
    recorded_gradient,
    with_engine,
    copied,
]

# Ways in which a session runs a graph: its nodes may what the session allows.


def in_graph(body: Body, version: int | None = None) -> tuple[opkernel.Graph, Any]:
    graph = opkernel.Graph()
    if version is not None:
        graph.graph_def_versions.producer = version
    with graph.as_default():
        return graph, body()


def session_with(**options: Any) -> Way:
    def run(body: Body, permissions: Permissions | None) -> Any:
        graph, done = in_graph(body, options.get("version"))
        own: dict[str, Any] = {"permissions": permissions or Permissions()}
        own |= {name: value for name, value in options.items() if name != "version"}
        with opkernel.Session(graph, **own) as session:
            return session.run(done)

    return run


def made_callable(body: Body, permissions: Permissions | None) -> Any:
    graph, done = in_graph(body)
    with opkernel.Session(graph, permissions=permissions or Permissions()) as session:
        return session.make_callable(done)()


def partial_run(body: Body, permissions: Permissions | None) -> Any:
    graph, done = in_graph(body)
    with opkernel.Session(graph, permissions=permissions or Permissions()) as session:
        handle = session.partial_run_setup([done])
        return session.partial_run(handle, done)


def with_statistics(body: Body, permissions: Permissions | None) -> Any:
    graph, done = in_graph(body)
    options = opkernel.RunOptions(trace_level=opkernel.RunOptions.FULL_TRACE)
    with opkernel.Session(graph, permissions=permissions or Permissions()) as session:
        return session.run(done, options=options, run_metadata=opkernel.RunMetadata())


def on_cluster(body: Body, permissions: Permissions | None) -> Any:
    graph, done = in_graph(body)
    with (
        LocalCluster({"worker": 2}) as cluster,
        opkernel.Session(
            graph, permissions=permissions or Permissions(), target=cluster
        ) as session,
    ):
        return session.run(done)


def deep_copy(body: Body, permissions: Permissions | None) -> Any:
    graph, done = in_graph(body)
    with opkernel.Session(
        copy.deepcopy(graph), permissions=permissions or Permissions()
    ) as session:
        return session.run(done.name)


SESSION_WAYS: dict[str, Way] = {
    "session": session_with(),
    "unoptimised": session_with(optimize=[]),
    "dataflow": session_with(executor_type="DATAFLOW"),
    "limited": session_with(memory_limit_bytes=1 << 26),
    "sanitized": session_with(sanitize=True),
    "xla": session_with(jit="xla!"),
    "callable": made_callable,
    "partial run": partial_run,
    "statistics": with_statistics,
    "cluster": on_cluster,
    "deep copy": deep_copy,
}


def check_allowed(op: FileOp, folder: Path, run: Callable[[], Any]) -> None:
    assert run() == 1
    assert not op.writes or (folder / op.writes).exists()


def check_denied(op: FileOp, folder: Path, run: Callable[[], Any]) -> None:
    before = sorted(folder.rglob("*"))
    with pytest.raises(PermissionDeniedError, match="the graph may not"):
        run()
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("way", FUNCTION_WAYS)
@pytest.mark.parametrize("op", IN_FUNCTIONS, ids=lambda op: op.op)
def test_python_calls_it(op: FileOp, way: Way, folder: Path, tmp_path: Path) -> None:
    graph_def = graph_def_of(op, folder)
    place = model_of(op, folder, tmp_path / "model")
    for is_denied, body in (
        (True, lambda: imported(graph_def)),
        (True, lambda: imported(graph_def, Permissions(read=[tmp_path / "model"]))),
        (True, lambda: opkernel.load(place).touch()),
        (False, lambda: opening(op, folder)),
    ):
        check = check_denied if is_denied else check_allowed
        if way is not recorded_gradient or is_denied:
            check(op, folder, partial(way, body, None))


@pytest.mark.parametrize("way", FUNCTION_WAYS)
@pytest.mark.parametrize("origin", ["imported", "model"])
@pytest.mark.parametrize("op", IN_FUNCTIONS, ids=lambda op: op.op)
def test_python_calls_what_is_permitted(
    op: FileOp, origin: str, way: Way, folder: Path, tmp_path: Path
) -> None:
    graph_def, place = graph_def_of(op, folder), model_of(op, folder, tmp_path / "model")
    model = opkernel.load(place, permissions=all_in(folder))

    def body() -> Any:
        is_imported = origin == "imported"
        return imported(graph_def, all_in(folder)) if is_imported else model.touch()

    check_allowed(op, folder, lambda: way(body, None))


@pytest.mark.filterwarnings("ignore:Op .* is deprecated:DeprecationWarning")
@pytest.mark.parametrize("way", SESSION_WAYS)
@pytest.mark.parametrize("op", FILE_OPS.values(), ids=lambda op: op.op)
def test_a_session_runs_it(op: FileOp, way: str, folder: Path, tmp_path: Path) -> None:
    run, graph_def = SESSION_WAYS[way], graph_def_of(op, folder)
    bodies: list[Body] = [lambda: imported(graph_def)]
    if op.in_functions:
        bodies += [lambda: opening(op, folder), opkernel.function(lambda: opening(op, folder))]
    for body in bodies:
        check_denied(op, folder, partial(run, body, None))
        check_denied(op, folder, partial(run, body, Permissions(read=[tmp_path / "x"])))
    if op.in_functions:
        loaded = opkernel.load(model_of(op, folder, tmp_path / "model"))
        for permissions in (None, all_in(folder)):  # the session's are not the model's
            check_denied(op, folder, partial(run, lambda: loaded.touch(), permissions))
    check_allowed(op, folder, lambda: run(bodies[-1], all_in(folder)))
