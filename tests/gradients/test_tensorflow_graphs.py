"""Graphs with gradients that TensorFlow wrote: convolutional nets, recurrent cells, loops, lookups.

Their gradients have TensorFlow's values here, and so have those that `opkernel.gradients` adds.
`tests/data/make_gradient_graphs.py` made them.
"""

import io
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import Graph, Session, import_graph_def, raw_ops
from opkernel.gradients.gradient_nodes import as_dense
from opkernel.proto import GraphDef

DATA = Path(__file__).resolve().parents[1] / "data" / "gradient_graphs.npz.xz"
MODELS = [
    "as_long_as",
    "attention",
    "convolutions",
    "embedding",
    "gru",
    "images",
    "lists",
    "lstm",
    "nested",
]


class Case:
    """A graph of the archive in a graph of ours."""

    def __init__(self, archive: Any, name: str) -> None:
        with Graph().as_default() as self.graph:
            content = archive[f"{name}/graph"].tobytes()
            import_graph_def(GraphDef.FromString(content), name="")
        self.inputs = [str(tensor) for tensor in archive[f"{name}/inputs"]]
        self.gradients = [str(tensor) for tensor in archive[f"{name}/gradients"]]
        values = [archive[f"{name}/input{i}"] for i in range(len(self.inputs))]
        self.feeds = dict(zip(self.inputs, values, strict=True))
        self.expected = [archive[f"{name}/gradient{i}"] for i in range(len(values))]

    def check(self, gradients: list[Any]) -> None:
        with Session(self.graph) as session:
            found = session.run(gradients, self.feeds)
        for actual, expected in zip(found, self.expected, strict=True):
            np.testing.assert_allclose(actual, expected, rtol=3e-4, atol=3e-5)


@pytest.fixture(scope="module")
def archive() -> Any:
    with lzma.open(DATA) as file:
        return np.load(io.BytesIO(file.read()))


@pytest.mark.parametrize("kind", ["v1", "v2", "tape"])
@pytest.mark.parametrize("model", MODELS)
def test_gradients_that_tensorflow_added(archive: Any, model: str, kind: str) -> None:
    case = Case(archive, f"{model}/{kind}")
    case.check(case.gradients)


@pytest.mark.parametrize("kind", ["v1", "v2"])
@pytest.mark.parametrize("model", MODELS)
def test_gradients_that_are_added_here(archive: Any, model: str, kind: str) -> None:
    case = Case(archive, f"{model}/{kind}")
    with case.graph.as_default():
        y = raw_ops.Sin(x=case.graph.get_tensor_by_name("y:0"))
        xs = [case.graph.get_tensor_by_name(name) for name in case.inputs]
        case.check([as_dense(gradient) for gradient in opkernel.gradients(y, xs)])
