"""Quantised ops: the shape of the plain op, and the shapes of the ranges of values."""

import pytest

from opkernel.errors import InvalidArgumentError
from opkernel.opdef import common_shapes

CONV = {"padding": "VALID", "strides": [1, 1, 1, 1], "dilations": [1, 1, 1, 1]}
RANGES = ["[]"] * 4


def test_a_convolution_takes_and_gives_scalar_ranges(infer):
    fn = common_shapes.quantized_conv2d_shape
    images = ["[1,4,4,3]", "[2,2,3,5]"]
    assert infer(fn, *images, *RANGES, attrs=CONV, outputs=3) == "[d0_0,3,3,d1_3];[];[]"
    for i in range(4):
        ranges = [*RANGES]
        ranges[i] = "[1]"
        with pytest.raises(InvalidArgumentError, match="must be rank 0 but is rank 1"):
            infer(fn, *images, *ranges, attrs=CONV, outputs=3)


def test_its_padding_may_stand_in_a_list(infer):
    attrs = CONV | {"padding_list": [0, 0, 1, 2, 3, 4, 0, 0]}
    fn, images = common_shapes.quantized_conv2d_shape, ["[1,4,4,3]", "[2,2,3,5]"]
    assert infer(fn, *images, *RANGES, attrs=attrs, outputs=3).startswith("[d0_0,6,10,d1_3];")
    with pytest.raises(InvalidArgumentError, match="nonnegative"):
        infer(fn, *images, *RANGES, attrs=CONV | {"padding_list": [0, 0, -1] + [0] * 5}, outputs=3)


def test_an_average_takes_and_gives_a_scalar_range(infer):
    attrs = {"ksize": [1, 2, 2, 1], "strides": [1, 1, 1, 1], "padding": "VALID"}
    fn = common_shapes.quantized_avg_pool_shape
    assert infer(fn, "[1,4,4,3]", "[]", "[]", attrs=attrs, outputs=3) == "[d0_0,3,3,d0_3];[];[]"
    for ranges in (["[1]", "[]"], ["[]", "[1]"]):
        with pytest.raises(InvalidArgumentError, match="must be rank 0 but is rank 1"):
            infer(fn, "[1,4,4,3]", *ranges, attrs=attrs, outputs=3)


@pytest.mark.parametrize(
    ("shapes", "attrs", "output"),
    [
        (["[2,3]", "[]", "[]"], {}, "in0;in2;in2"),
        (["[2,3]", "[]", "[]"], {"axis": -1}, "in0;in2;in2"),
        (["[2,3]", "[2]", "[2]"], {"axis": 0}, "in0;in2;in2"),
        (["[2,3]", "[3]", "[3]"], {"axis": 1}, "in0;in2;in2"),
        (["[2,?]", "[3]", "[3]"], {"axis": 1}, "in0;in2;in2"),
        (["?", "?", "?"], {"axis": 1}, "in0;[?];[?]"),
    ],
)
def test_quantization_gives_the_range_that_it_takes(infer, shapes, attrs, output):
    fn = common_shapes.quantize_v2_shape
    assert infer(fn, *shapes, attrs=attrs, outputs=3) == output


@pytest.mark.parametrize(
    ("shapes", "axis", "message"),
    [
        (["[2,3]", "[]", "[]"], -2, "axis should be at least -1, got -2"),
        (["[2,3]", "[3]", "[]"], -1, "must be rank 0 but is rank 1"),
        (["[2,3]", "[]", "[3]"], -1, "must be rank 0 but is rank 1"),
        (["[2,3]", "[]", "[3]"], 1, "must be rank 1 but is rank 0"),
        (["[2,3]", "[3]", "[]"], 1, "must be rank 1 but is rank 0"),
        (["[2,3]", "[2]", "[2]"], 1, "must be equal, but are 2 and 3"),
        (["[2,3]", "[2]", "[2]"], 2, "at least rank 3 but is rank 2"),
    ],
)
def test_ranges_of_a_quantization_that_do_not_fit(infer, shapes, axis, message):
    with pytest.raises(InvalidArgumentError, match=message):
        infer(common_shapes.quantize_v2_shape, *shapes, attrs={"axis": axis}, outputs=3)


FUSED = {
    "plain": (common_shapes.fused_quantized_conv2d_shape, "[2,2,3,5]", "d1_3"),
    "depthwise": (common_shapes.fused_quantized_depthwise_conv2d_shape, "[2,2,3,2]", "6"),
}


@pytest.mark.parametrize("kind", FUSED)
@pytest.mark.parametrize(
    ("fused_ops", "more", "ranges", "output_range"),
    [
        ([], [], ["[]", "[]", "[]", "[]"], "in5"),
        ([], [], ["[]", "[]", "[5]", "[5]"], "in5"),
        (["BiasAdd"], ["[5]"], ["[]", "[]", "[5]", "[5]"], "in6"),
        (["Sum"], ["[1,3,3,5]"], ["[]", "[]", "[5]", "[5]"], "in6"),
        (["BiasAdd", "Relu"], ["[5]"], ["[]", "[]", "[5]", "[5]"], "in6"),
        (["BiasAdd", "Sum"], ["[5]", "[1,3,3,5]"], ["[]", "[]", "[5]", "[5]"], "in7"),
        (["BiasAdd", "Requantize"], ["[5]"], ["[]", "[]", "[5]", "[5]"], "[]"),
    ],
)
def test_fused_operations_bring_inputs(infer, kind, fused_ops, more, ranges, output_range):
    fn, filter_, channels = FUSED[kind]
    shapes = ["[1,4,4,3]", filter_, *more, *ranges]
    images = f"[d0_0,3,3,{channels}]"
    found = infer(fn, *shapes, attrs=CONV | {"fused_ops": fused_ops}, outputs=3)
    assert found == f"{images};{output_range};{output_range}"


@pytest.mark.parametrize("kind", FUSED)
@pytest.mark.parametrize(
    ("fused_ops", "more", "message"),
    [
        ([], [], "at least 2 inputs, got 1"),
        ([], ["[2,2,3,2]", *RANGES[1:]], "at least 6 inputs, got 5"),
        (["BiasAdd"], ["[2,2,3,2]", *RANGES], "at least 7 inputs, got 6"),
        (["BiasAdd"], ["[2,2,3,2]", "[]", *RANGES], "must be rank 1 but is rank 0"),
        (["Sum"], ["[2,2,3,2]", "[6]", *RANGES], "must be rank 4 but is rank 1"),
        ([], ["[2,2,3,2]", "[1]", "[]", "[]", "[]"], "must be rank 0 but is rank 1"),
        ([], ["[2,2,3,2]", "[]", "[1]", "[]", "[]"], "must be rank 0 but is rank 1"),
        ([], ["[2,2,3,2]", "[]", "[]", "[1,1]", "[]"], "at most rank 1 but is rank 2"),
        ([], ["[2,2,3,2]", "[]", "[]", "[]", "[1,1]"], "at most rank 1 but is rank 2"),
    ],
)
def test_fused_operations_whose_inputs_do_not_fit(infer, kind, fused_ops, more, message):
    with pytest.raises(InvalidArgumentError, match=message):
        infer(FUSED[kind][0], "[1,4,4,3]", *more, attrs=CONV | {"fused_ops": fused_ops}, outputs=3)


def test_fused_operations_have_three_outputs_at_least(infer):
    fn, filter_, _ = FUSED["plain"]
    with pytest.raises(InvalidArgumentError, match="at least 3 outputs, got 2"):
        infer(fn, "[1,4,4,3]", filter_, *RANGES, attrs=CONV | {"fused_ops": []}, outputs=2)
