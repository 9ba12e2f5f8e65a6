"""Print, PrintV2, Timestamp and the debugger's nodes."""

import logging
import time

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, PermissionDeniedError, UnimplementedError
from opkernel.graph import Graph
from opkernel.types import DataType


def test_print_tells_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([1.5, 2], np.float32)
    data = [np.arange(4), np.array([b"a", b"\xff"], object)]
    assert raw_ops.Print(input=x, data=data, message="m: ") is x
    assert raw_ops.Print(input=x, data=[], message="none") is x
    captured = capsys.readouterr()
    assert captured.err == "m: [0 1 2...][a \\xff]\nnone\n"
    assert captured.out == ""


def test_print_stops_after_first_n(capsys: pytest.CaptureFixture[str]) -> None:
    graph = Graph()
    x = graph.create_op("Placeholder", [], name="x", attrs={"dtype": DataType.DT_FLOAT}).outputs[0]
    graph.create_op("Print", [x, [x]], name="print", attrs={"first_n": 2})
    session = opkernel.Session(graph)
    for value in (1.0, 2.0, 3.0):
        session.run("print:0", {"x:0": value})
    assert capsys.readouterr().err == "[1]\n[2]\n"


def test_print_v2_streams(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    raw_ops.PrintV2(input="out", output_stream="stdout", end="!")
    raw_ops.PrintV2(input="err")
    with caplog.at_level(logging.WARNING, "opkernel"):
        raw_ops.PrintV2(input="logged", output_stream="log(warning)", end="")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("out!", "err\n")
    assert [record.getMessage() for record in caplog.records] == ["logged"]


def test_print_v2_refuses() -> None:
    with pytest.raises(InvalidArgumentError, match="Unknown output stream: foo"):
        raw_ops.PrintV2(input="x", output_stream="foo")
    with pytest.raises(PermissionDeniedError, match="may not write to files"):
        raw_ops.PrintV2(input="x", output_stream="file:///tmp/x")
    with pytest.raises(InvalidArgumentError, match=r"expected to be scalar, but got \[1\]"):
        raw_ops.PrintV2(input=["x"])


def test_timestamp() -> None:
    before = time.time()
    stamp = raw_ops.Timestamp()
    assert before <= stamp <= time.time()
    assert stamp.dtype == np.float64


def test_debug_identities_pass_their_input_on() -> None:
    x = np.arange(3)
    for op in (raw_ops.DebugIdentity, raw_ops.DebugIdentityV2, raw_ops.DebugIdentityV3):
        np.testing.assert_array_equal(op(input=x), x)
        with pytest.raises(UnimplementedError, match="file:///x"):
            op(input=x, debug_urls=["file:///x"])
