"""Tensors without elements may have any sizes: they are written fast, or refused."""

import contextlib
import re
from typing import Any

import numpy as np
import pytest

import opkernel
from opkernel.cli.results import Result
from opkernel.decompile import decompile
from opkernel.errors import InvalidArgumentError, OpError
from opkernel.graph import graph_def, node_def
from opkernel.opdef import summarize_attr_value
from opkernel.proto import GraphDef, TensorProto
from opkernel.types import DataType, PartialTensorShape

HUGE = [[0, 2**40], [2**40, 0], [0, 2**40, 2**40], [2**30, 0, 2**30], [2**62, 0], [0, 2**63 - 1]]
TYPES = ["float32", "int32", "string", "bool", "bfloat16", "qint8", "complex64"]


def graph_of(shape: list[int], dtype: DataType) -> GraphDef:
    """A constant, and what passes it on, packs it and asks for its shape."""
    value = TensorProto(dtype=dtype, tensor_shape=PartialTensorShape(shape).to_proto())
    return graph_def(
        [
            node_def("c", "Const", dtype=dtype, value=value),
            node_def("Identity", "Identity", ["c"], T=dtype),
            node_def("Shape", "Shape", ["c"], T=dtype, out_type=DataType.DT_INT64),
            node_def("Pack", "Pack", ["c", "c"], T=dtype, N=2),
        ]
    )


def fetched(made: GraphDef, fetch: str, **config: Any) -> Any:
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.import_graph_def(made, name="")
    try:
        with opkernel.Session(graph, **config) as session:
            return np.asarray(session.run(fetch))
    except OpError as error:
        return type(error)


def decompiled(made: GraphDef, fetch: str, with_numpy_only: bool) -> Any:
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.import_graph_def(made, name="")
    try:
        tensor = graph.get_tensor_by_name(fetch)
        program = decompile([], [tensor], "A model", with_numpy_only=with_numpy_only)
    except OpError as error:
        return type(error)
    names: dict[str, Any] = {"__name__": "program", "WEIGHTS": program.weights}
    assert len(program.source) < 100_000
    exec(re.sub("^WEIGHTS = .*", "", program.source, flags=re.MULTILINE), names)
    return names["model"]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", HUGE, ids=str)
def test_tensors_without_elements_may_have_any_sizes(shape: list[int], name: str) -> None:
    dtype = opkernel.types.as_dtype(name)
    made = graph_of(shape, dtype)
    assert len(summarize_attr_value(made.node[0].attr["value"])) < 1000
    for fetch in ("c:0", "Identity:0", "Shape:0", "Pack:0"):
        found = fetched(made, fetch)
        for config in ({"optimize": False}, {"executor_type": "DATAFLOW"}):
            other = fetched(made, fetch, **config)
            if fetch != "Shape:0":  # which needs no array that NumPy might not have
                assert found is other or found.shape == other.shape
        for with_numpy_only in (False, True):
            model = decompiled(made, fetch, with_numpy_only)
            if not isinstance(found, type) and not isinstance(model, type):
                assert model()[0].shape == found.shape
        if not isinstance(found, type):
            check_printed(Result(fetch, as_fetched(dtype, fetch), found))


def as_fetched(dtype: DataType, fetch: str) -> DataType:
    return DataType.DT_INT64 if fetch == "Shape:0" else dtype


def check_printed(result: Result) -> None:
    """As text and as JSON, or refused."""
    for printed in (result.text, lambda: str(result.as_json())):
        with contextlib.suppress(InvalidArgumentError):
            assert len(printed()) < 1000


def test_few_rows_without_elements_are_written() -> None:
    rows = Result("y:0", DataType.DT_FLOAT, np.zeros((2, 0, 5), np.float32)).as_json()
    assert rows == {"dtype": "float32", "shape": [2, 0, 5], "value": [[], []]}
    with pytest.raises(InvalidArgumentError, match="1099511627776 empty rows"):
        Result("y:0", DataType.DT_FLOAT, np.zeros((2**40, 0), np.float32)).as_json()
