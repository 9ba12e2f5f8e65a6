"""What the tracebacks of errors show: the lines of the user, and no frame of opkernel."""

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops, tracebacks
from opkernel.errors import InvalidArgumentError
from opkernel.opdef import unknown_shape
from opkernel.runtime.calls import eager

WIDE = np.ones((2, 3), np.float32)


@pytest.fixture(autouse=True)
def filtering() -> Iterator[None]:
    was_on = tracebacks.is_traceback_filtering_enabled()
    tracebacks.enable_traceback_filtering()
    yield
    if not was_on:
        tracebacks.disable_traceback_filtering()


@opkernel.function
def square(x: Any) -> Any:
    return raw_ops.MatMul(a=x, b=x)


@opkernel.function
def row(x: Any, at: Any) -> Any:
    return raw_ops.GatherV2(params=x, indices=at, axis=0)


def added() -> Any:
    with opkernel.Graph().as_default():
        return opkernel.placeholder(opkernel.float32, [2]) + np.ones(3, np.float32)


def ran() -> Any:
    with opkernel.Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, name="x")
    return opkernel.Session(graph).run(x)


def frames(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:]


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (lambda: raw_ops.MatMul(a=WIDE, b=WIDE), ["<lambda>"]),
        (lambda: square(WIDE), ["<lambda>", "square"]),
        (lambda: row(WIDE, np.int64(5)), ["<lambda>"]),
        (ran, ["ran"]),
    ],
)
def test_only_the_lines_of_the_user_are_shown(call: Callable[[], Any], shown: list[str]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        call()
    assert frames(caught.value) == shown
    assert "direct cause" not in "".join(traceback.format_exception(caught.value))


def test_an_operator_shows_itself_at_most() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        added()
    assert frames(caught.value) == ["added", "forward"]


def test_kernels_of_the_user_are_shown() -> None:
    opkernel.register_op(
        "FailingInTests", inputs=["x: float"], outputs=["y: float"], shape_fn=unknown_shape
    )

    @opkernel.register_kernel("FailingInTests", device="CPU")
    def failing(x: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(InvalidArgumentError) as caught:
        raw_ops.FailingInTests(x=WIDE)
    cause = caught.value.__cause__
    assert isinstance(cause, ValueError)
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["failing"]


def test_a_fault_of_opkernel_keeps_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "_kernels_at", None)
    with pytest.raises(AttributeError) as caught:
        raw_ops.MatMul(a=WIDE, b=WIDE)
    assert frames(caught.value) == ["raw_op", "execute"]


def test_all_frames_can_be_shown() -> None:
    tracebacks.disable_traceback_filtering()
    with pytest.raises(InvalidArgumentError) as caught:
        square(WIDE)
    assert len(frames(caught.value)) > 10
