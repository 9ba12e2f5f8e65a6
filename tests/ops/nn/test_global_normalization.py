import numpy as np
import pytest

from opkernel import raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.kernel import FunctionKernel, create_op_kernel
from opkernel.opdef import NodeDefBuilder
from opkernel.runtime import CPU
from opkernel.types import float32


def f32(value):
    return np.asarray(value, np.float32)


T = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
M, V = f32([1, 2]), f32([4, 16])
BETA, GAMMA = f32([10, 20]), f32([2, 8])
VERSION = 8  # the last GraphDef version with these ops


def function(op, inputs, scale_after_normalization):
    builder = NodeDefBuilder("n", op)
    for i in range(inputs):
        builder.input(f"i{i}", 0, float32)
    builder.attr("variance_epsilon", 0.0)
    builder.attr("scale_after_normalization", scale_after_normalization)
    node = builder.finalize()
    with pytest.warns(DeprecationWarning, match="cease to work in GraphDef version 9"):
        kernel = create_op_kernel(CPU, node, graph_def_version=VERSION)
    assert isinstance(kernel, FunctionKernel)
    return kernel.function


def test_old_graphs_only():
    with pytest.raises(UnimplementedError, match="BatchNormWithGlobalNormalization"):
        raw_ops.BatchNormWithGlobalNormalization(
            t=T,
            m=M,
            v=V,
            beta=BETA,
            gamma=GAMMA,
            variance_epsilon=0.0,
            scale_after_normalization=True,
        )


def test_values():
    norm = function("BatchNormWithGlobalNormalization", 5, True)
    np.testing.assert_allclose(norm(T, M, V, BETA, GAMMA), (T - M) * [1, 2] + BETA, rtol=1e-6)
    norm = function("BatchNormWithGlobalNormalization", 5, False)
    np.testing.assert_allclose(norm(T, M, V, BETA, GAMMA), (T - M) / [2, 4] + BETA, rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match="an element for each channel"):
        norm(T, M[:1], V, BETA, GAMMA)


@pytest.mark.parametrize("scale", [False, True])
def test_gradients(scale):
    grad = function("BatchNormWithGlobalNormalizationGrad", 5, scale)
    dy = T - 3
    gamma = GAMMA if scale else np.ones(2)
    dx, dm, dv, db, dg = grad(T, M, V, GAMMA, dy)
    root = np.sqrt(V)
    np.testing.assert_allclose(dx, dy * gamma / root, rtol=1e-6)
    np.testing.assert_allclose(dm, -(dy * gamma / root).sum(axis=(0, 1, 2)), rtol=1e-6)
    np.testing.assert_allclose(db, dy.sum(axis=(0, 1, 2)), rtol=1e-6)
    products = (dy * (T - M)).sum(axis=(0, 1, 2))
    np.testing.assert_allclose(dv, -products * gamma / (2 * V * root), rtol=1e-6)
    np.testing.assert_allclose(dg, products / root if scale else [0, 0], rtol=1e-6)
