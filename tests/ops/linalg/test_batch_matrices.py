"""Graphs from before GraphDef version 13 run with the old names of the ops of matrices; newer graphs may not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkernel import Graph, Session, import_graph_def, raw_ops
from opkernel.errors import InvalidArgumentError, UnimplementedError
from opkernel.proto import GraphDef
from opkernel.types import as_dtype

pytestmark = pytest.mark.filterwarnings("ignore:Op .* is deprecated:DeprecationWarning")

A = np.array([[[4.0, 2.0], [2.0, 3.0]], [[2.0, -1.0], [-1.0, 5.0]]])
RHS = np.array([[[1.0], [2.0]], [[3.0], [-1.0]]])
LOWER = np.linalg.cholesky(A)


def run_old(op: str, inputs: list[Any], producer: int = 8, **attrs: bool) -> list[Any]:
    made = GraphDef()
    made.versions.producer = producer
    node = made.node.add(name="old", op=op)
    feeds = {}
    for number, value in enumerate(inputs):
        source = made.node.add(name=f"p{number}", op="Placeholder")
        source.attr["dtype"].type = as_dtype(value.dtype)
        node.input.append(source.name)
        feeds[f"p{number}:0"] = value
    node.attr["T"].type = as_dtype(inputs[0].dtype)
    for name, value in attrs.items():
        node.attr[name].b = value
    with Graph().as_default() as graph:
        import_graph_def(made, name="")
        return Session(graph).run(graph.get_operation_by_name("old").outputs, feeds)


CASES = [
    ("BatchCholesky", [A], {}, [LOWER]),
    ("BatchMatrixDeterminant", [A], {}, [np.array([8.0, 9.0])]),
    ("BatchMatrixInverse", [A], {"adjoint": True}, [np.linalg.inv(A)]),
    ("BatchMatrixSolve", [A, RHS], {}, [np.linalg.solve(A, RHS)]),
    ("BatchMatrixSolveLs", [A, RHS, np.array(0.0)], {}, [np.linalg.solve(A, RHS)]),
    ("BatchMatrixTriangularSolve", [LOWER, RHS], {}, [np.linalg.solve(LOWER, RHS)]),
    ("BatchSelfAdjointEigV2", [A], {"compute_v": False}, [np.linalg.eigvalsh(A), np.zeros(0)]),
    ("BatchSvd", [A], {"compute_uv": False}, [np.linalg.eigvalsh(A)[:, ::-1]] + [np.zeros(0)] * 2),
    # from TensorFlow
    (
        "BatchCholeskyGrad",
        [LOWER[:1], np.ones((1, 2, 2))],
        {},
        [[[[0.21338835, 0.0732233], [0.0732233, 0.35355339]]]],
    ),
]


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "wanted"), CASES, ids=[case[0] for case in CASES]
)
def test_old_names_compute_what_their_successors_do(
    op: str, inputs: list[Any], attrs: dict[str, bool], wanted: list[Any]
) -> None:
    for actual, expected in zip(run_old(op, inputs, **attrs), wanted, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-12)


@pytest.mark.parametrize("op", ["SelfAdjointEig", "BatchSelfAdjointEig"])
def test_eigenvalues_stand_above_the_eigenvectors(op: str) -> None:
    (found,) = run_old(op, [A])
    values, vectors = found[:, 0], found[:, 1:]
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A))
    np.testing.assert_allclose(A @ vectors, values[:, None] * vectors, atol=1e-12)
    assert run_old(op, [np.zeros((3, 0, 0), np.float32)])[0].shape == (3, 1, 0)
    with pytest.raises(InvalidArgumentError, match="square"):
        run_old(op, [A[:, :1]])


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("norm", [0.0, 0.01, 0.2, 0.9, 1.5, 5.0, 60.0])
def test_exponentials_of_rotations_are_rotations(dtype: str, norm: float) -> None:
    turn = np.array([[0, -norm], [norm, 0]], dtype)
    c, s = np.cos(norm), np.sin(norm)
    (found,) = run_old("MatrixExponential", [turn[None]])
    tolerance = 1e-4 if turn.real.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, [[[c, -s], [s, c]]], rtol=tolerance, atol=tolerance)


def test_exponentials_of_stacks_scale_each_matrix() -> None:
    (found,) = run_old("MatrixExponential", [np.array([[[3.0]], [[1e-3]], [[np.nan]]])])
    np.testing.assert_allclose(found[:, 0, 0], [np.exp(3), np.exp(1e-3), np.nan])


def test_newer_graphs_name_the_successor() -> None:
    with pytest.raises(UnimplementedError, match="Use Cholesky instead"):
        run_old("BatchCholesky", [A], producer=13)
    with pytest.raises(UnimplementedError, match="SelfAdjointEigV2"):
        raw_ops.SelfAdjointEig(input=A)
