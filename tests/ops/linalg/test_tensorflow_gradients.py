"""Gradients of matrix functions and Fourier transforms against those of TensorFlow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session
from opkernel.opdef import global_op_registry

pytestmark = pytest.mark.tensorflow

RNG = np.random.default_rng(5)
REAL = ["float64"]
BOTH = ["float64", "complex128"]


def drawn(dtype: str, *shape: int) -> Any:
    x = RNG.normal(size=shape)
    return (x + 1j * RNG.normal(size=shape)).astype(dtype) if dtype[0] == "c" else x.astype(dtype)


def positive(dtype: str, *shape: int) -> Any:
    x = drawn(dtype, *shape)
    return x @ np.conj(x.swapaxes(-1, -2)) + 2 * np.eye(shape[-1])


def regular(dtype: str, *shape: int) -> Any:
    return drawn(dtype, *shape) + 4 * np.eye(shape[-1])


CASES: list[tuple[str, Any, list[str], dict[str, Any]]] = [
    ("Cholesky", lambda t: [positive(t, 2, 3, 3)], BOTH, {}),
    ("MatrixInverse", lambda t: [regular(t, 2, 3, 3)], BOTH, {}),
    ("MatrixInverse", lambda t: [regular(t, 3, 3)], BOTH, {"adjoint": True}),
    ("MatrixDeterminant", lambda t: [regular(t, 2, 3, 3)], BOTH, {}),
    ("LogMatrixDeterminant", lambda t: [regular(t, 2, 3, 3)], BOTH, {}),
    ("MatrixSolve", lambda t: [regular(t, 2, 3, 3), drawn(t, 2, 3, 2)], BOTH, {}),
    ("MatrixSolve", lambda t: [regular(t, 3, 3), drawn(t, 3, 2)], BOTH, {"adjoint": True}),
    ("MatrixTriangularSolve", lambda t: [regular(t, 2, 3, 3), drawn(t, 3, 2)], BOTH, {}),
    (
        "MatrixTriangularSolve",
        lambda t: [regular(t, 3, 3), drawn(t, 2, 3, 2)],
        BOTH,
        {"lower": False, "adjoint": True},
    ),
    ("BandedTriangularSolve", lambda t: [drawn(t, 2, 4) + 3, drawn(t, 4, 2)], REAL, {}),
    (
        "BandedTriangularSolve",
        lambda t: [drawn(t, 2, 2, 4) + 3, drawn(t, 4, 2)],
        REAL,
        {"lower": False},
    ),
    ("MatrixSolveLs", lambda t: [drawn(t, 4, 3), drawn(t, 4, 2), np.float64(0.1)], REAL, {}),
    ("MatrixSolveLs", lambda t: [drawn(t, 3, 4), drawn(t, 3, 2), np.float64(0.1)], REAL, {}),
    ("Qr", lambda t: [drawn(t, 2, 4, 3)], BOTH, {}),
    ("Qr", lambda t: [drawn(t, 3, 3)], BOTH, {}),
    ("Qr", lambda t: [drawn(t, 2, 3, 5)], BOTH, {}),
    ("MatrixSquareRoot", lambda t: [positive(t, 2, 3, 3)], REAL, {}),
    (
        "TridiagonalMatMul",
        lambda t: [drawn(t, 2, 1, 4) for _ in range(3)] + [drawn(t, 2, 4, 3)],
        BOTH,
        {},
    ),
    (
        "TridiagonalSolve",
        lambda t: [drawn(t, 2, 3, 4) + np.float64([[0], [5], [0]]), drawn(t, 2, 4, 2)],
        BOTH,
        {},
    ),
    ("FFT", lambda t: [drawn(t, 2, 5)], ["complex128"], {}),
    ("FFT2D", lambda t: [drawn(t, 3, 5)], ["complex128"], {}),
    ("IFFT3D", lambda t: [drawn(t, 2, 3, 4)], ["complex128"], {}),
    ("RFFT", lambda t: [drawn(t, 2, 6), np.int32([6])], REAL, {"Tcomplex": "complex128"}),
    ("RFFT", lambda t: [drawn(t, 2, 5), np.int32([5])], REAL, {"Tcomplex": "complex128"}),
    ("RFFT2D", lambda t: [drawn(t, 2, 4, 6), np.int32([4, 6])], REAL, {"Tcomplex": "complex128"}),
    ("IRFFT", lambda t: [drawn(t, 2, 4), np.int32([6])], ["complex128"], {"Treal": "float64"}),
    (
        "IRFFT2D",
        lambda t: [drawn(t, 2, 4, 3), np.int32([4, 5])],
        ["complex128"],
        {"Treal": "float64"},
    ),
]


@pytest.mark.parametrize(("op", "make", "types", "attrs"), CASES)
def test_gradients_are_those_of_tensorflow(tf, op, make, types, attrs) -> None:
    for dtype in types:
        inputs = make(dtype)
        outputs = theirs(tf, op, inputs, attrs, None)[0]
        weights = [drawn(str(out.dtype), *out.shape) for out in outputs]
        _, wanted = theirs(tf, op, inputs, attrs, weights)
        for actual, expected in zip(ours(op, inputs, attrs, weights), wanted, strict=True):
            np.testing.assert_allclose(actual, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize(
    ("op", "shape", "attrs"),
    [
        ("SelfAdjointEigV2", (2, 3, 3), {}),
        ("SelfAdjointEigV2", (3, 3), {"compute_v": False}),
        ("Eig", (2, 3, 3), {"Tout": "complex128"}),
        ("Eig", (3, 3), {"Tout": "complex128", "compute_v": False}),
        ("Svd", (2, 3, 3), {}),
        ("Svd", (2, 3, 5), {}),
        ("Svd", (5, 3), {}),
        ("Svd", (3, 4), {"full_matrices": True}),
        ("Svd", (4, 3), {"full_matrices": True}),
        ("Svd", (3, 4), {"compute_uv": False}),
    ],
)
def test_gradients_of_what_no_phase_changes(tf, op, shape, attrs, dtype) -> None:
    """Vectors may differ in phase, values in order: their functions here do not."""
    x = drawn(dtype, *shape)
    if op == "SelfAdjointEigV2":
        x = x + np.conj(x.swapaxes(-1, -2))
    with tf.GradientTape() as tape:
        tensor = tf.constant(x)
        tape.watch(tensor)
        y = invariant(tf.raw_ops, op, tensor, attrs, tf.linalg.adjoint)
    wanted = tape.gradient(y, tensor).numpy()
    with Graph().as_default() as graph:
        tensor = opkernel.raw_ops.Placeholder(dtype=dtype, shape=list(shape), name="x")
        y = invariant(opkernel.raw_ops, op, tensor, attrs, adjoint)
        (gradient,) = opkernel.gradients(y, [tensor])
        actual = Session(graph).run(gradient, {"x:0": x})
    np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-7)


def adjoint(tensor: Any) -> Any:
    axes = [
        *range(len(tensor.shape.dims) - 2),
        len(tensor.shape.dims) - 1,
        len(tensor.shape.dims) - 2,
    ]
    turned = opkernel.raw_ops.Transpose(x=tensor, perm=axes)
    return opkernel.raw_ops.Conj(input=turned) if tensor.dtype.is_complex else turned


def invariant(raw: Any, op: str, x: Any, attrs: dict[str, Any], adjoint: Any) -> Any:
    """A real number made of values and of projectors on vectors."""
    outputs = getattr(raw, op)(input=x, **attrs)
    values, vectors = (
        outputs[0],
        outputs[1:] if attrs.get("compute_v", attrs.get("compute_uv", True)) else [],
    )
    total = _real_sum(raw, raw.Mul(x=values, y=values))
    size = min(int(d) for d in x.shape[-2:])
    for v in vectors[:1]:  # weighted by the place of the vector, times the values that order them
        v = raw.StridedSlice(
            input=v, begin=[0, 0], end=[0, size], strides=[1, 1], ellipsis_mask=1, begin_mask=0
        )
        weighted = raw.Mul(x=v, y=raw.ExpandDims(input=raw.Cast(x=values, DstT=v.dtype), axis=-2))
        product = raw.BatchMatMulV2(x=weighted, y=adjoint(v))
        total = raw.AddV2(x=total, y=_real_sum(raw, raw.Mul(x=product, y=product)))
    return total


def _real_sum(raw: Any, x: Any) -> Any:
    is_complex = "complex" in str(getattr(x.dtype, "string", getattr(x.dtype, "name", "")))
    real = raw.Real(input=x, Tout="float64") if is_complex else x
    return raw.Sum(
        input=real,
        axis=list(range(len(x.shape)))
        if not hasattr(x.shape, "dims")
        else [*range(len(x.shape.dims))],
    )


def names(op: str) -> list[str]:
    return [arg.name for arg in global_op_registry().look_up_op_def(op).input_arg]


def theirs(tf, op, inputs, attrs, weights):
    with tf.GradientTape() as tape:
        tensors = [tf.constant(x) for x in inputs]
        tape.watch(tensors)
        found = getattr(tf.raw_ops, op)(**dict(zip(names(op), tensors, strict=True)), **attrs)
        found = list(found) if isinstance(found, tuple) else [found]
    if weights is None:
        return [one.numpy() for one in found], None
    watched = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
    watched = watched[:-1] if op == "MatrixSolveLs" else watched
    gradients = tape.gradient(found, watched, output_gradients=[tf.constant(w) for w in weights])
    return None, [one.numpy() for one in gradients]


def ours(op, inputs, attrs, weights):
    with Graph().as_default() as graph:
        tensors = [
            opkernel.constant(x)
            if x.dtype == np.int32 or not x.ndim
            else opkernel.raw_ops.Placeholder(dtype=str(x.dtype), shape=list(x.shape), name=f"x{i}")
            for i, x in enumerate(inputs)
        ]
        found = getattr(opkernel.raw_ops, op)(**dict(zip(names(op), tensors, strict=True)), **attrs)
        found = list(found) if isinstance(found, list | tuple) else [found]
        fed = [t for t in tensors if t.op.type == "Placeholder"]
        gradients = opkernel.gradients(found, fed, grad_ys=[opkernel.constant(w) for w in weights])
        feeds = {t.name: inputs[int(t.op.name[1:])] for t in fed}
        return Session(graph).run(gradients, feeds)
