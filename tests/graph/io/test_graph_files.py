"""Graphs in files: both formats, wrong files, damaged files."""

import gzip
from pathlib import Path

import pytest
from tests.graph.builders import BASE_TEXT, REGISTRY, const, identity, parse

from opkernel.device.budget import Budget, spending
from opkernel.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
)
from opkernel.graph import Graph, load_graph, load_graph_def, save_graph
from opkernel.graph.io import graph_files
from opkernel.proto import GraphDef, MetaGraphDef

GRAPH = parse(BASE_TEXT)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.pb"


@pytest.mark.parametrize("name", ["graph.pb", "graph.pbtxt", "graph.txt", "graph.anything"])
def test_save_and_load(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(GRAPH.SerializeToString())
    graph = load_graph(path, op_registry=REGISTRY)
    save_graph(graph, str(path))
    assert path.read_bytes().startswith(b"node {") == name.endswith(("pbtxt", "txt"))
    assert load_graph(path, op_registry=REGISTRY).as_graph_def() == graph.as_graph_def()


def test_the_content_tells_the_format(path: Path) -> None:
    path.write_text(BASE_TEXT)
    assert load_graph_def(path) == GRAPH


def test_text_may_hold_any_characters(tmp_path: Path) -> None:
    graph_def = parse("node { name: 'a' op: 'NoOp' attr { key: '_s' value { s: 'é\\n\\377' } } }")
    save_graph(graph_def, tmp_path / "a.pbtxt")
    assert load_graph_def(tmp_path / "a.pbtxt") == graph_def


def test_fields_from_the_future_survive(path: Path, tmp_path: Path) -> None:
    data = GRAPH.SerializeToString() + b"\xfa\x3f\x03new"
    path.write_bytes(data)
    save_graph(load_graph_def(path), tmp_path / "out.pb")
    assert (tmp_path / "out.pb").read_bytes().endswith(b"\xfa\x3f\x03new")


def test_unregistered_ops_can_be_let_pass(path: Path) -> None:
    path.write_text("node { name: 'a' op: 'Nope' }")
    with pytest.raises(NotFoundError, match="'Nope'"):
        load_graph(path, op_registry=REGISTRY)
    graph = load_graph(path, op_registry=REGISTRY, allow_unregistered=True)
    assert [op.type for op in graph.get_operations()] == ["Nope"]


META = MetaGraphDef(graph_def=GRAPH)
META.meta_info_def.tensorflow_version = "2.21.0"


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", DataLossError, r"is empty \(0 bytes\)"),
        (b"<!DOCTYPE html><html>", InvalidArgumentError, "is an HTML page"),
        (gzip.compress(GRAPH.SerializeToString()), InvalidArgumentError, "gzip.*opkernel.load"),
        (
            META.SerializeToString(),
            InvalidArgumentError,
            "is a binary MetaGraphDef, not a GraphDef",
        ),
        (b"\x89HDF\r\n\x1a\n", InvalidArgumentError, "is an HDF5 file"),
        (bytes(range(256)), InvalidArgumentError, "is not a GraphDef"),
    ],
)
def test_wrong_files_are_named(path: Path, content: bytes, error, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(error, match=message) as caught:
        load_graph(path)
    assert str(path) in str(caught.value)


def test_a_saved_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match="is a SavedModel directory, not a GraphDef"):
        load_graph(tmp_path)


def test_no_file(path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"model\.pb; No such file"):
        load_graph(path)
    with pytest.raises(NotFoundError, match="No such file"):
        save_graph(GRAPH, path / "deeper")


def test_a_file_that_is_too_large_is_not_read(path: Path) -> None:
    with path.open("wb") as file:
        file.write(GRAPH.SerializeToString())
        file.truncate(2**31)  # sparse: takes no space
    with pytest.raises(InvalidArgumentError, match="is too large: 2147483648 bytes"):
        load_graph(path)


def test_a_file_that_may_not_be_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(graph_files, "open", refuse, raising=False)
    with pytest.raises(PermissionDeniedError, match="Permission denied"):
        save_graph(GRAPH, path)


class TestDamage:
    TWO = parse(const("first") + identity("second", "first")).SerializeToString()

    def test_truncated_inside_a_node(self, path: Path) -> None:
        path.write_bytes(self.TWO[:-3])
        size, start = len(self.TWO) - 3, self.TWO.index(b"\n\x06second") - 2
        message = (
            f"truncated: it ends at byte {size}, 3 bytes before the end of the node that starts "
            f"at byte {start}, after node 'first'"
        )
        with pytest.raises(DataLossError, match=message):
            load_graph(path)

    def test_truncated_anywhere(self, path: Path) -> None:
        for size in range(1, len(self.TWO)):
            path.write_bytes(self.TWO[:size])
            try:
                load_graph(path, op_registry=REGISTRY)
            except OpError:
                continue
            assert len(load_graph_def(path).node) == 1

    def test_garbage_inside_a_node(self, path: Path) -> None:
        damaged = self.TWO.replace(b"\x12\x08Identity", b"\x17\x08Identity")
        path.write_bytes(damaged)
        with pytest.raises(DataLossError, match=r"the node that starts at byte \d+ cannot be read"):
            load_graph(path)

    def test_garbage_after_the_nodes(self, path: Path) -> None:
        path.write_bytes(self.TWO + b"\x07")
        with pytest.raises(DataLossError, match=f"at byte {len(self.TWO)}, after node 'second'"):
            load_graph(path)

    def test_a_name_that_is_not_utf8(self, path: Path) -> None:
        path.write_bytes(self.TWO.replace(b"second", b"sec\xffnd"))
        with pytest.raises(DataLossError, match="after node 'first'"):
            load_graph(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"node {\n  name: 'a'\n  opp: 'NoOp'\n}\n", "line 3"),
        (b"node {\n  name: 'a'\n", "error in line"),
        (b"node {\n  name: 3\n}\n", "line 2"),
        (b"node {\n  name: '\xff'\n}\n", "line 2 is not UTF-8"),
        (b"node { attr { key: 'a' value { list { i: 99999999999999999999 } } } }", "line 1"),
        (b"node { attr { key: 'a' value { " + b"func { attr { key: 'a' value { " * 2000, "not a valid"),
        (
            b"node { attr { key: 'a' value { " + b"func { attr { key: 'a' value { " * 90
            + b"}}}" * 90 + b"} } }", "not a valid",
        ),
    ],
)  # fmt: skip
def test_text_with_errors(path: Path, text: bytes, message: str) -> None:
    path.write_bytes(text)
    with pytest.raises(InvalidArgumentError, match=message):
        load_graph(path)


def test_a_graph_is_written_with_its_functions_and_versions(path: Path) -> None:
    graph = Graph(REGISTRY)
    graph.create_op("NoOp", name="n")
    save_graph(graph, path)
    written = GraphDef.FromString(path.read_bytes())
    assert [node.name for node in written.node] == ["n"]
    assert written.versions.producer == 2474


def test_a_file_over_the_memory_limit_is_not_read(path: Path) -> None:
    path.write_bytes(GRAPH.SerializeToString())
    with spending(Budget(memory_limit_bytes=10)), pytest.raises(ResourceExhaustedError) as raised:
        load_graph_def(path)
    assert str(path) in str(raised.value)


def test_a_file_without_nodes_that_may_be_anything_is_no_graph(path: Path) -> None:
    path.write_bytes(b"\x2a\x00")
    with pytest.raises(InvalidArgumentError, match="is not a GraphDef: it is of no known kind"):
        load_graph_def(path)


def test_a_damaged_library_is_named(path: Path) -> None:
    path.write_bytes(GRAPH.SerializeToString() + b"\x12\x02\x0a\x05")
    with pytest.raises(DataLossError, match="its library or versions cannot be read"):
        load_graph_def(path)
