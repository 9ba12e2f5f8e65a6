"""Kernels of neural networks and images serve a traced namespace too."""

import importlib
from typing import Any

import numpy as np
import pytest

from opkernel.kernel import FunctionKernel, create_op_kernel
from opkernel.opdef import NodeDefBuilder
from opkernel.runtime import CPU, LocalDevice
from opkernel.types import as_dtype

pytestmark = pytest.mark.jax

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(1, 3, 4, 2)
V, W = np.array([0.5, 2], np.float32), np.array([1, -1], np.float32)
ROWS = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
LABELS = np.array([0, 3, 1], np.int32)
RGB = np.linspace(0, 1, 36, dtype=np.float32).reshape(1, 3, 4, 3) ** 2
SIZE = np.array([5, 7], np.int32)
BOXES = np.array([[0.1, 0.2, 0.8, 0.9], [0, 0, 1.5, 1]], np.float32)
INDEX = np.array([0, 0], np.int32)
Case = tuple[str, list[Any], set[int], dict[str, Any]]

CASES: list[Case] = [  # op, inputs, which of them are in host memory, attrs
    *((f"{name}Grad", [X, X + 1], set(), {}) for name in ("Relu", "Relu6", "LeakyRelu")),
    *((f"{name}Grad", [X, X], set(), {}) for name in ("Elu", "Selu", "Softplus", "Softsign")),
    ("BiasAdd", [X, ROWS[0, :3]], set(), {"data_format": "NCHW"}),
    ("BiasAddGrad", [X], set(), {}),
    ("SoftmaxCrossEntropyWithLogits", [ROWS, abs(ROWS)], set(), {}),
    ("SparseSoftmaxCrossEntropyWithLogits", [ROWS, LABELS], set(), {}),
    ("FusedBatchNorm", [X, V, W, V, V], set(), {"is_training": False}),
    ("FusedBatchNormV3", [X, V, W, V, V], set(), {"exponential_avg_factor": 0.5}),
    ("FusedBatchNormGrad", [X, X * X, V, W, V], set(), {}),
    ("LRN", [X], set(), {"depth_radius": 1}),
    ("LRNGrad", [X, X + 1, X + 2], set(), {"depth_radius": 1}),
    ("DataFormatDimMap", [np.array([-3, 0, 3], np.int32)], set(), {}),
    ("DataFormatVecPermute", [np.array([1, 2, 3, 4], np.int32)], set(), {}),
    ("FakeQuantWithMinMaxArgs", [X], set(), {"min": -1.0, "max": 1.5}),
    ("FakeQuantWithMinMaxVarsPerChannel", [X, W - 2, V], set(), {}),
    ("FakeQuantWithMinMaxVarsPerChannelGradient", [X, X, W - 2, V], set(), {}),
    ("ResizeBilinear", [X, SIZE], {1}, {"half_pixel_centers": True}),
    ("ResizeBicubic", [X, SIZE], {1}, {}),
    ("ResizeNearestNeighbor", [X, SIZE], {1}, {"align_corners": True}),
    ("CropAndResize", [X, BOXES, INDEX, SIZE], {3}, {"extrapolation_value": 9.0}),
    ("RGBToHSV", [RGB], set(), {}),
    ("HSVToRGB", [RGB], set(), {}),
    ("AdjustContrastv2", [RGB, np.float32(2)], set(), {}),
    ("AdjustHue", [RGB, np.float32(0.3)], set(), {}),
    ("AdjustSaturation", [RGB, np.float32(0.5)], set(), {}),
]


def kernel_on(device: LocalDevice, op: str, inputs: list[Any], attrs: dict[str, Any]) -> Any:
    builder = NodeDefBuilder("n", op)
    for index, value in enumerate(inputs):
        builder.input(f"i{index}", 0, as_dtype(value.dtype))
    for name, value in attrs.items():
        builder.attr(name, value)
    kernel = create_op_kernel(device, builder.finalize())
    assert isinstance(kernel, FunctionKernel)
    return kernel.function


@pytest.mark.parametrize(("op", "inputs", "in_host_memory", "attrs"), CASES)
def test_the_same_body_serves_jax(
    op: str, inputs: list[Any], in_host_memory: set[int], attrs: dict[str, Any]
) -> None:
    jax = importlib.import_module("jax")
    function = kernel_on(
        LocalDevice("CPU", importlib.import_module("jax.numpy")), op, inputs, attrs
    )
    traced = [i for i in range(len(inputs)) if i not in in_host_memory]

    def of_traced(*values: Any) -> Any:
        arguments = list(inputs)
        for i, value in zip(traced, values, strict=True):
            arguments[i] = value
        return function(*arguments)

    got = jax.jit(of_traced)(*(inputs[i] for i in traced))
    want = kernel_on(CPU, op, inputs, attrs)(*inputs)
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (got, want)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(np.asarray(one), other, rtol=2e-5, atol=1e-5)
