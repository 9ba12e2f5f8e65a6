"""Gradients of the ops of opkernel.ops.math against finite differences."""

import numpy as np
import pytest

from opkernel.testing import check_gradient

X = np.array([[0.31, 0.72, 0.53], [0.24, 0.45, 0.86]])
Y = np.array([1.4, 0.7, 2.3])
SIGNED = np.array([[-1.5, 0.6, 2.1], [1.2, -0.25, -0.7]])
ABOVE_ONE = X + 1.2
Z = X + 1j * SIGNED
TIED = np.array([[1.0, 2.0, 2.5], [3.0, 3.5, 1.5]])

UNARY = {
    "Abs Neg Square Sign Tan Sin Cos Tanh Sinh Cosh Asinh Atan Exp Expm1 Sigmoid Erf Erfc": SIGNED,
    "Acos Asin Atanh Sqrt Rsqrt Log Log1p Inv Reciprocal Erfinv Ndtri Lgamma Digamma": X,
    "Acosh": ABOVE_ONE,
    "Floor Ceil Rint Round": SIGNED * 0.9,
}
COMPLEX_UNARY = (
    "Neg Square Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh "
    "Atanh Sigmoid Reciprocal Conj"
)


@pytest.mark.parametrize(("op", "x"), [(o, x) for ops, x in UNARY.items() for o in ops.split()])
def test_of_one_operand(op, x):
    check_gradient(op, [x])


@pytest.mark.parametrize("op", COMPLEX_UNARY.split())
def test_of_one_complex_operand(op):
    check_gradient(op, [Z])


BINARY = {
    "Add AddV2 Sub Mul Div RealDiv DivNoNan SquaredDifference Maximum Minimum Pow Xdivy Xlogy": (
        X,
        Y,
    ),
    "Xlog1py Atan2 MulNoNan Igamma Igammac": (ABOVE_ONE, Y),
    "FloorMod": (ABOVE_ONE + 4, Y),
    "NextAfter": (X, Y),
}


@pytest.mark.parametrize("op", [op for ops in BINARY for op in ops.split()])
@pytest.mark.parametrize("repeated", ["second", "first", "both", "none"])
def test_of_two_operands_that_are_broadcast(op, repeated):
    x, y = next(operands for ops, operands in BINARY.items() if op in ops.split())
    operands = {
        "second": (x, y),
        "first": (x[0, :1], y),
        "both": (x[:, :1], y),
        "none": (x, np.stack([y, y * 1.1])),
    }
    without = {"NextAfter": [1], "Igamma": [0], "Igammac": [0]}.get(op, [])
    check_gradient(op, operands[repeated], without=without)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "RealDiv", "Pow", "DivNoNan"])
def test_of_two_complex_operands(op):
    check_gradient(op, [Z, Y + 0.3j])


@pytest.mark.parametrize(("op", "order"), [("Zeta", 2.5), ("Polygamma", 2.0)])
def test_of_functions_whose_first_operand_counts_as_constant(op, order):
    check_gradient(op, [np.array(order), ABOVE_ONE], without=[0])


def test_of_sums_of_many():
    check_gradient("AddN", [[X, SIGNED, X]])


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm"])
@pytest.mark.parametrize("axes", [0, [1], [-1, 0], [], [0, 1]])
@pytest.mark.parametrize("keep_dims", [False, True])
def test_of_reductions(op, axes, keep_dims):
    check_gradient(op, [TIED, np.array(axes, np.int32)], {"keep_dims": keep_dims})


def test_of_a_product_with_zeros():
    check_gradient("Prod", [np.array([[0.0, 2.0, 0.5], [0.0, 3.0, 0.0]]), np.array([1])])


def test_of_l2_loss():
    check_gradient("L2Loss", [SIGNED])


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("op", ["Cumsum", "Cumprod"])
def test_of_scans(op, exclusive, reverse):
    attrs = {"exclusive": exclusive, "reverse": reverse}
    check_gradient(op, [SIGNED, np.array(1, np.int32)], attrs)


@pytest.mark.parametrize("reverse", [False, True])
def test_of_scans_of_logarithms(reverse):
    check_gradient("CumulativeLogsumexp", [SIGNED, np.array(-1, np.int32)], {"reverse": reverse})


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("imaginary", [0, 0.5j])
def test_of_products_of_matrices(transpose_a, transpose_b, imaginary):
    a, b = X + imaginary, np.arange(1.0, 7).reshape(3, 2) + imaginary
    flipped = [a.T if transpose_a else a, b.T if transpose_b else b]
    check_gradient("MatMul", flipped, {"transpose_a": transpose_a, "transpose_b": transpose_b})


@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
@pytest.mark.parametrize(
    ("op", "x_batch", "y_batch"),
    [
        ("BatchMatMulV2", [], []),
        ("BatchMatMulV2", [2], []),
        ("BatchMatMulV2", [2, 1], [3]),
        ("BatchMatMulV3", [2], [2]),
    ],
)
def test_of_batches_of_products(adj_x, adj_y, op, x_batch, y_batch):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(*x_batch, 2, 3)), random.normal(size=(*y_batch, 3, 2))
    operands = [np.swapaxes(x, -1, -2) if adj_x else x, np.swapaxes(y, -1, -2) if adj_y else y]
    attrs = {"adj_x": adj_x, "adj_y": adj_y}
    check_gradient(op, operands, attrs | ({"Tout": "double"} if op.endswith("V3") else {}))


def test_of_select():
    condition = SIGNED > 0
    check_gradient("Select", [condition, X, SIGNED])
    check_gradient("Select", [np.array([True, False]), X, SIGNED])
    check_gradient("SelectV2", [condition, X, Y])
    check_gradient("SelectV2", [condition[:, :1], np.array(2.0), Y])


def test_of_clip_by_value():
    check_gradient("ClipByValue", [SIGNED, np.array(-0.5), np.array(1.3)])


def test_of_casts():
    check_gradient("Cast", [SIGNED], {"DstT": "complex128"})


def test_of_parts_of_complex_numbers():
    check_gradient("Complex", [X, SIGNED], {"Tout": "complex128"})
    for op in ("Real", "Imag", "Angle", "ComplexAbs"):
        check_gradient(op, [Z], {"Tout": "double"})


def test_of_cross():
    check_gradient("Cross", [X, SIGNED])


IDS = np.array([0, 0, 1, 3, 3], np.int32)
ROWS = np.array([[0.3, 1.4], [2.2, -0.8], [1.1, 0.9], [-1.7, 2.6], [0.7, 1.9]])


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min", "Prod"])
def test_of_segments(op):
    check_gradient(f"Segment{op}", [ROWS, IDS])


@pytest.mark.parametrize("op", ["Sum", "Max", "Min", "Prod"])
def test_of_unsorted_segments(op):
    ids = np.array([2, -1, 0, 2, 1], np.int32)
    check_gradient(f"UnsortedSegment{op}", [ROWS, ids, np.array(3, np.int32)])
    square = np.array([[0, 1], [1, 0]], np.int32)
    check_gradient(f"UnsortedSegment{op}", [ROWS[:2], square, np.array(2, np.int32)])


@pytest.mark.parametrize("op", ["Segment", "UnsortedSegment"])
def test_of_products_of_segments_with_zeros(op):
    rows = np.array([[0.0, 1.4], [2.2, 0.0], [1.1, 0.0], [0.0, 2.6], [0.0, 1.9]])
    number = [np.array(4, np.int32)] if op == "UnsortedSegment" else []
    check_gradient(f"{op}Prod", [rows, IDS, *number])


def test_of_the_largest():
    check_gradient("TopKV2", [SIGNED, np.array(2, np.int32)])
    check_gradient("TopKV2", [ROWS.reshape(5, 1, 2), np.array(1, np.int32)])
    check_gradient("NthElement", [SIGNED, np.array(1, np.int32)])


@pytest.mark.parametrize("op", ["Xdivy", "Xlogy", "Xlog1py"])
def test_of_products_that_are_zero_where_the_first_operand_is(op):
    """It counts where it is 1, as any other number does."""
    check_gradient(op, [np.array([1.0, 2.0, -1.0]), Y])
