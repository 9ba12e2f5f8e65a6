"""Channels-first images in the types that TensorFlow computes by oneDNN. What is refused was recorded from TensorFlow."""

import ml_dtypes
import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, OpError, UnimplementedError
from opkernel.graph import Graph
from opkernel.optimization.optimize import optimize_graph
from opkernel.testing import run_op

BFLOAT16 = ml_dtypes.bfloat16


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(len(shape)).integers(-8, 9, shape).astype(dtype)


def first(value):
    """Of an image or a volume, or of one number for each of their dimensions: that with channels first."""
    return (
        [*value[:1], *value[-1:], *value[1:-1]]
        if isinstance(value, list)
        else np.moveaxis(value, -1, 1)
    )


def axes(*of_space):
    return [1, *of_space, 1]


IMAGE, VOLUME = numbers(2, 7, 8, 4), numbers(2, 4, 5, 6, 4)
FILTER, VOLUME_FILTER = numbers(3, 2, 4, 6), numbers(2, 3, 2, 4, 6)
PLAIN = {"strides": axes(1, 1), "padding": "SAME"}
UNEQUAL = {"strides": axes(2, 1), "padding": "VALID"}
GAPS = {"strides": axes(1, 1), "padding": "SAME", "dilations": axes(2, 3)}
EXPLICIT = {
    "strides": axes(1, 2),
    "padding": "EXPLICIT",
    "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0],
}
POOL = {"ksize": axes(3, 2), "strides": axes(2, 1), "padding": "SAME"}
VOLUMES = {"strides": axes(1, 2, 1), "padding": "SAME"}
VOLUME_POOL = {"ksize": axes(2, 3, 2), "strides": axes(2, 1, 2), "padding": "VALID"}
STATISTICS = [numbers(4) / 4 + 9 for _ in range(4)]

FORWARD = [
    *(("Conv2D", [IMAGE, FILTER], attrs) for attrs in (PLAIN, UNEQUAL, GAPS, EXPLICIT)),
    ("Conv2D", [IMAGE, FILTER[:, :, :2]], GAPS),
    *(
        ("DepthwiseConv2dNative", [IMAGE, FILTER[..., :2]], attrs)
        for attrs in (PLAIN, UNEQUAL, GAPS, EXPLICIT)
    ),
    ("Conv3D", [VOLUME, VOLUME_FILTER], VOLUMES),
    (
        "Conv3D",
        [VOLUME, VOLUME_FILTER],
        VOLUMES | {"strides": axes(1, 1, 1), "dilations": axes(1, 2, 1)},
    ),
    ("MaxPool", [IMAGE], POOL),
    ("AvgPool", [IMAGE], POOL),
    ("MaxPool3D", [VOLUME], VOLUME_POOL),
    ("AvgPool3D", [VOLUME], VOLUME_POOL),
    ("FusedBatchNormV3", [IMAGE, *STATISTICS], {"is_training": False}),
    (
        "FusedBatchNormGradV3",
        [IMAGE, IMAGE, *STATISTICS[:3], np.zeros(0, "f")],
        {"is_training": False},
    ),
]


def run(op, inputs, attrs, dtype=np.float32):
    given = [
        x.astype(dtype) if dtype != np.float32 and x.dtype.kind == "f" and x.ndim != 1 else x
        for x in inputs
    ]
    return run_op(op, given, attrs=attrs).outputs


def with_channels_first(op, inputs, attrs, dtype=np.float32):
    """The outputs of the op with all its images and attrs turned."""
    is_image = [x.ndim > 3 and x is not FILTER and x.shape[-1] == 4 for x in inputs]
    turned = [first(x) if image else x for x, image in zip(inputs, is_image, strict=True)]
    lists = {
        name: first(value)
        for name, value in attrs.items()
        if name in ("strides", "ksize", "dilations")
    }
    if "explicit_paddings" in attrs:
        pairs = np.reshape(attrs["explicit_paddings"], (4, 2)).tolist()
        lists["explicit_paddings"] = np.ravel(first(pairs)).tolist()
    layout = "NCDHW" if inputs[0].ndim == 5 else "NCHW"
    return run(op, turned, {**attrs, **lists, "data_format": layout}, dtype)


@pytest.mark.parametrize("dtype", [np.float32, BFLOAT16])
@pytest.mark.parametrize(("op", "inputs", "attrs"), FORWARD)
def test_same_as_with_channels_last(op, inputs, attrs, dtype):
    found, *others = with_channels_first(op, inputs, attrs, dtype)
    expected, *rest = run(op, inputs, attrs, dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, first(expected))
    for one, other in zip(others[:2], rest[:2], strict=True):
        np.testing.assert_array_equal(one, other)


def dilated(image, filters):
    """What each element of the filters sees with the dilations of GAPS."""
    padded = np.pad(image, [(0, 0), (2, 2), (1, 2), (0, 0)])
    return [
        (padded[:, 2 * i : 2 * i + 7, 3 * j : 3 * j + 8], filters[i, j])
        for i in range(3)
        for j in range(2)
    ]


def test_gaps_of_depthwise_convolutions():
    filters = FILTER[..., :2]
    found = raw_ops.DepthwiseConv2dNative(input=IMAGE, filter=filters, **GAPS)
    expected = sum(
        np.einsum("nhwc,cm->nhwcm", x, f).reshape(2, 7, 8, 8) for x, f in dilated(IMAGE, filters)
    )
    np.testing.assert_array_equal(found, expected)
    steps = raw_ops.DepthwiseConv2dNative(
        input=IMAGE, filter=filters, **GAPS | {"strides": axes(3, 1)}
    )
    np.testing.assert_array_equal(steps, np.asarray(expected)[:, ::3])


LAYOUTS = ["last", "first"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("op", "version", "x", "filters", "attrs"),
    [
        *(("Conv2D", "", IMAGE, FILTER, attrs) for attrs in (PLAIN, UNEQUAL, GAPS)),
        *(("Conv2D", "", IMAGE, FILTER[:, :, :2], attrs) for attrs in (PLAIN, UNEQUAL, GAPS)),
        *(("DepthwiseConv2dNative", "", IMAGE, FILTER[..., :2], attrs) for attrs in (PLAIN, UNEQUAL)),
        ("Conv3D", "V2", VOLUME, VOLUME_FILTER, VOLUMES),
        ("Conv3D", "V2", VOLUME, VOLUME_FILTER, {**VOLUMES, "strides": axes(1, 1, 1), "dilations": axes(1, 2, 2)}),
    ],
)  # fmt: skip
def test_gradients_are_adjoint(op, version, x, filters, attrs, layout):
    """<conv(x, f), g> is <x, by_input(f, g)>, and <f, by_filter(x, g)>."""
    if layout == "first":
        x = first(x)
        turned = {name: first(attrs[name]) for name in ("strides", "dilations") if name in attrs}
        attrs = {**attrs, **turned, "data_format": "NCHW" if x.ndim == 4 else "NCDHW"}
    forward = getattr(raw_ops, op)(input=x, filter=filters, **attrs)
    gradient = numbers(*forward.shape)
    by_input = getattr(raw_ops, f"{op}BackpropInput{version}")(
        input_sizes=np.array(x.shape, np.int32), filter=filters, out_backprop=gradient, **attrs
    )
    by_filter = getattr(raw_ops, f"{op}BackpropFilter{version}")(
        input=x, filter_sizes=np.array(filters.shape, np.int32), out_backprop=gradient, **attrs
    )
    expected = np.vdot(forward, gradient)
    assert (np.vdot(x, by_input), np.vdot(filters, by_filter)) == (expected, expected)


def test_gradient_by_input_with_rows_and_columns_only():
    gradient = numbers(2, 6, 7, 8)
    found = raw_ops.Conv2DBackpropInput(
        input_sizes=[7, 8], filter=FILTER, out_backprop=gradient, **PLAIN, data_format="NCHW"
    )
    assert found.shape == (2, 4, 7, 8)


def test_gradients_of_means():
    shape, gradient = np.array([2, 4, 7, 8], np.int32), numbers(2, 4, 4, 8)
    attrs = {
        name: first(value) if isinstance(value, list) else value for name, value in POOL.items()
    }
    found = raw_ops.AvgPoolGrad(orig_input_shape=shape, grad=gradient, data_format="NCHW", **attrs)
    means = raw_ops.AvgPool(value=first(IMAGE), data_format="NCHW", **attrs)
    np.testing.assert_allclose(np.vdot(found, first(IMAGE)), np.vdot(gradient, means), rtol=1e-5)


def test_a_chain_copies_nothing_between_kernels():
    inner = raw_ops.Conv2D(input=first(IMAGE), filter=FILTER, **PLAIN, data_format="NCHW")
    assert np.moveaxis(inner, 1, -1).flags.c_contiguous


@pytest.mark.parametrize(
    ("op", "dtype", "attrs", "error"),
    [
        *(("Conv2D", dtype, PLAIN, UnimplementedError) for dtype in (np.float64, np.float16, np.int32)),
        ("DepthwiseConv2dNative", np.float64, PLAIN, UnimplementedError),
        ("DepthwiseConv2dNative", np.float16, PLAIN | {"dilations": [1, 1, 2, 2]}, UnimplementedError),
        ("DepthwiseConv2dNative", np.float16, PLAIN | {"strides": [1, 1, 2, 1]}, InvalidArgumentError),
        *(("Conv3D", dtype, VOLUMES, InvalidArgumentError) for dtype in (np.float64, np.float16)),
        *(
            (op, dtype, POOL | {"ksize": [1, 1, 3, 2], "strides": [1, 1, 2, 1]}, InvalidArgumentError)
            for op, dtype in (
                ("MaxPool", np.float64), ("MaxPool", np.int32), ("AvgPool", np.float64), ("AvgPool", np.float16)
            )
        ),
        ("MaxPool", np.float32, {"ksize": [1, 2, 1, 1], "strides": [1, 2, 1, 1], "padding": "SAME"}, InvalidArgumentError),
        (
            "MaxPool",
            np.float32,
            {"ksize": [1, 1, 2, 2], "strides": [1, 1, 1, 1], "padding": "EXPLICIT", "explicit_paddings": [0, 0, 0, 0, 1, 0, 0, 1]},
            InvalidArgumentError,
        ),
    ],
)  # fmt: skip
def test_what_onednn_does_not_compute_is_refused(op, dtype, attrs, error):
    is_volume = op == "Conv3D"
    image = first(VOLUME if is_volume else IMAGE).astype(dtype)
    filters = {"Conv2D": FILTER, "Conv3D": VOLUME_FILTER, "DepthwiseConv2dNative": FILTER[..., :2]}
    inputs = [image, filters[op].astype(dtype)] if op in filters else [image]
    with pytest.raises(error):
        run_op(op, inputs, attrs={**attrs, "data_format": "NCDHW" if is_volume else "NCHW"})


@pytest.mark.parametrize("by", ["Input", "Filter"])
@pytest.mark.parametrize(("dtype", "padding"), [(np.float64, "SAME"), (np.float32, "EXPLICIT")])
def test_gradients_that_onednn_does_not_compute_are_refused(by, dtype, padding):
    gradient = numbers(2, 6, 7, 8, dtype=dtype)
    attrs = {"strides": [1] * 4, "padding": padding, "data_format": "NCHW"}
    if padding == "EXPLICIT":
        attrs["explicit_paddings"] = [0, 0, 0, 0, 1, 1, 1, 0]
    sizes = np.array([2, 4, 7, 8] if by == "Input" else [3, 2, 4, 6], np.int32)
    inputs = [sizes, FILTER.astype(dtype)] if by == "Input" else [first(IMAGE).astype(dtype), sizes]
    with pytest.raises(InvalidArgumentError, match="only supports NHWC"):
        run_op(f"Conv2DBackprop{by}", [*inputs, gradient], attrs=attrs)


def test_inputs_of_other_ranks_are_refused():
    with pytest.raises(InvalidArgumentError, match="4-dimensional"):
        raw_ops.Conv2D(input=IMAGE[0], filter=FILTER, **PLAIN, data_format="NCHW")
    with pytest.raises(InvalidArgumentError, match="4-dimensional"):
        raw_ops.MaxPool(input=IMAGE[0], **POOL | {"ksize": [1, 1, 2, 2], "strides": [1] * 4}, data_format="NCHW")  # fmt: skip


# Graphs: maxima have a gradient there only.


def net(x, layout):
    """A net of images with each kind of op."""
    turn = first if layout == "first" else list
    form = {"data_format": "NCHW" if layout == "first" else "NHWC"}
    halves = {"ksize": turn(axes(2, 2)), "strides": turn(axes(2, 2)), **form}
    steps = {"strides": turn(axes(2, 1)), "padding": "SAME", **form}
    y = raw_ops.Conv2D(input=x, filter=FILTER / 8, **steps)
    y = raw_ops.BiasAdd(value=y, bias=np.arange(6, dtype=np.float32), **form)
    y = raw_ops.MaxPool(input=y, padding="SAME", **halves)
    y = raw_ops.DepthwiseConv2dNative(input=y, filter=numbers(2, 2, 6, 1) / 8, **steps)
    return raw_ops.AvgPool(value=y, padding="SAME", **halves)


@pytest.mark.parametrize("optimize", [True, False])
def test_gradients_in_graphs(optimize):
    found = []
    for layout in LAYOUTS:
        value = first(IMAGE) if layout == "first" else IMAGE
        with Graph().as_default() as graph:
            x = opkernel.placeholder(opkernel.float32, value.shape)
            y = net(x, layout)
            (slope,) = opkernel.gradients(raw_ops.Square(x=y), x)
        session = opkernel.Session(graph, optimize=optimize)
        if layout == "first" and not optimize:
            with pytest.raises(OpError, match="MaxPoolingGradOp only supports NHWC"):
                session.run(slope, {x: value})
            return
        found.append(session.run([y, slope], {x: value}))
    for last, turned in zip(*found, strict=True):
        np.testing.assert_allclose(turned, first(last), rtol=1e-4, atol=1e-4)


def test_gradients_are_turned_once():
    """One transpose for each tensor that enters the net of channels-last ops, or leaves it."""
    with Graph().as_default() as graph:
        x = opkernel.placeholder(opkernel.float32, first(IMAGE).shape)
        y = net(x, "first")
        (slope,) = opkernel.gradients(raw_ops.Square(x=y), x)
    ops = [op.type for op in optimize_graph(graph, [y, slope], [x]).operations]
    assert ops.count("Transpose") == 4
    assert "DataFormatVecPermute" not in ops
