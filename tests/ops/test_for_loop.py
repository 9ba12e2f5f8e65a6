"""For; expected values are TensorFlow's."""

from typing import Any

import pytest
from google.protobuf import text_format

from opkernel import Graph, Session, import_graph_def
from opkernel.errors import InvalidArgumentError
from opkernel.proto import GraphDef

GRAPH = """
node {{ name: "start" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT32 }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ {dims} }} int_val: {start} }} }} }} }}
node {{ name: "limit" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT32 }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: {limit} }} }} }} }}
node {{ name: "delta" op: "Const" attr {{ key: "dtype" value {{ type: DT_INT32 }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_INT32 tensor_shape {{ }} int_val: {delta} }} }} }} }}
node {{ name: "x" op: "Const" attr {{ key: "dtype" value {{ type: DT_FLOAT }} }}
  attr {{ key: "value" value {{ tensor {{ dtype: DT_FLOAT tensor_shape {{ }} float_val: 100 }} }} }} }}
node {{ name: "for" op: "For" input: "start" input: "limit" input: "delta" input: "x"
  attr {{ key: "T" value {{ list {{ type: DT_FLOAT }} }} }}
  attr {{ key: "body" value {{ func {{ name: "{body}" }} }} }} }}
library {{
  function {{
    signature {{ name: "add" input_arg {{ name: "i" type: DT_INT32 }} input_arg {{ name: "x" type: DT_FLOAT }}
      output_arg {{ name: "y" type: DT_FLOAT }} }}
    node_def {{ name: "f" op: "Cast" input: "i" attr {{ key: "SrcT" value {{ type: DT_INT32 }} }}
      attr {{ key: "DstT" value {{ type: DT_FLOAT }} }} }}
    node_def {{ name: "sum" op: "AddV2" input: "x" input: "f:y:0" attr {{ key: "T" value {{ type: DT_FLOAT }} }} }}
    ret {{ key: "y" value: "sum:z:0" }}
  }}
  function {{
    signature {{ name: "other_type" input_arg {{ name: "i" type: DT_INT32 }}
      input_arg {{ name: "x" type: DT_FLOAT }} output_arg {{ name: "y" type: DT_INT32 }} }}
    ret {{ key: "y" value: "i" }}
  }}
}}
versions {{ producer: 1395 }}
"""


def run(start: int, limit: int, delta: int, body: str = "add", dims: str = "") -> Any:
    text = GRAPH.format(start=start, limit=limit, delta=delta, body=body, dims=dims)
    graph = Graph()
    with graph.as_default():
        import_graph_def(text_format.Parse(text, GraphDef()), name="")
    with Session(graph) as session:
        return session.run("for:0")


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0, 5, 1), 110),
        ((5, 0, -1), 115),
        ((0, 5, 2), 106),
        ((0, 0, 0), 100),
        ((3, 3, 1), 100),
        ((0, 0, -1), 100),
        ((2**31 - 8, 2**31 - 1, 5), 2**32),  # a formula, in float32: TensorFlow crashes
    ],
)
def test_the_body_is_called_for_each_number(numbers: tuple[int, int, int], expected: float) -> None:
    assert run(*numbers) == expected


@pytest.mark.parametrize("numbers", [(0, 5, 0), (5, 0, 1), (0, 5, -1)])
def test_steps_that_lead_away(numbers: tuple[int, int, int]) -> None:
    with pytest.raises(InvalidArgumentError, match="Invalid start/limit/delta"):
        run(*numbers)


def test_the_range_consists_of_scalars() -> None:
    with pytest.raises(InvalidArgumentError, match=r"start must be a scalar, got shape \[1\]"):
        run(0, 5, 1, dims="dim { size: 1 }")


def test_a_body_that_gives_another_type() -> None:
    with pytest.raises(InvalidArgumentError, match="other types: expected float, got int32"):
        run(0, 2, 1, "other_type")
