"""Products, and what our passes fuse with them, compiled by OpenVINO: the values of the CPU's kernels."""

import numpy as np
import pytest
from tests.engines.clusters import arguments_for, cpu_outputs, single_op

from opkernel.engines.openvino import OpenVinoEngine
from opkernel.errors import OpError
from opkernel.opdef import global_op_registry
from opkernel.runtime.engines.engine import ClusterArgument
from opkernel.testing.op_runs import all_attrs, node_of
from opkernel.testing.product_calls import product_calls

pytest.importorskip("openvino")

OPS = [
    "BatchMatMulV2",
    "Conv2D",
    "Conv2DBackpropInput",
    "Conv3D",
    "DepthwiseConv2dNative",
    "Einsum",
    "MatMul",
    "_FusedConv2D",
    "_FusedDepthwiseConv2dNative",
    "_FusedMatMul",
]


def accepted_calls(engine, op):
    """Calls with finite values that the engine takes and the kernel of the CPU does not refuse."""
    for call in product_calls(op, 60, seed=3):
        values = [np.asarray(value) for value in call.inputs]
        if not all(np.isfinite(one).all() for one in values):
            continue
        try:
            body = single_op(call.node_def, values)
            wanted = cpu_outputs(call.node_def, values)
        except OpError:
            continue
        if not engine.refusal(body.ret_nodes[0].inputs[0].op):
            yield body, values, wanted


@pytest.mark.parametrize("is_frozen", [False, True], ids=["parameters", "weights"])
@pytest.mark.parametrize("op", OPS)
def test_products(op, is_frozen):
    engine = OpenVinoEngine()
    count = 0
    for body, values, wanted in accepted_calls(engine, op):
        arguments = arguments_for(engine, body, values)
        if is_frozen:
            arguments[1:] = [ClusterArgument.of_constant(value) for value in values[1:]]
        found, _ = engine.compile(body, arguments).run(values)
        for got, want in zip(found, wanted, strict=True):
            assert got.shape == want.shape
            # Sums of a thousand products differ in the last digits of the largest of them.
            atol = (
                3e-4
                if want.size and np.abs(want).max() < 10
                else 1e-5 * np.abs(want).max(initial=1)
            )
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=atol)
        count += 1
    assert count > 10


@pytest.mark.parametrize("data_format", ["NHWC", "NCHW"])
@pytest.mark.parametrize("activation", ["Identity", "Relu"])
def test_a_normalisation_with_what_is_fused(activation, data_format):
    rng = np.random.default_rng(5)
    x, side = rng.standard_normal((2, 2, 4, 3, 8), np.float32)
    channels = 8 if data_format == "NHWC" else 4
    vectors = rng.uniform(0.5, 2, (4, channels)).astype(np.float32)
    attrs = {
        "activation_mode": activation,
        "data_format": data_format,
        "is_training": False,
        "num_side_inputs": 1,
        "epsilon": 0.01,
    }
    inputs = [x, *vectors, [side]]
    op_def = global_op_registry().look_up_op_def("_FusedBatchNormEx")
    node, values = node_of(op_def, all_attrs(op_def, inputs, attrs)), [x, *vectors, side]
    engine, body = OpenVinoEngine(), single_op(node, values)
    found, _ = engine.compile(body, arguments_for(engine, body, values)).run(values)

    shape = (-1,) if data_format == "NHWC" else (-1, 1, 1)
    scale, offset, mean, variance = (one.reshape(shape) for one in vectors)
    y = (x - mean) / np.sqrt(variance + 0.01) * scale + offset + side
    wanted = np.maximum(y, 0) if activation == "Relu" else y
    np.testing.assert_allclose(found[0], wanted, rtol=1e-5, atol=1e-5)
    for got, want in zip(found[1:5], [vectors[2], vectors[3]] * 2, strict=True):
        np.testing.assert_array_equal(got, want)
