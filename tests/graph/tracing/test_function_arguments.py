"""What functions take, see and give; tf.function without AutoGraph does the same.

`tests/graph/tracing/test_function_tracing_tensorflow.py` asks TensorFlow.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import opkernel
from opkernel import Tensor, TensorSpec

TWO = np.ones(2, np.float32)


class Point(NamedTuple):
    x: Any
    y: Any = 2


@dataclasses.dataclass
class Tagged:
    """A dataclass that says what it is made of, as tf.nest asks for."""

    value: Any
    tag: str

    def __tf_flatten__(self) -> tuple[tuple[str], tuple[Any]]:
        return (self.tag,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata: tuple[str], parts: tuple[Any]) -> Tagged:
        return cls(parts[0], metadata[0])


@dataclasses.dataclass
class Plain:
    value: Any


def traces_of(*calls: Any) -> list[str]:
    """What the Python function sees in each trace that these arguments lead to."""
    seen: list[str] = []

    @opkernel.function
    def function(x: Any) -> None:
        seen.append(kind_of(x))

    for call in calls:
        function(call)
    return seen


def kind_of(value: Any) -> str:
    """Tensors by type and shape, other values as they are."""
    if isinstance(value, Tensor):
        return f"{value.dtype.tf_name}{value.shape.as_list()}"
    if isinstance(value, Tagged):
        return f"Tagged({kind_of(value.value)}, {value.tag})"
    if isinstance(value, dict):
        return f"{type(value).__name__}({', '.join(f'{k}={kind_of(v)}' for k, v in value.items())})"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({', '.join(map(kind_of, value))})"
    return repr(value)


@pytest.mark.parametrize(
    ("calls", "traces"),
    [
        ([np.float32(3), np.float32(4)], ["float32[]"]),
        ([np.int64(3), np.array(4)], ["int64[]"]),
        ([np.bool_(True), np.bool_(False)], ["bool[]"]),
        ([np.bytes_(b"a"), np.bytes_(b"bc")], ["string[]"]),
        ([TWO, 2 * TWO, np.ones(3, np.float32)], ["float32[2]", "float32[3]"]),
        ([None, None], ["None"]),
        ([1, 1, 2], ["1", "2"]),
        (["a", "a", "b"], ["'a'", "'b'"]),
        ([[1, 2], [1, 2], (1, 2)], ["list(1, 2)", "tuple(1, 2)"]),
        ([[TWO, 1], [2 * TWO, 1], [TWO, 2]], ["list(float32[2], 1)", "list(float32[2], 2)"]),
        ([{"b": TWO, "a": 1}, {"a": 1, "b": TWO}], ["dict(b=float32[2], a=1)"]),
        ([OrderedDict(a=TWO)], ["OrderedDict(a=float32[2])"]),
        ([Point(TWO), Point(2 * TWO)], ["Point(float32[2], 2)"]),
        ([Tagged(TWO, "s"), Tagged(TWO, "s"), Tagged(TWO, "t")],
         ["Tagged(float32[2], s)", "Tagged(float32[2], t)"]),
        ([{"a": [TWO, (2, {"k": None})]}], ["dict(a=list(float32[2], tuple(2, dict(k=None))))"]),
        ([len, len, max], ["<built-in function len>", "<built-in function max>"]),
    ],
)  # fmt: skip
def test_arguments(calls: list[Any], traces: list[str]) -> None:
    assert traces_of(*calls) == traces


def given(value: Any) -> Any:
    """A result in words: arrays by type and value."""
    if isinstance(value, np.ndarray | np.generic):
        return f"{value.dtype.name} {value.tolist()}"
    if isinstance(value, dict):
        return type(value)((key, given(part)) for key, part in value.items())
    if isinstance(value, Point):
        return Point(*map(given, value))
    return type(value)(map(given, value)) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize(
    ("returned", "result"),
    [
        (3, "int32 3"),
        (2**40, "int64 1099511627776"),
        (1.5, "float32 1.5"),
        (True, "bool True"),
        (np.float64(2), "float64 2.0"),
        ("abc", b"abc"),
        (None, None),
        ([], []),
        ((1, None, [b"a"]), ("int32 1", None, [b"a"])),
        ({"b": 1, "a": [2, (TWO,)]}, {"b": "int32 1", "a": ["int32 2", ("float32 [1.0, 1.0]",)]}),
        (OrderedDict(b=1), OrderedDict(b="int32 1")),
        (Point(1), Point("int32 1", "int32 2")),
    ],
)
def test_results(returned: Any, result: Any) -> None:
    found = given(opkernel.function(lambda: returned)())
    assert (type(found), found) == (type(result), result)


def test_an_object_that_says_what_it_is_made_of_is_taken_and_given() -> None:
    double = opkernel.function(lambda x: Tagged(x.value * 2, x.tag))
    found = double(Tagged(TWO, "t"))
    assert (found.tag, found.value.tolist()) == ("t", [2, 2])
    with opkernel.Graph().as_default():
        assert isinstance(double(Tagged(opkernel.constant(TWO), "t")).value, Tensor)


def test_defaults_and_keywords_make_no_traces_of_their_own() -> None:
    @opkernel.function
    def power(x: Any, n: int = 2, *, name: str = "p") -> Any:
        return x**n

    calls = [power(TWO), power(TWO, 2), power(x=TWO), power(TWO, n=2, name="p"), power(n=2, x=TWO)]
    assert [call.tolist() for call in calls] == [[1, 1]] * 5
    assert power.experimental_get_tracing_count() == 1


def scaled(x: Any, factor: Any = 2.0, *rest: Any, offset: Any = None, **more: Any) -> Any:
    """Scale it."""
    return x * factor


class Scale:
    @opkernel.function
    def method(self, x: Any, factor: Any = 2.0) -> Any:
        """Scale it, too."""
        return x * factor


def test_a_function_keeps_its_signature_name_and_documentation() -> None:
    function = opkernel.function(scaled)
    assert inspect.signature(function) == inspect.signature(scaled)
    assert (function.__name__, function.__doc__) == ("scaled", "Scale it.")
    method = Scale().method
    assert list(inspect.signature(method).parameters) == ["x", "factor"]
    assert list(inspect.signature(Scale.method).parameters) == ["self", "x", "factor"]
    assert method.__doc__ == "Scale it, too."
    partial = opkernel.function(functools.partial(scaled, factor=np.float32(3)))
    assert partial(TWO).tolist() == [3, 3]


TAKES = "it takes (x, factor=2.0, *rest, offset=None, **more) and was given"


@pytest.mark.parametrize(
    ("args", "keywords", "message"),
    [
        ((), {}, f"missing a required argument: 'x'; {TAKES} ()"),
        (
            (TWO,),
            {"x": 1},
            f"multiple values for argument 'x'; {TAKES} (<ndarray float32[2]>, x=1)",
        ),
    ],
)
def test_arguments_that_do_not_fit_are_told_with_what_fits(
    args: tuple[Any, ...], keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        opkernel.function(scaled)(*args, **keywords)
    assert str(caught.value) == f"scaled() {message}"


def test_an_unexpected_keyword_is_told_with_the_one_that_is_meant() -> None:
    function: Any = opkernel.function(lambda images, training=False: images)
    with pytest.raises(
        TypeError, match=r"'trainin'; perhaps you mean training; it takes \(images, "
    ):
        function(TWO, trainin=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones((2, 2)), r"is float32\[2,2\]; the input signature asks for float32\[\?\]"),
        (["a"] * 1000, r"must be float32\[\?\], .*: Cannot make a float tensor of \['a', 'a', 'a', 'a', \.\.\.\]"),
        (None, r"must be float32\[\?\], .*: Cannot make a float tensor of None"),
    ],
)  # fmt: skip
def test_what_an_input_signature_refuses_is_told(value: Any, message: str) -> None:
    @opkernel.function(input_signature=[TensorSpec([None])])
    def norm(x: Any) -> Any:
        return x

    with pytest.raises(TypeError, match=rf"norm\(\) argument 'x' {message}"):
        norm(value)


def test_a_dataclass_that_is_returned_says_what_it_lacks() -> None:
    with pytest.raises(
        TypeError, match=r"returned Plain\(value=3\) of type Plain, .*__tf_flatten__"
    ):
        opkernel.function(lambda: Plain(3))()


def test_a_concrete_function_refuses_tensors_of_other_types_and_shapes() -> None:
    concrete = opkernel.function(scaled).get_concrete_function(TensorSpec([None]), 2.0)
    assert concrete(TWO).tolist() == concrete(TWO, 2.0).tolist() == [2, 2]
    for wrong, told in (
        (np.ones(2, np.int32), r"int32\[2\]"),
        (np.ones((2, 2), np.float32), r"2,2"),
    ):
        with pytest.raises(TypeError, match=rf"traced for 'x' as float32\[\?\], not .*{told}"):
            concrete(wrong)
    with pytest.raises(TypeError, match=r"was not traced for the arguments \(.*factor: 4"):
        concrete(TWO, 4)


def test_a_concrete_function_takes_structures() -> None:
    concrete = opkernel.function(lambda p: p.x + p.y).get_concrete_function(
        Point(TensorSpec([]), 1)
    )
    assert concrete(Point(np.float32(2), 1)) == 3
    assert concrete(np.float32(2)) == 3
