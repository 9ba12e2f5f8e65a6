"""Convolutions, poolings and normalisation."""

import numpy as np
import pytest

from opkernel.errors import InternalError, InvalidArgumentError
from opkernel.opdef import InferenceContext, common_shapes
from opkernel.opdef.common_shapes.windows import Padding
from opkernel.opdef.shapes.tensor_format import TensorFormat
from opkernel.proto import NodeDef, OpDef

C = InferenceContext(OpDef(), NodeDef(), [])


def conv_attrs(padding="VALID", strides=(1, 1, 1, 1), dilations=(1, 1, 1, 1), **more):
    return {"padding": padding, "strides": list(strides), "dilations": list(dilations), **more}


@pytest.mark.parametrize(
    ("image", "filter_", "attrs", "output"),
    [
        ("[1,2,2,1]", "[1,1,1,1]", conv_attrs(), "[d0_0,2,2,d1_3]"),
        ("[1,3,3,1]", "[2,2,1,1]", conv_attrs(), "[d0_0,2,2,d1_3]"),
        ("[1,4,4,2]", "[2,2,2,3]", conv_attrs(strides=(1, 2, 2, 1)), "[d0_0,2,2,d1_3]"),
        ("[1,4,4,1]", "[3,3,1,1]", conv_attrs("SAME"), "[d0_0,d0_1,d0_2,d1_3]"),
        ("[1,4,4,1]", "[3,3,1,1]", conv_attrs("SAME", (1, 2, 2, 1)), "[d0_0,2,2,d1_3]"),
        ("[1,?,4,1]", "[1,1,1,1]", conv_attrs(strides=(1, 2, 2, 1)), "[d0_0,?,2,d1_3]"),
        ("?", "?", conv_attrs(), "[?,?,?,?]"),
        ("[1,9,9,1]", "[3,3,1,1]", conv_attrs(dilations=(1, 2, 3, 1)), "[d0_0,5,3,d1_3]"),
        ("[1,4,4,4]", "[3,3,2,6]", conv_attrs("SAME"), "[d0_0,d0_1,d0_2,d1_3]"),
        (
            "[1,1,4,5]",
            "[3,3,1,7]",
            conv_attrs(data_format="NCHW", strides=(1, 1, 1, 2)),
            "[d0_0,d1_3,2,2]",
        ),
        (
            "[1,4,4,1]",
            "[3,3,1,1]",
            conv_attrs("EXPLICIT", explicit_paddings=[0, 0, 1, 2, 3, 4, 0, 0]),
            "[d0_0,5,9,d1_3]",
        ),
    ],
)
def test_conv2d(infer, image, filter_, attrs, output):
    fn = common_shapes.conv2d_shape_with_explicit_padding
    assert infer(fn, image, filter_, attrs=attrs) == output
    if attrs["padding"] != "EXPLICIT":
        assert infer(common_shapes.conv2d_shape, image, filter_, attrs=attrs) == output
    else:
        with pytest.raises(InvalidArgumentError, match="does not support explicit padding"):
            infer(common_shapes.conv2d_shape, image, filter_, attrs=attrs)


def test_conv2d_of_channels_in_vectors(infer):
    attrs = conv_attrs(data_format="NCHW_VECT_C", filter_format="OIHW_VECT_I")
    fn = common_shapes.conv2d_shape
    assert infer(fn, "[1,2,3,4,4]", "[8,2,2,2,4]", attrs=attrs) == "[d0_0,2,2,3,d0_4]"
    with pytest.raises(InvalidArgumentError, match="must be 4 or 32, but is 5"):
        infer(fn, "[1,2,3,4,5]", "[8,2,2,2,5]", attrs=attrs)
    with pytest.raises(InvalidArgumentError, match="evenly divisible by 4 but is 6"):
        infer(fn, "[1,2,3,4,4]", "[6,2,2,2,4]", attrs=attrs)


@pytest.mark.parametrize(
    ("image", "filter_", "attrs", "facts"),
    [
        ("[4,4]", "[2,1,1,1]", conv_attrs(), "rank 4 but is rank 2"),
        ("[1,4,4,1]", "[2,1,1]", conv_attrs(), "rank 4 but is rank 3"),
        ("[1,2,2,1]", "[3,1,1,1]", conv_attrs(), "subtracting 3 from 2"),
        ("[1,4,4,3]", "[1,1,2,1]", conv_attrs(), r"input \(3\).*filter \(2\)"),
        ("[1,4,4,3]", "[1,1,0,1]", conv_attrs(), "Depth of filter must not be 0"),
        ("[1,4,4,4]", "[1,1,2,3]", conv_attrs(), r"output \(3\).*groups \(2\)"),
        ("[1,4,4,0]", "[1,1,2,3]", conv_attrs(), "Number of groups must not be 0"),
        ("[1,4,4,1]", "[1,1,1,1]", conv_attrs(strides=(1, 1)), "stride.*4 values, but got: 2"),
        ("[1,4,4,1]", "[1,1,1,1]", conv_attrs(dilations=(1,)), "dilation.*4 values, but got: 1"),
        ("[1,4,4,1]", "[1,1,1,1]", conv_attrs(strides=(1, 0, 1, 1)), "Stride must be > 0"),
        ("[1,4,4,1]", "[1,1,1,1]", conv_attrs(dilations=(1, 0, 1, 1)), "rate must be >= 1"),
        ("[1,4,4,1]", "[1,1,1,1]", conv_attrs(data_format="NHCW"), "string: NHCW"),
        ("[1,4,4,1]", "[1,1,1,1]", conv_attrs(filter_format="HW"), "string: HW"),
        ("[1,4,4,1]", "[1,1,1,1]", conv_attrs("FULL"), "FULL is not an allowed padding type"),
        (
            "[1,4,4,1]",
            "[1,1,1,1]",
            conv_attrs("EXPLICIT", explicit_paddings=[0] * 6),
            "8 values, but got: 6",
        ),
        (
            "[1,4,4,1]",
            "[1,1,1,1]",
            conv_attrs("EXPLICIT", explicit_paddings=[0, 0, -1, 0, 0, 0, 0, 0]),
            "must be nonnegative",
        ),
        (
            "[1,4,4,1]",
            "[1,1,1,1]",
            conv_attrs("EXPLICIT", explicit_paddings=[0, 0, 0, 0, 0, 0, 0, 1]),
            "batch or depth",
        ),
        (
            "[1,4,4,1]",
            "[1,1,1,1]",
            conv_attrs(explicit_paddings=[0] * 8),
            "must be empty if the padding attribute is not EXPLICIT",
        ),
    ],
)
def test_conv2d_refuses(infer, image, filter_, attrs, facts):
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(common_shapes.conv2d_shape_with_explicit_padding, image, filter_, attrs=attrs)


def general_conv_attrs(**more):
    attrs = conv_attrs("SAME", (1, 2, 2, 1), (), batch_dims=1, groups=1)
    return {**attrs, "data_format": "CHANNELS_LAST", **more}


@pytest.mark.parametrize(
    ("image", "filter_", "attrs", "output"),
    [
        ("[2,5,7,3]", "[3,3,3,8]", {}, "[d0_0,3,4,d1_3]"),
        ("[4,2,5,7,3]", "[3,3,3,8]", {"batch_dims": 2}, "[d0_0,d0_1,3,4,d1_3]"),
        ("[5,7,4]", "[3,3,4,8]", {"batch_dims": 0, "strides": [1, 1, 1, 1]}, "[d0_0,d0_1,d1_3]"),
        ("[4,2,5,7,3]", "[3,3,3,3,8]", {"strides": [1, 2, 2, 2, 1]}, "[d0_0,1,3,4,d1_4]"),
        ("[2,5,7,4]", "[3,3,2,8]", {"groups": 2}, "[d0_0,3,4,d1_3]"),
        ("?", "[3,3,3,8]", {"strides": [1]}, "?"),
        (
            "[3,2,4,5,7]",
            "[3,3,4,4]",
            {"batch_dims": 2, "data_format": "CHANNELS_FIRST", "strides": [1, 1, 2, 2]},
            "[d0_0,d0_1,d1_3,3,4]",
        ),
    ],
)
def test_conv_of_any_rank(infer, image, filter_, attrs, output):
    attrs = general_conv_attrs(**attrs)
    assert infer(common_shapes.conv_shape, image, filter_, attrs=attrs) == output


@pytest.mark.parametrize(
    ("image", "filter_", "attrs", "facts"),
    [
        ("[2,5,7,3]", "[3,3,3,8]", {"batch_dims": -1}, "Batch dims must be non-negative"),
        ("[2,5,7,3]", "[3,3,3,8]", {"groups": 0}, "should be a positive integer"),
        ("[5,7,3]", "[3,3,3,8]", {}, "rank 4 or 5, excluding extra batch dimensions, but got: 3"),
        ("[2,5,7,3]", "[3,3,8]", {}, "Filter tensor must be rank 4 or 5"),
        ("[2,5,7,3]", "[3,3,3,3,8]", {}, "must be the same as filter rank"),
        ("[2,5,7,3]", "[3,3,3,8]", {"strides": [2, 2]}, "Stride.*contain 4 values, but got: 2"),
        ("[2,5,7,3]", "[3,3,3,8]", {"dilations": [2, 2]}, "dilation.*4 values, but got: 2"),
        ("[2,5,7,4]", "[3,3,2,8]", {"groups": 4}, r"groups parameter \(4\)"),
    ],
)
def test_conv_of_any_rank_refuses(infer, image, filter_, attrs, facts):
    with pytest.raises(InvalidArgumentError, match=facts):
        infer(common_shapes.conv_shape, image, filter_, attrs=general_conv_attrs(**attrs))


@pytest.mark.parametrize(
    ("data_format", "volume", "steps", "output"),
    [
        ("NDHWC", "[1,4,6,8,1]", [1, 1, 2, 2, 1], "[d0_0,3,3,4,d1_4]"),
        ("NCDHW", "[1,1,4,6,8]", [1, 1, 1, 2, 2], "[d0_0,d1_4,3,3,4]"),
        ("NDHWC", "[?,?,6,8,1]", [1, 1, 1, 1, 1], "[d0_0,?,5,7,d1_4]"),
    ],
)
def test_conv3d(infer, data_format, volume, steps, output):
    attrs = conv_attrs(strides=steps, dilations=[1] * 5, data_format=data_format)
    assert infer(common_shapes.conv3d_shape, volume, "[2,2,2,1,3]", attrs=attrs) == output
    attrs = conv_attrs(strides=[1] * 5, data_format=data_format)
    with pytest.raises(InvalidArgumentError, match="contain 5 values, but got: 4"):
        infer(common_shapes.conv3d_shape, volume, "[2,2,2,1,3]", attrs=attrs)


@pytest.mark.parametrize(
    ("data_format", "image", "output"),
    [
        ("NHWC", "[1,4,5,3]", "[d0_0,3,4,12]"),
        ("NCHW", "[1,3,4,5]", "[d0_0,12,3,4]"),
        ("NHWC", "[1,4,5,?]", "[d0_0,3,4,12]"),
        ("NHWC", "?", "[?,?,?,12]"),
    ],
)
def test_depthwise_conv2d(infer, data_format, image, output):
    attrs = conv_attrs(data_format=data_format)
    for fn in (
        common_shapes.depthwise_conv2d_native_shape,
        common_shapes.depthwise_conv2d_native_shape_with_explicit_padding,
    ):
        assert infer(fn, image, "[2,2,3,4]", attrs=attrs) == output


def test_depthwise_conv2d_wants_the_filter_for_all_channels(infer):
    fn = common_shapes.depthwise_conv2d_native_shape
    with pytest.raises(InvalidArgumentError, match="must be equal, but are 10 and 12"):
        infer(fn, "[1,4,5,10]", "[2,2,12,4]", attrs=conv_attrs())


def test_conv2d_backprop_input(infer):
    fn, attrs = common_shapes.conv2d_backprop_input_shape, conv_attrs()
    shapes = ["[4]", "[3,3,2,5]", "[7,4,6,5]"]
    whole, part = np.array([7, 6, 8, 2], np.int32), np.array([6, 8], np.int32)
    assert infer(fn, *shapes, attrs=attrs, constants={0: whole}) == "[d2_0,6,8,2]"
    assert infer(fn, "[2]", *shapes[1:], attrs=attrs, constants={0: part}) == "[d2_0,6,8,d1_2]"
    assert infer(fn, *shapes, attrs=attrs) == "[d2_0,?,?,?]"
    with pytest.raises(InvalidArgumentError, match="4 values or 2 values, but got: 3"):
        infer(fn, "[3]", *shapes[1:], attrs=attrs)
    with pytest.raises(InvalidArgumentError, match="must be equal, but are 6 and 5"):
        infer(fn, "[4]", "[3,3,2,5]", "[7,4,6,6]", attrs=attrs)


def pool_attrs(ksize, strides, padding="VALID", **more):
    return {"ksize": ksize, "strides": strides, "padding": padding, **more}


@pytest.mark.parametrize(
    ("image", "attrs", "output"),
    [
        ("[1,4,5,3]", pool_attrs([1, 2, 3, 1], [1, 1, 2, 1]), "[d0_0,3,2,d0_3]"),
        ("[1,4,5,3]", pool_attrs([1, 2, 3, 1], [1, 1, 2, 1], "SAME"), "[d0_0,d0_1,3,d0_3]"),
        (
            "[1,3,4,5]",
            pool_attrs([1, 1, 2, 3], [1, 1, 1, 2], data_format="NCHW"),
            "[d0_0,d0_1,3,2]",
        ),
        ("[?,?,5,?]", pool_attrs([1, 2, 3, 1], [1, 1, 2, 1]), "[d0_0,?,2,d0_3]"),
        ("?", pool_attrs([1, 2, 3, 1], [1, 1, 2, 1]), "[?,?,?,?]"),
    ],
)
def test_avg_and_max_pool(infer, image, attrs, output):
    # A window of one channel leaves the channels alone: in max pools with a new handle for VALID.
    sizes = infer(common_shapes.max_pool_shape, image, attrs=attrs)
    assert infer(common_shapes.avg_pool_shape, image, attrs=attrs) == output
    assert infer(common_shapes.max_pool_shape_with_explicit_padding, image, attrs=attrs) == sizes
    constants = {1: np.array(attrs["ksize"], np.int32), 2: np.array(attrs["strides"], np.int32)}
    v2 = infer(
        common_shapes.max_pool_v2_shape, image, "[4]", "[4]", attrs=attrs, constants=constants
    )
    assert v2 == sizes


@pytest.mark.parametrize(
    ("image", "attrs", "output"),
    [
        ("[1,4,4,6]", pool_attrs([1, 1, 1, 3], [1, 1, 1, 3]), "[d0_0,4,4,2]"),
        (
            "[2,3,5,7,32]",
            pool_attrs([1, 2, 2, 2], [1, 2, 1, 1], data_format="NCHW_VECT_C"),
            "[d0_0,1,4,6,4]",
        ),
        (
            "[1,4,4,6]",
            pool_attrs(
                [1, 2, 2, 1], [1, 1, 1, 1], "EXPLICIT", explicit_paddings=[0, 0, 1, 0, 1, 1, 0, 0]
            ),
            "[d0_0,4,5,6]",
        ),
    ],
)
def test_max_pool(infer, image, attrs, output):
    fn = common_shapes.max_pool_shape_with_explicit_padding
    assert infer(fn, image, attrs=attrs) == output


def test_max_pool_v2_takes_its_windows_from_the_last_inputs(infer):
    def with_two_inputs_less(c):
        common_shapes.max_pool_v2_shape(c, 3)

    attrs = pool_attrs([1, 2, 2, 1], [1, 1, 1, 1])
    assert infer(with_two_inputs_less, "[1,4,4,1]", attrs=attrs) == "[d0_0,3,3,1]"
    constants = {2: ints4(1, 2, 2, 1), 3: ints4(1, 1, 1, 1)}
    images = ["[1,4,4,1]", "[9]", "[4]", "[4]"]
    fn = common_shapes.max_pool_v2_shape
    found = infer(fn, *images, attrs={"padding": "VALID"}, constants=constants)
    assert found == "[d0_0,3,3,1]"


def ints4(*values):
    return np.array(values, np.int32)


def test_max_pool_v2_needs_constant_windows(infer):
    fn, attrs = common_shapes.max_pool_v2_shape, {"padding": "VALID"}
    assert infer(fn, "[1,4,4,1]", "[4]", "[4]", attrs=attrs) == "?"
    with pytest.raises(InvalidArgumentError, match="must be 4 but is 3"):
        infer(fn, "[1,4,4,1]", "[4]", "[3]", attrs=attrs)


@pytest.mark.parametrize(
    ("attrs", "facts"),
    [
        (pool_attrs([1, 2, 2], [1, 1, 1, 1]), "ksize.*4 values, but got: 3"),
        (pool_attrs([1, 2, 2, 1], [1, 1]), "stride.*4 values, but got: 2"),
        (pool_attrs([1, 5, 2, 1], [1, 1, 1, 1]), "subtracting 5 from 4"),
        (pool_attrs([1, 2, 2, 1], [1, 0, 1, 1]), "Stride must be > 0, but got 0"),
    ],
)
def test_pools_refuse(infer, attrs, facts):
    for fn in (common_shapes.avg_pool_shape, common_shapes.max_pool_shape):
        with pytest.raises(InvalidArgumentError, match=facts):
            infer(fn, "[1,4,4,1]", attrs=attrs)


def test_pool3d(infer):
    fn = common_shapes.pool3d_shape
    attrs = pool_attrs([1, 1, 2, 3, 1], [1, 2, 1, 1, 1], data_format="NDHWC")
    assert infer(fn, "[1,4,5,6,7]", attrs=attrs) == "[d0_0,2,4,4,d0_4]"
    attrs = pool_attrs([1, 1, 1, 2, 3], [1, 1, 2, 1, 1], data_format="NCDHW")
    assert infer(fn, "[1,7,4,5,6]", attrs=attrs) == "[d0_0,d0_1,2,4,4]"
    with pytest.raises(InvalidArgumentError, match=r"ksize.*5 values, but got: 4"):
        infer(fn, "[1,4,5,6,7]", attrs=pool_attrs([1] * 4, [1] * 5))


def test_gradients_of_pools_have_the_shape_of_the_input(infer):
    fns = common_shapes
    assert infer(fns.max_pool_grad_shape, "[1,?,3,4]") == "in0"
    assert infer(fns.max_pool3d_grad_shape, "?") == "[?,?,?,?,?]"
    sizes = np.array([1, 2, 3, 4], np.int32)
    assert infer(fns.avg_pool_grad_shape, "[4]", constants={0: sizes}) == "[1,2,3,4]"
    assert infer(fns.avg_pool3d_grad_shape, "?") == "[?,?,?,?,?]"
    with pytest.raises(InvalidArgumentError, match="rank 5 but is rank 4"):
        infer(fns.avg_pool3d_grad_shape, "[4]", constants={0: sizes})


@pytest.mark.parametrize(
    ("data_format", "shape", "bias", "output", "gradient"),
    [
        ("NHWC", "[2,3]", "[3]", "[d0_0,d0_1]", "[d0_1]"),
        ("NHWC", "[2,?]", "[3]", "[d0_0,d1_0]", "[d0_1]"),
        ("NCHW", "[2,3,4,5]", "[3]", "[d0_0,d0_1,d0_2,d0_3]", "[d0_1]"),
        ("NCHW", "[2,?,4]", "[3]", "[d0_0,d1_0,d0_2]", "[d0_1]"),
        ("NHWC", "?", "[3]", "?", "[?]"),
    ],
)
def test_bias_add(infer, data_format, shape, bias, output, gradient):
    attrs = {"data_format": data_format}
    assert infer(common_shapes.bias_add_shape, shape, bias, attrs=attrs) == output
    assert infer(common_shapes.bias_add_grad_shape, shape, attrs=attrs) == gradient


def test_bias_add_refuses(infer):
    fn = common_shapes.bias_add_shape
    with pytest.raises(InvalidArgumentError, match="at least rank 2 but is rank 1"):
        infer(fn, "[3]", "[3]")
    with pytest.raises(InvalidArgumentError, match="at least rank 3 but is rank 2"):
        infer(fn, "[2,3]", "[3]", attrs={"data_format": "NCHW"})
    with pytest.raises(InvalidArgumentError, match="must be equal, but are 3 and 4"):
        infer(fn, "[2,3]", "[4]")


def batch_norm_attrs(is_training, **more):
    return {"is_training": is_training, "data_format": "NHWC", **more}


@pytest.mark.parametrize(
    ("shapes", "attrs", "output"),
    [
        (["[2,3,4,?]", "[5]", "?", "[9]", "[9]"], batch_norm_attrs(True), "[d0_0,d0_1,d0_2,d1_0]"),
        (["[2,3,4,?]", "?", "?", "?", "[5]"], batch_norm_attrs(False), "[d0_0,d0_1,d0_2,d4_0]"),
        (
            ["[2,?,3,4]", "?", "[5]", "?", "?"],
            batch_norm_attrs(True, data_format="NCHW"),
            "[d0_0,d2_0,d0_2,d0_3]",
        ),
        (
            ["[2,3,4,6,?]", "?", "[5]", "?", "?"],
            batch_norm_attrs(True, data_format="NDHWC"),
            "[d0_0,d0_1,d0_2,d0_3,d2_0]",
        ),
        (
            ["[2,3,4,?]", "?", "?", "?", "[5]"],
            batch_norm_attrs(True, exponential_avg_factor=0.5),
            "[d0_0,d0_1,d0_2,d4_0]",
        ),
    ],
)
def test_fused_batch_norm(infer, shapes, attrs, output):
    channels = next(name for name in output.strip("[]").split(",") if not name.startswith("d0"))
    fn = common_shapes.fused_batch_norm_shape
    assert infer(fn, *shapes, outputs=5, attrs=attrs) == ";".join([output, *[f"[{channels}]"] * 4])


def test_fused_batch_norm_v3_and_its_gradient(infer):
    vectors = ["[5]"] * 4
    v3 = infer(
        common_shapes.fused_batch_norm_v3_shape,
        "[1,2,3,5]",
        *vectors,
        outputs=6,
        attrs=batch_norm_attrs(True),
    )
    assert v3 == "[d0_0,d0_1,d0_2,d0_3];[d0_3];[d0_3];[d0_3];[d0_3];?"
    gradient = infer(
        common_shapes.fused_batch_norm_grad_shape,
        "[1,2,3,?]",
        "?",
        "?",
        "[5]",
        "?",
        outputs=5,
        attrs=batch_norm_attrs(True),
    )
    assert gradient == "[d0_0,d0_1,d0_2,d3_0];[d3_0];[d3_0];[0];[0]"


def test_fused_batch_norm_with_side_input_and_activation(infer):
    attrs = batch_norm_attrs(True, num_side_inputs=1)
    shapes = ["[1,2,3,?]", "[8]", "[8]", "[8]", "[8]", "[1,2,3,8]"]
    forward = infer(common_shapes.fused_batch_norm_ex_shape, *shapes, outputs=6, attrs=attrs)
    assert forward == "[d0_0,d0_1,d0_2,d1_0];[d1_0];[d1_0];[d1_0];[d1_0];?"
    back = infer(
        common_shapes.fused_batch_norm_grad_ex_shape,
        "[1,2,3,?]",
        "?",
        "[8]",
        "?",
        "?",
        outputs=6,
        attrs=attrs,
    )
    assert back == "[d0_0,d0_1,d0_2,d2_0];[d2_0];[d2_0];[0];[0];[d0_0,d0_1,d0_2,d0_3]"
    with pytest.raises(InvalidArgumentError, match="must be divisible by 4, but is 6"):
        infer(
            common_shapes.fused_batch_norm_ex_shape,
            "[1,2,3,6]",
            *["[6]"] * 4,
            outputs=6,
            attrs=attrs,
        )


def test_fused_batch_norm_refuses_other_numbers_of_channels(infer):
    fn = common_shapes.fused_batch_norm_shape
    with pytest.raises(InvalidArgumentError, match="must be equal, but are 3 and 5"):
        infer(fn, "[1,2,2,3]", "[3]", "[5]", "[3]", "[3]", outputs=5, attrs=batch_norm_attrs(True))


def test_window_sizes_from_dimensions():
    fn = common_shapes.get_windowed_output_size_from_dims
    five = C.make_dim(5)
    assert fn(C, five, 1, 1, Padding.SAME) is five
    assert fn(C, five, 2, 2, Padding.VALID).value == 2
    assert fn(C, five, C.unknown_dim(), 2, Padding.SAME).value == 3
    assert fn(C, five, C.unknown_dim(), 2, Padding.VALID).value == -1
    with pytest.raises(InternalError, match="EXPLICIT"):
        fn(C, five, 2, 2, Padding.EXPLICIT)
    v2 = common_shapes.get_windowed_output_size_from_dims_v2
    assert v2(C, five, 3, 2, 1, Padding.VALID).value == 1
    assert v2(C, five, 3, 1, 1, Padding.EXPLICIT, (1, 2)).value == 6


def test_shapes_are_put_together_by_layout():
    fn = common_shapes.make_shape_from_format
    assert repr(fn(C, TensorFormat.NHWC, 1, [2, 3], 5)) == "[1,2,3,5]"
    assert repr(fn(C, TensorFormat.NCHW, 1, [2, 3, 4], 5)) == "[1,5,2,3,4]"
    assert repr(fn(C, TensorFormat.NCHW_VECT_C, 1, [2, 3], None)) == "[1,?,2,3,4]"
    assert repr(fn(C, TensorFormat.NHWC_VECT_W, 1, [2, 3], 5)) == "[1,2,3,5,4]"
