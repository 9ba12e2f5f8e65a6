import pytest

from opkernel.graph import node_def
from opkernel.opdef import (
    OpDefBuilder,
    format_node_def_for_error,
    summarize_attrs,
    summarize_node_def,
    summarize_op_def,
)
from opkernel.proto import NodeDef
from opkernel.types import float32


@pytest.mark.parametrize(
    ("builder", "text"),
    [
        (OpDefBuilder("A"), "Op<name=A; signature= -> >"),
        (
            OpDefBuilder("A")
            .input("a: N * T")
            .input("r: Ref(float)")
            .output("l: L")
            .attr("N: int")
            .attr("T: {float, int32} = DT_FLOAT")
            .attr("L: list(type) >= 0"),
            (
                "Op<name=A; signature=a:N*T, r:Ref(float) -> l:; attr=N:int,min=1; "
                "attr=T:type,default=DT_FLOAT,allowed=[DT_FLOAT, DT_INT32]; attr=L:list(type),min=0>"
            ),
        ),
        (
            OpDefBuilder("A").input("r: Ref(N * T)").attr("N: int").attr("T: type"),
            "Op<name=A; signature=r:Ref(N*T) -> ; attr=N:int,min=1; attr=T:type>",
        ),
        (
            OpDefBuilder("A")
            .set_is_stateful()
            .set_is_aggregate()
            .set_is_commutative()
            .set_is_distributed_communication()
            .set_allows_uninitialized_input(),
            (
                "Op<name=A; signature= -> ; is_commutative=true; is_aggregate=true; is_stateful=true; "
                "allows_uninitialized_input=true; is_distributed_communication=true>"
            ),
        ),
    ],
)
def test_ops(builder, text):
    assert summarize_op_def(builder.finalize().op_def) == text


@pytest.fixture
def node():
    return node_def("n", "Add", ["x", "y:1", "^z"], device="/device:CPU:17", T=float32, A=3)


def test_nodes(node):
    assert summarize_node_def(node) == (
        '{{node n}} = Add[A=3, T=DT_FLOAT, _device="/device:CPU:17"](x, y:1, ^z)'
    )
    assert summarize_node_def(node, 1).endswith("](x, ...)")
    assert summarize_node_def(node, 3).endswith("](x, y:1, ^z)")
    assert summarize_attrs(NodeDef()) == ""


def test_a_node_is_named_by_the_nodes_that_it_came_from(node):
    assert format_node_def_for_error(node) == "{{node n}}"
    node.experimental_debug_info.original_node_names.extend(["a", "b"])
    node.experimental_debug_info.original_func_names.append("f")
    assert format_node_def_for_error(node) == "{{function_node f}}{{node a}}, {{node b}}"
