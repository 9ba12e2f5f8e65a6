"""What the tracebacks of errors show: the lines of the user, and no frame of opkernel."""

import importlib
import inspect
import os
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops, tracebacks
from opkernel.errors import InvalidArgumentError, NotFoundError
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


PACKAGE = Path(opkernel.__file__).parent
PACKAGES = [
    ".".join(stub.relative_to(PACKAGE.parent).parent.parts)
    for stub in sorted(PACKAGE.rglob("__init__.pyi"))
    if stub.parent.name not in ("proto", "keras")  # messages; a class that needs Keras
]


def shows_opkernel(function: Callable[..., Any], args: list[Any], named: dict[str, Any]) -> bool:
    """Whether the error of a call, if there is one, shows frames of opkernel."""
    try:
        function(*args, **named)
    except Exception as error:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        return any(file.startswith((f"{PACKAGE}{os.sep}", "<opkernel ")) for file in files)
    return False


def functions_of(package: str) -> Iterator[tuple[str, Any]]:
    module = importlib.import_module(package)
    for name in module.__all__:
        if isinstance(function := getattr(module, name), FunctionType):
            yield name, function


@pytest.mark.parametrize("package", PACKAGES)
def test_a_public_function_that_gets_an_unknown_argument_shows_only_the_users_line(
    package: str,
) -> None:
    for name, function in functions_of(package):
        parameters = inspect.signature(function).parameters.values()
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            with pytest.raises(TypeError) as caught:
                function(no_parameter_has_this_name=1)
            assert frames(caught.value) == [], name


@pytest.mark.parametrize("package", PACKAGES)
def test_a_public_function_that_gets_a_wrong_value_shows_only_the_users_line(package: str) -> None:
    shown = []
    for name, function in functions_of(package):
        required = [
            p for p in inspect.signature(function).parameters.values() if p.default is p.empty
        ]
        args = [
            object() for p in required if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        named = {p.name: object() for p in required if p.kind is p.KEYWORD_ONLY}
        is_called = (args or named) and not name.startswith(("register_", "unregister_"))
        if is_called and shows_opkernel(function, args, named):
            shown.append(name)
    assert shown == []


@pytest.mark.parametrize(
    "call",
    [
        lambda: opkernel.Variable(object()),
        lambda: opkernel.Variable(WIDE).assign("no"),
        lambda: opkernel.TensorSpec("no shape"),
        lambda: opkernel.Session(opkernel.Graph()).make_callable("no:0"),
        lambda: opkernel.optimizers.SGD("no"),  # type: ignore[arg-type]
        lambda: square.get_concrete_function(1, 2, 3),
        lambda: opkernel.register_provider(object()),  # type: ignore[arg-type]
        lambda: opkernel.no_such_name,
        lambda: opkernel.gradients(3, 4),
        lambda: opkernel.gradients(),  # type: ignore[call-arg]
    ],
)
def test_classes_and_names_show_only_the_users_line(call: Callable[[], Any]) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one is not the point here
        call()
    assert frames(caught.value) == ["<lambda>"]


def test_a_missing_file_shows_only_the_users_line_and_no_cause() -> None:
    with pytest.raises(NotFoundError) as caught:
        opkernel.load("no/such/model")
    assert frames(caught.value) == []
    assert "FileNotFoundError" not in "".join(traceback.format_exception(caught.value))


def test_an_argument_without_what_is_needed_is_named() -> None:
    with pytest.raises(AttributeError) as caught:
        opkernel.save_graph(object(), "graph.pb")  # type: ignore[arg-type]
    assert caught.value.__notes__ == ["the value is argument 'graph' of save_graph"]
    assert frames(caught.value) == []


def test_a_function_is_one_under_all_its_names_and_in_pickles() -> None:
    assert opkernel.constant is opkernel.graph.constant
    assert pickle.loads(pickle.dumps(opkernel.constant)) is opkernel.constant
