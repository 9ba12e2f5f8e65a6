"""Quantisation there and back; expected values are TensorFlow's."""

from functools import partial

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.opdef import attr_from_python

f32 = partial(np.array, dtype=np.float32)
X = f32([[-3, 0.2, 5], [0.5, -1, 2]])
ZERO = f32(0)


def round_trip(op="V4", low=ZERO, high=ZERO, values=X, **attrs):
    return getattr(raw_ops, f"QuantizeAndDequantize{op}")(
        input=values, input_min=f32(low), input_max=f32(high), **attrs
    )


@pytest.mark.parametrize("op", ["V2", "V4"])
@pytest.mark.parametrize(
    ("attrs", "expected"),
    [
        ({}, [[-2.857143, 0, 5], [0.714286, -0.714286, 2.142857]]),
        ({"axis": 0}, [[-2.857143, 0, 5], [0.571429, -1.142857, 2]]),
        ({"axis": 1}, [[-3, 0.25, 5], [0.375, -1, 2.142857]]),
        (
            {"range_given": True, "low": -1, "high": 2},
            [[-2.285714, 0.285714, 2], [0.571429, -1.142857, 2]],
        ),
    ],
)
def test_four_bits(op, attrs, expected):
    result = round_trip(op, num_bits=4, **attrs)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)


def test_the_number_of_bits_may_be_a_tensor():
    result = round_trip("V3", low=[-3, -1, -2], high=[0.5, 0.2, 5], axis=1, num_bits=np.int32(1))
    np.testing.assert_array_equal(result, [[-3, 0, 0], [0, -1, 0]])


def test_halves_round_to_even_or_up():
    x = f32([-4, -0.5, 0.5, 1.5, 3])
    arguments = {"input": x, "input_min": ZERO, "input_max": ZERO, "num_bits": 3}
    even = raw_ops.QuantizeAndDequantizeV2(**arguments)
    up = raw_ops.QuantizeAndDequantizeV2(round_mode="HALF_UP", **arguments)
    assert even.tolist() == [-4, 0, 0, 2, 3]
    assert up.tolist() == [-4, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_bits": 63}, "num_bits is out of range: 63"),
        ({"axis": 2}, "Shape must be at least rank 3"),
        ({"axis": -2}, "Axis must be at least -1"),
        ({"range_given": True, "low": 2, "high": 1}, "Invalid range: input_min 2 > input_max 1"),
        ({"range_given": True, "low": 0, "high": np.nan}, "Invalid range: input_min 0 > input_max"),
        ({"range_given": True, "low": np.nan, "high": 1}, "Invalid range: input_min nan"),
        ({"range_given": True, "low": [1, 2], "high": [3, 4], "axis": 0}, "must be a scalar"),
        (
            {"op": "V3", "num_bits": np.array([8], np.int32), "range_given": False},
            "should be a scalar",
        ),
        ({"op": "V3", "num_bits": np.int32(8), "axis": 0}, "Shape must be rank 1"),
        (
            {"op": "V3", "num_bits": np.int32(8), "values": np.float32(1), "range_given": False},
            "Axis: -1 Input Dimensions: 0",
        ),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        round_trip(**arguments)


def old_round_trip(values, **attrs):
    """QuantizeAndDequantize in a graph of a version that had it, and the gradient of its sum."""
    with opkernel.Graph().as_default() as new:
        x = opkernel.constant(values)
        raw_ops.QuantizeAndDequantizeV2(input=x, input_min=ZERO, input_max=ZERO, name="y")
    graph_def = new.as_graph_def()
    graph_def.versions.producer = 21
    node = next(node for node in graph_def.node if node.name == "y")
    node.op = "QuantizeAndDequantize"
    del node.input[1:]
    for name in set(node.attr) - {"T"}:
        del node.attr[name]
    for name, value in attrs.items():
        node.attr[name].CopyFrom(attr_from_python(value, ATTR_TYPES[name]))
    with opkernel.Graph().as_default() as graph:
        opkernel.import_graph_def(graph_def, name="")
        y = graph.get_tensor_by_name("y:0")
        (slope,) = opkernel.gradients(y, graph.get_operation_by_name("y").inputs[0])
        return opkernel.Session(graph).run([y, slope])


ATTR_TYPES = {
    "signed_input": "bool",
    "num_bits": "int",
    "range_given": "bool",
    "input_min": "float",
    "input_max": "float",
}


@pytest.mark.filterwarnings("ignore:Op QuantizeAndDequantize is deprecated:DeprecationWarning")
@pytest.mark.parametrize("signed_input", [True, False])
@pytest.mark.parametrize("limits", [{}, {"input_min": -1.0, "input_max": 2.0}])
def test_old_graphs_have_the_range_in_attrs(limits, signed_input):
    attrs = {"signed_input": signed_input, "num_bits": 4, "range_given": bool(limits)}
    found, slope = old_round_trip(X, **attrs, **limits)
    ends = {"low": limits.get("input_min", 0), "high": limits.get("input_max", 0)}
    np.testing.assert_array_equal(found, round_trip("V2", **attrs, **ends))
    assert (slope == 1).all()


@pytest.mark.filterwarnings("ignore:Op QuantizeAndDequantize is deprecated:DeprecationWarning")
def test_old_graphs_refuse_a_range_without_order():
    with pytest.raises(InvalidArgumentError, match="Invalid range"):
        old_round_trip(X, range_given=True, input_min=2.0, input_max=1.0)


def test_new_graphs_do_not_have_it():
    with pytest.raises(UnimplementedError, match="QuantizeAndDequantizeV2"):
        raw_ops.QuantizeAndDequantize(input=X)
