"""Gradients of matrix functions, Fourier transforms, products, parts and choices against finite differences.

Where a result has signs or phases of its own, what does not depend on them is differentiated.
"""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.testing import check_gradient

RNG = np.random.default_rng(11)
Call = tuple[str, list[Any], dict[str, Any]]


def real(*shape: int) -> Any:
    return RNG.normal(size=shape)


def complex_(*shape: int) -> Any:
    return real(*shape) + 1j * real(*shape)


def square(make: Any, *shape: int) -> Any:
    """Matrices whose eigenvalues are apart from each other and from 0."""
    size = shape[-1]
    return 0.2 * make(*shape, size) + np.diag(np.arange(1.0, size + 1))


def positive(make: Any, *shape: int) -> Any:
    x = make(*shape, shape[-1])
    return x @ np.conj(np.swapaxes(x, -1, -2)) + np.diag(np.arange(1.0, shape[-1] + 1))


def i32(*values: Any) -> Any:
    return np.array([*values], np.int32)


def number(value: int) -> Any:
    return np.array(value, np.int32)


def matrices() -> list[Call]:
    calls: list[Call] = []
    shape = 2, 3
    for make in (real, complex_):
        a, b = square(make, *shape), make(*shape, 2)
        calls.append(("MatrixInverse", [a], {}))
        if make is real:  # TensorFlow's rule is not the derivative of complex determinants
            calls.append(("MatrixDeterminant", [a], {}))
        calls += [("MatrixInverse", [a], {"adjoint": True}), ("MatrixSquareRoot", [a], {})]
        calls += [("MatrixSolve", [a, b], {"adjoint": flag}) for flag in (False, True)]
        for lower in (False, True):
            for adjoint in (False, True):
                attrs = {"lower": lower, "adjoint": adjoint}
                calls.append(("MatrixTriangularSolve", [a, b], attrs))
                bands = make(*shape[:-1], 2, 3) + np.array([[2.0], [0.0]])[:: 1 if lower else -1]
                calls.append(("BandedTriangularSolve", [bands, b], attrs))
        diagonals = make(*shape[:-1], 3, 3) + np.array([[0.0], [4.0], [0.0]])
        for pivoting in (False, True) if make is real else ():
            calls.append(("TridiagonalSolve", [diagonals, b], {"partial_pivoting": pivoting}))
        one = [make(*shape[:-1], 1, 3) for _ in range(3)]
        calls.append(("TridiagonalMatMul", [*one, b], {}))
        fixed = make(2, 1, 2)
        calls.append(("MatrixTriangularSolve", [a, np.broadcast_to(fixed, b.shape)], {}))
    return calls


@pytest.mark.parametrize("call", matrices(), ids=lambda call: call[0])
def test_matrix_functions(call: Call) -> None:
    check_gradient(call[0], call[1], call[2])


def check_slope(op: str, inputs: list[Any], directions: list[Any], attrs: dict[str, Any]) -> None:
    """Compare gradients by the first inputs with differences along directions; the shapes are known."""
    op_def = opkernel.opdef.global_op_registry().look_up_op_def(op)
    with opkernel.Graph().as_default() as graph:
        fed = [opkernel.placeholder(opkernel.types.as_dtype(x.dtype), x.shape) for x in inputs]
        names = [arg.name for arg in op_def.input_arg]
        y = getattr(opkernel.raw_ops, op)(**dict(zip(names, fed, strict=True)), **attrs)
        weights = np.cos(np.arange(y.shape.num_elements())).reshape(y.shape.as_list())
        loss = opkernel.raw_ops.Mul(x=y, y=weights.astype(inputs[0].dtype))
        ones = np.ones(y.shape.as_list(), inputs[0].dtype)
        gradients = opkernel.gradients(
            loss, fed[: len(directions)], grad_ys=[opkernel.constant(ones)]
        )

    def at(step: float) -> tuple[float, list[Any]]:
        moved = [x + step * d for x, d in zip(inputs, directions, strict=False)]
        values = [*moved, *inputs[len(moved) :]]
        found, slopes = session.run([loss, gradients], dict(zip(fed, values, strict=True)))
        return float(np.sum(found).real), slopes

    with opkernel.Session(graph) as session:
        slopes = at(0)[1]
        slope = sum(np.sum(np.conj(g) * d).real for g, d in zip(slopes, directions, strict=True))
        wanted = (at(1e-6)[0] - at(-1e-6)[0]) / 2e-6
    np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (2, 3, 2)])
@pytest.mark.parametrize("make", [real, complex_])
def test_least_squares(shape: Any, make: Any) -> None:
    inputs = [make(*shape), make(*shape[:-1], 2)]
    directions = [make(*one.shape) for one in inputs]
    check_slope("MatrixSolveLs", [*inputs, np.array(0.3)], directions, {"fast": True})


@pytest.mark.parametrize("shape", [(3,), (4,), (2, 3)])
@pytest.mark.parametrize("make", [real, complex_])
def test_triangles_of_positive_matrices(shape: Any, make: Any) -> None:
    """The upper half of the input is read by no one; its gradient is that of a matrix that mirrors itself."""
    a = positive(make, *shape)
    direction = make(*a.shape)
    direction = direction + np.conj(np.swapaxes(direction, -1, -2))
    check_slope("Cholesky", [a], [direction], {})


def invariant(op: str, x: Any, full: bool) -> tuple[float, Any]:
    """A number that signs and phases of vectors do not change, and its gradient with respect to x."""
    raw = opkernel.raw_ops
    dtype = opkernel.types.as_dtype(x.dtype)
    with opkernel.Graph().as_default() as graph:
        fed = opkernel.placeholder(dtype, x.shape, name="x")
        attrs: dict[str, Any] = (
            {"compute_v": True} if op != "Svd" else {"compute_uv": True, "full_matrices": full}
        )
        if op == "Qr":
            attrs = {"full_matrices": full}
        if op == "Eig":
            attrs["Tout"] = opkernel.complex128
        results = getattr(raw, op)(input=fed, **attrs)
        total: Any = None
        for number_, result in enumerate(results):
            is_complex = result.dtype.is_complex
            size = raw.ComplexAbs(x=result, Tout=opkernel.float64) if is_complex else result
            size = raw.Square(x=size)
            weights = np.cos(np.arange(1.0, 1 + int(np.prod(size.shape.as_list()))) * (number_ + 1))
            part = raw.Sum(
                input=raw.Mul(x=size, y=weights.reshape(size.shape.as_list())),
                axis=np.arange(size.shape.rank, dtype=np.int32),
            )
            total = part if total is None else raw.AddV2(x=total, y=part)
        (gradient,) = opkernel.gradients(total, [fed])
    with opkernel.Session(graph) as session:
        value, slope = session.run([total, gradient], {fed: x})
    return float(value), slope


FACTORS = [
    ("Qr", (3, 3), False),
    ("Qr", (4, 3), False),
    ("Qr", (2, 3, 3), False),
    ("Qr", (3, 4), False),
    ("Svd", (3, 3), False),
    ("Svd", (4, 3), False),
    ("Svd", (3, 4), False),
    ("Svd", (2, 3, 3), True),
    ("SelfAdjointEigV2", (3, 3), False),
    ("SelfAdjointEigV2", (2, 3, 3), False),
    ("Eig", (3, 3), False),
]


def has_gradient(op: str, shape: tuple[int, ...], make: Any) -> bool:
    """Whether TensorFlow has one: not of complex factors of matrices that are not square."""
    return make is real or op not in ("Svd", "Qr") or shape[-2] == shape[-1]


@pytest.mark.parametrize(
    ("op", "shape", "full", "make"),
    [(*one, make) for one in FACTORS for make in (real, complex_) if has_gradient(*one[:2], make)],
)
def test_factors(op: str, shape: Any, full: bool, make: Any) -> None:
    x = make(*shape)
    if op == "SelfAdjointEigV2":
        x = positive(make, *shape[:-1])
    elif shape[-2] == shape[-1]:
        x = square(make, *shape[:-1])
    direction = make(*shape)
    if op == "SelfAdjointEigV2":
        direction = direction + np.conj(np.swapaxes(direction, -1, -2))
    _, gradient = invariant(op, x, full)
    ahead, behind = (invariant(op, x + h * direction, full)[0] for h in (1e-6, -1e-6))
    slope = np.sum(np.conj(gradient) * direction).real
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-6)


TRANSFORMS: list[Call] = [
    *[(f"{kind}{suffix}", [complex_(2, *shape)], {})
      for kind in ("FFT", "IFFT") for suffix, shape in (("", (5,)), ("2D", (3, 4)), ("3D", (2, 3, 2)))],
    ("RFFT", [real(2, 6), i32(6)], {"Tcomplex": opkernel.complex128}),
    ("RFFT", [real(2, 7), i32(7)], {"Tcomplex": opkernel.complex128}),
    ("RFFT", [real(2, 7), i32(4)], {"Tcomplex": opkernel.complex128}),
    ("RFFT2D", [real(2, 3, 4), i32(3, 4)], {"Tcomplex": opkernel.complex128}),
    ("RFFT2D", [real(2, 3, 5), i32(3, 5)], {"Tcomplex": opkernel.complex128}),
    ("IRFFT", [complex_(2, 4), i32(6)], {"Treal": opkernel.float64}),
    ("IRFFT", [complex_(2, 4), i32(7)], {"Treal": opkernel.float64}),
    ("IRFFT2D", [complex_(2, 3, 3), i32(3, 4)], {"Treal": opkernel.float64}),
    ("IRFFT2D", [complex_(2, 3, 3), i32(3, 5)], {"Treal": opkernel.float64}),
]  # fmt: skip


@pytest.mark.parametrize("call", TRANSFORMS, ids=lambda call: call[0])
def test_transforms(call: Call) -> None:
    check_gradient(call[0], call[1], call[2])


def products() -> list[Call]:
    calls: list[Call] = []
    for make in (real, complex_):
        for a in (False, True):
            for b in (False, True):
                x, y = make(3, 2) if a else make(2, 3), make(4, 3) if b else make(3, 4)
                calls.append(("MatMul", [x, y], {"transpose_a": a, "transpose_b": b}))
                x, y = make(2, *x.shape), make(2, *y.shape)
                for op in ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
                    more = {"Tout": opkernel.types.as_dtype(x.dtype)} if op[-1] == "3" else {}
                    calls.append((op, [x, y], {"adj_x": a, "adj_y": b, **more}))
                calls.append(("BatchMatMulV2", [x[:1], y], {"adj_x": a, "adj_y": b}))
                calls.append(("BatchMatMulV2", [x, y[0]], {"adj_x": a, "adj_y": b}))
                if make is real:
                    f = np.float32
                    attrs = {"transpose_a": a, "transpose_b": b}
                    calls.append(("SparseMatMul", [x[0].astype(f), y[0].astype(f)], attrs))
    return calls


@pytest.mark.parametrize("call", products(), ids=lambda call: call[0])
def test_products(call: Call) -> None:
    check_gradient(call[0], call[1], call[2])


M = real(2, 3, 4)
PARTS: list[Call] = [
    ("Pack", [[real(2, 3), real(2, 3)]], {"axis": 1}),
    ("Pack", [[real(2), real(2), real(2)]], {"axis": -1}),
    ("Unpack", [real(2, 3)], {"num": 3, "axis": 1}),
    ("Concat", [number(1), [real(2, 1), real(2, 3)]], {}),
    ("ConcatV2", [[real(2, 1), real(2, 3), real(2, 2)], number(1)], {}),
    ("ConcatV2", [[real(1, 2), real(3, 2)], number(-2)], {}),
    ("ConcatV2", [[real(2, 1), real(2, 2)], np.array(-1)], {}),
    ("MatrixDiag", [real(2, 3)], {}),
    ("MatrixDiagPart", [M], {}),
    ("MatrixDiagPart", [real(4, 3)], {}),
    ("MatrixSetDiag", [M, real(2, 3)], {}),
    ("Diag", [real(2, 3)], {}),
    ("DiagPart", [real(2, 3, 2, 3)], {}),
    ("MatrixBandPart", [M, np.array(1), np.array(0)], {}),
    *[("MatrixDiagV3", [real(2, 2, 3), i32(*k), number(-1), number(-1), np.array(0.5)], {"align": a})
      for k in ((-1, 0), (0, 1)) for a in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")],
    ("MatrixDiagV2", [real(2, 3), number(1), number(-1), number(-1), np.array(0.5)], {}),
    *[("MatrixDiagPartV3", [M, i32(*k), np.array(0.5)], {"align": a})
      for k in ((-1, 1), (0, 0), (1, 2)) for a in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")],
    ("MatrixDiagPartV2", [M, i32(-1, 0), np.array(0.5)], {}),
    *[("MatrixSetDiagV3", [M, real(2, 2, 3), i32(*k)], {"align": a})
      for k in ((-1, 0), (0, 1)) for a in ("LEFT_RIGHT", "RIGHT_LEFT")],
    ("MatrixSetDiagV2", [M, real(2, 3), number(0)], {}),
    ("TopKV2", [real(2, 5), number(3)], {"sorted": False}),
    ("TopKV2", [real(5), number(1)], {}),
    ("NthElement", [real(2, 5), number(1)], {}),
    ("NthElement", [real(2, 5), number(1)], {"reverse": True}),
    *[("ExtractImagePatches", [real(2, 5, 4, 2)],
       {"ksizes": [1, 2, 3, 1], "strides": [1, s, 1, 1], "rates": [1, r, 1, 1], "padding": p})
      for s in (1, 2) for r in (1, 2) for p in ("SAME", "VALID")],
    *[("ExtractVolumePatches", [real(1, 3, 4, 3, 2)],
       {"ksizes": [1, 2, 2, 1, 1], "strides": [1, 1, s, 1, 1], "padding": p})
      for s in (1, 2) for p in ("SAME", "VALID")],
    *[(f"SparseSegment{kind}", [real(4, 2), i32(0, 2, 2, 3), i32(0, 0, 1, 2)], {})
      for kind in ("Sum", "Mean", "SqrtN")],
    *[(f"SparseSegment{kind}WithNumSegments", [real(4, 2), i32(0, 2, 2, 3), i32(0, 0, 1, 3), number(5)], {})
      for kind in ("Sum", "Mean", "SqrtN")],
    *[(f"Segment{kind}", [real(4, 2), i32(0, 0, 1, 2)], {}) for kind in ("Sum", "Mean", "Max", "Min")],
    *[(f"UnsortedSegment{kind}", [real(4, 2) + 2, i32(2, 0, 2, 1), number(4)], {})
      for kind in ("Sum", "Max", "Min", "Prod")],
    ("Gather", [real(4, 2), i32(3, 0, 3)], {}),
    ("GatherV2", [real(2, 4, 3), i32(3, 0, 3), number(1)], {}),
    ("GatherV2", [real(2, 4, 3), np.array([[1, 0], [2, 2]]), number(-1)], {}),
    ("GatherV2", [real(2, 4, 3), i32([3, 0], [1, 1]), number(1)], {"batch_dims": 1}),
    ("GatherNd", [real(3, 4), i32([2, 1], [0, 0], [2, 1])], {}),
    ("GatherNd", [real(3, 4), i32([2], [0])], {}),
    ("StridedSlice", [real(4, 5), i32(1, -1), i32(4, 0), i32(2, -2)], {}),
    ("StridedSlice", [real(4, 5), i32(1, 2), i32(0, 0), i32(1, 1)], {"shrink_axis_mask": 1, "end_mask": 2}),
    ("StridedSlice", [real(4, 5), i32(0, 1, 2), i32(0, 0, 4), i32(1, 1, 1)],
     {"ellipsis_mask": 1, "new_axis_mask": 2}),
    ("Slice", [real(4, 5), i32(1, 0), i32(2, -1)], {}),
    ("Pad", [real(2, 3), i32([1, 0], [2, 1])], {}),
    ("PadV2", [real(2, 3), i32([1, 0], [2, 1]), np.array(0.5)], {}),
    ("MirrorPad", [real(3, 4), i32([1, 2], [2, 1])], {"mode": "REFLECT"}),
    ("MirrorPad", [real(3, 4), i32([1, 2], [2, 1])], {"mode": "SYMMETRIC"}),
    ("Tile", [real(2, 3), i32(2, 3)], {}),
    ("Reverse", [real(2, 3), np.array([True, False])], {}),
    ("ReverseV2", [real(2, 3), i32(1)], {}),
    ("ReverseSequence", [real(2, 4), np.array([3, 1])], {"seq_dim": 1}),
    ("Roll", [real(3, 4), i32(1, -2), i32(0, 1)], {}),
    ("Transpose", [complex_(2, 3, 4), i32(1, 2, 0)], {}),
    ("ConjugateTranspose", [complex_(2, 3, 4), i32(2, 0, 1)], {}),
    ("BroadcastTo", [real(3, 1), i32(2, 3, 4)], {}),
    ("Split", [number(1), real(2, 4)], {"num_split": 2}),
    ("SplitV", [real(2, 5), i32(1, 3, 1), number(1)], {"num_split": 3}),
    ("DynamicPartition", [real(4, 2), i32(1, 0, 1, 0)], {"num_partitions": 3}),
    ("DynamicStitch", [[i32(0, 2), i32(1)], [real(2, 2), real(1, 2)]], {}),
    ("ScatterNd", [i32([2], [0]), real(2, 3), i32(4, 3)], {}),
    ("TensorScatterUpdate", [real(4, 2), i32([2], [0]), real(2, 2)], {}),
    ("TensorScatterAdd", [real(4, 2), i32([2], [2]), real(2, 2)], {}),
    ("TensorScatterSub", [real(4, 2), i32([2], [2]), real(2, 2)], {}),
    ("SpaceToBatchND", [real(1, 4, 6, 1), i32(2, 3), i32([0, 0], [2, 1])], {}),
    ("BatchToSpaceND", [real(6, 2, 3, 1), i32(2, 3), i32([0, 0], [2, 1])], {}),
    ("SpaceToDepth", [real(1, 4, 2, 2)], {"block_size": 2}),
    ("DepthToSpace", [real(1, 2, 2, 8)], {"block_size": 2}),
]  # fmt: skip


WITHOUT = {"PadV2": [2], "MatrixDiagV2": [4], "MatrixDiagV3": [4]}
WITHOUT |= {"MatrixDiagPartV2": [2], "MatrixDiagPartV3": [2]}
"""The numbers that fill up: TensorFlow has no gradient of them."""


@pytest.mark.parametrize("call", PARTS, ids=lambda call: call[0])
def test_parts_and_choices(call: Call) -> None:
    check_gradient(call[0], call[1], call[2], without=WITHOUT.get(call[0], ()))
