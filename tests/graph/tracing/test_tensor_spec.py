"""TensorSpec: what a spec includes, what fits it, and how it is written."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, TensorSpec
from opkernel.graph.tracing.tensor_spec import spec_of
from opkernel.types import float32, float64, int32

ANY = TensorSpec(None)


def spec(*sizes: int | None, dtype: Any = float32) -> TensorSpec:
    return TensorSpec(sizes, dtype)


@pytest.mark.parametrize(
    ("one", "other", "includes"),
    [
        (spec(2, None), spec(2, 3), True),
        (spec(2, None), spec(2, None), True),
        (spec(2, 3), spec(2, None), False),
        (spec(2, 3), spec(2, 4), False),
        (spec(None, None), spec(2), False),
        (spec(), spec(), True),
        (ANY, spec(2, 3), True),
        (ANY, ANY, True),
        (spec(None), ANY, False),
        (ANY, TensorSpec(None, int32), False),
        (spec(2), spec(2, dtype=int32), False),
    ],
)
def test_a_spec_includes_what_says_no_less(
    one: TensorSpec, other: TensorSpec, includes: bool
) -> None:
    assert one.includes(other) is includes


@pytest.mark.parametrize(
    ("one", "value", "fits"),
    [
        (spec(2, None), spec(None, 3), True),
        (spec(2, None), spec(3, 3), False),
        (spec(2, None), np.ones((2, 5), np.float32), True),
        (spec(2, None), np.ones(2, np.float32), False),
        (spec(2), np.ones(2), False),
        (ANY, np.float32(1), True),
        (ANY, 1.0, False),
        (ANY, "text", False),
        (TensorSpec(None, opkernel.string), np.array([b"a"], object), True),
    ],
)
def test_values_that_fit(one: TensorSpec, value: Any, fits: bool) -> None:
    assert one.is_compatible_with(value) is fits


def test_the_specs_of_values() -> None:
    one = spec(2)
    assert spec_of(one) is one
    with Graph().as_default():
        variable = opkernel.raw_ops.VariableV2(shape=[2, 3], dtype=float64)
        assert spec_of(variable) == spec(2, 3, dtype=float64)
    assert spec_of(np.ones((2, 3), np.int32)) == spec(2, 3, dtype=int32)
    assert spec_of(np.float64(1)) == spec(dtype=float64)
    for value in (1, "a", np.str_("a"), None, [1]):
        assert spec_of(value) is None


def test_how_much_is_unknown() -> None:
    assert [one.unknowns for one in (spec(2), spec(None, 2, None), spec(), ANY)] == [
        0, 2, 0, float("inf")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "text", "representation"),
    [
        (spec(2, None), "float32[2,?]", "TensorSpec([2, None], float32)"),
        (TensorSpec(None, int32), "int32[...]", "TensorSpec(None, int32)"),
        (TensorSpec([2], name="x"), "float32[2]", "TensorSpec([2], float32, name='x')"),
    ],
)
def test_text(one: TensorSpec, text: str, representation: str) -> None:
    assert (str(one), repr(one)) == (text, representation)


def test_names_do_not_count() -> None:
    assert TensorSpec([2], name="x") == TensorSpec([2], name="y")
    assert TensorSpec([2]) != TensorSpec([3])


def test_a_type_is_no_shape() -> None:
    with pytest.raises(TypeError, match="takes the shape first, then the type"):
        TensorSpec(float32, [2])
