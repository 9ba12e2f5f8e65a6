"""Numbers of generators that are variables: literals from TensorFlow's CPU."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.graph import while_loop
from opkernel.types import as_dtype

pytestmark = pytest.mark.jax

STATE = np.array([-3, 5, 12345])
AFTER = [1533, 6, 12345]
"""The state behind 6 numbers: each takes 256 blocks, and the lower half of the counter overflows."""

UNIFORM = [0.5235838890075684, 0.7685850858688354, 0.08166885375976562]
UNIFORM += [0.1644120216369629, 0.8550624847412109, 0.00596010684967041]
NORMAL = [-1.49981051522735, -1.0421434008920274, 0.14311617958975537]
NORMAL += [-0.5718693867285712, -0.8649605388934763, 0.4907921884981478]
TRUNCATED = [-1.1298447847366333, 0.1325390636920929, 1.9224107265472412]
TRUNCATED += [1.1465176343917847, 0.9353695511817932, 0.5286640524864197]
FULL = [700646604, -1998429953, 2005562400, -1860891788, -1192398160, 201376589]


def drawn(op: str, algorithm: int = 1, **given: Any) -> tuple[np.ndarray, list[int]]:
    """Six numbers of a generator, and its state behind them."""
    state = opkernel.Variable(STATE)

    @opkernel.function(jit_compile=True)
    def draw() -> Any:
        shape = np.array([2, 3], np.int32)
        return getattr(raw_ops, op)(
            resource=state.handle, algorithm=np.int64(algorithm), shape=shape, **given
        )

    found = draw()
    assert found.shape == (2, 3)
    return found.reshape(-1), state.numpy().tolist()


@pytest.mark.parametrize(
    ("op", "given", "expected"),
    [
        ("StatefulUniform", {"dtype": "float"}, UNIFORM),
        ("StatefulUniformFullInt", {"dtype": "int32"}, FULL),
        (
            "StatefulUniformInt",
            {"minval": np.int64(-10), "maxval": np.int64(10)},
            [2, -2, -10, -3, 8, -6],
        ),
    ],
)
def test_the_same_bits(op, given, expected):
    numbers, after = drawn(op, **given)
    assert numbers.tolist() == expected
    assert after == AFTER


@pytest.mark.parametrize(
    ("op", "dtype", "expected", "tolerance"),
    [
        ("StatefulStandardNormalV2", "double", NORMAL, 1e-12),
        ("StatefulTruncatedNormal", "float", TRUNCATED, 1e-5),
        ("StatefulTruncatedNormal", "half", TRUNCATED, 1e-3),
    ],
)
def test_normal_numbers(op, dtype, expected, tolerance):
    numbers, after = drawn(op, dtype=dtype)
    assert numbers.dtype == as_dtype(dtype).numpy_dtype
    np.testing.assert_allclose(numbers, expected, rtol=tolerance)
    assert after == AFTER


def test_skips():
    state = opkernel.Variable(STATE)

    @opkernel.function(jit_compile=True)
    def skip(count):
        raw_ops.RngSkip(resource=state.handle, algorithm=np.int64(1), delta=count)
        return raw_ops.RngReadAndSkip(
            resource=state.handle, alg=np.int32(3), delta=raw_ops.Cast(x=count, DstT="uint64")
        )

    assert skip(np.int64(7)).tolist() == [1789, 6, 12345]
    assert state.numpy().tolist() == [1789 + 7 * 256, 6, 12345]


def test_each_turn_of_a_loop_draws_other_numbers():
    state = opkernel.Variable(STATE)

    @opkernel.function(jit_compile=True)
    def total(turns):
        def turn(i, numbers):
            more = raw_ops.StatefulUniformFullInt(
                resource=state.handle,
                algorithm=np.int64(1),
                shape=np.array([1]),
                dtype="uint64",
            )
            return i + np.int32(1), numbers ^ more

        start = [np.int32(0), np.zeros(1, np.uint64)]
        return while_loop(lambda i, _: raw_ops.Less(x=i, y=turns), turn, start)[1]

    first, both = total(np.int32(1)), total(np.int32(2))
    assert first.tolist() == [9863552782928381132]
    assert state.numpy().tolist() == [-3 + 3 * 256, 6, 12345]
    assert len({int(first[0]), int(both[0])}) == 2


def test_what_is_refused():
    with pytest.raises(UnimplementedError, match="ThreeFry"):
        drawn("StatefulUniform", algorithm=2)
    with pytest.raises(InvalidArgumentError, match="Unsupported algorithm id: 7"):
        drawn("StatefulUniform", algorithm=7)
