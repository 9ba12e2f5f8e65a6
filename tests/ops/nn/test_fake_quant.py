import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError

NAN, INF = np.nan, np.inf
X = np.array([-INF, -1, 0, 0.4, 1, INF, NAN], np.float32)


def f32(value):
    return np.asarray(value, np.float32)


def args(x, low, high, **attrs):
    return raw_ops.FakeQuantWithMinMaxArgs(inputs=f32(x), min=low, max=high, **attrs)


def of_vars(x, low, high, **attrs):
    return raw_ops.FakeQuantWithMinMaxVars(inputs=f32(x), min=f32(low), max=f32(high), **attrs)


def per_channel(x, low, high, **attrs):
    return raw_ops.FakeQuantWithMinMaxVarsPerChannel(
        inputs=f32(x), min=f32(low), max=f32(high), **attrs
    )


def gradient(dy, x, low, high, kind="Vars"):
    op = getattr(raw_ops, f"FakeQuantWithMinMax{kind}Gradient")
    return op(gradients=f32(dy), inputs=f32(x), min=f32(low), max=f32(high))


@pytest.mark.parametrize("quantize", [args, of_vars])
def test_rounds_to_the_grid(quantize):
    """Two bits between -1 and 2: the values -1, 0, 1, 2."""
    x = [-5, -0.6, -0.4, 0.49, 0.51, 1.9, 7]
    assert quantize(x, -1.0, 2.0, num_bits=2).tolist() == [-1, -1, 0, 0, 1, 2, 2]
    narrow = quantize(x, 0.0, 2.0, num_bits=2, narrow_range=True)
    assert narrow.tolist() == [0, 0, 0, 0, 1, 2, 2]


def test_the_range_is_moved_so_that_it_holds_0():
    result = args([-1, 0, 1], -0.1, 6.3, num_bits=6)
    np.testing.assert_allclose(result, [-0.1015873, 0, 1.015873], rtol=1e-5)
    assert of_vars([1, 0], 1, 2).tolist() == [1, 0]


@given(st.floats(-100, -0.01), st.floats(0.01, 100), st.integers(2, 16))
def test_0_and_quantised_values_stay(low, high, num_bits):
    x = np.linspace(low * 2, high * 2, 17, dtype=np.float32)
    once = of_vars(x, low, high, num_bits=num_bits)
    assert of_vars([0], low, high, num_bits=num_bits).tolist() == [0]
    np.testing.assert_allclose(
        of_vars(once, low, high, num_bits=num_bits), once, rtol=1e-5, atol=1e-6 * (high - low)
    )


def test_edges():
    np.testing.assert_allclose(args(X, -6.0, 6.0)[[0, 2, 5, 6]], [-6.0235295, 0, 5.9764705, NAN])
    assert of_vars([1, NAN], 0, 0).tolist() == [0, 0]
    assert np.isnan(of_vars([1, 2], 1, 1)).all()
    assert per_channel([[1, 2]], [-1, 0], [1, 0])[0, 1] == 0


def test_per_channel_is_each_channel_alone():
    x = np.linspace(-3, 3, 24).reshape(2, 4, 3)
    low, high = [-1, -2, -0.5], [1, 0.5, 4]
    result = per_channel(x, low, high, num_bits=4)
    for channel in range(3):
        alone = of_vars(x[..., channel], low[channel], high[channel], num_bits=4)
        np.testing.assert_array_equal(result[..., channel], alone)


def test_gradients_pass_inside_of_the_range():
    x = [NAN, INF, -INF, 0.5, 0]
    dx, low, high = gradient([1, 2, 3, 4, 5], x, -1, 1)
    assert dx.tolist() == [0, 0, 0, 4, 5]
    assert (low, high) == (3, 2)
    of_args = raw_ops.FakeQuantWithMinMaxArgsGradient(
        gradients=f32([1, 2, 3, 4, 5]), inputs=f32(x), min=-1.0, max=1.0
    )
    assert of_args.tolist() == [0, 0, 0, 4, 5]
    dx, low, high = gradient([1, 2], [7, -7], 0, 0)
    assert (dx.tolist(), low, high) == ([1, 2], 0, 0)


def test_gradients_per_channel():
    dx, low, high = gradient(
        [[1, 2], [3, 4]], [[-3, 2], [0.5, 7]], [-1, 0], [1, 0], "VarsPerChannel"
    )
    assert dx.tolist() == [[0, 2], [3, 4]]
    assert (low.tolist(), high.tolist()) == ([1, 0], [0, 0])


def test_infinite_gradients_leave_a_trace():
    assert np.isnan(gradient([INF], [7], -1, 1).backprops_wrt_input).all()


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: args([1], 2.0, 2.0), "min has to be smaller than max, was: 2 >= 2"),
        (lambda: args([1], -1.0, 2.0, num_bits=1), "num_bits must be between 2 and 16"),
        (lambda: of_vars([1], -1, 1, num_bits=17), "num_bits must be between 2 and 16"),
        (lambda: of_vars([1], [-1], 1), "`min` must be rank 0 but is rank 1"),
        (lambda: of_vars([1], -1, [[1]]), "`max` must be rank 0 but is rank 2"),
        (lambda: per_channel([1], -1, 1), "`min` must be rank 1 but is rank 0"),
        (lambda: per_channel([[1, 2]], [-1], [1, 1]), "min has incorrect size, expected 2 was 1"),
        (lambda: per_channel(1, [-1], [1]), "min has incorrect size"),
        (lambda: gradient([1, 2], [1], -1, 1), "gradient and input must be the same size"),
    ],
)
def test_what_is_refused(run, message):
    with pytest.raises(InvalidArgumentError, match=message):
        run()
