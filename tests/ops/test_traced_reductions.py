"""Reductions, scans and products serve a traced namespace too; axes keep their values there."""

import importlib
from typing import Any

import numpy as np
import pytest

from opkernel.kernel import FunctionKernel, create_op_kernel
from opkernel.opdef import NodeDefBuilder
from opkernel.runtime import CPU, LocalDevice
from opkernel.types import as_dtype, int32

pytestmark = pytest.mark.jax

X = np.array([[0.5, -2, 3, 1], [1, 4, -1, 0.25], [2, 2, 1, -3]], np.float32)
I32, F16, BOOL = X.astype(np.int32), X.astype(np.float16), X > 0
AXIS, AXES, LAST = np.int32(1), np.array([0, -1], np.int32), np.array([-1], np.int32)
NO_ROWS = np.zeros((3, 0), np.float32)

Case = tuple[str, list[Any], list[Any], dict[str, Any]]
CASES: list[Case] = [  # op, traced inputs, inputs of known value, attrs
    *(
        (op, [x], [axes], {"keep_dims": True})
        for op in ("Sum", "Prod", "Mean", "Max", "Min", "EuclideanNorm")
        for x, axes in ((X, AXES), (I32, LAST), (F16, LAST), (NO_ROWS, LAST))
    ),
    ("All", [BOOL], [LAST], {}),
    ("Any", [BOOL], [AXES], {}),
    ("L2Loss", [F16], [], {}),
    *(
        (op, [X], [AXIS], {"exclusive": exclusive, "reverse": not exclusive})
        for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp")
        for exclusive in (False, True)
    ),
    ("ArgMax", [X], [AXIS], {"output_type": int32}),
    ("ArgMin", [I32], [AXIS], {"output_type": int32}),
    ("MatMul", [F16, F16], [], {"transpose_b": True}),
    ("BatchMatMul", [X[None], X[None]], [], {"adj_x": True}),
    ("BatchMatMulV2", [X[None], X], [], {"adj_y": True}),
    ("Cross", [X[:, :3], X[:, 1:]], [], {}),
    ("Einsum", [[X, X]], [], {"N": 2, "equation": "...i,ji->j..."}),
    ("Einsum", [[X[:, :3]]], [], {"N": 1, "equation": "ii->i"}),
    ("Einsum", [[X]], [], {"N": 1, "equation": "ij->jj"}),
    ("InTopK", [X, np.array([0, 2, 3], np.int32)], [], {"k": 2}),
]


def kernel_on(device: LocalDevice, case: Case) -> FunctionKernel:
    op, traced, known, attrs = case
    builder = NodeDefBuilder("n", op)
    for index, value in enumerate([*traced, *known]):
        if isinstance(value, list):
            builder.input_list([(f"i{j}", 0, as_dtype(v.dtype)) for j, v in enumerate(value)])
        else:
            builder.input(f"i{index}", 0, as_dtype(value.dtype))
    for name, attr in attrs.items():
        builder.attr(name, attr)
    kernel = create_op_kernel(device, builder.finalize())
    assert isinstance(kernel, FunctionKernel)
    return kernel


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
@pytest.mark.filterwarnings("ignore:.*requested dtype int64.*:UserWarning")  # JAX without x64
def test_the_same_body_serves_jax(case: Case) -> None:
    jax = importlib.import_module("jax")
    _, traced, known, _ = case
    on_jax = kernel_on(LocalDevice("CPU", importlib.import_module("jax.numpy")), case).function
    with np.errstate(all="ignore"):
        want = kernel_on(CPU, case).function(*traced, *known)
    got = jax.jit(lambda *inputs: on_jax(*inputs, *known))(*traced)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-6)
