"""node_def, func, function_def and graph_def: the messages they make, as TensorFlow's NDef and its kin do."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

import opkernel
from opkernel import float32, int32, int64
from opkernel.errors import InvalidArgumentError
from opkernel.graph import func, function_def, graph_def, node_def
from opkernel.opdef import GRAPH_DEF_VERSION
from opkernel.proto import AttrValue, FunctionDef, GraphDef, NodeDef
from opkernel.types import DataType, tensor_from_proto


def two():
    return node_def("two", "Const", dtype=int64, value=np.array(2, np.int64))


X_TIMES_TWO_NODES = [
    two(),
    node_def("scale", "Cast", ["two"], SrcT=int64, DstT="$T"),
    node_def("y", "Mul", ["x", "scale"], T="$T"),
]
T = ["T: {float, double, int32, int64}"]
X_TIMES_TWO = """
signature {
  name: "XTimesTwo"
  input_arg { name: "x" type_attr: "T" }
  output_arg { name: "y" type_attr: "T" }
  attr {
    name: "T" type: "type"
    allowed_values { list { type: [DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64] } }
  }
}
node_def {
  name: "two" op: "Const"
  attr { key: "dtype" value { type: DT_INT64 } }
  attr { key: "value" value { tensor { dtype: DT_INT64 tensor_shape {} tensor_content: "\\002\\000\\000\\000\\000\\000\\000\\000" } } }
}
node_def {
  name: "scale" op: "Cast" input: "two:output:0"
  attr { key: "SrcT" value { type: DT_INT64 } }
  attr { key: "DstT" value { placeholder: "T" } }
}
node_def {
  name: "y" op: "Mul" input: ["x", "scale:y:0"]
  attr { key: "T" value { placeholder: "T" } }
}
ret { key: "y" value: "y:z:0" }
"""
"""What function_testlib.cc makes of XTimesTwo."""


def gradient_of_pack():
    """A graph of TensorFlow's tests of gradients."""
    pack = func("Pack", N=2, T=float32, axis=0)
    return graph_def(
        [
            *[node_def(name, "Placeholder", dtype=float32) for name in ("x0", "x1", "dy")],
            node_def(
                "dx",
                "SymbolicGradient",
                ["x0", "x1", "dy"],
                f=pack,
                Tin=[float32] * 3,
                Tout=[float32] * 2,
            ),
        ]
    )


def calls_of_functions():
    """Without type attrs, which TensorFlow's Python knows no functions with."""
    body = [node_def("y", "AddV2", ["x", "x"], T=float32)]
    twice = function_def("XTimesTwo", ["x: float"], ["y: float"], body)
    calls = [node_def("x2", "XTimesTwo", ["x"]), node_def("y", "XTimesTwo", ["x2:y:0"])]
    four = function_def("XTimesFour", ["x: float"], ["y: float"], calls, ret={"y": "y:y:0"})
    x = node_def("x", "Placeholder", dtype=float32)
    return graph_def([x, node_def("y", "XTimesFour", ["x"])], [twice, four])


class TestNodeDef:
    def test_it_is_the_message(self):
        made = node_def("n", "Op", ["a", "b:1", "^c"], device="/cpu:0", k=2, T=float32)
        assert made == NodeDef(
            name="n",
            op="Op",
            input=["a", "b:1", "^c"],
            device="/cpu:0",
            attr={"k": AttrValue(i=2), "T": AttrValue(type=1)},
        )

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (2, "i: 2"),
            (True, "b: true"),
            (0.5, "f: 0.5"),
            ("SAME", "s: 'SAME'"),
            (b"\xff", r"s: '\377'"),
            ("$T", "placeholder: 'T'"),
            ("$", "s: '$'"),
            (float32, "type: DT_FLOAT"),
            ([float32, int32], "list { type: [DT_FLOAT, DT_INT32] }"),
            ([], "list {}"),
            (opkernel.TensorShape([2]), "shape { dim { size: 2 } }"),
            (np.float32(3) * np.ones(()), "f: 3"),
            (
                np.ones([1], np.int32),
                r"tensor { dtype: DT_INT32 tensor_shape { dim { size: 1 } } tensor_content: '\001\000\000\000' }",
            ),
            (func("F", T="$U"), "func { name: 'F' attr { key: 'T' value { placeholder: 'U' } } }"),
            ([func("F")], "list { func { name: 'F' } }"),
            (AttrValue(i=7), "i: 7"),
        ],
    )
    def test_the_attr_is_of_the_type_of_the_object(self, value, text):
        assert node_def("n", "Op", a=value).attr["a"] == text_format.Parse(text, AttrValue())

    def test_a_numpy_scalar_is_a_tensor_where_the_op_declares_one(self):
        made = node_def("c", "Const", value=np.int64(2), dtype=opkernel.int64)
        assert made.attr["value"].tensor.dtype == DataType.DT_INT64
        assert tensor_from_proto(made.attr["value"].tensor) == 2
        assert node_def("p", "Pack", N=np.int64(2)).attr["N"].i == 2
        assert node_def("n", "Op", value=np.int64(2)).attr["value"].i == 2

    def test_attrs_may_be_called_name_op_and_inputs(self):
        made = node_def("n", "Op", name="a", op="b", inputs=3)
        assert (made.name, made.attr["name"].s, made.attr["inputs"].i) == ("n", b"a", 3)

    def test_an_object_that_is_no_attr(self):
        with pytest.raises(InvalidArgumentError, match="is not a value for an attr of any type"):
            node_def("n", "Op", a=object())


class TestFunctionDef:
    def test_names_of_nodes_stand_for_their_first_output(self):
        made = function_def("XTimesTwo", ["x: T"], ["y: T"], X_TIMES_TWO_NODES, attrs=T)
        assert made == text_format.Parse(X_TIMES_TWO, FunctionDef())

    def test_outputs_may_be_written_in_full(self):
        nodes = [
            two(),
            node_def("scale", "Cast", ["two:output:0"], SrcT=int64, DstT="$T"),
            node_def("y", "Mul", ["x", "scale:y:0"], T="$T"),
        ]
        made = function_def("XTimesTwo", ["x: T"], ["y: T"], nodes, attrs=T, ret={"y": "y:z:0"})
        assert made == text_format.Parse(X_TIMES_TWO, FunctionDef())

    @pytest.mark.parametrize(
        ("op", "is_stateful"),
        [("Neg", False), ("RandomStandardNormal", True), ("FunctionOfNobody", True)],
    )
    def test_state_of_a_node_is_that_of_the_function(self, op, is_stateful):
        made = function_def("F", ["x: float"], [], [node_def("n", op, ["x"])])
        assert made.signature.is_stateful is is_stateful

    def test_control_outputs_and_control_inputs(self):
        nodes = [node_def("a", "NoOp"), node_def("b", "NoOp", ["^a"])]
        made = function_def("F", ["x: float"], ["y: float"], nodes, ret={"y": "x"},
                            control_ret={"done": "b"})  # fmt: skip
        assert list(made.signature.control_output) == ["done"]
        assert (dict(made.ret), dict(made.control_ret)) == ({"y": "x"}, {"done": "b"})
        assert list(made.node_def[1].input) == ["^a"]

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"nodes": [node_def("n", "Neg", ["q"])]}, "Node input of 'n' in 'F' is 'q'"),
            ({"outputs": ["y: float"]}, "Return 'y' in 'F' is 'y'"),
            ({"ret": {"z": "x"}}, "Function 'F' has no output 'z'"),
            ({"inputs": ["x: nothing"]}, "Reference to unknown attr 'nothing'"),
        ],
    )
    def test_what_is_refused(self, arguments, message):
        with pytest.raises(InvalidArgumentError, match=message):
            function_def("F", **{"inputs": ["x: float"], "outputs": [], "nodes": [], **arguments})


def test_a_graph_has_the_present_version():
    made = graph_def([node_def("n", "NoOp")])
    assert made.versions.producer == GRAPH_DEF_VERSION
    assert [node.name for node in made.node] == ["n"]


DY = np.arange(4, dtype=np.float32).reshape(2, 2)
ZEROS = np.zeros(2, np.float32)
MADE: dict[str, Any] = {
    "gradient": (
        gradient_of_pack(),
        ["dx:0", "dx:1"],
        {"x0:0": ZEROS, "x1:0": ZEROS, "dy:0": DY},
        [[0, 1], [2, 3]],
    ),
    "functions": (calls_of_functions(), ["y:0"], {"x:0": DY}, [[[0, 4], [8, 12]]]),
}


@pytest.mark.parametrize("name", MADE)
def test_the_graphs_run(name):
    made, fetches, feeds, expected = MADE[name]
    graph = opkernel.Graph()
    with graph.as_default():
        opkernel.import_graph_def(made, name="")
    found = opkernel.Session(graph).run(fetches, feeds)
    assert [array.tolist() for array in found] == expected


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", MADE)
def test_tensorflow_takes_the_graphs(name, tf: ModuleType):
    made, fetches, feeds, expected = MADE[name]
    with tf.Graph().as_default() as graph:
        theirs = tf.compat.v1.GraphDef.FromString(made.SerializeToString())
        tf.compat.v1.import_graph_def(theirs, name="")
    found = tf.compat.v1.Session(graph=graph).run(fetches, feeds)
    assert [array.tolist() for array in found] == expected


@pytest.mark.tensorflow
def test_tensorflow_writes_the_same_node(tf: ModuleType):
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2, None], name="x")
        tf.raw_ops.LeakyRelu(features=x, alpha=0.5, name="y")
    own = [
        node_def("x", "Placeholder", dtype=float32, shape=opkernel.PartialTensorShape([2, None])),
        node_def("y", "LeakyRelu", ["x"], alpha=0.5, T=float32),
    ]
    theirs = GraphDef.FromString(graph.as_graph_def().SerializeToString())
    assert own == list(theirs.node)
