"""Kernels that move elements serve a traced namespace too; host inputs keep their values there."""

import importlib
from typing import Any

import numpy as np
import pytest

from opkernel.kernel import FunctionKernel, create_op_kernel
from opkernel.opdef import NodeDefBuilder
from opkernel.runtime import CPU, LocalDevice
from opkernel.types import as_dtype

pytestmark = pytest.mark.jax

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ONE, ZERO = np.float32(1), np.float32(0)
Case = tuple[str, list[Any], set[int], dict[str, Any]]


def i32(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def scalar(value: int) -> np.ndarray[Any, Any]:
    return np.array(value, np.int32)


PADDINGS = i32([0, 0], [1, 1], [0, 2])

CASES: list[Case] = [  # op, inputs, which of them are in host memory, attrs
    ("Reshape", [X, i32(4, -1)], {1}, {}),
    ("Squeeze", [X[:1]], set(), {}),
    ("ExpandDims", [X, scalar(1)], {1}, {}),
    ("Slice", [X, i32(0, 1, 1), i32(-1, 1, 2)], {1, 2}, {}),
    ("StridedSlice", [X, i32(0, 1), i32(0, 3), i32(1, 1)], {1, 2, 3}, {"shrink_axis_mask": 1}),
    ("ConcatV2", [[X, X], scalar(-1)], {1}, {"N": 2}),
    ("Pack", [[X, X]], set(), {"N": 2, "axis": 1}),
    ("Unpack", [X], set(), {"num": 2}),
    ("Split", [scalar(2), X], {0}, {"num_split": 2}),
    ("SplitV", [X, i32(1, 2), scalar(1)], {1, 2}, {"num_split": 2}),
    ("GatherV2", [X, i32(0, 2, 1), scalar(1)], {2}, {}),
    ("GatherV2", [X, i32([1, 2], [0, 1]), scalar(1)], {2}, {"batch_dims": 1}),
    ("GatherNd", [X, i32([0, 1], [1, 2])], set(), {}),
    ("Pad", [X, PADDINGS], {1}, {}),
    ("PadV2", [X, PADDINGS, np.float32(3)], {1, 2}, {}),
    ("MirrorPad", [X, PADDINGS], {1}, {"mode": "REFLECT"}),
    ("Tile", [X, i32(1, 2, 3)], {1}, {}),
    ("Transpose", [X, i32(2, 0, 1)], {1}, {}),
    ("ReverseV2", [X, i32(1)], {1}, {}),
    ("ReverseSequence", [X, i32(1, 2)], set(), {"seq_dim": 1}),
    ("OneHot", [i32(0, 2, 5), scalar(4), ONE, ZERO], {1}, {}),
    ("Fill", [i32(2, 3), np.float32(7)], {0}, {}),
    ("BroadcastTo", [X, i32(2, 2, 3, 4)], {1}, {}),
    ("SpaceToBatchND", [X, i32(2), i32([0, 1])], {1, 2}, {}),
    ("BatchToSpaceND", [X, i32(2), i32([0, 1])], {1, 2}, {}),
    ("DepthToSpace", [X[:, :, None]], set(), {"block_size": 2}),
    ("MatrixBandPart", [X, scalar(0), scalar(-1)], {1, 2}, {}),
    ("ZerosLike", [X], set(), {}),
    ("Shape", [X], set(), {}),
]


def kernel_on(device: LocalDevice, case: Case) -> FunctionKernel:
    op, inputs, _, attrs = case
    builder = NodeDefBuilder("n", op)
    for index, value in enumerate(inputs):
        if isinstance(value, list):
            names = [(f"i{index}_{j}", 0, as_dtype(v.dtype)) for j, v in enumerate(value)]
            builder.input_list(names)
        else:
            builder.input(f"i{index}", 0, as_dtype(value.dtype))
    for name, attr in attrs.items():
        builder.attr(name, attr)
    kernel = create_op_kernel(device, builder.finalize())
    assert isinstance(kernel, FunctionKernel)
    return kernel


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[3]}")
def test_a_traced_kernel_gives_the_same(case: Case) -> None:
    jax = importlib.import_module("jax")
    _, inputs, on_host, _ = case
    function = kernel_on(LocalDevice("CPU", importlib.import_module("jax.numpy")), case).function
    traced = [value for index, value in enumerate(inputs) if index not in on_host]

    def call(*values: Any) -> Any:
        rest = iter(values)
        given = [v if index in on_host else next(rest) for index, v in enumerate(inputs)]
        return function(*given)

    wanted = kernel_on(CPU, case).function(*inputs)
    got = jax.tree.leaves(jax.jit(call)(*traced))
    for value, want in zip(got, jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(np.asarray(value), want)
        assert value.dtype == want.dtype
