"""Kernels that are written against the array namespace give TensorFlow's values with jax.numpy, too: recorded calls."""

import base64
import importlib
import json
from typing import Any

import numpy as np
import pytest
from tests.ops.test_recorded_values import CALLS, array_of, check_output, flat
from tests.recorded_nodes import arrays, graph_of

from opkernel.kernel import FunctionKernel, create_op_kernel
from opkernel.runtime import LocalDevice
from opkernel.types import as_dtype

pytestmark = pytest.mark.jax

OPS = (
    *("MatrixDiagV2", "MatrixDiagV3", "MatrixDiagPartV2", "MatrixDiagPartV3", "MatrixSetDiagV3"),
    *("TopKV2", "InTopKV2", "ExtractImagePatches", "ExtractVolumePatches", "MatMul"),
    *("BatchMatMulV2", "ResizeBilinear", "ResizeNearestNeighbor", "Dilation2D", "MaxPoolGrad"),
    *("SparseToDense", "Elu", "Softplus", "Softmax", "LRN", "BiasAddV1", "MatrixBandPart"),
)
MOST_CALLS = 2


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPS)
def test_values(op: str) -> None:
    jax = importlib.import_module("jax")
    device = LocalDevice("CPU", importlib.import_module("jax.numpy"))
    done = 0
    for line, _ in CALLS[op]:
        call = json.loads(line)
        if done == MOST_CALLS or "error" in call or not call["inputs"]:
            continue
        if any(one["dtype"] == "string" for one in arrays(call["inputs"])):
            continue
        done += 1
        kernel = create_op_kernel(device, graph_of(call, are_known=True).node[-1])
        assert isinstance(kernel, FunctionKernel)
        with jax.enable_x64(True):
            inputs = [taken(jax, value) for value in call["inputs"]]
            found = jax.tree.leaves(kernel.function(*inputs))
            for one, wanted in zip(found, flat(call["outputs"]), strict=True):
                check_output(recorded(one), wanted)


def recorded(result: Any) -> Any:
    """A result as recorded calls have it."""
    value = np.asarray(result)
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {"dtype": as_dtype(value.dtype).tf_name, "shape": [*value.shape], "b64": data}


def taken(jax: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [taken(jax, one) for one in value]
    array = array_of(
        value
    )  # integers may say shapes and axes, and are values while functions are traced
    return array if array.dtype.kind in "biu" else jax.numpy.asarray(array)
