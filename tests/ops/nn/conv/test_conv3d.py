"""Conv3D, Conv and the gradients of Conv3D; values are TensorFlow's or the definition's."""

import ml_dtypes
import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError

ATTRS = {"strides": [1, 1, 1, 1, 1], "padding": "VALID"}
NAN, INF = np.nan, np.inf


def line(*values, dtype=np.float32):
    """A volume with one plane and one row."""
    return np.array(values, dtype).reshape(1, 1, 1, -1, 1)


def window(*values, dtype=np.float32):
    return np.array(values, dtype).reshape(1, 1, -1, 1, 1)


def conv3d(x, filters, **attrs):
    return raw_ops.Conv3D(input=x, filter=filters, **{**ATTRS, **attrs})


def test_windows():
    x = np.arange(27, dtype=np.float32).reshape(1, 3, 3, 3, 1)
    filters = np.ones((2, 2, 2, 1, 1), np.float32)
    found = conv3d(x, filters)[0, ..., 0]
    assert found.tolist() == [[[52, 60], [76, 84]], [[124, 132], [148, 156]]]
    stepping = conv3d(x, filters, strides=[1, 2, 1, 2, 1], padding="SAME")[0, ..., 0]
    assert stepping.shape == (2, 3, 2)
    assert stepping[0, 0].tolist() == [52, 32]
    assert stepping[1, 2].tolist() == [24 + 25, 26]


@pytest.mark.parametrize(("dtype", "first"), [(np.float16, 2048), (ml_dtypes.bfloat16, 256)])
def test_narrow_types_round_each_sum(dtype, first):
    # first + 1 is first; the sum in float would be first + 4.
    x = np.array([first, 1, 1, 1, 1] * 2, dtype).reshape(1, 1, 1, 2, 5)
    found = conv3d(x, np.ones((1, 1, 1, 5, 1), dtype))
    assert found.dtype == dtype
    assert found.ravel().tolist() == [first, first]


VOLUME, FILTER = (1, 3, 3, 3, 2), (2, 2, 2, 2, 4)


@pytest.mark.parametrize(
    ("x", "filters", "attrs", "message"),
    [
        ((1, 2, 3, 3, 3), FILTER, {"data_format": "NCDHW"}, "only supports the NHWC"),
        ((3, 3, 3, 2), FILTER, {}, "input must be 5-dimensional"),
        (VOLUME, (2, 2, 2, 4), {}, "filter must be 5-dimensional"),
        ((1, 3, 3, 3, 4), FILTER, {}, "must match last dimension of input"),
        (VOLUME, (2, 2, 2, 2, 0), {}, "must not have zero elements"),
        (VOLUME, (5, 2, 2, 2, 4), {}, "would be negative"),
        (VOLUME, FILTER, {"dilations": [1, 2, 1, 1, 1]}, "dilation rates larger than 1"),
        (VOLUME, FILTER, {"strides": [1, 1, 1, 1, 2]}, "batch and depth"),
        (VOLUME, FILTER, {"strides": [1] * 6}, "must specify 5 dimensions"),
    ],
)
def test_refusals(x, filters, attrs, message):
    with pytest.raises(InvalidArgumentError, match=message):
        conv3d(np.ones(x), np.ones(filters), **attrs)


def test_what_is_refused_is_not_where_the_result_is_empty():
    x, filters = np.ones((0, 2, 5, 5, 5), np.float32), np.ones((3, 3, 3, 2, 4), np.float32)
    found = conv3d(x, filters, data_format="NCDHW", dilations=[1, 1, 2, 2, 2])
    assert found.shape == (0, 4, 1, 1, 1)


# Gradients


def by_input(sizes, filters, gradient, **attrs):
    return raw_ops.Conv3DBackpropInputV2(
        input_sizes=np.array(sizes), filter=filters, out_backprop=gradient, **{**ATTRS, **attrs}
    )


def by_filter(x, sizes, gradient, **attrs):
    return raw_ops.Conv3DBackpropFilterV2(
        input=x, filter_sizes=np.array(sizes, np.int32), out_backprop=gradient, **{**ATTRS, **attrs}
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gradient_by_input(dtype):
    sizes = np.array([1, 1, 1, 3, 1], dtype)
    found = by_input(sizes, window(1, 2), line(1, 10))
    assert found.ravel().tolist() == [1, 12, 20]


def test_gradient_by_filter():
    found = by_filter(line(1, 2, 3), [1, 1, 2, 1, 1], line(1, 10))
    assert found.ravel().tolist() == [21, 32]


@pytest.mark.parametrize(
    ("x", "gradient", "expected"),
    [
        ([INF, 1, 1, 1], [1, 1, 1, 1], [INF, NAN]),
        ([1, 1, 1, INF], [1, 1, 1, 1], [INF, INF]),
        ([1, 1, 1, 1], [1, 1, 1, INF], [INF, 3]),
    ],
)
def test_gradient_by_filter_multiplies_each_input_with_each_element(x, gradient, expected):
    found = by_filter(line(*x), [1, 1, 2, 1, 1], line(*gradient), padding="SAME")
    np.testing.assert_array_equal(found.ravel(), expected)


@pytest.mark.parametrize(
    ("sizes", "gradient", "attrs", "message"),
    [
        ([1, 1, 1, 3], (1, 1, 1, 2, 1), {}, "must be 5-dimensional"),
        ([1, 1, 1, 3, 2], (1, 1, 1, 2, 1), {}, "2 doesn't match filter input depth 1"),
        ([1, 1, 1, 3, 1], (1, 1, 1, 3, 1), {}, "doesn't match computed"),
        ([1, 1, 1, 3, 1], (1, 1, 1, 2, 1), {"data_format": "NCDHW"}, "only supports NDHWC"),
    ],
)
def test_refusals_of_the_gradient_by_input(sizes, gradient, attrs, message):
    with pytest.raises(InvalidArgumentError, match=message):
        by_input(sizes, window(1, 2).astype(np.float64), np.ones(gradient), **attrs)


@pytest.mark.parametrize("op", ["Conv3DBackpropInput", "Conv3DBackpropFilter"])
def test_ops_that_graphs_of_today_may_not_have(op):
    x = line(1, 2)
    with pytest.raises(UnimplementedError, match=f"Op {op} is not available in GraphDef version"):
        getattr(raw_ops, op)(input=x, filter=x, out_backprop=x, **ATTRS)


# Conv


def conv(x, filters, **attrs):
    attrs = {"strides": [1] * filters.ndim, "padding": "VALID", **attrs}
    return raw_ops.Conv(input=x, filter=filters, **attrs)


@pytest.mark.parametrize("leading", [(), (1,), (2,), (2, 3), (0, 3)])
def test_conv_with_any_batch_dimensions(leading):
    filters = window(1, 10).reshape(1, 2, 1, 1)
    x = np.broadcast_to(line(1, 2, 3).reshape(1, 3, 1), (*leading, 1, 3, 1))
    found = conv(x, filters, batch_dims=len(leading))
    assert found.shape == (*leading, 1, 2, 1)
    assert (found.reshape(-1, 2) == [21, 32]).all()


def test_conv_of_volumes():
    assert conv(line(1, 2, 3, dtype=np.int32), window(1, 10, dtype=np.int32)).ravel().tolist() == [
        21,
        32,
    ]
    explicit = [0, 0, 0, 0, 0, 0, 1, 0, 0, 0]
    padded = conv(line(1, 2), window(1, 10), padding="EXPLICIT", explicit_paddings=explicit)
    assert padded.ravel().tolist() == [10, 21]


@pytest.mark.parametrize(
    ("x", "filters", "attrs", "error", "message"),
    [
        ((1, 3, 3, 2), (2, 2, 2, 4), {"groups": 2}, UnimplementedError, "Grouped"),
        ((1, 3, 3, 4), (2, 2, 2, 4), {}, InvalidArgumentError, "4 vs 2"),
        ((1, 2, 3, 3), (2, 2, 2, 4), {"data_format": "CHANNELS_FIRST"}, UnimplementedError, "NHWC"),
        ((3, 3, 2), (2, 2, 2, 4), {}, InvalidArgumentError, "2 or 3 spatial dimensions but got 1"),
        ((1, 3, 3, 2), (2, 2, 2, 4), {"batch_dims": -1}, InvalidArgumentError, "spatial"),
        (
            (1, 3, 3, 2),
            (2, 2, 2, 2, 4),
            {},
            InvalidArgumentError,
            "filter must be rank 4 but got 5",
        ),
        ((1, 3, 3, 2), (2, 2, 2, 4), {"strides": [1, 1]}, InvalidArgumentError, "4 dimensions"),
        ((1, 3, 3, 2), (0, 2, 2, 4), {}, InvalidArgumentError, "zero elements"),
    ],
)
def test_refusals_of_conv(x, filters, attrs, error, message):
    with pytest.raises(error, match=message):
        conv(np.ones(x, np.float32), np.ones(filters, np.float32), **attrs)


# Groups, which XLA compiles


def grouped(x, filters, gradient):
    """A convolution and its gradients, of tensors of a graph."""
    attrs = {"strides": [1] * 5, "padding": "VALID"}
    return (
        raw_ops.Conv3D(input=x, filter=filters, **attrs),
        raw_ops.Conv3DBackpropInputV2(
            input_sizes=[1, 3, 3, 3, 4], filter=filters, out_backprop=gradient, **attrs
        ),
        raw_ops.Conv3DBackpropFilterV2(
            input=x, filter_sizes=[2, 2, 2, 2, 6], out_backprop=gradient, **attrs
        ),
    )


def steps_of(call, values):
    """What each result of a call in a graph is, computed by the CPU's kernels."""
    with opkernel.Graph().as_default() as graph:
        inputs = [opkernel.placeholder(opkernel.float32, value.shape) for value in values]
        results = call(*inputs)
    session = opkernel.Session(graph)
    return [lambda y=y: session.run(y, dict(zip(inputs, values, strict=True))) for y in results]


@pytest.mark.parametrize("is_nested", [False, True])
def test_groups_in_calls_that_have_to_be_compiled(is_nested, monkeypatch):
    monkeypatch.setenv("OPKERNEL_JIT", "never")
    body = opkernel.function(grouped) if is_nested else grouped
    call = opkernel.function(lambda *inputs: body(*inputs), jit_compile=True)
    x, filters, gradient = (
        np.random.default_rng(0).integers(-8, 9, shape).astype(np.float32)
        for shape in ((1, 3, 3, 3, 4), (2, 2, 2, 2, 6), (1, 2, 2, 2, 6))
    )
    convolved, by_input, by_filter = (step() for step in steps_of(call, [x, filters, gradient]))
    for group in (0, 1):
        channels, depth = slice(2 * group, 2 * group + 2), slice(3 * group, 3 * group + 3)
        alone = conv3d(x[..., channels], filters[..., depth])
        np.testing.assert_array_equal(convolved[..., depth], alone)
        expected = np.vdot(alone, gradient[..., depth])
        assert np.vdot(by_input[..., channels], x[..., channels]) == expected
        assert np.vdot(by_filter[..., depth], filters[..., depth]) == expected
    for refused in steps_of(grouped, [x, filters, gradient]):
        with pytest.raises(InvalidArgumentError, match=r"channels|depth"):
            refused()


@pytest.mark.parametrize(
    ("op", "dtype", "size", "window", "stride", "wanted"),
    [
        ("Conv3D", np.float64, 4, 1, 4, [2]),
        ("Conv3D", np.float64, 9, 2, 5, [32, 87]),
        ("Conv3D", np.float16, 10, 3, 5, [432, 987]),
        ("Conv3D", np.float32, 9, 2, 5, [21, 76]),
        ("Conv", np.float64, 5, 3, 5, [432]),
        ("Conv", np.float32, 9, 2, 5, [32, 87]),
    ],
)
def test_eigen_centers_windows_of_same_padding_that_strides_go_beyond(
    op, dtype, size, window, stride, wanted
):
    """oneDNN, which computes Conv3D of float, begins with the first element."""
    volume = np.arange(1, size + 1).astype(dtype).reshape(1, size, 1, 1, 1)
    filters = np.array([1, 10, 100][:window], dtype).reshape(window, 1, 1, 1, 1)
    attrs = {"strides": [1, stride, 1, 1, 1], "padding": "SAME"}
    output = getattr(raw_ops, op)(input=volume, filter=filters, **attrs)
    assert output.ravel().tolist() == wanted
