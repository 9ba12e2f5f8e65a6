"""Half and bfloat16: rounded after each step, as TensorFlow's kernels are.

The numbers are TensorFlow's.
"""

import inspect

import ml_dtypes
import numpy as np
import pytest

from opkernel import raw_ops

X = [-2.5, -0.75, -0.001, 0.3, 2.25, 6.5, -0.2, 1.5]
Y = [0.4, -1.75, 3.0, 0.6, -0.9, 0.1, 1.1, -3.25]
POSITIVE = ("Xlogy", "Xlog1py")  # of Y the magnitudes
ROWS = ("Softmax", "LogSoftmax")  # of X three times, the first eight results
DTYPES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]

# fmt: off
RECORDED = {
    "Sigmoid": ([0.07586669921875, 0.32080078125, 0.499755859375, 0.57421875, 0.90478515625, 0.99853515625, 0.450439453125, 0.8173828125], [0.076171875, 0.322265625, 0.5, 0.578125, 0.90625, 1.0, 0.451171875, 0.81640625]),
    "Elu": ([-0.91796875, -0.52734375, -0.0009765625, 0.300048828125, 2.25, 6.5, -0.18115234375, 1.5], [-0.91796875, -0.52734375, 0.0, 0.30078125, 2.25, 6.5, -0.1796875, 1.5]),
    "Selu": ([-1.61328125, -0.9267578125, -0.00171661376953125, 0.315185546875, 2.36328125, 6.828125, -0.318359375, 1.576171875], [-1.6171875, -0.92578125, 0.0, 0.314453125, 2.359375, 6.8125, -0.31640625, 1.5703125]),
    "Softplus": ([0.07891845703125, 0.386962890625, 0.69287109375, 0.8544921875, 2.349609375, 6.5, 0.59814453125, 1.701171875], [0.07861328125, 0.38671875, 0.69140625, 0.85546875, 2.34375, 6.5, 0.59765625, 1.6953125]),
    "Softsign": ([-0.71435546875, -0.428466796875, -0.00099945068359375, 0.2308349609375, 0.6923828125, 0.86669921875, -0.1666259765625, 0.60009765625], [-0.71484375, -0.427734375, -0.00099945068359375, 0.2314453125, 0.69140625, 0.8671875, -0.166015625, 0.6015625]),
    "Xlogy": ([2.291015625, -0.419677734375, -0.0010986328125, -0.1531982421875, -0.2373046875, -14.96875, -0.01898193359375, 1.767578125], [2.28125, -0.41796875, -0.0010986328125, -0.15234375, -0.240234375, -14.9375, -0.0194091796875, 1.765625]),
    "Xlog1py": ([-0.8408203125, -0.7587890625, -0.0013875961303710938, 0.1409912109375, 1.443359375, 0.619140625, -0.1483154296875, 2.171875], [-0.83984375, -0.7578125, -0.00138092041015625, 0.1416015625, 1.4375, 0.6171875, -0.1484375, 2.171875]),
    "Xdivy": ([-6.25, 0.428466796875, -0.00033354759216308594, 0.5, -2.5, 65.0, -0.181884765625, -0.46142578125], [-6.25, 0.427734375, -0.0003337860107421875, 0.5, -2.5, 65.0, -0.181640625, -0.4609375]),
    "SquaredDifference": ([8.4140625, 1.0, 9.015625, 0.09002685546875, 9.921875, 40.9375, 1.689453125, 22.5625], [8.4375, 1.0, 9.0, 0.09033203125, 9.9375, 41.0, 1.703125, 22.5]),
    "SigmoidGrad": ([-3.5, 2.296875, -0.0030040740966796875, 0.1260986328125, 2.53125, -3.57421875, -0.263916015625, 2.4375], [-3.5, 2.296875, -0.00299072265625, 0.1259765625, 2.53125, -3.578125, -0.265625, 2.4375]),
    "TanhGrad": ([-2.099609375, -0.765625, 3.0, 0.54638671875, 3.65625, -4.125, 1.0556640625, 4.0625], [-2.109375, -0.765625, 3.0, 0.546875, 3.65625, -4.125, 1.0546875, 4.0625]),
    "SqrtGrad": ([-0.0799560546875, 1.166015625, -1499.0, 1.0, -0.199951171875, 0.0076904296875, -2.75, -1.0830078125], [-0.080078125, 1.171875, -1504.0, 1.0, -0.2001953125, 0.007720947265625, -2.75, -1.0859375]),
    "RsqrtGrad": ([3.125, -0.369140625, 0.0, -0.0081024169921875, 5.125, -13.7265625, 0.00439453125, 5.484375], [3.125, -0.369140625, 1.4915713109076023e-09, -0.0081787109375, 5.09375, -13.75, 0.004425048828125, 5.5]),
    "ReciprocalGrad": ([-2.5, 0.984375, -3.039836883544922e-06, -0.05401611328125, 4.5546875, -4.22265625, -0.0439453125, 7.3125], [-2.5, 0.984375, -2.995133399963379e-06, -0.054443359375, 4.5625, -4.21875, -0.044189453125, 7.3125]),
    "EluGrad": ([-2.5, 0.5625, -0.0010004043579101562, 0.300048828125, 0.2252197265625, 6.5, -0.199951171875, -3.375], [-2.5, 0.5625, -0.00099945068359375, 0.30078125, 0.228515625, 6.5, -0.2001953125, -3.375]),
    "SeluGrad": ([-2.626953125, -0.005859375, -0.0010509490966796875, 0.315185546875, 1.9306640625, 6.828125, -0.2100830078125, -2.23828125], [-2.625, -0.005859375, -0.00104522705078125, 0.314453125, 1.9375, 6.8125, -0.2099609375, -2.234375]),
    "SoftplusGrad": ([-1.4970703125, -0.11102294921875, -0.0009527206420898438, 0.1937255859375, 0.650390625, 3.4140625, -0.1500244140625, 0.05596923828125], [-1.4921875, -0.111328125, -0.00095367431640625, 0.1943359375, 0.65234375, 3.40625, -0.150390625, 0.05615234375]),
    "SoftsignGrad": ([-1.2744140625, -0.09918212890625, -6.252527236938477e-05, 0.11724853515625, 0.623046875, 5.375, -0.04534912109375, 0.08306884765625], [-1.28125, -0.09912109375, -6.246566772460938e-05, 0.1171875, 0.625, 5.375, -0.045654296875, 0.08349609375]),
    "Softmax": ([4.00543212890625e-05, 0.00023055076599121094, 0.00048804283142089844, 0.0006594657897949219, 0.00463104248046875, 0.32470703125, 0.0004000663757324219, 0.0021877288818359375], [3.981590270996094e-05, 0.00022983551025390625, 0.0004863739013671875, 0.000667572021484375, 0.004638671875, 0.32421875, 0.0004024505615234375, 0.0021820068359375]),
    "LogSoftmax": ([-10.125, -8.375, -7.625, -7.32421875, -5.375, -1.125, -7.82421875, -6.125], [-10.125, -8.375, -7.625, -7.3125, -5.375, -1.125, -7.8125, -6.125]),
}
# fmt: on


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", RECORDED)
def test_steps_are_rounded_one_by_one(op, dtype):
    x, y = np.array(X, dtype), np.array(Y, dtype)
    call = getattr(raw_ops, op)
    names = [*inspect.signature(call).parameters]
    if op in ROWS:
        x = np.tile(x, 3)[np.newaxis]
    inputs = x, np.abs(y) if op in POSITIVE else y
    found = call(**dict(zip(names[: names.index("name")], inputs, strict=False)))
    assert found.dtype == dtype
    expected = np.array(RECORDED[op][DTYPES.index(dtype)], dtype)
    np.testing.assert_array_equal(found.reshape(-1)[:8], expected)


# fmt: off
RECORDED_FEW = {
    "SigmoidGrad": ([0.357177734375, -0.71435546875, 3.935546875], [0.357421875, -0.71484375, 3.9375]),
    "SqrtGrad": ([2.833984375, -0.428466796875, -0.60546875], [2.828125, -0.4296875, -0.60546875]),
    "RsqrtGrad": ([-0.0229644775390625, 0.10296630859375, 7.89453125], [-0.0230712890625, 0.1025390625, 7.90625]),
}
# fmt: on


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", RECORDED_FEW)
def test_elements_that_fill_no_packet(op, dtype):
    """Eigen multiplies these in another order, the last ones of many, too."""
    y, dy = np.array([0.3, -0.7, 1.9], dtype), np.array([1.7, 0.6, -2.3], dtype)
    expected = np.array(RECORDED_FEW[op][DTYPES.index(dtype)], dtype)
    call = getattr(raw_ops, op)
    np.testing.assert_array_equal(call(y=y, dy=dy), expected)
    before = np.ones(16, dtype)
    many = call(y=np.concatenate([before, y]), dy=np.concatenate([before, dy]))
    np.testing.assert_array_equal(many[16:], expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sums_of_rows_are_those_of_each_row(dtype):
    """Where packets of the whole tensor are cut does not matter to short rows."""
    x = np.random.default_rng(0).normal(size=(9, 203)).astype(dtype)
    whole = raw_ops.Softmax(logits=x)
    for row, expected in zip(x, whole, strict=True):
        np.testing.assert_array_equal(raw_ops.Softmax(logits=row), expected)


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", RECORDED)
def test_many_values(op, dtype, tf):
    """All halves, for ops of two tensors beside others; exp and log differ in one of some thousand."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    x, y = bits.view(dtype), np.random.default_rng(0).permutation(bits).view(dtype)
    tiny = np.float32(2e-38) if dtype != np.float16 else 0  # flushed to zero, at some step
    x, y = (np.where(np.abs(v.astype(np.float32)) < tiny, dtype.type(0), v) for v in (x, y))
    if op in ROWS:
        x = np.random.default_rng(0).normal(size=(128, 512)).astype(dtype)
    names = [*inspect.signature(getattr(raw_ops, op)).parameters]
    inputs = dict(zip(names[: names.index("name")], (x, y), strict=False))
    with np.errstate(all="ignore"):
        ours = getattr(raw_ops, op)(**inputs).astype(np.float32)
    theirs = getattr(tf.raw_ops, op)(**inputs).numpy().astype(np.float32)
    normal = ~((np.abs(theirs) < 2.4e-38) & (np.abs(ours) < 2.4e-38))
    wrong = normal & (ours != theirs) & ~(np.isnan(ours) & np.isnan(theirs))
    assert wrong.mean() <= (2e-2 if dtype != np.float16 and op.endswith("Grad") else 2e-4)
