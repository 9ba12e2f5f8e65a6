"""Print, PrintV2 and Timestamp."""

import logging
import time

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, PermissionDeniedError
from opkernel.graph import Graph
from opkernel.types import DataType


def test_print_tells_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([1.5, 2], np.float32)
    data = [np.arange(4), np.array([b"a", b"\xff"], object)]
    assert raw_ops.Print(input=x, data=data, message="m: ").tolist() == [1.5, 2]
    assert raw_ops.Print(input=x, data=[], message="none").tolist() == [1.5, 2]
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


STEERING = b"a\x1b[2J\xc2\x9b\r\xe2\x80\xae\0\tb\xff\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_what_is_printed_steers_no_terminal(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    stream: str,
    is_terminal: bool,
) -> None:
    """TensorFlow writes the very bytes, wherever they go."""
    monkeypatch.setattr(f"sys.{stream}.isatty", lambda: is_terminal)
    raw_ops.PrintV2(input=STEERING, output_stream=stream, end="\x1b")
    printed = getattr(capsys.readouterr(), stream[3:])
    if is_terminal:
        assert printed == "a\\x1b[2J\\x9b\\r\\u202e\\x00\tb\\xff\n\\x1b"
    else:
        assert printed.encode() == STEERING.replace(b"\xff", b"\\xff") + b"\x1b"


def test_messages_of_print_steer_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    raw_ops.Print(input=1.0, data=[np.array([STEERING], object)], message="\x1b[2J")
    assert capsys.readouterr().err == ("\\x1b[2J[a\\033[2J\\x9b\\r\\u202e\\000\\tb\\xff\\n]\n")


def test_what_is_logged_steers_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "opkernel"):
        raw_ops.PrintV2(input="a\x1b%s", output_stream="log(warning)", end="")
    assert [record.getMessage() for record in caplog.records] == ["a\\x1b%s"]


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
