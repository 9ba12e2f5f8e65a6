"""ImmutableConst, DumpTensor, FileSystemSetConfiguration; expected bytes and codes are TensorFlow's."""

import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Permissions, Session, raw_ops
from opkernel.errors import (
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)

RECORD = "789c12638000ffc47d1a1c8c421c424c4092898349898381a1c11e28e1d0ccbaf02d40800100476c054a"


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "numbers"
    path.write_bytes(np.arange(8, dtype=np.float32).tobytes())
    return path


def constant(path: Path, shape: Any, dtype: str = "float32") -> Any:
    return raw_ops.ImmutableConst(dtype=dtype, shape=shape, memory_region_name=str(path))


def test_the_elements_of_a_constant_stand_in_its_file(numbers: Path) -> None:
    assert constant(numbers, [2, 3]).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert constant(numbers, [0]).shape == (0,)
    assert constant(numbers, [8], "bool").tolist() == [False] * 6 + [True] * 2


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "error"),
    [
        ("numbers", [20, 3], "float32", InternalError),
        ("numbers", [2], "string", UnimplementedError),
        ("empty", [2], "string", InvalidArgumentError),
        ("nothing", [2], "string", NotFoundError),
        ("numbers", [2], "resource", InvalidArgumentError),
        ("numbers", [2], "variant", InvalidArgumentError),
        ("numbers", [None], "float32", InvalidArgumentError),
        ("numbers", [2**40, 2**30], "float32", InvalidArgumentError),
        ("nothing", [2], "float32", NotFoundError),
        ("empty", [0], "float32", InvalidArgumentError),
    ],
)
def test_wrong_constants(
    numbers: Path, name: str, shape: Any, dtype: str, error: type[Exception]
) -> None:
    (numbers.parent / "empty").touch()
    with pytest.raises(error):
        constant(numbers.parent / name, shape, dtype)


def test_a_graph_reads_its_constant_with_permission_alone(numbers: Path) -> None:
    graph = Graph()
    with graph.as_default():
        value = constant(numbers, [2])
    with Session(graph) as session, pytest.raises(PermissionDeniedError, match="--allow-read"):
        session.run(value)
    with Session(graph, permissions=Permissions(read=[numbers])) as session:
        assert session.run(value).tolist() == [0, 1]


def dump(folder: Path, *, enabled: bool) -> Any:
    return raw_ops.DumpTensor(
        tensor_data=np.float32([[1, 2]]),
        log_dir_path=str(folder),
        file_name="x.pb",
        enabled=enabled,
        func_name="f",
        node_name="n",
    )


@pytest.mark.parametrize(("enabled", "content"), [(True, RECORD), (False, "789c020c0000000001")])
def test_a_tensor_is_dumped(tmp_path: Path, enabled: bool, content: str) -> None:
    dump(tmp_path / "log", enabled=enabled)
    assert (tmp_path / "log" / "x.pb").read_bytes().hex() == content
    assert (tmp_path / "log" / "quant_unit.pb").read_bytes().hex() == "12016e1a0166"


def test_a_graph_dumps_a_record_at_each_run_and_with_permission_alone(tmp_path: Path) -> None:
    graph = Graph()
    with graph.as_default():
        node = dump(tmp_path / "log", enabled=True)
    with Session(graph) as session, pytest.raises(PermissionDeniedError, match="--allow-write"):
        session.run(node)
    assert not (tmp_path / "log").exists()
    with Session(graph, permissions=Permissions(write=[tmp_path])) as session:
        session.run(node)
        session.run(node)
    records = zlib.decompress((tmp_path / "log" / "x.pb").read_bytes())
    assert records == zlib.decompress(bytes.fromhex(RECORD)) * 2


@pytest.mark.parametrize(
    ("scheme", "error", "told"),
    [
        ("file", UnimplementedError, "SetOption"),
        ("nosuch", UnimplementedError, "File system scheme 'nosuch' not found"),
        (["file"], InvalidArgumentError, r"scheme must be scalar, got shape \[1\]"),
    ],
)
def test_no_file_system_has_options(scheme: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        raw_ops.FileSystemSetConfiguration(scheme=scheme, key="a", value="b")
