"""Datasets as graphs: what cannot be written is refused, and so are graphs that give no dataset."""

from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel import errors, raw_ops
from opkernel.data import Dataset
from opkernel.proto import GraphDef


def graph_of(dataset: Dataset, **attrs: Any) -> GraphDef:
    text = raw_ops.DatasetToGraphV2(input_dataset=dataset.variant_tensor, **attrs)
    return GraphDef.FromString(np.asarray(text).item())


def test_the_nodes_of_a_graph_are_tensorflows() -> None:
    graph = graph_of(Dataset.range(5).map(lambda x: x * 2).batch(2))
    assert [node.op for node in graph.node] == [
        *["Const"] * 3, "RangeDataset", "MapDataset", *["Const"] * 2, "BatchDatasetV2", "_Retval"
    ]  # fmt: skip
    assert graph.node[-1].name == "dataset"
    assert len(graph.library.function) == 1


def test_what_cannot_be_written() -> None:
    spec = opkernel.TensorSpec([], opkernel.int64)
    with pytest.raises(errors.UnimplementedError, match="no node has made it"):
        graph_of(Dataset.from_generator(lambda: [1], output_signature=spec).take(1))
    drawn = Dataset.range(3).map(
        lambda _: raw_ops.RandomUniform(shape=np.zeros(0, np.int32), dtype=opkernel.float32)
    )
    assert len(graph_of(drawn, external_state_policy=1).library.function) == 1
    with pytest.raises(errors.FailedPreconditionError, match="which has state"):
        graph_of(drawn, external_state_policy=2)
    with pytest.raises(errors.FailedPreconditionError, match="which has state"):
        raw_ops.DatasetToGraph(input_dataset=drawn.variant_tensor)


@pytest.mark.parametrize(
    "graph", [b"no graph", b"", GraphDef(node=[{"name": "a", "op": "NoOp"}]).SerializeToString()]
)
def test_graphs_without_dataset_are_refused(graph: bytes) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        raw_ops.DatasetFromGraph(graph_def=graph)


def test_different_pipelines_have_different_numbers() -> None:
    def number(dataset: Dataset) -> int:
        return int(raw_ops.DatasetFingerprint(input_dataset=dataset.variant_tensor))

    made = [Dataset.range(3).batch(2), Dataset.range(4).batch(2), Dataset.range(3).batch(1)]
    assert len({number(one) for one in made}) == 3
    assert number(Dataset.range(3).map(lambda x: x + 1)) == number(
        Dataset.range(3).map(lambda x: x + 1)
    )
