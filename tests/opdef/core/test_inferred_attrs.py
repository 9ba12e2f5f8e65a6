"""Attrs that follow from the inputs of a call: the rule of TensorFlow's op_def_library."""

from typing import Any

import numpy as np
import pytest

from opkernel.errors import InvalidArgumentError, OpError
from opkernel.opdef import CallInputs, OpDefBuilder, inferred_attr_names
from opkernel.proto import OpDef
from opkernel.types import DataType, as_dtype, bool_, float32, float64, int32, int64, string


def op(*specs: str) -> OpDef:
    """Inputs first, then attrs, which have an `=` or a type of attrs."""
    builder = OpDefBuilder("Test")
    for spec in specs:
        kind = spec.partition(": ")[2]
        is_attr = kind.startswith(("type", "int", "list(", "{")) and not kind.startswith("int3")
        (builder.attr if is_attr else builder.input)(spec)
    return builder.finalize().op_def


class Tensor:
    def __init__(self, dtype: DataType) -> None:
        self.dtype = dtype


def type_of(value: Any) -> DataType | None:
    if isinstance(value, complex):
        raise OpError("it is of another graph")
    return value.dtype if isinstance(value, Tensor) else None


def call(op_def: OpDef, inputs: dict[str, Any], **attrs: Any) -> CallInputs:
    return CallInputs(op_def, inputs, attrs, type_of)


def types(found: CallInputs) -> list[list[DataType]]:
    return [list(one.dtypes) for one in found.arguments]


def test_attrs_that_inputs_refer_to() -> None:
    made = op(
        "a: T", "b: N * T", "c: L", "d: float", "T: type", "N: int", "L: list(type)", "k: int"
    )
    assert inferred_attr_names(made) == {"T", "N", "L"}


SAME = op("x: T", "y: T", "T: type")
LIST = op("x: N * T", "T: type", "N: int")
DEFAULT = op("x: T", "T: type = DT_INT64")
ALLOWED = op("x: T", "T: {int32, int64, float} = DT_INT64")


@pytest.mark.parametrize(
    ("op_def", "inputs", "attrs"),
    [
        (SAME, {"x": 1.5, "y": 2}, {"T": float32}),
        (SAME, {"x": 1, "y": 2.5}, {"T": int32}),
        (SAME, {"x": 1, "y": Tensor(float64)}, {"T": float64}),
        (SAME, {"x": Tensor(float32.ref), "y": Tensor(float64)}, {"T": float32}),
        (SAME, {"x": "a", "y": "b"}, {"T": string}),
        (SAME, {"x": np.float64(1), "y": 1}, {"T": float64}),
        (LIST, {"x": [1, 2.5]}, {"T": int32, "N": 2}),
        (LIST, {"x": (1, Tensor(int64), 2)}, {"T": int64, "N": 3}),
        (DEFAULT, {"x": 1}, {"T": int64}),
        (DEFAULT, {"x": 1.5}, {"T": float32}),
        (DEFAULT, {"x": Tensor(string)}, {"T": string}),
        (ALLOWED, {"x": 1}, {"T": int32}),
        (ALLOWED, {"x": np.int8(1)}, {"T": int64}),
        (op("x: N * T", "T: type = DT_STRING", "N: int >= 0"), {"x": []}, {"T": string, "N": 0}),
        (op("x: L", "L: list(type) >= 0"), {"x": []}, {"L": []}),
        (
            op("x: L", "L: list(type)"),
            {"x": [1, Tensor(bool_.ref), "a"]},
            {"L": [int32, bool_, string]},
        ),
        (op("x: float"), {"x": 1}, {}),
    ],
)
def test_attrs_follow_from_inputs(
    op_def: OpDef, inputs: dict[str, Any], attrs: dict[str, Any]
) -> None:
    assert call(op_def, inputs).attrs == attrs


def test_the_types_that_tensors_are_wanted_as() -> None:
    assert types(call(SAME, {"x": 1, "y": Tensor(float64)})) == [[float64], [float64]]
    assert types(call(LIST, {"x": [1, 2]})) == [[int32, int32]]
    assert types(call(op("x: L", "y: L", "L: list(type)"), {"x": [1, 1.5], "y": [1, 1]})) == [
        [int32, float32], [int32, float32]
    ]  # fmt: skip
    assert types(call(op("x: float"), {"x": 1})) == [[float32]]


def test_attrs_that_are_given_count() -> None:
    assert types(call(SAME, {"x": 1, "y": Tensor(float64)}, T="int64")) == [[int64], [int64]]
    assert types(call(op("x: L", "L: list(type)"), {"x": [1, 2]}, L=[float32, int32])) == [
        [float32, int32]
    ]
    assert call(LIST, {"x": [1, 2]}, N=2, T=int32).attrs == {"N": 2, "T": int32}


TWO_LISTS = op("a: N * int32", "b: N * float", "N: int")
TYPES = op("a: L", "b: L", "L: list(type)")


@pytest.mark.parametrize(
    ("op_def", "inputs", "attrs", "message"),
    [
        (LIST, {"x": 3}, {}, r"Expected list for 'x' argument to 'Test' Op, not 3"),
        (LIST, {"x": np.ones(2)}, {}, "Expected list for 'x'"),
        (LIST, {"x": []}, {}, "infer type variable 'T' from empty input list passed to input 'x'"),
        (TWO_LISTS, {"a": [1], "b": [1.0, 2.0]}, {},
         "'b' of 'Test' Op has length 2 that does not match length 1 of argument 'a'"),
        (TWO_LISTS, {"a": [1], "b": [1.0]}, {"N": 2},
         "'a' of 'Test' Op has length 1 that does not match length 2 of attr 'N'"),
        (TYPES, {"a": [1, 2], "b": [1]}, {}, "'b' .* has length 1 .* length 2 of argument 'a'"),
        (TYPES, {"a": [1], "b": [1]}, {"L": []}, "'a' .* has length 1 .* length 0 of attr 'L'"),
        (SAME, {"x": 1j, "y": 1}, {}, "Tried to convert 'x' of 'Test' Op to a tensor and failed: it is of"),
        (TYPES, {"a": [1j], "b": [1]}, {}, "Tried to convert 'a' of 'Test' Op to a tensor"),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit(
    op_def: OpDef, inputs: dict[str, Any], attrs: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call(op_def, inputs, **attrs)


@pytest.mark.parametrize(
    ("op_def", "inputs", "attrs", "index", "found", "message"),
    [
        (SAME, {"x": 1, "y": Tensor(float64)}, {}, 0, "float32",
         "Input 'x' of 'Test' Op has type float32 that does not match type float64 of argument 'y'"),
        (SAME, {"x": 1, "y": 2}, {"T": int64}, 1, "float32",
         "Input 'y' of 'Test' Op has type float32 that does not match type int64 of attr 'T'"),
        (op("x: float"), {"x": 1}, {}, 0, "int32",
         "Input 'x' of 'Test' Op has type int32 that does not match expected type of float32"),
        (LIST, {"x": [1, 2]}, {}, 0, "int32 float32",
         ("Tensors in list passed to 'x' of 'Test' Op have types [int32, float32] that do not match "
         "type int32 of argument 'x'")),
        (TYPES, {"a": [1, 1.5], "b": [1, 2]}, {}, 1, "int32 int32",
         ("Tensors in list passed to 'b' of 'Test' Op have types [int32, int32] that do not match "
         "type list int32, float32 of argument 'a'")),
    ],
)  # fmt: skip
def test_tensors_of_other_types_are_told(
    op_def: OpDef, inputs: Any, attrs: Any, index: int, found: str, message: str
) -> None:
    made = call(op_def, inputs, **attrs)
    error = made.mismatch(made.arguments[index], map(as_dtype, found.split()))
    assert error.message == message
