"""Files that debug nodes write, and who may write them. The contents are those of TensorFlow's files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnimplementedError,
)
from opkernel.io.tf_record import tf_record_iterator
from opkernel.testing import expect_shapes

PAIR = np.array([[1, 2]], np.float32)
CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
DEVICE = "_tfdbg_device_,job_localhost,replica_0,task_0,device_CPU_0"

OF_STRINGS = (  # without the first nine bytes, which hold the time
    b"*t\nr\n\x02/n:\x12/n:0:DebugIdentityB\x0f\x08\x07\x12\x04\x12\x02\x08\x02B\x01aB\x02bc"
    b'JG\nE\n\x08debugger\x129{"device":"","outputSlot":0,"numChunks":1,"chunkIndex":0}'
)
OF_COUNT = (
    b"*y\nw\n\x03nan:\x13nan:1:DebugNanCountB\x12\x08\t\x12\x04\x12\x02\x08\x01\"\x08" + b"\0" * 8
    + b'JG\nE\n\x08debugger\x129{"device":"","outputSlot":1,"numChunks":1,"chunkIndex":0}'
)  # fmt: skip


def written(root: Path) -> dict[str, bytes]:
    """The contents of all files but for their times, by their paths without time and number of the step."""
    found = {}
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        parts = file.relative_to(root).as_posix().rpartition("_")[0].split("/")
        name = "/".join("step" if part.startswith("step-") else part for part in parts)
        content = file.read_bytes()
        assert content[:1] == b"\x09"
        found[name] = content[9:]
    return found


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (
            lambda url: raw_ops.DebugIdentity(
                input=PAIR, tensor_name="scope/node:1", device_name=CPU, debug_urls=url
            ),
            f"{DEVICE}/scope/node_1_DebugIdentity",
        ),
        (
            lambda url: raw_ops.DebugIdentityV3(input=PAIR, tensor_name="node", debug_urls=url),
            "_tfdbg_device_/node_0_DebugIdentityV3",
        ),
        (
            lambda url: raw_ops.DebugIdentityV3(
                input=PAIR,
                tensor_name="node:1",
                io_of_node="/x/y",
                is_input=True,
                io_index=2,
                debug_urls=url,
            ),
            "node-io-dump/step/-x-y:in:2",
        ),
        (
            lambda url: raw_ops.DebugNumericSummary(
                input=PAIR, tensor_name="num:1", debug_urls=url
            ),
            "_tfdbg_device_/num_1_DebugNumericSummary",
        ),
    ],
)
def test_files_are_named_by_what_is_watched(call: Any, name: str, tmp_path: Path) -> None:
    call([f"file://{tmp_path}"])
    assert list(written(tmp_path)) == [name]
    call([f"FILE://{tmp_path}/second", f"file://{tmp_path}/third"])
    assert {f"second/{name}", f"third/{name}"} < written(tmp_path).keys()


def test_a_file_is_an_event(tmp_path: Path) -> None:
    url = [f"file://{tmp_path}"]
    texts = np.array([b"a", b"bc"], object)
    assert raw_ops.DebugIdentity(input=texts, tensor_name="/n", debug_urls=url) is not texts
    raw_ops.DebugNanCount(input=PAIR, tensor_name="nan:1", debug_urls=url)
    assert list(written(tmp_path).values()) == [OF_STRINGS, OF_COUNT]


def test_each_call_has_its_file(tmp_path: Path) -> None:
    for _ in range(5):
        raw_ops.DebugNanCount(input=PAIR, tensor_name="n:0", debug_urls=[f"file://{tmp_path}"])
    assert len([*tmp_path.rglob("n_0_DebugNanCount_*")]) == 5


def test_a_healthy_summary_may_be_muted(tmp_path: Path) -> None:
    for values in (PAIR, PAIR * np.float32(np.nan)):
        raw_ops.DebugNumericSummary(
            input=values, tensor_name="n:0", debug_urls=[f"file://{tmp_path}"], mute_if_healthy=True
        )
    assert len([*tmp_path.rglob("n_0_*")]) == 1


def test_a_graph_needs_permission_to_write(tmp_path: Path) -> None:
    url = [f"file://{tmp_path / 'out'}"]
    with opkernel.Graph().as_default() as graph:
        shown = raw_ops.DebugIdentity(input=PAIR, tensor_name="../../n:0", debug_urls=url)
        inside = raw_ops.DebugIdentity(input=PAIR, tensor_name="n:0", debug_urls=url)
    with pytest.raises(PermissionDeniedError):
        opkernel.Session(graph).run(inside)
    session = opkernel.Session(graph, permissions=opkernel.Permissions(write=[tmp_path / "out"]))
    session.run(inside)
    with pytest.raises(PermissionDeniedError):
        session.run(shown)
    assert list(written(tmp_path)) == ["out/_tfdbg_device_/n_0_DebugIdentity"]


def count(*urls: str, gated: bool = False) -> Any:
    return raw_ops.DebugNanCount(
        input=PAIR, tensor_name="n:0", debug_urls=list(urls), gated_grpc=gated
    ).tolist()


def test_places_that_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(PermissionDeniedError, match="to a server"):
        count("grpc://localhost:1")
    with pytest.raises(InternalError, match="Invalid debug target URL: http://x"):
        count("http://x", f"file://{tmp_path}")
    with pytest.raises(InvalidArgumentError, match="No callback registered for: a"):
        count("memcbk://a")
    (tmp_path / "file").touch()
    with pytest.raises(InternalError, match="1 of 2 debug target URLs failed"):
        count(f"file://{tmp_path}/file", f"file://{tmp_path}/new")
    assert list(written(tmp_path / "new")) == ["_tfdbg_device_/n_0_DebugNanCount"]


def test_nothing_is_computed_that_only_servers_could_ask_for(tmp_path: Path) -> None:
    assert count(gated=True) == count("grpc://a:1", gated=True) == []
    assert count("grpc://a:1", f"file://{tmp_path}", gated=True) == [0]
    shown = raw_ops.DebugIdentity(input=PAIR, tensor_name="n:0", gated_grpc=True)
    assert (shown.shape, shown.dtype) == ((0,), np.float32)
    for gated, shapes in ((True, [[0]]), (False, [[2]])):
        attrs = {"tensor_name": "n:0", "gated_grpc": gated}
        expect_shapes("DebugIdentity", [[2]], shapes, attrs=attrs)


def test_debug_identities_pass_their_input_on() -> None:
    x = np.arange(3)
    assert raw_ops.DebugIdentity(input=x, tensor_name="n:0").tolist() == [0, 1, 2]
    assert raw_ops.DebugIdentityV2(input=x).tolist() == [0, 1, 2]
    assert raw_ops.DebugIdentityV3(input=x, tensor_name="n:0").tolist() == [0, 1, 2]
    with pytest.raises(UnimplementedError, match=r"file:///x.*Set the size to 0"):
        raw_ops.DebugIdentityV2(input=x, debug_urls=["file:///x"])
    with pytest.raises(InternalError, match="URL schema in: grpc://x"):
        raw_ops.DebugIdentityV2(input=x, debug_urls=["grpc://x"])


@pytest.mark.parametrize("op", ["DebugIdentity", "DebugIdentityV3", "DebugNanCount"])
def test_debug_nodes_want_the_name_of_a_tensor(op: str) -> None:
    def call(name: str) -> None:
        getattr(raw_ops, op)(input=7, tensor_name=name)

    for right in ("node", "node:1", "node: -1", " "):
        call(right)
    for wrong in ("", "::", "a:0:1"):
        with pytest.raises(InvalidArgumentError, match="Failed to parse tensor name"):
            call(wrong)
    for wrong in ("a:", "a:b", "a:2147483648"):
        with pytest.raises(InvalidArgumentError, match="Invalid string value for output_slot"):
            call(wrong)


def test_copies_for_debug_nodes() -> None:
    for copy in (raw_ops.Copy, raw_ops.CopyHost):
        assert copy(input=PAIR, debug_ops_spec=["DebugIdentity;file:///x;0"]).tolist() == [[1, 2]]
        assert copy(input=np.array([b"a"], object)).tolist() == [b"a"]
        with pytest.raises(InternalError, match="number of semicolons"):
            copy(input=PAIR, debug_ops_spec=["DebugIdentity;file:///x"])


def test_no_memory_is_pinned() -> None:
    with pytest.raises(FailedPreconditionError):
        raw_ops.CheckPinned(tensor=PAIR)


METADATA = b"\n\x08opkernel\x12\rdebug.Event:1\x1a\x03run"
TRACE = (  # TensorFlow's, for this call
    b'RQ\n\x03ctx\x12\x02op \x08*\x16\x08\x01\x12\x04\x12\x02\x08\x03"\x0c\x00\x00\x80?\x00\x00\x00@\x00\x00@@2,'
    + CPU.encode()
)


def watch(root: Path) -> Any:
    return raw_ops.DebugIdentityV2(
        input=np.array([1, 2, 3], np.float32),
        tfdbg_context_id="ctx",
        op_name="op",
        output_slot=0,
        tensor_debug_mode=8,
        debug_urls=[f"file://{root}"],
        circular_buffer_size=0,
        tfdbg_run_id="run",
    )


def test_event_files_of_the_second_debugger_are_tensorflows(tmp_path: Path) -> None:
    root = tmp_path / "made"
    for _ in range(2):
        assert watch(root).tolist() == [1, 2, 3]
    files = {path.name.rpartition(".")[2]: path for path in root.iterdir()}
    assert all(path.name.startswith("tfdbg_events.") for path in files.values())
    found = {name: [*tf_record_iterator(path)] for name, path in files.items()}
    of_metadata, traces = found.pop("metadata"), found.pop("graph_execution_traces")
    assert found.keys() == {"source_files", "stack_frames", "graphs", "execution"}
    assert not any(found.values())
    assert [one[9:] for one in of_metadata] == [b"\x1a" + bytes([len(METADATA)]) + METADATA]
    assert [one[9:] for one in traces] == [TRACE] * 2


def test_event_files_want_permission(tmp_path: Path) -> None:
    with opkernel.Graph().as_default() as graph:
        watched = watch(tmp_path)
    with opkernel.Session(graph) as session, pytest.raises(PermissionDeniedError):
        session.run(watched)
    assert not [*tmp_path.iterdir()]
